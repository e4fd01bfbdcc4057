-- Some of the jobs that run under a concurrency limit. Index: live_limit. A range in its order, not =:
-- see PLANS in connections/session.rs.
SELECT id FROM mainspring.live WHERE limit_key >= $1 AND limit_key <= $1 ORDER BY limit_key LIMIT $2

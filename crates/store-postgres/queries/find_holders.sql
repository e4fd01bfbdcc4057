-- Some of the jobs that run under a concurrency limit. Index: live_limit.
SELECT id FROM mainspring.live WHERE limit_key = $1 LIMIT $2

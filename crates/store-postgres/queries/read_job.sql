-- One job, with where it stands.
-- Index: the primary keys of job, live and finished. Locks: none.
SELECT j.id, j.lane, j.priority, j.max_retries, j.timeout_ms, j.created_at, j.run_at, j.user_id, j.payload, j.trace, j.more::text, l.version, l.record, f.record
FROM mainspring.job j
LEFT JOIN mainspring.live l ON l.id = j.id
LEFT JOIN mainspring.finished f ON f.id = j.id
WHERE j.id = $1

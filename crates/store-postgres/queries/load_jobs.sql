-- Jobs by id, with where they stand.
-- Index: the primary keys of job, live and finished, a probe for each id. Locks: none.
SELECT j.id, j.lane, j.priority, j.max_retries, j.timeout_ms, j.created_at, j.run_at, j.user_id, j.payload, j.trace, j.more::text, l.version, l.record, f.record
FROM unnest($1::uuid[]) w (id)
CROSS JOIN LATERAL (SELECT * FROM mainspring.job j WHERE j.id = w.id LIMIT 1) j
LEFT JOIN LATERAL (
    SELECT version, record FROM mainspring.live l WHERE l.id = w.id LIMIT 1
) l ON true
LEFT JOIN LATERAL (
    SELECT record FROM mainspring.finished f WHERE f.id = w.id LIMIT 1
) f ON true

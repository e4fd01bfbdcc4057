-- The first ready jobs of each lane after where this server has looked before, with all that a
-- worker gets, for handing out soon: the claim deletes the rows, and fails if somebody else did.
-- Index: the primary keys of ready, job and live. Locks: none.
SELECT r.lane, r.key, j.id, j.lane, j.priority, j.max_retries, j.timeout_ms, j.created_at, j.run_at, j.user_id, j.payload, j.trace, j.more::text, l.version, l.record
FROM unnest($1::int[], $2::bigint[], $3::uuid[]) w (lane, key, id)
CROSS JOIN LATERAL (
    SELECT r.lane, r.key, r.id, r.is_retry FROM mainspring.ready r
    WHERE r.lane = w.lane AND (r.key, r.id) > (w.key, w.id)
    ORDER BY r.key, r.id LIMIT $4
) r
CROSS JOIN LATERAL (SELECT * FROM mainspring.job j WHERE j.id = r.id LIMIT 1) j
LEFT JOIN LATERAL (
    SELECT version, record FROM mainspring.live l WHERE r.is_retry AND l.id = r.id LIMIT 1
) l ON true

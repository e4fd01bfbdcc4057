-- Entities by kind and id.
-- Index: the primary key. Locks: none; changes name the version they were decided on.
SELECT e.record
FROM unnest($1::smallint[], $2::uuid[]) w (kind, id)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.entity e WHERE e.kind = w.kind AND e.id = w.id LIMIT 1
) e

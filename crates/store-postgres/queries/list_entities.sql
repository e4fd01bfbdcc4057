-- A page of a list of entities, from $3 downwards. Index: the primary keys.
SELECT e.record
FROM (
    SELECT kind, id FROM mainspring.entity_term
    WHERE term = $1 AND kind = $2 AND id <= $3 ORDER BY id DESC LIMIT $4
) t
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.entity e WHERE e.kind = t.kind AND e.id = t.id LIMIT 1
) e
ORDER BY t.id DESC

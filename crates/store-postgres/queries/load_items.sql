-- Dead-letter items by id.
-- Index: the primary key. Locks: none; changes name the version they were decided on.
SELECT i.id, i.version, i.record
FROM unnest($1::uuid[]) w (id)
CROSS JOIN LATERAL (SELECT * FROM mainspring.item i WHERE i.id = w.id LIMIT 1) i

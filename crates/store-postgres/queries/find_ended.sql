-- Which of these jobs have ended. Index: the primary key of finished. Locks: none.
SELECT w.id
FROM unnest($1::uuid[]) w (id)
CROSS JOIN LATERAL (SELECT 1 FROM mainspring.finished f WHERE f.id = w.id LIMIT 1) f

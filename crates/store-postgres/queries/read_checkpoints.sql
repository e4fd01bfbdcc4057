-- What workers left for the next try of these jobs. Index: the primary key.
SELECT c.job, c.value FROM unnest($1::uuid[]) w (job)
CROSS JOIN LATERAL (SELECT * FROM mainspring.checkpoint c WHERE c.job = w.job LIMIT 1) c

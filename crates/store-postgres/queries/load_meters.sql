-- Buckets and circuits. Index: the primary key. Locks: none, see lock_limits.
SELECT w.key, m.record FROM unnest($1::uuid[]) w (key)
CROSS JOIN LATERAL (SELECT record FROM mainspring.meter m WHERE m.key = w.key LIMIT 1) m

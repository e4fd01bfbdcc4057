-- Buckets and circuits as they are now. Index: the primary key. Locks: see lock_limits.
INSERT INTO mainspring.meter (key, idle_from, record)
SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::bytea[])
ON CONFLICT (key) DO UPDATE SET idle_from = EXCLUDED.idle_from, record = EXCLUDED.record

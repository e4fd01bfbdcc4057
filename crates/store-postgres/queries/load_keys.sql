-- Who holds idempotency keys. Index: the primary key. Locks: none; taking a key is an insert.
SELECT k.hash, k.job, k.fingerprint, k.free_at
FROM unnest($1::uuid[]) w (hash)
CROSS JOIN LATERAL (SELECT * FROM mainspring.held_key k WHERE k.hash = w.hash LIMIT 1) k

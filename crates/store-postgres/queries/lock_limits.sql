-- Makes servers take turns at counting under the same concurrency limits. In the order of the keys,
-- so that nobody waits in a ring. Locks: one per key, until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('mainspring.limit' || k.key::text, 0))
FROM (SELECT key FROM unnest($1::uuid[]) w (key) ORDER BY key) k

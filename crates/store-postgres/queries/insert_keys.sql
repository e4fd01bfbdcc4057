-- Takes idempotency keys: free ones, and those whose holder was seen to have let go. A key that
-- somebody took meanwhile stays theirs and fails the transaction. Index: the primary key.
WITH taken AS (
    INSERT INTO mainspring.held_key AS k (hash, job, fingerprint, free_at)
    SELECT w.hash, w.job, w.fingerprint, w.free_at
    FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $5::timestamptz[])
        w (hash, job, fingerprint, free_at)
    ON CONFLICT (hash) DO UPDATE
    SET job = excluded.job, fingerprint = excluded.fingerprint, free_at = excluded.free_at
    WHERE k.job = (
        SELECT o.old FROM unnest($1::uuid[], $4::uuid[]) o (hash, old) WHERE o.hash = k.hash
    )
    RETURNING 1
)
SELECT mainspring.expect(count(*), cardinality($1)) FROM taken

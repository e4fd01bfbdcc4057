-- Effects that are committed: one that is there already fails the transaction.
INSERT INTO mainspring.effect (job, name, number, value, committed_at)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[], $4::text[], $5::timestamptz[])

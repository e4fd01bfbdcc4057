-- What workers leave for the next try. Index: the primary key. Only the holder of a lease writes here,
-- in a commit that names the version of its job.
INSERT INTO mainspring.checkpoint (job, value) SELECT * FROM unnest($1::uuid[], $2::text[])
ON CONFLICT (job) DO UPDATE SET value = excluded.value

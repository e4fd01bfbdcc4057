-- Jobs that are due.
INSERT INTO mainspring.ready (lane, key, id, due_at, is_retry)
SELECT * FROM unnest($1::int[], $2::bigint[], $3::uuid[], $4::timestamptz[], $5::boolean[])

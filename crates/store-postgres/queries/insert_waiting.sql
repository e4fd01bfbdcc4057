-- Jobs that are not due yet.
INSERT INTO mainspring.waiting (id, due_at, lane, key, is_retry)
SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::int[], $4::bigint[], $5::boolean[])

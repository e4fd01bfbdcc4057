-- Jobs that have ended.
INSERT INTO mainspring.finished (id, state, finished_at, record)
SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::timestamptz[], $4::bytea[])

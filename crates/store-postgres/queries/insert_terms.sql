-- Facts about jobs that lists go by.
INSERT INTO mainspring.term (term, id) SELECT * FROM unnest($1::bigint[], $2::uuid[])
ON CONFLICT DO NOTHING

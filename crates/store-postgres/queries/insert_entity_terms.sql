-- What lists find entities by.
INSERT INTO mainspring.entity_term (term, kind, id)
SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::uuid[])
ON CONFLICT DO NOTHING

-- Facts about dead-letter items that lists go by.
INSERT INTO mainspring.item_term (term, id) SELECT * FROM unnest($1::bigint[], $2::uuid[])
ON CONFLICT DO NOTHING

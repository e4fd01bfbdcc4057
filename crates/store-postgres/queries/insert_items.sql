-- New dead-letter items.
INSERT INTO mainspring.item (id, version, state, tenant, user_id, type, created_at, record)
SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::timestamptz[], $8::bytea[])

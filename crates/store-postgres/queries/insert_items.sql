-- New dead-letter items, listed by the facts that are written with them.
INSERT INTO mainspring.item
    (id, version, state, tenant, user_id, type, created_at, record, is_listed)
SELECT w.*, true FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[],
    $7::timestamptz[], $8::bytea[]) w

-- New entities.
INSERT INTO mainspring.entity (kind, id, version, tenant, owner, state, alarm_at, record)
SELECT * FROM unnest($1::smallint[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[],
    $7::timestamptz[], $8::bytea[])

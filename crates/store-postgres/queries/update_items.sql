-- Changes to dead-letter items, each on the version it was decided on. Index: the primary key.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
WITH changed AS (
    UPDATE mainspring.item i SET version = w.version, state = w.state, record = w.record
    FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::bytea[])
        w (id, was, version, state, record)
    WHERE i.id = ANY (ARRAY[w.id]) AND i.version = w.was
    RETURNING 1
)
SELECT mainspring.expect(count(*), cardinality($1)) FROM changed

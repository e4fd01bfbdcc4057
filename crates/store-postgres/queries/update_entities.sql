-- Changes to entities, each on the version it was decided on. Index: the primary key.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
WITH changed AS (
    UPDATE mainspring.entity e
    SET version = w.version, state = w.state, alarm_at = w.alarm_at, record = w.record
    FROM unnest($1::smallint[], $2::uuid[], $3::int[], $4::int[], $5::text[], $6::timestamptz[],
        $7::bytea[]) w (kind, id, was, version, state, alarm_at, record)
    WHERE e.kind = ANY (ARRAY[w.kind]) AND e.id = w.id AND e.version = w.was
    RETURNING 1
)
SELECT mainspring.expect(count(*), cardinality($1)) FROM changed

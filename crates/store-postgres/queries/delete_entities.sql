-- Entities that are removed, each on the version it was decided on. Index: the primary key.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
WITH gone AS (
    DELETE FROM mainspring.entity e USING unnest($1::smallint[], $2::uuid[], $3::int[])
        w (kind, id, was)
    WHERE e.kind = ANY (ARRAY[w.kind]) AND e.id = w.id AND e.version = w.was
    RETURNING 1
)
SELECT mainspring.expect(count(*), cardinality($1)) FROM gone

-- Jobs that end, each on the version it was decided on. Index: the primary key of live.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
WITH gone AS (
    DELETE FROM mainspring.live l USING unnest($1::uuid[], $2::int[]) w (id, version)
    WHERE l.id = ANY (ARRAY[w.id]) AND l.version = w.version
    RETURNING 1
)
SELECT mainspring.expect(count(*), cardinality($1)) FROM gone

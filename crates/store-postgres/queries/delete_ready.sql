-- Claims: rows of ready that this server offered. Whoever deletes a row has the job. Index: the primary key.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
WITH gone AS (
    DELETE FROM mainspring.ready r USING unnest($1::int[], $2::bigint[], $3::uuid[]) w (lane, key, id)
    WHERE r.lane = ANY (ARRAY[w.lane]) AND r.key = w.key AND r.id = w.id
    RETURNING 1
)
SELECT mainspring.expect(count(*), cardinality($3)) FROM gone

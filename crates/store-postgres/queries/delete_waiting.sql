-- Jobs that wait no longer, due or not: each is in exactly one of the two tables, or somebody else
-- was there first. Counts them where they were. Each may stand in one of two lanes. Index: the primary keys.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
WITH was_ready AS (
    DELETE FROM mainspring.ready r
    USING unnest($1::int[], $2::bigint[], $3::uuid[], $4::int[]) w (lane, key, id, beside)
    WHERE r.lane = ANY (ARRAY[w.lane, w.beside]) AND r.key = w.key AND r.id = w.id
    RETURNING r.lane
), was_waiting AS (
    DELETE FROM mainspring.waiting q USING unnest($3::uuid[]) w (id)
    WHERE q.id = ANY (ARRAY[w.id])
    RETURNING q.lane
), by_queue AS (
    SELECT b.place || l.queue AS name, count(*) AS n
    FROM (
        SELECT 'ready/' AS place, lane FROM was_ready
        UNION ALL SELECT 'pending/', lane FROM was_waiting
    ) b
    CROSS JOIN LATERAL (SELECT queue FROM mainspring.lane l WHERE l.lane = b.lane LIMIT 1) l
    GROUP BY 1
), counted AS (
    INSERT INTO mainspring.outbox (moves, names, deltas)
    SELECT 0, array_agg(name), array_agg(-n) FROM by_queue HAVING count(*) > 0
)
SELECT mainspring.expect(
    (SELECT count(*) FROM was_ready) + (SELECT count(*) FROM was_waiting), cardinality($3))

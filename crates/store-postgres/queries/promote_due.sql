-- Moves what has become due to the ready table, and says in which lanes.
-- Index: waiting_due. Locks: the rows moved, passing over those another server moves.
WITH due AS (
    SELECT id FROM mainspring.waiting WHERE due_at <= $1
    ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM mainspring.waiting q WHERE q.id = ANY (ARRAY(SELECT id FROM due))
    RETURNING q.lane, q.key, q.id, q.due_at, q.is_retry
), moved AS (
    INSERT INTO mainspring.ready (lane, key, id, due_at, is_retry) SELECT * FROM gone
), by_lane AS (
    SELECT lane, count(*) AS n FROM gone GROUP BY lane
), by_queue AS (
    SELECT l.queue, sum(b.n)::bigint AS n FROM by_lane b
    CROSS JOIN LATERAL (SELECT queue FROM mainspring.lane l WHERE l.lane = b.lane LIMIT 1) l
    GROUP BY l.queue
), counted AS (
    INSERT INTO mainspring.outbox (moves, names, deltas)
    SELECT 0, array_agg('ready/' || queue) || array_agg('pending/' || queue),
        array_agg(n) || array_agg(-n)
    FROM by_queue HAVING count(*) > 0
)
SELECT lane, n FROM by_lane

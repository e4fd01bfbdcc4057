-- Numbers that are kept and differ from what is there. Totals and ended jobs cannot be counted
-- again: what they count is gone after a while.
WITH kept AS (
    SELECT name, sum(n)::bigint AS n FROM (
        SELECT name, n FROM mainspring.tally
        UNION ALL SELECT d.name, d.n FROM mainspring.outbox o, unnest(o.names, o.deltas) d (name, n)
    ) w GROUP BY name
), counted AS (
    SELECT 'state/queued' AS name, (SELECT count(*) FROM mainspring.ready WHERE NOT is_retry)
        + (SELECT count(*) FROM mainspring.waiting WHERE NOT is_retry) AS n
    UNION ALL
    SELECT 'state/' || (ARRAY['running', 'retrying', 'dlq_pending', 'dlq_recorded'])[state], count(*)
    FROM mainspring.live GROUP BY state
    UNION ALL
    SELECT h.name, sum(h.n)::bigint FROM (
        SELECT id FROM mainspring.ready WHERE NOT is_retry
        UNION ALL SELECT id FROM mainspring.waiting WHERE NOT is_retry
        UNION ALL SELECT id FROM mainspring.live
    ) u JOIN mainspring.job j USING (id) JOIN mainspring.lane l USING (lane)
    CROSS JOIN LATERAL (VALUES ('jobs/' || l.tenant, 1::bigint),
        ('bytes/' || l.tenant, mainspring.held_bytes(j.payload, j.trace, j.more))) h (name, n)
    GROUP BY h.name
    UNION ALL
    SELECT 'type/' || u.state || '/' || l.type, count(*) FROM (
        SELECT lane, 'queued' AS state FROM mainspring.ready WHERE NOT is_retry
        UNION ALL SELECT lane, 'queued' FROM mainspring.waiting WHERE NOT is_retry
        UNION ALL SELECT lane, (ARRAY['running', 'retrying'])[state] FROM mainspring.live
            WHERE state IN (1, 2)
    ) u JOIN mainspring.lane l USING (lane) GROUP BY u.state, l.type
    UNION ALL
    SELECT 'ready/' || l.queue, count(*) FROM mainspring.ready r JOIN mainspring.lane l USING (lane)
    GROUP BY l.queue
    UNION ALL
    SELECT 'pending/' || l.queue, count(*)
    FROM mainspring.waiting r JOIN mainspring.lane l USING (lane) GROUP BY l.queue
    UNION ALL
    SELECT 'running/' || l.queue, count(*)
    FROM mainspring.live r JOIN mainspring.lane l USING (lane) WHERE r.state = 1 GROUP BY l.queue
)
SELECT name, coalesce(k.n, 0) AS kept, coalesce(c.n, 0) AS counted
FROM kept k FULL JOIN counted c USING (name)
WHERE coalesce(k.n, 0) <> coalesce(c.n, 0)
    AND name !~ '^(total|stream)/' AND name NOT IN ('state/succeeded', 'state/failed', 'state/cancelled')
ORDER BY name

-- A queue changes its order: new keys for its jobs in waiting. Rare, and as long as the queue.
-- Locks: the registry, by guard_for_change, so that nobody adds a row under the old order.
UPDATE mainspring.waiting r
SET key = CASE WHEN $2
    THEN greatest(least((extract(epoch FROM r.due_at) * 1000000)::bigint, 1::bigint << 54),
        -(1::bigint << 54)) * 256 + 255 - j.priority
    ELSE (extract(epoch FROM r.due_at) * 1000000)::bigint - j.priority * $3 END
FROM mainspring.lane l, mainspring.job j
WHERE l.queue = $1 AND r.lane = l.lane AND j.id = r.id

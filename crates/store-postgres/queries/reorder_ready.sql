-- A queue changes its order: new keys for its jobs in ready. Rare, and as long as the queue.
-- Locks: the registry, by guard_for_change, so that nobody adds a row under the old order.
UPDATE mainspring.ready r
SET key = mainspring.order_key($2, r.due_at, j.priority)
FROM mainspring.lane l, mainspring.job j
WHERE l.queue = $1 AND r.lane = l.lane AND j.id = r.id

-- A type's limit is counted per user from now on, or no longer: its jobs in waiting change lanes.
-- Locks: the registry, by guard_for_change.
UPDATE mainspring.waiting r SET lane = n.lane
FROM mainspring.lane l, mainspring.job j, mainspring.lane n
WHERE l.type = $1 AND r.lane = l.lane AND j.id = r.id
    AND (n.tenant, n.queue, n.type) = (l.tenant, l.queue, l.type)
    AND n.user_id = CASE WHEN $2 THEN j.user_id ELSE '' END
    AND n.lane <> l.lane

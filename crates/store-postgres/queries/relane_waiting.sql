-- What a type's limits are counted by changes: its jobs in waiting change lanes.
-- Locks: the registry, by guard_for_change.
UPDATE mainspring.waiting r SET lane = n.lane
FROM mainspring.lane l, mainspring.job j, mainspring.lane n
WHERE l.type = $1 AND r.lane = l.lane AND j.id = r.id
    AND (n.tenant, n.queue, n.type) = (l.tenant, l.queue, l.type)
    AND n.user_id = mainspring.lane_part(j.user_id, $2, $3, $4, j.more -> 'limits')
        || CASE WHEN right(l.user_id, 1) = chr(30) THEN chr(30) ELSE '' END
    AND n.lane <> l.lane

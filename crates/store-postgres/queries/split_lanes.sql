-- The lanes a type needs when what its limits are counted by changes.
INSERT INTO mainspring.lane (tenant, queue, type, user_id)
SELECT DISTINCT l.tenant, l.queue, l.type,
    mainspring.lane_part(j.user_id, $2, $3, $4, j.more -> 'limits')
        || CASE WHEN right(l.user_id, 1) = chr(30) THEN chr(30) ELSE '' END
FROM mainspring.lane l
JOIN (SELECT lane, id FROM mainspring.ready UNION ALL SELECT lane, id FROM mainspring.waiting) r
    ON r.lane = l.lane
JOIN mainspring.job j ON j.id = r.id
WHERE l.type = $1
ON CONFLICT DO NOTHING

-- The lanes a type needs when its limit is counted per user, or no longer.
INSERT INTO mainspring.lane (tenant, queue, type, user_id)
SELECT DISTINCT l.tenant, l.queue, l.type, CASE WHEN $2 THEN j.user_id ELSE '' END
FROM mainspring.lane l
JOIN (SELECT lane, id FROM mainspring.ready UNION ALL SELECT lane, id FROM mainspring.waiting) r
    ON r.lane = l.lane
JOIN mainspring.job j ON j.id = r.id
WHERE l.type = $1
ON CONFLICT DO NOTHING

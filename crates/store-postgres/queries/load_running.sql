-- The running jobs of a type, to count them under its new limit. Rare.
SELECT v.id, l.tenant, j.user_id, j.more -> 'limits' ->> 0
FROM mainspring.lane l
JOIN mainspring.live v ON v.lane = l.lane AND v.state = 1
JOIN mainspring.job j ON j.id = v.id
WHERE l.type = $1

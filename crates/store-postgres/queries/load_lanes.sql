-- Lanes from a number on. Index: the primary key.
SELECT lane, tenant, queue, type, user_id FROM mainspring.lane WHERE lane >= $1 ORDER BY lane

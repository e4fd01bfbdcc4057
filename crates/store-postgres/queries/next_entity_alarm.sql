-- The first alarm of an entity after $1. Index: entity_alarm.
SELECT alarm_at FROM mainspring.entity WHERE alarm_at > $1 ORDER BY alarm_at LIMIT 1

-- Entities whose alarm stands at $1 or earlier. Index: entity_alarm. Locks: none.
SELECT kind, id, alarm_at FROM mainspring.entity
WHERE alarm_at <= $1 ORDER BY alarm_at, kind, id LIMIT $2

-- Configures a queue. Locks: the registry, by guard_for_change.
INSERT INTO mainspring.queue (name, is_paused, is_by_due, weight, backlog_max, backlog_bytes_max)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE SET is_paused = $2, is_by_due = $3, weight = $4, backlog_max = $5,
    backlog_bytes_max = $6

-- Configures a queue. Locks: the registry, by guard_for_change.
INSERT INTO mainspring.queue (name, is_paused, is_by_due) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET is_paused = $2, is_by_due = $3

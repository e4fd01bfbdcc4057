-- Issues or revokes a token. Locks: the registry, by guard_for_change.
INSERT INTO mainspring.token (id, record) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET record = $2

-- This server is alive. Index: the primary key of node.
INSERT INTO mainspring.node (id, name, version, started_at, seen_at)
VALUES ($1, $2, $3, $4, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
RETURNING seen_at

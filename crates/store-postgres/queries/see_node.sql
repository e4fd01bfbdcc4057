-- This server is alive, and has heard from these workers unless nothing is told of them.
-- Index: the primary key of node.
INSERT INTO mainspring.node AS n (id, name, version, started_at, seen_at, workers, step)
VALUES ($1, $2, $3, $4, clock_timestamp(), $5, $6)
ON CONFLICT (id) DO UPDATE
SET seen_at = excluded.seen_at, workers = coalesce(excluded.workers, n.workers)
RETURNING seen_at

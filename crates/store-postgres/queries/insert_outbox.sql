-- What a commit moved and counted.
INSERT INTO mainspring.outbox (moves, steps, names, deltas) VALUES ($1, $2, $3, $4)

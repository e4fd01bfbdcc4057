-- Moves with their places in the one order.
INSERT INTO mainspring.stream (last, moves, stamped_at, steps)
SELECT w.last, w.moves, $3, w.steps
FROM unnest($1::bigint[], $2::int[], $4::bytea[]) w (last, moves, steps)

-- Stamped moves after a position. Index: stream_last.
SELECT last, moves, steps FROM mainspring.stream WHERE last > $1 ORDER BY last LIMIT $2

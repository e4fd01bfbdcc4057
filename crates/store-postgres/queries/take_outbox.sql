-- Takes what is to be stamped, from $1 on. Index: the primary key of outbox.
DELETE FROM mainspring.outbox o USING (
    SELECT id FROM mainspring.outbox WHERE id >= $1 ORDER BY id LIMIT $2
) w
WHERE o.id = w.id
RETURNING o.id, o.moves, o.steps, o.names, o.deltas

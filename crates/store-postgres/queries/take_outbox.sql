-- Takes what is to be stamped, from $1 on. Index: the primary key of outbox.
DELETE FROM mainspring.outbox o WHERE o.id = ANY (ARRAY(
    SELECT id FROM mainspring.outbox WHERE id >= $1 ORDER BY id LIMIT $2
))
RETURNING o.id, o.moves, o.steps, o.names, o.deltas

-- Takes what is to be stamped, from $1 on; with each the number of this transaction, which it has only
-- once it takes something. Index: the primary key of outbox.
DELETE FROM mainspring.outbox o WHERE o.id = ANY (ARRAY(
    SELECT id FROM mainspring.outbox WHERE id >= $1 ORDER BY id LIMIT $2
))
RETURNING o.id, o.moves, o.steps, o.names, o.deltas, pg_current_xact_id()::text::bigint

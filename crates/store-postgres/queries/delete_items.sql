-- Forgets items past their time. Index: item_created.
DELETE FROM mainspring.item WHERE id = ANY (ARRAY(
    SELECT id FROM mainspring.item WHERE created_at < $1 ORDER BY created_at LIMIT $2
    FOR UPDATE SKIP LOCKED
))

-- Forgets keys that are free. Index: held_key_free.
DELETE FROM mainspring.held_key WHERE hash = ANY (ARRAY(
    SELECT hash FROM mainspring.held_key WHERE free_at <= $1 ORDER BY free_at LIMIT $2
    FOR UPDATE SKIP LOCKED
))

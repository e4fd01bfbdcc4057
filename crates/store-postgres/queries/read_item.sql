-- One dead-letter item, of one tenant or one user of it if these are named; a stranger's is not read.
-- Index: the primary key.
SELECT record FROM mainspring.item
WHERE id = $1 AND ($2::text IS NULL OR tenant = $2) AND ($3::text IS NULL OR user_id = $3)

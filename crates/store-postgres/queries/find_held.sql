-- Which of these jobs somebody else has locked where they stand. Index: the primary key of live.
-- Locks: the others, for the length of this statement; waits for nobody.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
WITH free AS (
    SELECT l.id FROM unnest($1::uuid[]) w (id)
    JOIN mainspring.live l ON l.id = ANY (ARRAY[w.id])
    FOR UPDATE OF l SKIP LOCKED
)
SELECT w.id
FROM unnest($1::uuid[]) w (id)
CROSS JOIN LATERAL (SELECT 1 FROM mainspring.live l WHERE l.id = w.id LIMIT 1) l
WHERE w.id <> ALL (ARRAY(SELECT id FROM free))

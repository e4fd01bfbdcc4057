-- Facts about dead-letter items that are true no longer. Index: the primary key.
-- ANY (ARRAY[..]), not =: see PLANS in link.rs.
DELETE FROM mainspring.item_term t USING unnest($1::bigint[], $2::uuid[]) w (term, id)
WHERE t.term = ANY (ARRAY[w.term]) AND t.id = w.id

-- Facts about jobs that are true no longer. Index: term_pkey or term_id.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
DELETE FROM mainspring.term t USING unnest($1::bigint[], $2::uuid[]) w (term, id)
WHERE t.term = ANY (ARRAY[w.term]) AND t.id = ANY (ARRAY[w.id])

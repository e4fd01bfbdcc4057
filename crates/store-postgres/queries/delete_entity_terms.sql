-- What lists find entities by no longer. Index: the primary key.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
DELETE FROM mainspring.entity_term t USING unnest($1::bigint[], $2::smallint[], $3::uuid[])
    w (term, kind, id)
WHERE t.term = ANY (ARRAY[w.term]) AND t.kind = w.kind AND t.id = w.id

-- Entities of kind $2 that have any of these terms, each with the term. Index: the primary key, a probe
-- for each term.
SELECT w.term, t.id FROM unnest($1::bigint[]) w (term)
CROSS JOIN LATERAL (
    SELECT id FROM mainspring.entity_term t WHERE t.term = w.term AND t.kind = $2 LIMIT $3
) t
LIMIT $3

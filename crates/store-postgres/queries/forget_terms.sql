-- Forgets facts about jobs that are gone, of the days before $1. Index: term_id.
-- The job's priority is asked for, not its id: while the table is thought empty, an index that has
-- the id somewhere would do. ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
DELETE FROM mainspring.term t USING (
    SELECT o.term, o.id FROM mainspring.term o
    LEFT JOIN LATERAL (SELECT j.priority FROM mainspring.job j WHERE j.id = o.id LIMIT 1) j
        ON true
    WHERE o.id < mainspring.first_id($1) AND j.priority IS NULL
    ORDER BY o.id LIMIT $2
) g
WHERE t.term = ANY (ARRAY[g.term]) AND t.id = ANY (ARRAY[g.id])

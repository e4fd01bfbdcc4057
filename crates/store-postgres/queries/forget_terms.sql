-- Forgets facts about jobs that are gone, of the days before $1. Index: term_id.
DELETE FROM mainspring.term t WHERE (t.term, t.id) IN (
    SELECT o.term, o.id FROM mainspring.term o
    WHERE o.id < mainspring.first_id($1) AND NOT EXISTS (
        SELECT FROM mainspring.job j WHERE j.id = o.id)
    ORDER BY o.id LIMIT $2
)

-- How many entities a list has, counted up to $3. Index: the primary key.
SELECT count(*) FROM (
    SELECT 1 FROM mainspring.entity_term WHERE term = $1 AND kind = $2 LIMIT $3
) t

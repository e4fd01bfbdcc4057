-- How many ready jobs of its lane go before a job, up to $4. Index: the primary key of ready.
SELECT count(*) FROM (
    SELECT 1 FROM mainspring.ready WHERE lane = $1 AND (key, id) < ($2, $3) LIMIT $4
) ahead

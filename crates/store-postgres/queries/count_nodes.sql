-- Other servers seen since an instant, and those of them that know no lanes of retries; those unseen
-- for a day are forgotten.
WITH gone AS (DELETE FROM mainspring.node WHERE seen_at < clock_timestamp() - interval '1 day')
SELECT count(*), count(*) FILTER (WHERE step IS NULL)
FROM mainspring.node WHERE id <> $1 AND seen_at >= $2

-- Other servers seen since an instant; the first step beyond a version that a server of that version
-- cannot work with; and whether those servers all know lanes of retries. Servers unseen for a day are
-- forgotten.
WITH gone AS (DELETE FROM mainspring.node WHERE seen_at < clock_timestamp() - interval '1 day')
SELECT count(*),
    (SELECT min(version) FROM mainspring.migration WHERE version > $3 AND NOT is_compatible),
    count(*) FILTER (WHERE step IS NULL)
FROM mainspring.node WHERE id <> $1 AND seen_at >= $2

-- Other servers seen since an instant, and the first step beyond a version that a server of that
-- version cannot work with; servers unseen for a day are forgotten. What the others have refused in
-- a row, of up to $4 bytes each, comes along: it stands before their workers, and begins with 0x81.
-- And how many of them know no lanes of retries.
WITH gone AS (DELETE FROM mainspring.node WHERE seen_at < clock_timestamp() - interval '1 day')
SELECT count(*), (SELECT min(version) FROM mainspring.migration WHERE version > $3 AND NOT is_compatible),
    array_agg(substring(workers FROM 1 FOR $4))
        FILTER (WHERE substring(workers FROM 1 FOR 1) = '\x81'::bytea),
    count(*) FILTER (WHERE step IS NULL)
FROM mainspring.node WHERE id <> $1 AND seen_at >= $2

-- Effects by job and name. Index: the primary key, a probe for each. Locks: none; a commit of one names
-- the version of its job.
SELECT e.job, e.name, e.value, e.committed_at
FROM unnest($1::uuid[], $2::text[]) w (job, name)
CROSS JOIN LATERAL (
    SELECT * FROM mainspring.effect e WHERE e.job = w.job AND e.name = w.name LIMIT 1
) e

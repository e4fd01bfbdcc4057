-- All effects of jobs, in their order. Index: the primary key.
SELECT e.job, e.name, e.value, e.committed_at
FROM mainspring.effect e WHERE e.job = ANY ($1) ORDER BY e.job, e.number

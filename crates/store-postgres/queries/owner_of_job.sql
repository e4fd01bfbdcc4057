-- Whose a job is, without reading the job: a stranger's and an unknown one cost the same.
-- Index: the primary keys of job and lane. Locks: none.
SELECT n.tenant, j.user_id
FROM mainspring.job j
CROSS JOIN LATERAL (SELECT tenant FROM mainspring.lane n WHERE n.lane = j.lane LIMIT 1) n
WHERE j.id = $1

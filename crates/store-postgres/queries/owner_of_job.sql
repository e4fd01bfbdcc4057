-- Whose a job is, without reading the job: a stranger's and an unknown one cost the same.
-- Index: the primary keys of job and lane. Locks: none.
SELECT n.tenant, j.user_id
FROM mainspring.job j
JOIN mainspring.lane n ON n.lane = j.lane
WHERE j.id = $1

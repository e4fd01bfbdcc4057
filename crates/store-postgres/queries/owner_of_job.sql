-- Whose a job is, without reading the job: a stranger's and an unknown one cost the same.
-- Index: the primary keys of job and lane. Locks: none.
SELECT (SELECT n.tenant FROM mainspring.lane n WHERE n.lane = j.lane), j.user_id
FROM mainspring.job j
WHERE j.id = $1

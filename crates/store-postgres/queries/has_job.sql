-- Whether there is a job, of one tenant or one user of it if these are named, without reading it: a
-- stranger's and an unknown one cost the same, and answer the same bytes.
-- Index: the primary keys of job and lane. Locks: none.
SELECT true
FROM mainspring.job j
CROSS JOIN LATERAL (SELECT tenant FROM mainspring.lane n WHERE n.lane = j.lane LIMIT 1) n
WHERE j.id = $1 AND ($2::text IS NULL OR n.tenant = $2) AND ($3::text IS NULL OR j.user_id = $3)

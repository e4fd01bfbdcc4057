-- What running jobs are counted under from now on; not a change of the jobs, so no new version.
UPDATE mainspring.live l SET limit_key = w.limit_key
FROM unnest($1::uuid[], $2::uuid[]) w (id, limit_key)
WHERE l.id = w.id AND l.state = 1

-- Whether a job is in the ready table. Index: the primary key.
SELECT EXISTS (SELECT 1 FROM mainspring.ready WHERE lane = $1 AND key = $2 AND id = $3)

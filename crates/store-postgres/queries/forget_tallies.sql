-- Forgets the numbers of queues and tenants that have no jobs. Reads all numbers: a row per queue and
-- tenant that has jobs, apart from those that are forgotten.
DELETE FROM mainspring.tally t WHERE t.n = 0 AND t.name ~ '^(ready|pending|running|jobs|bytes)/'

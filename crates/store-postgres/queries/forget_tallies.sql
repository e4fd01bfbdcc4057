-- Forgets the numbers of queues, tenants and types that have no jobs. Reads all numbers: a row per
-- queue, tenant and type that has jobs, apart from those that are forgotten.
DELETE FROM mainspring.tally t WHERE t.n = 0 AND t.name ~ '^(ready|pending|running|jobs|bytes|type)/'

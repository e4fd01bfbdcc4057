-- What jobs that have not ended come to, stamped or not. Reads all numbers and the outbox, which is
-- emptied twice a second.
SELECT w.name, sum(w.n)::bigint FROM (
    SELECT t.name, t.n FROM mainspring.tally t
    UNION ALL SELECT d.name, d.n FROM mainspring.outbox o, unnest(o.names, o.deltas) d (name, n)
) w WHERE w.name ~ '^(jobs|bytes)/' GROUP BY w.name

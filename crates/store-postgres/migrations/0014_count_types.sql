-- compatible: counts the jobs that have not ended by type and state. Servers of before do not count: what
-- they move meanwhile is missing from these numbers, and doctor says by how much.

-- As before, and by type: a job that is submitted by SQL is counted when its caller commits.
CREATE OR REPLACE FUNCTION mainspring.count_held() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO mainspring.outbox (moves, names, deltas)
    VALUES (0, ARRAY['jobs/' || NEW.tenant, 'bytes/' || NEW.tenant, 'type/queued/' || NEW.type],
        ARRAY[1, mainspring.held_bytes(NEW.payload, NEW.trace, NEW.more), 1]);
    RETURN NULL;
END $$;

-- What is there already.
INSERT INTO mainspring.tally (name, n)
SELECT 'type/' || u.state || '/' || l.type, count(*) FROM (
    SELECT lane, 'queued' AS state FROM mainspring.ready WHERE NOT is_retry
    UNION ALL SELECT lane, 'queued' FROM mainspring.waiting WHERE NOT is_retry
    UNION ALL SELECT lane, (ARRAY['running', 'retrying'])[state] FROM mainspring.live
        WHERE state IN (1, 2)
) u JOIN mainspring.lane l USING (lane) GROUP BY u.state, l.type
ON CONFLICT (name) DO UPDATE SET n = excluded.n;

-- compatible: counts what jobs that have not ended take up, by tenant.

-- What a job takes up, by the rule of kernel/src/backlog.rs.
CREATE FUNCTION mainspring.held_bytes(payload text, trace text, more json) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 512 + octet_length(payload) + coalesce(octet_length(trace), 0)
        + coalesce(octet_length(more #>> '{key,scope}'), 0)
        + coalesce(octet_length(more #>> '{key,key}'), 0)
        + coalesce(octet_length(more ->> 'subject'), 0)
        + coalesce((
            SELECT sum(octet_length(l.pair ->> 0) + octet_length(l.pair ->> 1))
            FROM json_array_elements(more -> 'labels') l (pair)
        ), 0)
$$;

-- A job that is submitted by SQL is counted when its caller commits, beside the row that
-- take_place() leaves.
CREATE FUNCTION mainspring.count_held() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO mainspring.outbox (moves, names, deltas)
    VALUES (0, ARRAY['jobs/' || NEW.tenant, 'bytes/' || NEW.tenant],
        ARRAY[1, mainspring.held_bytes(NEW.payload, NEW.trace, NEW.more)]);
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER at_commit_count AFTER INSERT ON mainspring.submission
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mainspring.count_held();

-- What is there already.
WITH unended AS (
    SELECT id FROM mainspring.ready WHERE NOT is_retry
    UNION ALL SELECT id FROM mainspring.waiting WHERE NOT is_retry
    UNION ALL SELECT id FROM mainspring.live
), by_tenant AS (
    SELECT l.tenant, count(*) AS jobs,
        sum(mainspring.held_bytes(j.payload, j.trace, j.more))::bigint AS bytes
    FROM unended u JOIN mainspring.job j USING (id) JOIN mainspring.lane l USING (lane)
    GROUP BY l.tenant
)
INSERT INTO mainspring.tally (name, n)
SELECT 'jobs/' || tenant, jobs FROM by_tenant
UNION ALL SELECT 'bytes/' || tenant, bytes FROM by_tenant
ON CONFLICT (name) DO UPDATE SET n = excluded.n;

-- Changes to jobs that were started, each on the version it was decided on.
-- Index: the primary key of live.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
WITH changed AS (
    UPDATE mainspring.live l
    SET state = w.state, version = w.version + 1, alarm_at = w.alarm_at, limit_key = w.limit_key,
        worker = w.worker, record = w.record
    FROM unnest($1::uuid[], $2::int[], $3::smallint[], $4::timestamptz[], $5::uuid[], $6::text[],
        $7::bytea[]) w (id, version, state, alarm_at, limit_key, worker, record)
    WHERE l.id = ANY (ARRAY[w.id]) AND l.version = w.version
    RETURNING 1
)
SELECT mainspring.expect(count(*), cardinality($1)) FROM changed

-- Jobs that start for the first time.
INSERT INTO mainspring.live (id, state, version, lane, alarm_at, limit_key, worker, record)
SELECT w.id, w.state, 1, w.lane, w.alarm_at, w.limit_key, w.worker, w.record
FROM unnest($1::uuid[], $2::smallint[], $3::int[], $4::timestamptz[], $5::uuid[], $6::text[],
    $7::bytea[]) w (id, state, lane, alarm_at, limit_key, worker, record)

-- Jobs from another store, each with its own time of submission.
INSERT INTO mainspring.job
    (id, lane, priority, max_retries, timeout_ms, created_at, run_at, user_id, payload, trace, more)
SELECT w.id, w.lane, w.priority, w.max_retries, w.timeout_ms, w.created_at, w.run_at, w.user_id,
    w.payload, w.trace, w.more::json
FROM unnest($1::uuid[], $2::int[], $3::smallint[], $4::smallint[], $5::int[], $6::timestamptz[],
    $7::timestamptz[], $8::text[], $9::text[], $10::text[], $11::text[])
    w (id, lane, priority, max_retries, timeout_ms, created_at, run_at, user_id, payload, trace, more)

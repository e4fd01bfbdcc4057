-- A database of a realistic size: jobs in every state, half of the ended ones from before today.
-- Ids have the form of UUIDv7, so that they fall into the partitions of their time.
CREATE FUNCTION pg_temp.at(ms bigint) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
        + ms * interval '1 millisecond'
$$;
CREATE TEMP TABLE start AS SELECT (extract(epoch FROM pg_temp.at(0)) * 1000)::bigint AS ms;

INSERT INTO mainspring.lane (tenant, queue, type)
SELECT 'tenant' || n % 10, 'queue' || n % 5, 'type' || n FROM generate_series(1, 50) n;

-- Kinds: finished 0, waiting 1, ready 2, live 3.
CREATE TEMP TABLE made AS
SELECT n, kind, n % 50 + 1 AS lane, pg_temp.at(offset_ms) AS at,
    (lpad(to_hex((SELECT ms FROM start) + offset_ms), 12, '0') || '70008'
        || lpad(to_hex(n), 15, '0'))::uuid AS id
FROM (
    SELECT n, CASE WHEN n <= 200000 THEN 0 WHEN n <= 300000 THEN 1 WHEN n <= 350000 THEN 2
        ELSE 3 END AS kind,
        CASE WHEN n <= 100000 THEN -n * 100 ELSE n * 100 END::bigint AS offset_ms
    FROM generate_series(1, 355000) n
) s;

INSERT INTO mainspring.job (id, lane, priority, max_retries, timeout_ms, created_at, run_at,
    user_id, payload)
SELECT id, lane, 50, 3, 900000, at, at + CASE kind WHEN 1 THEN interval '30 days'
    ELSE interval '0' END, 'user' || n % 1000, '{"n":1}' FROM made;
INSERT INTO mainspring.finished (id, state, finished_at, record)
SELECT id, CASE n % 30 WHEN 0 THEN 6 WHEN 1 THEN 7 ELSE 5 END, at, '\x8001' FROM made WHERE kind = 0;
INSERT INTO mainspring.waiting (id, due_at, lane, key, is_retry)
SELECT id, at + interval '30 days', lane, (extract(epoch FROM at) * 1000000)::bigint, false
FROM made WHERE kind = 1;
INSERT INTO mainspring.ready (lane, key, id, due_at, is_retry)
SELECT lane, (extract(epoch FROM at) * 1000000)::bigint, id, at, false FROM made WHERE kind = 2;
INSERT INTO mainspring.live (id, state, version, lane, alarm_at, limit_key, worker, record)
SELECT id, 1, 1, lane, at, CASE WHEN n % 2 = 0 THEN md5((n % 100)::text)::uuid END, 'worker',
    '\x8001' FROM made WHERE kind = 3;
INSERT INTO mainspring.expiry (expires_at, id)
SELECT at + interval '1 day', id FROM made WHERE kind IN (1, 2) AND n % 10 = 0;
INSERT INTO mainspring.held_key (hash, job, free_at)
SELECT md5(n::text)::uuid, id, CASE WHEN n % 2 = 0 THEN at + interval '1 day' END
FROM made WHERE n BETWEEN 180001 AND 230000;
INSERT INTO mainspring.item (id, version, state, tenant, user_id, type, created_at, record)
SELECT id, 1, CASE WHEN n % 4 = 0 THEN 'open' ELSE 'retried' END, 'tenant' || n % 10,
    'user' || n % 1000, 'type' || lane, at, '\x8001' FROM made WHERE n BETWEEN 198001 AND 200000;
INSERT INTO mainspring.entity (kind, id, version, tenant, owner, state, alarm_at, record)
SELECT 1 + n % 3, id, 1, 'tenant' || n % 10, 'user' || n % 1000, 'lit',
    CASE WHEN n % 4 > 0 THEN at + interval '1 day' END, '\x8001' FROM made WHERE n <= 30000;
INSERT INTO mainspring.entity_term (term, kind, id)
SELECT 7 * (n % 10) + t, 1 + n % 3, id FROM made, generate_series(1, 6) t WHERE n <= 30000;
INSERT INTO mainspring.outbox (moves, steps, names, deltas)
SELECT 3, '\x8001', ARRAY['state/queued'], ARRAY[1] FROM generate_series(1, 300);
INSERT INTO mainspring.stream (last, moves, stamped_at, steps)
SELECT n * 3, 3, pg_temp.at(n), '\x8001' FROM generate_series(1, 300) n;
INSERT INTO mainspring.tally (name, n) SELECT 'ready/queue' || n, 10 FROM generate_series(1, 30) n;
INSERT INTO mainspring.tally (name, n) VALUES ('stream/newest', 900);
DROP TABLE made, start;

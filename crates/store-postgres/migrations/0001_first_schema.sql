-- compatible: the first schema.

-- Which steps were taken. The only table a newer server may rely on in an older database.
CREATE TABLE mainspring.migration (
    version       int PRIMARY KEY,
    name          text NOT NULL,
    checksum      text NOT NULL,
    -- Whether a server that does not know the step may start and go on.
    is_compatible boolean NOT NULL,
    applied_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A lane is what competes by order key alone: tenant, queue and type, and the user where the type's
-- concurrency is limited per user. Its number stands for the names in the hot tables.
CREATE TABLE mainspring.lane (
    lane    int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant  text NOT NULL,
    queue   text NOT NULL,
    type    text NOT NULL,
    user_id text NOT NULL DEFAULT '',
    UNIQUE (tenant, queue, type, user_id)
);

-- A job as it was submitted: written once, never updated. Partitions by the time in the id.
CREATE TABLE mainspring.job (
    id          uuid NOT NULL,
    lane        int NOT NULL,
    priority    smallint NOT NULL CHECK (priority BETWEEN 0 AND 255),
    max_retries smallint NOT NULL CHECK (max_retries >= 0),
    timeout_ms  int NOT NULL CHECK (timeout_ms > 0),
    created_at  timestamptz NOT NULL,
    run_at      timestamptz NOT NULL,
    user_id     text NOT NULL,
    payload     text NOT NULL,
    trace       text,
    -- Rare fields: idempotency key, parent, subject, labels, expiry.
    more        json,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);

-- Jobs that are due, one narrow row each; the claim deletes it.
CREATE TABLE mainspring.ready (
    lane     int NOT NULL,
    key      bigint NOT NULL,
    id       uuid NOT NULL,
    due_at   timestamptz NOT NULL,
    -- Whether it was tried before, that is, has a row in live.
    is_retry boolean NOT NULL,
    PRIMARY KEY (lane, key, id)
);

-- Jobs that are not due yet: outside the ready table, whatever their number.
CREATE TABLE mainspring.waiting (
    id       uuid PRIMARY KEY,
    due_at   timestamptz NOT NULL,
    lane     int NOT NULL,
    key      bigint NOT NULL,
    is_retry boolean NOT NULL
);
CREATE INDEX waiting_due ON mainspring.waiting (due_at);

-- Unstarted jobs that are cancelled if they are not started in time.
CREATE TABLE mainspring.expiry (
    expires_at timestamptz NOT NULL,
    id         uuid NOT NULL,
    PRIMARY KEY (expires_at, id)
);

-- Jobs that were started and have not ended. A job without a row here and in finished is queued.
-- Every change names the version it was decided on.
CREATE TABLE mainspring.live (
    id        uuid PRIMARY KEY,
    -- 1 running, 2 retrying, 3 dlq_pending, 4 dlq_recorded.
    state     smallint NOT NULL CHECK (state BETWEEN 1 AND 4),
    version   int NOT NULL CHECK (version > 0),
    lane      int NOT NULL,
    -- When the reaper has to look: the end of the lease, or of the patience with an unfinished move.
    alarm_at  timestamptz,
    -- What its concurrency limit is counted under, while it runs.
    limit_key uuid,
    worker    text,
    record    bytea NOT NULL,
    CHECK ((state = 2) = (alarm_at IS NULL)),
    CHECK ((state = 1) = (worker IS NOT NULL)),
    CHECK (state = 1 OR limit_key IS NULL)
) WITH (fillfactor = 80);
CREATE INDEX live_alarm ON mainspring.live (alarm_at) WHERE alarm_at IS NOT NULL;
CREATE INDEX live_limit ON mainspring.live (limit_key) WHERE limit_key IS NOT NULL;

-- Jobs that have ended: written once, dropped with their partition.
CREATE TABLE mainspring.finished (
    id          uuid NOT NULL,
    -- 5 succeeded, 6 failed, 7 cancelled.
    state       smallint NOT NULL CHECK (state BETWEEN 5 AND 7),
    finished_at timestamptz NOT NULL,
    record      bytea NOT NULL,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);

-- Who holds which idempotency key.
CREATE TABLE mainspring.held_key (
    hash        uuid PRIMARY KEY,
    job         uuid NOT NULL,
    fingerprint uuid,
    -- When it is free again; null while the job lives.
    free_at     timestamptz
);
CREATE INDEX held_key_free ON mainspring.held_key (free_at) WHERE free_at IS NOT NULL;

-- Dead-letter items.
CREATE TABLE mainspring.item (
    id         uuid PRIMARY KEY,
    version    int NOT NULL CHECK (version > 0),
    state      text NOT NULL,
    tenant     text NOT NULL,
    user_id    text NOT NULL,
    type       text NOT NULL,
    created_at timestamptz NOT NULL,
    record     bytea NOT NULL
);
CREATE INDEX item_open ON mainspring.item (id) WHERE state IN ('open', 'discard_requested');
CREATE INDEX item_created ON mainspring.item (created_at);

-- The registries. The columns beside the record repeat what submit() reads.
CREATE TABLE mainspring.type (
    name              text PRIMARY KEY,
    queue             text NOT NULL,
    priority          smallint NOT NULL,
    max_retries       smallint NOT NULL,
    timeout_ms        int NOT NULL,
    is_limited_by_user boolean NOT NULL,
    record            bytea NOT NULL
);
CREATE TABLE mainspring.queue (
    name      text PRIMARY KEY,
    is_paused boolean NOT NULL,
    is_by_due boolean NOT NULL
);
CREATE TABLE mainspring.token (
    id     uuid PRIMARY KEY,
    record bytea NOT NULL
);
-- One row. Every change to the registries raises the version, under an exclusive lock that every
-- other commit holds shared, so that no server acts on a registry that is no longer true.
CREATE TABLE mainspring.registry (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version bigint NOT NULL,
    are_types_strict boolean NOT NULL DEFAULT true
);
INSERT INTO mainspring.registry (version) VALUES (1);

-- What commits moved and counted, in no order but that of the same job, until it is stamped.
CREATE TABLE mainspring.outbox (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    moves  int NOT NULL CHECK (moves >= 0),
    steps  bytea,
    names  text[] NOT NULL,
    deltas bigint[] NOT NULL,
    CHECK (cardinality(names) = cardinality(deltas))
);
ALTER TABLE mainspring.outbox ALTER COLUMN steps SET STORAGE EXTERNAL;

-- The moves of all jobs in one order, stamped a commit at a time. Partitions by day.
CREATE TABLE mainspring.stream (
    last       bigint NOT NULL,
    moves      int NOT NULL CHECK (moves > 0),
    stamped_at timestamptz NOT NULL,
    steps      bytea NOT NULL
) PARTITION BY RANGE (stamped_at);
ALTER TABLE mainspring.stream ALTER COLUMN steps SET STORAGE EXTERNAL;
CREATE INDEX stream_last ON mainspring.stream (last);

-- Numbers that are kept rather than taken: totals, jobs by state, jobs by queue.
CREATE TABLE mainspring.tally (
    name text PRIMARY KEY,
    n    bigint NOT NULL
) WITH (fillfactor = 50);

-- The servers that use this database.
CREATE TABLE mainspring.node (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    version    text NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Fails the transaction if a statement did not change as many rows as were decided on: somebody
-- else was there first.
CREATE FUNCTION mainspring.expect(got bigint, wanted bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF got <> wanted THEN
        RAISE EXCEPTION 'decided on % rows and found %', wanted, got USING ERRCODE = 'MS001';
    END IF;
END $$;

-- Holds the registries still and fails the transaction if they are not those decided on.
CREATE FUNCTION mainspring.guard(known bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    present bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('mainspring.registry', 0));
    SELECT version INTO present FROM mainspring.registry;
    IF present <> known THEN
        RAISE EXCEPTION 'the registries have version % and not %', present, known
            USING ERRCODE = 'MS002';
    END IF;
END $$;

-- The same for whoever changes them; the version rises.
CREATE FUNCTION mainspring.guard_for_change(known bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('mainspring.registry', 0));
    UPDATE mainspring.registry SET version = version + 1 WHERE version = known;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the registries changed' USING ERRCODE = 'MS002';
    END IF;
END $$;

-- The least id of an instant.
CREATE FUNCTION mainspring.first_id(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- Makes the partitions of the days from `first` on that are missing.
CREATE FUNCTION mainspring.make_partitions(first date, days int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    made int := 0;
    day date;
    suffix text;
BEGIN
    FOR day IN SELECT first + n FROM generate_series(0, days - 1) n LOOP
        suffix := to_char(day, 'YYYYMMDD');
        BEGIN
        IF to_regclass('mainspring.job_' || suffix) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE mainspring.job_%s PARTITION OF mainspring.job
                 FOR VALUES FROM (%L) TO (%L)', suffix,
                mainspring.first_id(day::timestamp AT TIME ZONE 'UTC'),
                mainspring.first_id((day + 1)::timestamp AT TIME ZONE 'UTC'));
            made := made + 1;
        END IF;
        IF to_regclass('mainspring.finished_' || suffix) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE mainspring.finished_%s PARTITION OF mainspring.finished
                 FOR VALUES FROM (%L) TO (%L)', suffix,
                mainspring.first_id(day::timestamp AT TIME ZONE 'UTC'),
                mainspring.first_id((day + 1)::timestamp AT TIME ZONE 'UTC'));
            made := made + 1;
        END IF;
        IF to_regclass('mainspring.stream_' || suffix) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE mainspring.stream_%s PARTITION OF mainspring.stream
                 FOR VALUES FROM (%L) TO (%L)', suffix,
                day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
            made := made + 1;
        END IF;
        EXCEPTION WHEN check_violation THEN
            -- Jobs of that day are in "later" already: they stay there, and so will others.
            NULL;
        END;
    END LOOP;
    RETURN made;
END $$;

-- What is older than the first day, and what outlived its day, is kept in the partitions "old";
-- "later" takes what no day was made for, so that no submission ever fails for want of upkeep.
DO $$
DECLARE
    today date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    floor uuid := mainspring.first_id(today::timestamp AT TIME ZONE 'UTC');
BEGIN
    EXECUTE format('CREATE TABLE mainspring.job_old PARTITION OF mainspring.job
                    FOR VALUES FROM (MINVALUE) TO (%L)', floor);
    EXECUTE format('CREATE TABLE mainspring.finished_old PARTITION OF mainspring.finished
                    FOR VALUES FROM (MINVALUE) TO (%L)', floor);
    CREATE TABLE mainspring.job_later PARTITION OF mainspring.job DEFAULT;
    CREATE TABLE mainspring.finished_later PARTITION OF mainspring.finished DEFAULT;
    CREATE TABLE mainspring.stream_later PARTITION OF mainspring.stream DEFAULT;
    PERFORM mainspring.make_partitions(today, 4);
END $$;

-- The schema as the migrations make it, without the partitions of days. For reading;
-- written by `cargo xtask bless`.

CREATE SCHEMA mainspring;

CREATE FUNCTION mainspring.expect(got bigint, wanted bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF got <> wanted THEN
        RAISE EXCEPTION 'decided on % rows and found %', wanted, got USING ERRCODE = 'MS001';
    END IF;
END $$;

CREATE FUNCTION mainspring.first_id(at timestamp with time zone) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

CREATE FUNCTION mainspring.guard(known bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.guard_for_change(known bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('mainspring.registry', 0));
    UPDATE mainspring.registry SET version = version + 1 WHERE version = known;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the registries changed' USING ERRCODE = 'MS002';
    END IF;
END $$;

CREATE TABLE mainspring.expiry (
    expires_at timestamp with time zone NOT NULL,
    id uuid NOT NULL
);

CREATE TABLE mainspring.finished (
    id uuid NOT NULL,
    state smallint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    record bytea NOT NULL,
    CONSTRAINT finished_state_check CHECK (((state >= 5) AND (state <= 7)))
)
PARTITION BY RANGE (id);

CREATE TABLE mainspring.finished_later (
    id uuid NOT NULL,
    state smallint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    record bytea NOT NULL,
    CONSTRAINT finished_state_check CHECK (((state >= 5) AND (state <= 7)))
);

CREATE TABLE mainspring.finished_old (
    id uuid NOT NULL,
    state smallint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    record bytea NOT NULL,
    CONSTRAINT finished_state_check CHECK (((state >= 5) AND (state <= 7)))
);

CREATE TABLE mainspring.held_key (
    hash uuid NOT NULL,
    job uuid NOT NULL,
    fingerprint uuid,
    free_at timestamp with time zone
);

CREATE TABLE mainspring.item (
    id uuid NOT NULL,
    version integer NOT NULL,
    state text NOT NULL,
    tenant text NOT NULL,
    user_id text NOT NULL,
    type text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    record bytea NOT NULL,
    CONSTRAINT item_version_check CHECK ((version > 0))
);

CREATE TABLE mainspring.job (
    id uuid NOT NULL,
    lane integer NOT NULL,
    priority smallint NOT NULL,
    max_retries smallint NOT NULL,
    timeout_ms integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    user_id text NOT NULL,
    payload text NOT NULL,
    trace text,
    more json,
    CONSTRAINT job_max_retries_check CHECK ((max_retries >= 0)),
    CONSTRAINT job_priority_check CHECK (((priority >= 0) AND (priority <= 255))),
    CONSTRAINT job_timeout_ms_check CHECK ((timeout_ms > 0))
)
PARTITION BY RANGE (id);

CREATE TABLE mainspring.job_later (
    id uuid NOT NULL,
    lane integer NOT NULL,
    priority smallint NOT NULL,
    max_retries smallint NOT NULL,
    timeout_ms integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    user_id text NOT NULL,
    payload text NOT NULL,
    trace text,
    more json,
    CONSTRAINT job_max_retries_check CHECK ((max_retries >= 0)),
    CONSTRAINT job_priority_check CHECK (((priority >= 0) AND (priority <= 255))),
    CONSTRAINT job_timeout_ms_check CHECK ((timeout_ms > 0))
);

CREATE TABLE mainspring.job_old (
    id uuid NOT NULL,
    lane integer NOT NULL,
    priority smallint NOT NULL,
    max_retries smallint NOT NULL,
    timeout_ms integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    user_id text NOT NULL,
    payload text NOT NULL,
    trace text,
    more json,
    CONSTRAINT job_max_retries_check CHECK ((max_retries >= 0)),
    CONSTRAINT job_priority_check CHECK (((priority >= 0) AND (priority <= 255))),
    CONSTRAINT job_timeout_ms_check CHECK ((timeout_ms > 0))
);

CREATE TABLE mainspring.lane (
    lane integer NOT NULL,
    tenant text NOT NULL,
    queue text NOT NULL,
    type text NOT NULL,
    user_id text DEFAULT ''::text NOT NULL
);

ALTER TABLE mainspring.lane ALTER COLUMN lane ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mainspring.lane_lane_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE mainspring.live (
    id uuid NOT NULL,
    state smallint NOT NULL,
    version integer NOT NULL,
    lane integer NOT NULL,
    alarm_at timestamp with time zone,
    limit_key uuid,
    worker text,
    record bytea NOT NULL,
    CONSTRAINT live_check CHECK (((state = 2) = (alarm_at IS NULL))),
    CONSTRAINT live_check1 CHECK (((state = 1) = (worker IS NOT NULL))),
    CONSTRAINT live_check2 CHECK (((state = 1) OR (limit_key IS NULL))),
    CONSTRAINT live_state_check CHECK (((state >= 1) AND (state <= 4))),
    CONSTRAINT live_version_check CHECK ((version > 0))
)
WITH (fillfactor='80');

CREATE TABLE mainspring.migration (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    is_compatible boolean NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE mainspring.node (
    id uuid NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE mainspring.outbox (
    id bigint NOT NULL,
    moves integer NOT NULL,
    steps bytea,
    names text[] NOT NULL,
    deltas bigint[] NOT NULL,
    CONSTRAINT outbox_check CHECK ((cardinality(names) = cardinality(deltas))),
    CONSTRAINT outbox_moves_check CHECK ((moves >= 0))
);

ALTER TABLE ONLY mainspring.outbox ALTER COLUMN steps SET STORAGE EXTERNAL;

ALTER TABLE mainspring.outbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mainspring.outbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE mainspring.queue (
    name text NOT NULL,
    is_paused boolean NOT NULL,
    is_by_due boolean NOT NULL
);

CREATE TABLE mainspring.ready (
    lane integer NOT NULL,
    key bigint NOT NULL,
    id uuid NOT NULL,
    due_at timestamp with time zone NOT NULL,
    is_retry boolean NOT NULL
);

CREATE TABLE mainspring.registry (
    is_only boolean DEFAULT true NOT NULL,
    version bigint NOT NULL,
    are_types_strict boolean DEFAULT true NOT NULL,
    CONSTRAINT registry_is_only_check CHECK (is_only)
);

CREATE TABLE mainspring.stream (
    last bigint NOT NULL,
    moves integer NOT NULL,
    stamped_at timestamp with time zone NOT NULL,
    steps bytea NOT NULL,
    CONSTRAINT stream_moves_check CHECK ((moves > 0))
)
PARTITION BY RANGE (stamped_at);

ALTER TABLE ONLY mainspring.stream ALTER COLUMN steps SET STORAGE EXTERNAL;

CREATE TABLE mainspring.stream_later (
    last bigint NOT NULL,
    moves integer NOT NULL,
    stamped_at timestamp with time zone NOT NULL,
    steps bytea NOT NULL,
    CONSTRAINT stream_moves_check CHECK ((moves > 0))
);

ALTER TABLE ONLY mainspring.stream_later ALTER COLUMN steps SET STORAGE EXTERNAL;

CREATE TABLE mainspring.tally (
    name text NOT NULL,
    n bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE mainspring.token (
    id uuid NOT NULL,
    record bytea NOT NULL
);

CREATE TABLE mainspring.type (
    name text NOT NULL,
    queue text NOT NULL,
    priority smallint NOT NULL,
    max_retries smallint NOT NULL,
    timeout_ms integer NOT NULL,
    is_limited_by_user boolean NOT NULL,
    record bytea NOT NULL
);

CREATE TABLE mainspring.waiting (
    id uuid NOT NULL,
    due_at timestamp with time zone NOT NULL,
    lane integer NOT NULL,
    key bigint NOT NULL,
    is_retry boolean NOT NULL
);

ALTER TABLE ONLY mainspring.finished ATTACH PARTITION mainspring.finished_later DEFAULT;

ALTER TABLE ONLY mainspring.job ATTACH PARTITION mainspring.job_later DEFAULT;

ALTER TABLE ONLY mainspring.stream ATTACH PARTITION mainspring.stream_later DEFAULT;

ALTER TABLE ONLY mainspring.expiry
    ADD CONSTRAINT expiry_pkey PRIMARY KEY (expires_at, id);

ALTER TABLE ONLY mainspring.finished
    ADD CONSTRAINT finished_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.finished_later
    ADD CONSTRAINT finished_later_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.finished_old
    ADD CONSTRAINT finished_old_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.held_key
    ADD CONSTRAINT held_key_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY mainspring.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.job_later
    ADD CONSTRAINT job_later_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.job_old
    ADD CONSTRAINT job_old_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.lane
    ADD CONSTRAINT lane_pkey PRIMARY KEY (lane);

ALTER TABLE ONLY mainspring.lane
    ADD CONSTRAINT lane_tenant_queue_type_user_id_key UNIQUE (tenant, queue, type, user_id);

ALTER TABLE ONLY mainspring.live
    ADD CONSTRAINT live_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);

ALTER TABLE ONLY mainspring.node
    ADD CONSTRAINT node_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.ready
    ADD CONSTRAINT ready_pkey PRIMARY KEY (lane, key, id);

ALTER TABLE ONLY mainspring.registry
    ADD CONSTRAINT registry_pkey PRIMARY KEY (is_only);

ALTER TABLE ONLY mainspring.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.token
    ADD CONSTRAINT token_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.type
    ADD CONSTRAINT type_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.waiting
    ADD CONSTRAINT waiting_pkey PRIMARY KEY (id);

CREATE INDEX held_key_free ON mainspring.held_key USING btree (free_at) WHERE (free_at IS NOT NULL);

CREATE INDEX item_created ON mainspring.item USING btree (created_at);

CREATE INDEX item_open ON mainspring.item USING btree (id) WHERE (state = ANY (ARRAY['open'::text, 'discard_requested'::text]));

CREATE INDEX live_alarm ON mainspring.live USING btree (alarm_at) WHERE (alarm_at IS NOT NULL);

CREATE INDEX live_limit ON mainspring.live USING btree (limit_key) WHERE (limit_key IS NOT NULL);

CREATE INDEX stream_last ON ONLY mainspring.stream USING btree (last);

CREATE INDEX stream_later_last_idx ON mainspring.stream_later USING btree (last);

CREATE INDEX waiting_due ON mainspring.waiting USING btree (due_at);

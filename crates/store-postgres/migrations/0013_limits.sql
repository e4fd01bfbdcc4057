-- compatible: limits that are counted by key, rate limits and circuits. Servers of before know nothing of
-- them: until none is left, no type should have any.
--
-- What is remembered of jobs that were handed out: buckets and circuits, by a digest of what they belong
-- to. A row that is idle is as good as none.
CREATE TABLE mainspring.meter (
    key uuid PRIMARY KEY,
    idle_from timestamptz NOT NULL,
    record bytea NOT NULL
);
CREATE INDEX meter_idle ON mainspring.meter (idle_from);

-- Whether a type has a concurrency limit, and where its jobs have the keys that limits count by.
ALTER TABLE mainspring.type
    ADD COLUMN is_limited boolean NOT NULL DEFAULT false,
    ADD COLUMN concurrency_key text,
    ADD COLUMN rate_key text;

-- What a tenant gets and may have, in the queue that stands for it.
ALTER TABLE mainspring.queue
    ADD COLUMN weight int,
    ADD COLUMN backlog_max bigint,
    ADD COLUMN backlog_bytes_max bigint;

-- The key of a job: what it has under a label, or at a place in its payload. As kernel/src/flow/key.rs
-- finds it.
CREATE FUNCTION mainspring.limit_key(source text, more json, body text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    found text;
    place json;
    part text;
BEGIN
    IF source IS NULL THEN
        RETURN NULL;
    ELSIF left(source, 1) <> '/' THEN
        SELECT l.pair ->> 1 INTO found FROM json_array_elements(more -> 'labels') l (pair)
        WHERE l.pair ->> 0 = source LIMIT 1;
    ELSE
        place := mainspring.readable(body)::json;
        FOREACH part IN ARRAY CASE source WHEN '/' THEN ARRAY['']
            ELSE string_to_array(substr(source, 2), '/') END
        LOOP
            part := replace(replace(part, '~1', '/'), '~0', '~');
            place := CASE json_typeof(place)
                WHEN 'object' THEN place -> part
                WHEN 'array' THEN CASE WHEN part SIMILAR TO '(0|[1-9][0-9]{0,8})' THEN place -> part::int END
                END;
            IF place IS NULL THEN
                RETURN NULL;
            END IF;
        END LOOP;
        found := CASE json_typeof(place)
            WHEN 'string' THEN place #>> '{}'
            WHEN 'number' THEN place::text
            WHEN 'boolean' THEN place::text
            END;
    END IF;
    IF strpos(found, chr(65535)) > 0 THEN
        -- What stands for what no text can have here: see readable().
        RETURN NULL;
    ELSIF octet_length(found) > 200 OR mainspring.has_control(found) THEN
        RETURN '#' || replace(mainspring.digest('limit-key', found)::text, '-', '');
    END IF;
    RETURN found;
END $$;

-- What sets the lane of a job apart from others of its tenant, queue and type: as LaneKey::part() of
-- kernel/src/dispatch/lane.rs. Retries have lanes of their own from now on; those that wait already, and
-- those of servers of before, stay where they are.
CREATE FUNCTION mainspring.lane_part(
    user_id text,
    is_by_user boolean,
    is_limited boolean,
    is_rated boolean,
    keys json,
    is_retry boolean
) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT p.by || CASE WHEN p.concurrency IS NULL AND p.rate IS NULL THEN '' ELSE
        chr(31) || coalesce('=' || p.concurrency, '') || chr(31) || coalesce('=' || p.rate, '') END
        || CASE WHEN is_retry THEN chr(30) ELSE '' END
    FROM (SELECT CASE WHEN is_by_user THEN user_id ELSE '' END AS by,
        CASE WHEN is_limited THEN keys ->> 0 END AS concurrency,
        CASE WHEN is_rated THEN keys ->> 1 END AS rate) p
$$;

-- The caller commits: the job takes its place, under registries that are held still from here to
-- the end of the commit, which is next. From now on with the keys that limits count it by, if its type
-- has any.
CREATE OR REPLACE FUNCTION mainspring.take_place() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    spec record;
    keys json;
    more json := NEW.more;
    home int;
    place int;
    key bigint;
    is_ready boolean;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('mainspring.registry', 0));
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- Such a caller sees the past. If the registries are no longer those it sees, this fails
        -- with a serialization error, as anything else that changed under it would.
        PERFORM FROM mainspring.registry r FOR SHARE;
    END IF;
    SELECT t.is_limited_by_user, t.is_limited, t.concurrency_key, t.rate_key INTO spec
    FROM mainspring.type t WHERE t.name = NEW.type;
    home := mainspring.lane_of(NEW.tenant, NEW.queue, NEW.type,
        CASE WHEN spec.is_limited_by_user THEN NEW.user_id ELSE '' END);
    place := home;
    IF coalesce(spec.concurrency_key, spec.rate_key) IS NOT NULL THEN
        keys := json_build_array(mainspring.limit_key(spec.concurrency_key, NEW.more, NEW.payload),
            mainspring.limit_key(spec.rate_key, NEW.more, NEW.payload));
        IF coalesce(keys ->> 0, keys ->> 1) IS NOT NULL THEN
            -- As store-postgres/src/rows.rs reads it.
            more := CASE WHEN more IS NULL THEN json_build_object('limits', keys)
                ELSE (left(rtrim(more::text), -1) || ',"limits":' || keys::text || '}')::json END;
            place := mainspring.lane_of(NEW.tenant, NEW.queue, NEW.type,
                mainspring.lane_part(NEW.user_id, spec.is_limited_by_user, spec.is_limited,
                    spec.rate_key IS NOT NULL, keys, false));
        END IF;
    END IF;
    key := mainspring.order_key(EXISTS (
        SELECT FROM mainspring.queue q WHERE q.name = NEW.queue AND q.is_by_due
    ), NEW.run_at, NEW.priority);
    is_ready := NEW.run_at <= clock_timestamp();
    INSERT INTO mainspring.job (id, lane, priority, max_retries, timeout_ms, created_at, run_at,
        user_id, payload, trace, more)
    VALUES (NEW.id, home, NEW.priority, NEW.max_retries, NEW.timeout_ms, NEW.created_at,
        NEW.run_at, NEW.user_id, NEW.payload, NEW.trace, more);
    IF is_ready THEN
        INSERT INTO mainspring.ready (lane, key, id, due_at, is_retry)
        VALUES (place, key, NEW.id, NEW.run_at, false);
    ELSE
        INSERT INTO mainspring.waiting (id, due_at, lane, key, is_retry)
        VALUES (NEW.id, NEW.run_at, place, key, false);
    END IF;
    IF NEW.expires_at IS NOT NULL THEN
        INSERT INTO mainspring.expiry (expires_at, id) VALUES (NEW.expires_at, NEW.id);
    END IF;
    -- The record of store/src/record/progress.rs for one submission:
    -- [instant in microseconds, [[id]]].
    INSERT INTO mainspring.outbox (moves, steps, names, deltas)
    VALUES (1, '\x821b'::bytea || int8send((extract(epoch FROM NEW.created_at) * 1000000)::bigint)
            || '\x818150'::bytea || uuid_send(NEW.id),
        ARRAY['total/submitted', 'state/queued',
            CASE WHEN is_ready THEN 'ready/' ELSE 'pending/' END || NEW.queue],
        ARRAY[1, 1, 1]);
    DELETE FROM mainspring.submission s WHERE s.id = NEW.id;
    IF coalesce(current_setting('mainspring' || '.notify', true), '') <> 'off' THEN
        PERFORM pg_notify(TG_TABLE_SCHEMA || '_news', 'submit');
    END IF;
    RETURN NULL;
END $$;

-- Drops lanes of keys, and of retries, in which nothing waits: of keys there may be any number. No other server commits
-- meanwhile, and those that know the lanes learn that the registries have another version.
CREATE FUNCTION mainspring.forget_lanes(most int) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('mainspring.registry', 0));
    DELETE FROM mainspring.lane l WHERE l.lane IN (
        SELECT n.lane FROM mainspring.lane n
        WHERE (strpos(n.user_id, chr(31)) > 0 OR strpos(n.user_id, chr(30)) > 0)
            AND NOT EXISTS (SELECT FROM mainspring.ready r WHERE r.lane = n.lane)
            AND NOT EXISTS (SELECT FROM mainspring.waiting q WHERE q.lane = n.lane)
        ORDER BY n.lane LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        UPDATE mainspring.registry SET version = version + 1;
    END IF;
    RETURN gone;
END $$;

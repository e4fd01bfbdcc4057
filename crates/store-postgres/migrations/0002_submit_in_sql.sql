-- compatible: submit() for applications that share the database.
--
-- submit() checks the wish, takes the idempotency key and notes the job. Everything that others can
-- see is written at the caller's COMMIT, by a deferred trigger, and only there the registries are
-- held still. Between the call and the commit, however long that takes, the caller holds nothing
-- but its key:
--  * the lane and the place in the queue are those of the registries at the commit, so a queue that
--    changes its order or a type that changes its lanes meanwhile needs no repair;
--  * servers change types and queues, make and drop partitions, and give lanes numbers, unhindered;
--  * the outbox number is taken at the commit, so no later move of the job is stamped before it.

-- How long a key stays taken after its job has ended, as the servers are set; null: for ever.
ALTER TABLE mainspring.registry ADD COLUMN key_window_secs bigint DEFAULT 86400;

-- Jobs between submit() and the commit; no row outlives its transaction, so nothing is logged.
CREATE UNLOGGED TABLE mainspring.submission (
    id          uuid PRIMARY KEY,
    tenant      text NOT NULL,
    queue       text NOT NULL,
    type        text NOT NULL,
    user_id     text NOT NULL,
    priority    smallint NOT NULL,
    max_retries smallint NOT NULL,
    timeout_ms  int NOT NULL,
    created_at  timestamptz NOT NULL,
    run_at      timestamptz NOT NULL,
    expires_at  timestamptz,
    payload     text NOT NULL,
    trace       text,
    more        json
);

-- Refuses a wish: the stable code is the beginning of the message.
CREATE FUNCTION mainspring.refuse(code text, reason text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: %', code, reason USING ERRCODE = CASE code
        WHEN 'TYPE_UNKNOWN' THEN 'MS102'
        WHEN 'IDEMPOTENCY_CONFLICT' THEN 'MS103'
        ELSE 'MS101' END;
END $$;

-- The rules of kernel/src/name.rs.
CREATE FUNCTION mainspring.check_name(field text, name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    space constant text := E'[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029'
        || E'\u202f\u205f\u3000]';
BEGIN
    IF name IS NULL OR name = '' OR name ~ ('^' || space) OR name ~ (space || '$') THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED',
            field || ' must not be empty or start or end with a space');
    ELSIF octet_length(name) > 200 THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED',
            field || ' must be at most 200 bytes long');
    ELSIF name ~ E'[\u0001-\u001f\u007f-\u009f]' THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED',
            field || ' must not contain control characters');
    END IF;
END $$;

-- The digest of kernel/src/fingerprint.rs: each part after its length, the first 128 bits.
CREATE FUNCTION mainspring.digest(VARIADIC parts text[]) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $$
    SELECT encode(substr(sha256(string_agg(int8send(octet_length(p)) || convert_to(p, 'UTF8'),
        '' ORDER BY n)), 1, 16), 'hex')::uuid
    FROM unnest(parts) WITH ORDINALITY w (p, n)
$$;

-- An id as the API writes it: 26 letters of Crockford's base32.
CREATE FUNCTION mainspring.job_text(id uuid) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT 'job_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
        substring(b.bits FROM n * 5 + 1 FOR 5)::bit(5)::int + 1, 1), '' ORDER BY n)
    FROM (SELECT B'00' || ('x' || replace(id::text, '-', ''))::bit(128) AS bits) b,
        generate_series(0, 25) n
$$;

-- And back; null if the text is no such id.
CREATE FUNCTION mainspring.job_uuid(job text) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT (SELECT string_agg(to_hex(substring(b.bits FROM 3 + g * 4 FOR 4)::bit(4)::int), ''
                ORDER BY g) FROM generate_series(0, 31) g)::uuid
    FROM (
        SELECT string_agg((strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(job, n, 1)) - 1)
            ::bit(5)::text, '' ORDER BY n) AS bits
        FROM generate_series(5, 30) n
    ) b
    WHERE job ~ '^job_[0-7][0-9a-hjkmnp-tv-z]{25}$'
$$;

-- A new id in the layout of engine/src/entropy.rs: milliseconds, the fraction of the millisecond
-- in place of the counter, chance.
CREATE FUNCTION mainspring.fresh_id(at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(m.micros / 1000), 12, '0') || '7'
        || lpad(to_hex(m.micros % 1000 * 4), 3, '0')
        || substr(replace(gen_random_uuid()::text, '-', ''), 17))::uuid
    FROM (SELECT (extract(epoch FROM at) * 1000000)::bigint AS micros) m
$$;

-- The order of kernel/src/dispatch.rs; a point of priority is worth a second of waiting.
CREATE FUNCTION mainspring.order_key(is_by_due boolean, due_at timestamptz, priority int)
RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN is_by_due
        THEN greatest(least(m.micros, 1::bigint << 54), -(1::bigint << 54)) * 256 + 255 - priority
        ELSE m.micros - priority * 1000000::bigint END
    FROM (SELECT (extract(epoch FROM due_at) * 1000000)::bigint AS micros) m
$$;

-- The number of a lane, given now if it has none.
CREATE FUNCTION mainspring.lane_of(tenant text, queue text, type text, user_id text) RETURNS int
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    found_lane int;
BEGIN
    LOOP
        SELECT l.lane INTO found_lane FROM mainspring.lane l
        WHERE (l.tenant, l.queue, l.type, l.user_id) = (tenant, queue, type, user_id);
        IF FOUND THEN
            RETURN found_lane;
        END IF;
        -- One at a time, so that two that need the same new lanes do not wait in a ring.
        PERFORM pg_advisory_xact_lock(hashtextextended('mainspring.lanes', 0));
        INSERT INTO mainspring.lane AS l (tenant, queue, type, user_id)
        VALUES (tenant, queue, type, user_id)
        ON CONFLICT DO NOTHING;
    END LOOP;
END $$;

-- The caller commits: the job takes its place, under registries that are held still from here to
-- the end of the commit, which is next.
CREATE FUNCTION mainspring.take_place() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
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
    place := mainspring.lane_of(NEW.tenant, NEW.queue, NEW.type, CASE WHEN EXISTS (
        SELECT FROM mainspring.type t WHERE t.name = NEW.type AND t.is_limited_by_user
    ) THEN NEW.user_id ELSE '' END);
    key := mainspring.order_key(EXISTS (
        SELECT FROM mainspring.queue q WHERE q.name = NEW.queue AND q.is_by_due
    ), NEW.run_at, NEW.priority);
    is_ready := NEW.run_at <= clock_timestamp();
    INSERT INTO mainspring.job (id, lane, priority, max_retries, timeout_ms, created_at, run_at,
        user_id, payload, trace, more)
    VALUES (NEW.id, place, NEW.priority, NEW.max_retries, NEW.timeout_ms, NEW.created_at,
        NEW.run_at, NEW.user_id, NEW.payload, NEW.trace, NEW.more);
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

CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON mainspring.submission
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mainspring.take_place();

-- Checks a wish by the rules of kernel/src/decide/submit.rs, after names and keys.
CREATE FUNCTION mainspring.check_wish(
    payload text, at timestamptz, due_at timestamptz, expires_at timestamptz, timeout_ms bigint,
    max_retries bigint, priority bigint, labels json, trace_id text, subject text,
    idempotency_key text, scope text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    wrong text;
BEGIN
    wrong := CASE
        WHEN payload IS NULL THEN 'payload must be JSON'
        WHEN octet_length(payload) > 1048576 THEN 'payload must be at most 1 MiB of JSON'
        -- Ten years of 366 days each.
        WHEN due_at > at + interval '87840 hours' THEN 'run_at must be within ten years from now'
        WHEN due_at = '-infinity' THEN 'run_at must be an instant'
        WHEN expires_at <= greatest(due_at, at)
            THEN 'expires_at must be after run_at and in the future'
        WHEN expires_at = 'infinity' THEN 'expires_at must be an instant'
        WHEN timeout_ms NOT BETWEEN 1 AND 604800000
            THEN 'timeout_ms must be between 1 and 604800000 (seven days)'
        WHEN max_retries < 0 OR max_retries > 1000 THEN 'max_retries must be at most 1000'
        WHEN priority NOT BETWEEN 0 AND 255 THEN 'priority must be between 0 and 255'
        WHEN json_typeof(labels) <> 'object' THEN 'labels must be an object of strings'
        WHEN trace_id = '' OR octet_length(trace_id) > 200
            THEN 'trace_id must be between 1 and 200 bytes long'
        WHEN octet_length(subject) > 200 THEN 'subject must be at most 200 bytes long'
        WHEN idempotency_key = '' OR octet_length(idempotency_key) > 512
            THEN 'idempotency_key must be between 1 and 512 bytes long'
        WHEN octet_length(scope) > 512 THEN 'idempotency_scope must be at most 512 bytes long'
    END;
    IF wrong IS NULL AND json_typeof(labels) = 'object' THEN
        wrong := (SELECT CASE
            WHEN bool_or(json_typeof(l.value) <> 'string') THEN 'labels must be an object of strings'
            WHEN count(*) > 32 THEN 'labels must have at most 32 entries'
            WHEN bool_or(octet_length(l.key) > 200 OR octet_length(l.value #>> '{}') > 200)
                THEN 'labels must have names and values of at most 200 bytes' END
            FROM json_each(labels) l);
    END IF;
    IF wrong IS NOT NULL THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED', wrong);
    END IF;
END $$;

-- Submits a job within the caller's transaction: it exists if and only if the caller commits.
-- Refusals: MS101 REQ_VALIDATION_FAILED, MS102 TYPE_UNKNOWN, MS103 IDEMPOTENCY_CONFLICT.
CREATE FUNCTION mainspring.submit(
    tenant text,
    user_id text,
    job_type text,
    payload json,
    run_at timestamptz DEFAULT NULL,
    delay_ms bigint DEFAULT NULL,
    priority bigint DEFAULT NULL,
    queue text DEFAULT NULL,
    max_retries bigint DEFAULT NULL,
    timeout_ms bigint DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    idempotency_scope text DEFAULT NULL,
    trace_id text DEFAULT NULL,
    subject text DEFAULT NULL,
    labels json DEFAULT NULL,
    parent_id text DEFAULT NULL,
    expires_at timestamptz DEFAULT NULL,
    OUT job_id text,
    OUT id uuid,
    OUT is_hit boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    at timestamptz := clock_timestamp();
    due_at timestamptz;
    -- What the API takes for the payload: the text as it stands, without space around it.
    body text := btrim(payload::text, E' \t\n\r');
    parent uuid := mainspring.job_uuid(parent_id);
    scope text := CASE WHEN idempotency_scope IS NULL THEN 'user:' || user_id
        ELSE 'scope:' || idempotency_scope END;
    hash uuid;
    fingerprint uuid;
    holder record;
    spec record;
    rules record;
    more json;
BEGIN
    PERFORM mainspring.check_name('tenant', tenant);
    PERFORM mainspring.check_name('user_id', user_id);
    PERFORM mainspring.check_name('job_type', job_type);
    IF queue IS NOT NULL THEN
        PERFORM mainspring.check_name('queue', queue);
    END IF;
    IF parent_id IS NOT NULL AND parent IS NULL THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED', 'parent_id must be a job id');
    END IF;
    IF delay_ms < 0 THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED', 'delay_ms must not be negative');
    END IF;
    IF idempotency_key IS NOT NULL THEN
        hash := mainspring.digest('key', tenant, scope, idempotency_key);
        fingerprint := mainspring.digest('native', job_type, body);
        -- Without a lock: the holder's job must be able to end while the caller stays.
        SELECT k.job, k.fingerprint, k.free_at INTO holder
        FROM mainspring.held_key k WHERE k.hash = hash;
        is_hit := FOUND AND (holder.free_at IS NULL OR at < holder.free_at);
    END IF;
    IF is_hit IS NOT TRUE THEN
        SELECT r.are_types_strict, r.key_window_secs INTO rules FROM mainspring.registry r;
        SELECT t.queue, t.priority, t.max_retries, t.timeout_ms INTO spec
        FROM mainspring.type t WHERE t.name = job_type;
        IF NOT FOUND THEN
            IF rules.are_types_strict THEN
                PERFORM mainspring.refuse('TYPE_UNKNOWN',
                    'job type "' || job_type || '" is not registered');
            END IF;
            -- The defaults of the house: kernel/src/limits.rs.
            SELECT 'default' AS queue, 50 AS priority, 3 AS max_retries, 900000 AS timeout_ms
            INTO spec;
        END IF;
        IF run_at IS NOT NULL AND delay_ms IS NOT NULL THEN
            PERFORM mainspring.refuse('REQ_VALIDATION_FAILED',
                'delay_ms cannot be combined with run_at');
        END IF;
        -- A delay beyond all bounds is refused below, not computed.
        due_at := coalesce(run_at,
            at + least(coalesce(delay_ms, 0), 1000000000000) * interval '1 millisecond');
        PERFORM mainspring.check_wish(body, at, due_at, expires_at, timeout_ms, max_retries,
            priority, labels, trace_id, subject, idempotency_key, scope);
        id := mainspring.fresh_id(at);
        WHILE idempotency_key IS NOT NULL AND is_hit IS NOT TRUE LOOP
            -- Waits for whoever is about to take or free the same key.
            INSERT INTO mainspring.held_key AS k (hash, job, fingerprint)
            VALUES (hash, id, fingerprint) ON CONFLICT DO NOTHING;
            EXIT WHEN FOUND;
            UPDATE mainspring.held_key k
            SET job = id, fingerprint = fingerprint, free_at = NULL
            WHERE k.hash = hash AND k.free_at <= at;
            EXIT WHEN FOUND;
            SELECT k.job, k.fingerprint, k.free_at INTO holder
            FROM mainspring.held_key k WHERE k.hash = hash;
            is_hit := FOUND AND (holder.free_at IS NULL OR at < holder.free_at);
        END LOOP;
    END IF;
    IF is_hit THEN
        IF holder.fingerprint <> fingerprint THEN
            PERFORM mainspring.refuse('IDEMPOTENCY_CONFLICT',
                'this idempotency key was used with another type or payload');
        END IF;
        id := holder.job;
        job_id := mainspring.job_text(id);
        RETURN;
    END IF;
    is_hit := false;
    job_id := mainspring.job_text(id);
    -- As store-postgres/src/rows.rs reads it.
    more := nullif(json_strip_nulls(json_build_object(
        'key', CASE WHEN idempotency_key IS NOT NULL THEN json_build_object(
            'hash', hash, 'scope', scope, 'key', idempotency_key, 'fingerprint', fingerprint,
            'window_secs', rules.key_window_secs) END,
        'parent', parent,
        'subject', subject,
        'labels', (SELECT json_agg(json_build_array(l.key, l.value #>> '{}') ORDER BY l.n)
            FROM json_each(labels) WITH ORDINALITY l (key, value, n)),
        'expires_at', (extract(epoch FROM expires_at) * 1000000)::bigint))::text, '{}')::json;
    INSERT INTO mainspring.submission (id, tenant, queue, type, user_id, priority, max_retries,
        timeout_ms, created_at, run_at, expires_at, payload, trace, more)
    VALUES (id, tenant, coalesce(queue, spec.queue), job_type, user_id,
        coalesce(priority, spec.priority), coalesce(max_retries, spec.max_retries),
        coalesce(timeout_ms, spec.timeout_ms), at, due_at, expires_at, body, trace_id, more);
END $$;

-- Whoever may use the schema reads it; submitting in anybody's name has to be granted.
REVOKE ALL ON FUNCTION mainspring.submit FROM PUBLIC;

-- The schema as the migrations make it, without the partitions of days. For reading;
-- written by `cargo xtask bless`.

CREATE SCHEMA mainspring;

CREATE FUNCTION mainspring.canonical(value json, depth integer) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT
    AS $$
#variable_conflict use_variable
DECLARE
    made text;
    members bigint;
    keys bigint;
BEGIN
    CASE json_typeof(value)
    WHEN 'object' THEN
        IF depth >= 64 THEN
            PERFORM mainspring.refuse('REQ_VALIDATION_FAILED',
                'payload must not nest arrays and objects more than 64 deep');
        END IF;
        SELECT string_agg(m.member, ',' ORDER BY m.member), count(*),
            count(DISTINCT m.key COLLATE "C")
        INTO made, members, keys
        FROM (
            SELECT e.key, (to_json(e.key)::text || ':' || CASE
                WHEN json_typeof(e.value) IN ('object', 'array')
                    OR strpos(e.value::text, E'\\') > 0
                THEN mainspring.canonical(e.value, depth + 1)
                ELSE e.value::text END) COLLATE "C" AS member
            FROM json_each(value) e
            -- Each member is made once; a flattened subquery would make it again for the order,
            -- at every depth.
            OFFSET 0
        ) m;
        IF keys < members THEN
            PERFORM mainspring.refuse('REQ_VALIDATION_FAILED',
                'payload must not repeat a key in one object');
        END IF;
        RETURN '{' || coalesce(made, '') || '}';
    WHEN 'array' THEN
        IF depth >= 64 THEN
            PERFORM mainspring.refuse('REQ_VALIDATION_FAILED',
                'payload must not nest arrays and objects more than 64 deep');
        END IF;
        SELECT string_agg(CASE
            WHEN json_typeof(e.value) IN ('object', 'array') OR strpos(e.value::text, E'\\') > 0
            THEN mainspring.canonical(e.value, depth + 1)
            ELSE e.value::text END, ',' ORDER BY e.n)
        INTO made
        FROM json_array_elements(value) WITH ORDINALITY e (value, n);
        RETURN '[' || coalesce(made, '') || ']';
    WHEN 'string' THEN
        RETURN to_json(value #>> '{}')::text;
    ELSE
        RETURN value::text;
    END CASE;
END $$;

CREATE FUNCTION mainspring.check_key(idempotency_key text, scope text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    wrong text;
BEGIN
    wrong := CASE
        WHEN idempotency_key = '' OR octet_length(idempotency_key) > 512
            THEN 'idempotency_key must be between 1 and 512 bytes long'
        WHEN mainspring.has_control(idempotency_key)
            THEN 'idempotency_key must not contain control characters'
        WHEN octet_length(scope) > 512 THEN 'idempotency_scope must be at most 512 bytes long'
        WHEN mainspring.has_control(scope)
            THEN 'idempotency_scope must not contain control characters'
    END;
    IF wrong IS NOT NULL THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED', wrong);
    END IF;
END $$;

CREATE FUNCTION mainspring.check_name(field text, name text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
    space constant text := E'[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029'
        || E'\u202f\u205f\u3000]';

CREATE FUNCTION mainspring.check_wish(payload text, at timestamp with time zone, due_at timestamp with time zone, expires_at timestamp with time zone, timeout_ms bigint, max_retries bigint, priority bigint, labels json, trace_id text, subject text, idempotency_key text, scope text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    wrong text;
BEGIN
    wrong := CASE
        WHEN payload IS NULL THEN 'payload must be JSON'
        WHEN octet_length(payload) > 1048576 THEN 'payload must be at most 1 MiB of JSON'
        -- Ten years of 366 days each.
        WHEN due_at > at + interval '87840 hours' THEN 'run_at must be within ten years from now'
        WHEN due_at = '-infinity' THEN 'run_at must be an instant'
        WHEN expires_at <= due_at THEN 'expires_at must be after run_at and in the future'
        WHEN expires_at = 'infinity' THEN 'expires_at must be an instant'
        WHEN timeout_ms NOT BETWEEN 1 AND 604800000
            THEN 'timeout_ms must be between 1 and 604800000 (seven days)'
        WHEN max_retries < 0 OR max_retries > 1000 THEN 'max_retries must be at most 1000'
        WHEN priority NOT BETWEEN 0 AND 255 THEN 'priority must be between 0 and 255'
        WHEN json_typeof(labels) <> 'object' THEN 'labels must be an object of strings'
    END;
    IF wrong IS NULL AND json_typeof(labels) = 'object' THEN
        BEGIN
            wrong := (SELECT CASE
                WHEN bool_or(json_typeof(l.value) <> 'string')
                    THEN 'labels must be an object of strings'
                WHEN count(*) > 32 THEN 'labels must have at most 32 entries'
                WHEN bool_or(octet_length(l.key) > 200 OR octet_length(l.value #>> '{}') > 200)
                    THEN 'labels must have names and values of at most 200 bytes'
                WHEN bool_or(mainspring.has_control(l.key)
                        OR mainspring.has_control(l.value #>> '{}'))
                    THEN 'labels must not contain control characters'
                WHEN count(DISTINCT l.key COLLATE "C") < count(*)
                    THEN 'labels must not repeat a name' END
                FROM json_each(labels) l);
        EXCEPTION
            -- JSON can spell a NUL, and halves of characters; text cannot.
            WHEN untranslatable_character OR invalid_text_representation THEN
                wrong := 'labels must not contain control characters';
        END;
    END IF;
    wrong := coalesce(wrong, CASE
        WHEN trace_id = '' OR octet_length(trace_id) > 200
            THEN 'trace_id must be between 1 and 200 bytes long'
        WHEN mainspring.has_control(trace_id) THEN 'trace_id must not contain control characters'
        WHEN octet_length(subject) > 200 THEN 'subject must be at most 200 bytes long'
        WHEN mainspring.has_control(subject) THEN 'subject must not contain control characters'
    END);
    IF wrong IS NOT NULL THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED', wrong);
    END IF;
END $$;

CREATE FUNCTION mainspring.count_held() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO mainspring.outbox (moves, names, deltas)
    VALUES (0, ARRAY['jobs/' || NEW.tenant, 'bytes/' || NEW.tenant, 'type/queued/' || NEW.type],
        ARRAY[1, mainspring.held_bytes(NEW.payload, NEW.trace, NEW.more), 1]);
    RETURN NULL;
END $$;

CREATE FUNCTION mainspring.digest(VARIADIC parts text[]) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT encode(substr(sha256(string_agg(int8send(octet_length(p)) || convert_to(p, 'UTF8'),
        '' ORDER BY n)), 1, 16), 'hex')::uuid
    FROM unnest(parts) WITH ORDINALITY w (p, n)
$$;

CREATE FUNCTION mainspring.expect(got bigint, wanted bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF got <> wanted THEN
        RAISE EXCEPTION 'decided on % rows and found %', wanted, got USING ERRCODE = 'MS001';
    END IF;
END $$;

CREATE FUNCTION mainspring.fingerprint(job_type text, body text) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    IF octet_length(body) > 1048576 THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED', 'payload must be at most 1 MiB of JSON');
    END IF;
    RETURN mainspring.digest('native-2', job_type,
        mainspring.canonical(mainspring.readable(body)::json, 0));
END $$;

CREATE FUNCTION mainspring.first_id(at timestamp with time zone) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

CREATE FUNCTION mainspring.forget_lanes(most integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.fresh_id(at timestamp with time zone) RETURNS uuid
    LANGUAGE sql
    AS $$
    SELECT (lpad(to_hex(m.micros / 1000), 12, '0') || '7'
        || lpad(to_hex(m.micros % 1000 * 4), 3, '0')
        || substr(replace(gen_random_uuid()::text, '-', ''), 17))::uuid
    FROM (SELECT (extract(epoch FROM at) * 1000000)::bigint AS micros) m
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

CREATE FUNCTION mainspring.has_control(given text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT given ~ E'[\u0001-\u001f\u007f-\u009f]'
$$;

CREATE FUNCTION mainspring.held_bytes(payload text, trace text, more json) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT 512 + octet_length(payload) + coalesce(octet_length(trace), 0)
        + coalesce(octet_length(more #>> '{key,scope}'), 0)
        + coalesce(octet_length(more #>> '{key,key}'), 0)
        + coalesce(octet_length(more ->> 'subject'), 0)
        + coalesce((
            SELECT sum(octet_length(l.pair ->> 0) + octet_length(l.pair ->> 1))
            FROM json_array_elements(more -> 'labels') l (pair)
        ), 0)
        + coalesce(json_array_length(more #> '{after,jobs}'), 0) * 100
        + coalesce((more #>> '{after,members}')::bigint, 0)
$$;

CREATE FUNCTION mainspring.job_text(id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT
    AS $$
    SELECT 'job_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
        substring(b.bits FROM n * 5 + 1 FOR 5)::bit(5)::int + 1, 1), '' ORDER BY n)
    FROM (SELECT B'00' || ('x' || replace(id::text, '-', ''))::bit(128) AS bits) b,
        generate_series(0, 25) n
$$;

CREATE FUNCTION mainspring.job_uuid(job text) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT
    AS $_$
    SELECT (SELECT string_agg(to_hex(substring(b.bits FROM 3 + g * 4 FOR 4)::bit(4)::int), ''
                ORDER BY g) FROM generate_series(0, 31) g)::uuid
    FROM (
        SELECT string_agg((strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(job, n, 1)) - 1)
            ::bit(5)::text, '' ORDER BY n) AS bits
        FROM generate_series(5, 30) n
    ) b
    WHERE job ~ '^job_[0-7][0-9a-hjkmnp-tv-z]{25}$'
$_$;

CREATE FUNCTION mainspring.lane_of(tenant text, queue text, type text, user_id text) RETURNS integer
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.lane_part(user_id text, is_by_user boolean, is_limited boolean, is_rated boolean, keys json) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT p.by || CASE WHEN p.concurrency IS NULL AND p.rate IS NULL THEN '' ELSE
        chr(31) || coalesce('=' || p.concurrency, '') || chr(31) || coalesce('=' || p.rate, '') END
    FROM (SELECT CASE WHEN is_by_user THEN user_id ELSE '' END AS by,
        CASE WHEN is_limited THEN keys ->> 0 END AS concurrency,
        CASE WHEN is_rated THEN keys ->> 1 END AS rate) p
$$;

CREATE FUNCTION mainspring.limit_key(source text, more json, body text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $$
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

CREATE FUNCTION mainspring.list_end() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO mainspring.term (term, id)
    SELECT mainspring.term_number(n.tenant, '6',
        CASE NEW.state WHEN 6 THEN 'failed' ELSE 'cancelled' END, ''), NEW.id
    FROM mainspring.job j JOIN mainspring.lane n ON n.lane = j.lane
    WHERE j.id = NEW.id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION mainspring.list_item_state() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM mainspring.item_term t
        WHERE t.term = mainspring.term_number(OLD.tenant, '6', OLD.state, '') AND t.id = OLD.id;
    END IF;
    INSERT INTO mainspring.item_term (term, id)
    VALUES (mainspring.term_number(NEW.tenant, '6', NEW.state, ''), NEW.id)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION mainspring.list_labels() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO mainspring.term (term, id)
    SELECT mainspring.term_number(n.tenant, '8', l.pair ->> 0, l.pair ->> 1), NEW.id
    FROM mainspring.lane n, json_array_elements(NEW.more -> 'labels') l (pair)
    WHERE n.lane = NEW.lane
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION mainspring.list_parent() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO mainspring.term (term, id)
    SELECT mainspring.term_number(n.tenant, '11', mainspring.job_text((NEW.more ->> 'parent')::uuid), ''),
        NEW.id
    FROM mainspring.lane n WHERE n.lane = NEW.lane
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE FUNCTION mainspring.order_key(is_by_due boolean, due_at timestamp with time zone, priority integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT CASE WHEN is_by_due
        THEN greatest(least(m.micros, 1::bigint << 54), -(1::bigint << 54)) * 256 + 255 - priority
        ELSE m.micros - priority * 1000000::bigint END
    FROM (SELECT (extract(epoch FROM due_at) * 1000000)::bigint AS micros) m
$$;

CREATE FUNCTION mainspring.readable(body text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT
    AS $_$
    SELECT CASE WHEN body !~* E'\\\\u(0000|d[89a-f]|ffff)' AND strpos(body, chr(65535)) = 0
    THEN body ELSE (
        SELECT string_agg(CASE
            WHEN left(p.part, 1) <> E'\\' THEN replace(p.part, chr(65535), chr(65535) || 'ffff')
            WHEN length(p.part) = 6 AND p.part ~* E'^\\\\u(0000|d[89a-f]..|ffff)$'
                THEN chr(65535) || lower(substr(p.part, 3))
            ELSE p.part END, '' ORDER BY p.n)
        FROM (
            SELECT m.parts[1] AS part, m.n
            FROM regexp_matches(body,
                E'([^\\\\]+'
                || E'|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}'
                || E'|\\\\u[0-9a-fA-F]{4}|\\\\.)', 'g') WITH ORDINALITY m (parts, n)
        ) p
    ) END
$_$;

CREATE FUNCTION mainspring.refuse(code text, reason text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '%: %', code, reason USING ERRCODE = CASE code
        WHEN 'TYPE_UNKNOWN' THEN 'MS102'
        WHEN 'IDEMPOTENCY_CONFLICT' THEN 'MS103'
        ELSE 'MS101' END;
END $$;

CREATE FUNCTION mainspring.submit(tenant text, user_id text, job_type text, payload json, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay_ms bigint DEFAULT NULL::bigint, priority bigint DEFAULT NULL::bigint, queue text DEFAULT NULL::text, max_retries bigint DEFAULT NULL::bigint, timeout_ms bigint DEFAULT NULL::bigint, idempotency_key text DEFAULT NULL::text, idempotency_scope text DEFAULT NULL::text, trace_id text DEFAULT NULL::text, subject text DEFAULT NULL::text, labels json DEFAULT NULL::json, parent_id text DEFAULT NULL::text, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, OUT job_id text, OUT id uuid, OUT is_hit boolean) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
        PERFORM mainspring.check_key(idempotency_key, scope);
        hash := mainspring.digest('key', tenant, scope, idempotency_key);
        fingerprint := mainspring.fingerprint(job_type, body);
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
        -- The past counts as now, but what is no instant at all is refused there, too.
        due_at := CASE
            WHEN run_at IS NULL
            THEN at + least(coalesce(delay_ms, 0), 1000000000000) * interval '1 millisecond'
            WHEN run_at = '-infinity' THEN run_at
            ELSE greatest(at, run_at) END;
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
        -- A key that was taken before payloads were compared by what they mean has the digest of
        -- the very text.
        IF holder.fingerprint <> fingerprint
            AND holder.fingerprint <> mainspring.digest('native', job_type, body)
        THEN
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

CREATE FUNCTION mainspring.take_place() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
                    spec.rate_key IS NOT NULL, keys));
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

CREATE FUNCTION mainspring.term_number(tenant text, kind text, first text, second text) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT ('x' || encode(substr(sha256(
        int8send(octet_length(tenant)) || convert_to(tenant, 'UTF8')
        || int8send(octet_length(kind)) || convert_to(kind, 'UTF8')
        || int8send(octet_length(first)) || convert_to(first, 'UTF8')
        || int8send(octet_length(second)) || convert_to(second, 'UTF8')), 1, 8), 'hex'))
        ::bit(64)::bigint
$$;

CREATE TABLE mainspring.checkpoint (
    job uuid NOT NULL,
    value text NOT NULL
);

CREATE TABLE mainspring.clock (
    is_one boolean DEFAULT true NOT NULL,
    epoch bigint NOT NULL,
    ahead_us bigint NOT NULL,
    since_us bigint NOT NULL,
    seen_us bigint NOT NULL,
    jumps_us bigint[] NOT NULL,
    silences_us bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    CONSTRAINT clock_ahead_us_check CHECK ((ahead_us >= 0)),
    CONSTRAINT clock_is_one_check CHECK (is_one)
);

CREATE TABLE mainspring.effect (
    job uuid NOT NULL,
    name text NOT NULL,
    number integer NOT NULL,
    value text NOT NULL,
    committed_at timestamp with time zone NOT NULL,
    CONSTRAINT effect_number_check CHECK ((number >= 0))
);

ALTER TABLE ONLY mainspring.effect ALTER COLUMN value SET COMPRESSION lz4;

CREATE TABLE mainspring.entity (
    kind smallint NOT NULL,
    id uuid NOT NULL,
    version integer NOT NULL,
    tenant text NOT NULL,
    owner text NOT NULL,
    state text NOT NULL,
    alarm_at timestamp with time zone,
    record bytea NOT NULL
);

ALTER TABLE ONLY mainspring.entity ALTER COLUMN record SET COMPRESSION lz4;

CREATE TABLE mainspring.entity_term (
    term bigint NOT NULL,
    kind smallint NOT NULL,
    id uuid NOT NULL
);

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

ALTER TABLE ONLY mainspring.finished ALTER COLUMN record SET COMPRESSION lz4;

CREATE TABLE mainspring.finished_later (
    id uuid NOT NULL,
    state smallint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    record bytea NOT NULL,
    CONSTRAINT finished_state_check CHECK (((state >= 5) AND (state <= 7)))
);

ALTER TABLE ONLY mainspring.finished_later ALTER COLUMN record SET COMPRESSION lz4;

CREATE TABLE mainspring.finished_old (
    id uuid NOT NULL,
    state smallint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    record bytea NOT NULL,
    CONSTRAINT finished_state_check CHECK (((state >= 5) AND (state <= 7)))
);

ALTER TABLE ONLY mainspring.finished_old ALTER COLUMN record SET COMPRESSION lz4;

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
    is_listed boolean DEFAULT false NOT NULL,
    CONSTRAINT item_version_check CHECK ((version > 0))
);

ALTER TABLE ONLY mainspring.item ALTER COLUMN record SET COMPRESSION lz4;

CREATE TABLE mainspring.item_term (
    term bigint NOT NULL,
    id uuid NOT NULL
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

ALTER TABLE ONLY mainspring.job ALTER COLUMN payload SET COMPRESSION lz4;

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

ALTER TABLE ONLY mainspring.job_later ALTER COLUMN payload SET COMPRESSION lz4;

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

ALTER TABLE ONLY mainspring.job_old ALTER COLUMN payload SET COMPRESSION lz4;

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
    CONSTRAINT live_check CHECK (((state = 2) OR (alarm_at IS NOT NULL))),
    CONSTRAINT live_check1 CHECK (((state = 1) = (worker IS NOT NULL))),
    CONSTRAINT live_check2 CHECK (((state = 1) OR (limit_key IS NULL))),
    CONSTRAINT live_state_check CHECK (((state >= 1) AND (state <= 4))),
    CONSTRAINT live_version_check CHECK ((version > 0))
)
WITH (fillfactor='80');

ALTER TABLE ONLY mainspring.live ALTER COLUMN record SET COMPRESSION lz4;

CREATE TABLE mainspring.meter (
    key uuid NOT NULL,
    idle_from timestamp with time zone NOT NULL,
    record bytea NOT NULL
);

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
    seen_at timestamp with time zone NOT NULL,
    workers bytea,
    step integer
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
    is_by_due boolean NOT NULL,
    weight integer,
    backlog_max bigint,
    backlog_bytes_max bigint
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
    key_window_secs bigint DEFAULT 86400,
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

CREATE UNLOGGED TABLE mainspring.submission (
    id uuid NOT NULL,
    tenant text NOT NULL,
    queue text NOT NULL,
    type text NOT NULL,
    user_id text NOT NULL,
    priority smallint NOT NULL,
    max_retries smallint NOT NULL,
    timeout_ms integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    payload text NOT NULL,
    trace text,
    more json
);

ALTER TABLE ONLY mainspring.submission ALTER COLUMN payload SET COMPRESSION lz4;

CREATE TABLE mainspring.tally (
    name text NOT NULL,
    n bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE mainspring.term (
    term bigint NOT NULL,
    id uuid NOT NULL
);

CREATE TABLE mainspring.token (
    id uuid NOT NULL,
    record bytea NOT NULL
);

ALTER TABLE ONLY mainspring.token ALTER COLUMN record SET COMPRESSION lz4;

CREATE TABLE mainspring.type (
    name text NOT NULL,
    queue text NOT NULL,
    priority smallint NOT NULL,
    max_retries smallint NOT NULL,
    timeout_ms integer NOT NULL,
    is_limited_by_user boolean NOT NULL,
    record bytea NOT NULL,
    is_limited boolean DEFAULT false NOT NULL,
    concurrency_key text,
    rate_key text
);

ALTER TABLE ONLY mainspring.type ALTER COLUMN record SET COMPRESSION lz4;

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

ALTER TABLE ONLY mainspring.checkpoint
    ADD CONSTRAINT checkpoint_pkey PRIMARY KEY (job);

ALTER TABLE ONLY mainspring.clock
    ADD CONSTRAINT clock_pkey PRIMARY KEY (is_one);

ALTER TABLE ONLY mainspring.effect
    ADD CONSTRAINT effect_pkey PRIMARY KEY (job, name);

ALTER TABLE ONLY mainspring.entity
    ADD CONSTRAINT entity_pkey PRIMARY KEY (kind, id);

ALTER TABLE ONLY mainspring.entity_term
    ADD CONSTRAINT entity_term_pkey PRIMARY KEY (term, kind, id);

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

ALTER TABLE ONLY mainspring.item_term
    ADD CONSTRAINT item_term_pkey PRIMARY KEY (term, id);

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

ALTER TABLE ONLY mainspring.meter
    ADD CONSTRAINT meter_pkey PRIMARY KEY (key);

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

ALTER TABLE ONLY mainspring.submission
    ADD CONSTRAINT submission_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.term
    ADD CONSTRAINT term_pkey PRIMARY KEY (term, id);

ALTER TABLE ONLY mainspring.token
    ADD CONSTRAINT token_pkey PRIMARY KEY (id);

ALTER TABLE ONLY mainspring.type
    ADD CONSTRAINT type_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.waiting
    ADD CONSTRAINT waiting_pkey PRIMARY KEY (id);

CREATE INDEX entity_alarm ON mainspring.entity USING btree (alarm_at, kind, id) WHERE (alarm_at IS NOT NULL);

CREATE INDEX held_key_free ON mainspring.held_key USING btree (free_at) WHERE (free_at IS NOT NULL);

CREATE INDEX item_created ON mainspring.item USING btree (created_at);

CREATE INDEX item_open ON mainspring.item USING btree (id) WHERE (state = ANY (ARRAY['open'::text, 'discard_requested'::text]));

CREATE INDEX item_term_id ON mainspring.item_term USING btree (id);

CREATE INDEX item_unlisted ON mainspring.item USING btree (id) WHERE (NOT is_listed);

CREATE INDEX job_lane ON ONLY mainspring.job USING btree (lane, id);

CREATE INDEX job_trace ON ONLY mainspring.job USING btree (trace, id) WHERE (trace IS NOT NULL);

CREATE INDEX job_user ON ONLY mainspring.job USING btree (user_id, lane, id);

CREATE INDEX job_later_lane_id_idx ON mainspring.job_later USING btree (lane, id);

CREATE INDEX job_later_trace_id_idx ON mainspring.job_later USING btree (trace, id) WHERE (trace IS NOT NULL);

CREATE INDEX job_later_user_id_lane_id_idx ON mainspring.job_later USING btree (user_id, lane, id);

CREATE INDEX job_old_lane_id_idx ON mainspring.job_old USING btree (lane, id);

CREATE INDEX job_old_trace_id_idx ON mainspring.job_old USING btree (trace, id) WHERE (trace IS NOT NULL);

CREATE INDEX job_old_user_id_lane_id_idx ON mainspring.job_old USING btree (user_id, lane, id);

CREATE INDEX live_alarm ON mainspring.live USING btree (alarm_at) WHERE (alarm_at IS NOT NULL);

CREATE INDEX live_limit ON mainspring.live USING btree (limit_key) WHERE (limit_key IS NOT NULL);

CREATE INDEX meter_idle ON mainspring.meter USING btree (idle_from);

CREATE INDEX stream_last ON ONLY mainspring.stream USING btree (last);

CREATE INDEX stream_later_last_idx ON mainspring.stream_later USING btree (last);

CREATE INDEX term_id ON mainspring.term USING btree (id);

CREATE INDEX waiting_due ON mainspring.waiting USING btree (due_at);

CREATE INDEX waiting_lane ON mainspring.waiting USING btree (lane);

CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON mainspring.submission DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mainspring.take_place();

CREATE CONSTRAINT TRIGGER at_commit_count AFTER INSERT ON mainspring.submission DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION mainspring.count_held();

CREATE TRIGGER list_end AFTER INSERT ON mainspring.finished FOR EACH ROW WHEN ((new.state <> 5)) EXECUTE FUNCTION mainspring.list_end();

CREATE TRIGGER list_item_state AFTER INSERT OR UPDATE OF state ON mainspring.item FOR EACH ROW EXECUTE FUNCTION mainspring.list_item_state();

CREATE TRIGGER list_labels AFTER INSERT ON mainspring.job FOR EACH ROW WHEN ((((new.more -> 'labels'::text) IS NOT NULL) AND (current_setting('mainspring.labels'::text, true) IS DISTINCT FROM 'listed'::text))) EXECUTE FUNCTION mainspring.list_labels();

CREATE TRIGGER list_parent AFTER INSERT ON mainspring.job FOR EACH ROW WHEN ((((new.more -> 'parent'::text) IS NOT NULL) AND (current_setting('mainspring.parents'::text, true) IS DISTINCT FROM 'listed'::text))) EXECUTE FUNCTION mainspring.list_parent();

ALTER TABLE ONLY mainspring.item_term
    ADD CONSTRAINT item_term_id_fkey FOREIGN KEY (id) REFERENCES mainspring.item(id) ON DELETE CASCADE;

-- compatible: submit() refuses the text the servers refuse, takes a past run_at as now, and
-- compares payloads by what they mean.

-- The rule of kernel/src/text.rs. Text in PostgreSQL has no NUL.
CREATE FUNCTION mainspring.has_control(given text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT given ~ E'[\u0001-\u001f\u007f-\u009f]'
$$;

-- JSON whose strings can be read as text: what text cannot hold, a NUL or half of a surrogate pair,
-- is written as U+FFFF and its four digits, and so is U+FFFF. See kernel/src/canonical.rs.
CREATE FUNCTION mainspring.readable(body text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
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
$$;

-- JSON in one spelling: kernel/src/canonical.rs. `value` has been made readable, `depth` is how many
-- arrays and objects are around it.
CREATE FUNCTION mainspring.canonical(value json, depth int) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
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

-- The fingerprint of kernel/src/idempotency.rs.
CREATE FUNCTION mainspring.fingerprint(job_type text, body text) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF octet_length(body) > 1048576 THEN
        PERFORM mainspring.refuse('REQ_VALIDATION_FAILED', 'payload must be at most 1 MiB of JSON');
    END IF;
    RETURN mainspring.digest('native-2', job_type,
        mainspring.canonical(mainspring.readable(body)::json, 0));
END $$;

-- Checks a key by the rules of kernel/src/idempotency.rs; it comes before everything else.
CREATE FUNCTION mainspring.check_key(idempotency_key text, scope text) RETURNS void
LANGUAGE plpgsql AS $$
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

-- Checks a wish by the rules of kernel/src/decide/submit.rs, after names and keys.
CREATE OR REPLACE FUNCTION mainspring.check_wish(
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

-- Submits a job within the caller's transaction: it exists if and only if the caller commits.
-- Refusals: MS101 REQ_VALIDATION_FAILED, MS102 TYPE_UNKNOWN, MS103 IDEMPOTENCY_CONFLICT.
CREATE OR REPLACE FUNCTION mainspring.submit(
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

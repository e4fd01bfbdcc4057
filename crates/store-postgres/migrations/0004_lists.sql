-- compatible: lists by index. Servers of before go on; what they write is listed, too.
--
-- A job's tenant, queue and type are those of its lane, so one index by lane serves them all, and
-- one by user and lane serves a user's own list. What few jobs have (labels, an error code, an end
-- other than success) is a row in term, so that most jobs cost nothing there.

CREATE INDEX job_lane ON mainspring.job (lane, id);
CREATE INDEX job_user ON mainspring.job (user_id, lane, id);
CREATE INDEX waiting_lane ON mainspring.waiting (lane);
CREATE INDEX job_trace ON mainspring.job (trace, id) WHERE trace IS NOT NULL;

-- The primary key anew, so that it is the newest index: of several that cost the same, as all do while
-- the partition of a day is empty, PostgreSQL takes the newest, and keeps the plan for a while.
ALTER TABLE mainspring.job DROP CONSTRAINT job_pkey;
ALTER TABLE mainspring.job ADD PRIMARY KEY (id);

-- Jobs by a fact about them. The number is of tenant and fact, so no tenant's list reads another's.
CREATE TABLE mainspring.term (
    term bigint NOT NULL,
    id   uuid NOT NULL,
    PRIMARY KEY (term, id)
);
-- For forgetting them with their jobs.
CREATE INDEX term_id ON mainspring.term (id);

-- The same for dead-letter items: every fact is a row, for there are few items.
CREATE TABLE mainspring.item_term (
    term bigint NOT NULL,
    id   uuid NOT NULL REFERENCES mainspring.item ON DELETE CASCADE,
    PRIMARY KEY (term, id)
);
CREATE INDEX item_term_id ON mainspring.item_term (id);
-- Items that have no rows there yet: those of before, and of servers of before.
ALTER TABLE mainspring.item ADD COLUMN is_listed boolean NOT NULL DEFAULT false;
CREATE INDEX item_unlisted ON mainspring.item (id) WHERE NOT is_listed;

-- The number of a fact, as src/terms.rs makes it: digest() of four parts, spelled out because it is
-- called for every row, and the first 64 bits.
CREATE FUNCTION mainspring.term_number(tenant text, kind text, first text, second text)
RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || encode(substr(sha256(
        int8send(octet_length(tenant)) || convert_to(tenant, 'UTF8')
        || int8send(octet_length(kind)) || convert_to(kind, 'UTF8')
        || int8send(octet_length(first)) || convert_to(first, 'UTF8')
        || int8send(octet_length(second)) || convert_to(second, 'UTF8')), 1, 8), 'hex'))
        ::bit(64)::bigint
$$;

-- Jobs as they are submitted, with labels.
CREATE FUNCTION mainspring.list_labels() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO mainspring.term (term, id)
    SELECT mainspring.term_number(n.tenant, '8', l.pair ->> 0, l.pair ->> 1), NEW.id
    FROM mainspring.lane n, json_array_elements(NEW.more -> 'labels') l (pair)
    WHERE n.lane = NEW.lane
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER list_labels AFTER INSERT ON mainspring.job
FOR EACH ROW WHEN (NEW.more -> 'labels' IS NOT NULL) EXECUTE FUNCTION mainspring.list_labels();

-- Jobs that end otherwise than well.
CREATE FUNCTION mainspring.list_end() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO mainspring.term (term, id)
    SELECT mainspring.term_number(n.tenant, '6',
        CASE NEW.state WHEN 6 THEN 'failed' ELSE 'cancelled' END, ''), NEW.id
    FROM mainspring.job j JOIN mainspring.lane n ON n.lane = j.lane
    WHERE j.id = NEW.id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER list_end AFTER INSERT ON mainspring.finished
FOR EACH ROW WHEN (NEW.state <> 5) EXECUTE FUNCTION mainspring.list_end();

-- The state of an item is the one fact about it that changes.
CREATE FUNCTION mainspring.list_item_state() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
CREATE TRIGGER list_item_state AFTER INSERT OR UPDATE OF state ON mainspring.item
FOR EACH ROW EXECUTE FUNCTION mainspring.list_item_state();

-- What is there already; items are listed by the first server that starts.
INSERT INTO mainspring.item_term (term, id)
SELECT mainspring.term_number(i.tenant, '6', i.state, ''), i.id FROM mainspring.item i;
INSERT INTO mainspring.term (term, id)
SELECT mainspring.term_number(n.tenant, '8', l.pair ->> 0, l.pair ->> 1), j.id
FROM mainspring.job j
JOIN mainspring.lane n ON n.lane = j.lane
CROSS JOIN LATERAL json_array_elements(j.more -> 'labels') l (pair)
WHERE j.more -> 'labels' IS NOT NULL
ON CONFLICT DO NOTHING;
INSERT INTO mainspring.term (term, id)
SELECT mainspring.term_number(n.tenant, '6',
    CASE f.state WHEN 6 THEN 'failed' ELSE 'cancelled' END, ''), f.id
FROM mainspring.finished f
JOIN mainspring.job j ON j.id = f.id
JOIN mainspring.lane n ON n.lane = j.lane
WHERE f.state <> 5
ON CONFLICT DO NOTHING;

-- compatible: entities. Servers of before know of none.
--
-- Everything that is not a job but has an id, an owner, a state and perhaps an instant at which
-- something has to happen. All kinds share these two tables; what a kind is stands in its record. The
-- other columns repeat what servers ask for and what people want to see.
CREATE TABLE mainspring.entity (
    kind     smallint NOT NULL,
    id       uuid NOT NULL,
    -- Every change names the version it was decided on.
    version  integer NOT NULL,
    tenant   text NOT NULL,
    owner    text NOT NULL,
    state    text NOT NULL,
    alarm_at timestamptz,
    record   bytea NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX entity_alarm ON mainspring.entity (alarm_at, kind, id) WHERE alarm_at IS NOT NULL;

-- Entities by what lists ask for: the number is of kind, owner, state and field at once
-- (store/src/filter.rs), so a page is a stretch of the key.
CREATE TABLE mainspring.entity_term (
    term bigint NOT NULL,
    kind smallint NOT NULL,
    id   uuid NOT NULL,
    PRIMARY KEY (term, kind, id)
);

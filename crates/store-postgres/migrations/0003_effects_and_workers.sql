-- breaking: servers of the version before do not see effects that are rows, and would commit them twice.
--
-- A committed effect is a row of its own, so that neither a heartbeat nor the next effect writes
-- those before it again. Effects that are inside of the records of live jobs become rows when their
-- job is next written; those of ended jobs are read where they are.

DO $$
DECLARE
    who text;
BEGIN
    SELECT n.name INTO who FROM mainspring.node n
    WHERE n.seen_at > clock_timestamp() - interval '10 seconds' LIMIT 1;
    IF who IS NOT NULL THEN
        RAISE EXCEPTION 'a server of an older version uses the database: %; stop it and wait ten seconds', who;
    END IF;
END $$;

-- Side effects that are never committed twice. Written once; gone with their job.
CREATE TABLE mainspring.effect (
    job          uuid NOT NULL,
    name         text NOT NULL,
    -- Its place in the order of the job's effects.
    number       int NOT NULL CHECK (number >= 0),
    value        text NOT NULL,
    committed_at timestamptz NOT NULL,
    PRIMARY KEY (job, name)
);

-- The workers a server has heard from, for the others to know.
ALTER TABLE mainspring.node ADD COLUMN workers bytea;

-- Makes the partitions of the days from `first` on that are missing.
CREATE OR REPLACE FUNCTION mainspring.make_partitions(first date, days int) RETURNS int
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
        EXCEPTION WHEN check_violation OR invalid_object_definition THEN
            -- Jobs of that day are in "later" already, and stay there; or the clock was set back to
            -- a day that "old" has taken over.
            NULL;
        END;
    END LOOP;
    RETURN made;
END $$;

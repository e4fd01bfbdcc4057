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

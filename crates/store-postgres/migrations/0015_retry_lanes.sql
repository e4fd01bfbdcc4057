-- compatible: retries wait in lanes of their own, so that a storm of them leaves fresh jobs their turns.
--
-- The part of such a lane ends in chr(30), which no user and no key has (LaneKey::part() of
-- kernel/src/dispatch/lane.rs). Retries that wait already stay where they are until they are handed out.
--
-- Servers of before do not know such lanes. They say nothing of their step in node, and as long as one
-- of them was seen within ten seconds the others put retries where those do: then nothing is different
-- from before. A server of before that starts later finds retries in such lanes for as long as those
-- wait. It hands them out, but counts them under no user and no key, so that limits by user or key can
-- be exceeded by them; and it cannot cancel or hasten one that is due: that is answered as a conflict,
-- and another server does it.
ALTER TABLE mainspring.node ADD COLUMN step int;

-- Drops lanes of keys, and of retries, in which nothing waits: of keys there may be any number. No
-- other server commits meanwhile, and those that know the lanes learn that the registries have another
-- version.
CREATE OR REPLACE FUNCTION mainspring.forget_lanes(most int) RETURNS bigint
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

-- compatible: lists by parent. Servers of before go on; what they write is listed, too.
-- not transactional
--
-- A job that was made from another has one more row in term. The writer lists those it writes itself by
-- the batch, as it does with labels; the trigger is for whoever else writes jobs. What is there already
-- is listed while work goes on: nobody waits for it but the trigger, for a moment.
CREATE OR REPLACE FUNCTION mainspring.list_parent() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO mainspring.term (term, id)
    SELECT mainspring.term_number(n.tenant, '11', mainspring.job_text((NEW.more ->> 'parent')::uuid), ''),
        NEW.id
    FROM mainspring.lane n WHERE n.lane = NEW.lane
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS list_parent ON mainspring.job;
CREATE TRIGGER list_parent AFTER INSERT ON mainspring.job
FOR EACH ROW WHEN (NEW.more -> 'parent' IS NOT NULL
    AND current_setting('mainspring.parents', true) IS DISTINCT FROM 'listed')
EXECUTE FUNCTION mainspring.list_parent();
INSERT INTO mainspring.term (term, id)
SELECT mainspring.term_number(n.tenant, '11', mainspring.job_text((j.more ->> 'parent')::uuid), ''), j.id
FROM mainspring.job j JOIN mainspring.lane n ON n.lane = j.lane
WHERE j.more -> 'parent' IS NOT NULL
ON CONFLICT DO NOTHING;

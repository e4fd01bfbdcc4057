-- Retires the jobs of one day. What outlived the day moves to the partitions "old", whose range then
-- grows by the day; the rest is dropped with its table. Locks: the partitions, briefly.
BEGIN;
SET LOCAL lock_timeout = '2s';
SET LOCAL enable_seqscan = on;
SET LOCAL enable_hashjoin = on;
SELECT pg_advisory_xact_lock(hashtextextended('mainspring.retire', 0));
DO $$
DECLARE
    bound text;
BEGIN
    IF to_regclass('mainspring.job_{suffix}') IS NULL THEN
        RETURN;
    END IF;
    SELECT (regexp_match(pg_get_expr(c.relpartbound, c.oid), $r$TO \('([^']+)'\)$r$))[1] INTO bound
    FROM pg_class c WHERE c.oid = 'mainspring.job_{suffix}'::regclass;
    ALTER TABLE mainspring.job DETACH PARTITION mainspring.job_old;
    ALTER TABLE mainspring.job DETACH PARTITION mainspring.job_{suffix};
    ALTER TABLE mainspring.finished DETACH PARTITION mainspring.finished_old;
    ALTER TABLE mainspring.finished DETACH PARTITION mainspring.finished_{suffix};
    DELETE FROM mainspring.finished_{suffix}
    WHERE finished_at < to_timestamp({kept_since} / 1000000.0);
    DELETE FROM mainspring.finished_old
    WHERE finished_at < to_timestamp({kept_since} / 1000000.0);
    INSERT INTO mainspring.finished_old SELECT * FROM mainspring.finished_{suffix};
    INSERT INTO mainspring.job_old SELECT j.* FROM mainspring.job_{suffix} j
    WHERE EXISTS (SELECT 1 FROM mainspring.finished_{suffix} f WHERE f.id = j.id)
        OR EXISTS (SELECT 1 FROM mainspring.live l WHERE l.id = j.id)
        OR EXISTS (SELECT 1 FROM mainspring.waiting w WHERE w.id = j.id)
        OR EXISTS (SELECT 1 FROM mainspring.ready r WHERE r.id = j.id);
    DELETE FROM mainspring.job_old j
    WHERE NOT EXISTS (SELECT 1 FROM mainspring.finished_old f WHERE f.id = j.id)
        AND NOT EXISTS (SELECT 1 FROM mainspring.live l WHERE l.id = j.id)
        AND NOT EXISTS (SELECT 1 FROM mainspring.waiting w WHERE w.id = j.id)
        AND NOT EXISTS (SELECT 1 FROM mainspring.ready r WHERE r.id = j.id);
    DROP TABLE mainspring.job_{suffix}, mainspring.finished_{suffix};
    EXECUTE format('ALTER TABLE mainspring.job ATTACH PARTITION mainspring.job_old
                    FOR VALUES FROM (MINVALUE) TO (%L)', bound);
    EXECUTE format('ALTER TABLE mainspring.finished ATTACH PARTITION mainspring.finished_old
                    FOR VALUES FROM (MINVALUE) TO (%L)', bound);
    DELETE FROM mainspring.effect e
    WHERE e.job < bound::uuid AND NOT EXISTS (SELECT 1 FROM mainspring.job j WHERE j.id = e.job);
END $$;
COMMIT;

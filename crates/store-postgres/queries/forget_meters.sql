-- Drops what is as good as none. Index: meter_idle.
DELETE FROM mainspring.meter m WHERE m.key = ANY (ARRAY(
    SELECT key FROM mainspring.meter WHERE idle_from <= $1
    ORDER BY idle_from LIMIT $2 FOR UPDATE SKIP LOCKED))

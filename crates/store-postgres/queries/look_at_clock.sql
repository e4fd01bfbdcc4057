-- The database's clock and what is known about it; notes that it was looked at, unless it has moved
-- oddly. Index: none, one row. Locks: that row, for a moment.
WITH was AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us,
        epoch, ahead_us, since_us, seen_us, jumps_us
    FROM mainspring.clock
), noted AS (
    UPDATE mainspring.clock AS c SET seen_us = was.now_us FROM was
    WHERE was.now_us - c.seen_us BETWEEN 0 AND $1
)
SELECT now_us, epoch, ahead_us, since_us, seen_us, jumps_us FROM was

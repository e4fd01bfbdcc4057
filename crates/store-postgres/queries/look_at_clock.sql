-- The database's clock and what is known about it; notes that it was looked at, unless it has moved
-- oddly or nobody has looked for $1. Index: none, one row. Locks: that row, for a moment.
WITH was AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us,
        epoch, ahead_us, since_us, seen_us, jumps_us, silences_us
    FROM mainspring.clock
), noted AS (
    UPDATE mainspring.clock AS c SET seen_us = was.now_us FROM was
    WHERE was.now_us - c.seen_us >= 0 AND was.now_us - c.seen_us < $1
)
SELECT now_us, epoch, ahead_us, since_us, seen_us, jumps_us, silences_us FROM was

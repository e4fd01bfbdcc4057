-- Makes the partitions of today and the days ahead.
SELECT mainspring.make_partitions((clock_timestamp() AT TIME ZONE 'UTC')::date, $1)

-- What the servers know about the clock from now on, unless somebody else was quicker. Index: none,
-- one row. Locks: that row.
UPDATE mainspring.clock
SET epoch = $1 + 1, ahead_us = $2, since_us = $3, seen_us = $3, jumps_us = $4, silences_us = $5
WHERE epoch = $1

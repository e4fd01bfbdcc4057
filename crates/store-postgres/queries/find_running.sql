-- Every job that runs.
SELECT id FROM mainspring.live WHERE state = 1 ORDER BY alarm_at, id

-- Jobs that run under a lease that ends by $1. Index: live_alarm.
SELECT id FROM mainspring.live WHERE state = 1 AND alarm_at <= $1 ORDER BY alarm_at

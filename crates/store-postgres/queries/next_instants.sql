-- When the next job becomes due, the next alarm rings and the next job expires, after $1; alarms and
-- expiries before $2 have been seen to. Index: waiting_due, live_alarm, the key of expiry.
SELECT
    (SELECT due_at FROM mainspring.waiting WHERE due_at > $1 ORDER BY due_at LIMIT 1),
    (SELECT alarm_at FROM mainspring.live WHERE alarm_at > greatest($1, $2)
        ORDER BY alarm_at LIMIT 1),
    (SELECT expires_at FROM mainspring.expiry WHERE expires_at > greatest($1, $2)
        ORDER BY expires_at LIMIT 1),
    EXISTS (SELECT 1 FROM mainspring.ready LIMIT 1),
    (SELECT max(id) FROM mainspring.outbox),
    (SELECT version FROM mainspring.registry),
    (SELECT n FROM mainspring.tally WHERE name = 'stream/newest')

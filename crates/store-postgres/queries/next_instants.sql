-- A look at what may have changed: when the next job becomes due after $1, whether an alarm has rung
-- since $2, the number of the newest commit, and the version of the registries.
-- Index: waiting_due, live_alarm, the key of expiry.
SELECT
    (SELECT due_at FROM mainspring.waiting WHERE due_at > $1 ORDER BY due_at LIMIT 1),
    EXISTS (SELECT 1 FROM mainspring.live WHERE alarm_at > $2 AND alarm_at <= $1)
        OR EXISTS (SELECT 1 FROM mainspring.expiry WHERE expires_at > $2 AND expires_at <= $1),
    (SELECT last_value FROM mainspring.outbox_id_seq),
    (SELECT version FROM mainspring.registry)

-- A look at what may have changed: when the next job becomes due after $1, whether an alarm has rung
-- since $2, whether jobs are ready, the newest commit after $3 that is not stamped, and the version
-- of the registries. Index: waiting_due, live_alarm, the keys of expiry, ready and outbox.
SELECT
    (SELECT due_at FROM mainspring.waiting WHERE due_at > $1 ORDER BY due_at LIMIT 1),
    EXISTS (SELECT 1 FROM mainspring.live WHERE alarm_at > $2 AND alarm_at <= $1)
        OR EXISTS (SELECT 1 FROM mainspring.expiry WHERE expires_at > $2 AND expires_at <= $1),
    EXISTS (SELECT 1 FROM mainspring.ready),
    (SELECT id FROM mainspring.outbox WHERE id > $3 ORDER BY id DESC LIMIT 1),
    (SELECT version FROM mainspring.registry)

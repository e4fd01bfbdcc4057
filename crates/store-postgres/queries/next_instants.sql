-- A look at what may have changed by $1: when the next job becomes due after $3, whether an alarm has
-- rung since $2, the number of the newest commit, the position of the newest move that is stamped,
-- the version of the registries, and the first alarm of an entity.
-- Index: waiting_due, live_alarm, entity_alarm, the keys of expiry and tally.
SELECT
    (SELECT due_at FROM mainspring.waiting WHERE due_at > $3 ORDER BY due_at LIMIT 1),
    EXISTS (SELECT 1 FROM mainspring.live WHERE alarm_at > $2 AND alarm_at <= $1)
        OR EXISTS (SELECT 1 FROM mainspring.expiry WHERE expires_at > $2 AND expires_at <= $1),
    (SELECT last_value FROM mainspring.outbox_id_seq),
    (SELECT n FROM mainspring.tally WHERE name = 'stream/newest'),
    (SELECT version FROM mainspring.registry),
    (SELECT alarm_at FROM mainspring.entity WHERE alarm_at IS NOT NULL ORDER BY alarm_at LIMIT 1)

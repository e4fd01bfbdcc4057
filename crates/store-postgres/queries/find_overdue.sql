-- Jobs whose alarm has rung since $2. Index: live_alarm, the key of expiry. Locks: none.
(SELECT id, alarm_at FROM mainspring.live WHERE alarm_at > $2 AND alarm_at <= $1
    ORDER BY alarm_at LIMIT $3)
UNION ALL
(SELECT id, expires_at FROM mainspring.expiry WHERE expires_at > $2 AND expires_at <= $1
    ORDER BY expires_at LIMIT $3)
ORDER BY 2, 1 LIMIT $3

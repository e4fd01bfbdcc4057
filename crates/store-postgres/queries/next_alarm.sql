-- When the first alarm rings. Index: live_alarm, the key of expiry.
SELECT least(
    (SELECT alarm_at FROM mainspring.live WHERE alarm_at IS NOT NULL ORDER BY alarm_at LIMIT 1),
    (SELECT expires_at FROM mainspring.expiry ORDER BY expires_at LIMIT 1))

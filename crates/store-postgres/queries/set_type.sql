-- Registers or replaces a type. Locks: the registry, by guard_for_change.
INSERT INTO mainspring.type (name, queue, priority, max_retries, timeout_ms, is_limited_by_user, record,
    is_limited, concurrency_key, rate_key)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (name) DO UPDATE SET queue = $2, priority = $3, max_retries = $4, timeout_ms = $5,
    is_limited_by_user = $6, record = $7, is_limited = $8, concurrency_key = $9, rate_key = $10

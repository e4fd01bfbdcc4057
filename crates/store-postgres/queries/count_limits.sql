-- How many run under concurrency limits. Index: live_limit. Locks: none, see lock_limits.
SELECT w.key, (SELECT count(*) FROM mainspring.live l WHERE l.limit_key = w.key)
FROM unnest($1::uuid[]) w (key)

-- Which transactions may be under way: those before the first number have ended, and none has got the
-- second one or a later one yet.
SELECT pg_snapshot_xmin(s.now)::text::bigint, pg_snapshot_xmax(s.now)::text::bigint
FROM (SELECT pg_current_snapshot() AS now) s

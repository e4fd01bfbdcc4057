-- Every transaction before this one has ended. Locks: none.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint

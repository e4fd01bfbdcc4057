-- Transactions that wrote to the outbox and have not ended, prepared ones among them. Rare: only while a
-- transaction of anybody's is open for long.
SELECT DISTINCT l.virtualtransaction FROM pg_locks l
WHERE l.locktype = 'relation' AND l.relation = 'mainspring.outbox'::regclass
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.mode = 'RowExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid()

-- One server stamps at a time. Locks: the stamp, until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('mainspring.stamp', 0))

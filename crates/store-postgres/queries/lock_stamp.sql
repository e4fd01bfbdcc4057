-- One server stamps at a time; and the number that a commit took last. Locks: the stamp, until the end
-- of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('mainspring.stamp', 0)),
    (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END
        FROM mainspring.outbox_id_seq)

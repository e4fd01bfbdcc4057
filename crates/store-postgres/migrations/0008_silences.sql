-- compatible: spans in which no server could reach the database. Servers of before do not count them.
--
-- While nobody could be reached, nobody could renew a lease (kernel/src/shared_time.rs). Microseconds
-- since 1970, from and to in turn, oldest first.
ALTER TABLE mainspring.clock ADD COLUMN silences_us bigint[] NOT NULL DEFAULT '{}';

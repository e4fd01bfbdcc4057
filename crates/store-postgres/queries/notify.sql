-- A hint to the other servers. Outside of any transaction.
SELECT pg_notify($1, $2)

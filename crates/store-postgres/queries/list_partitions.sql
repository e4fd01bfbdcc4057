-- The daily partitions by name.
SELECT p.relname::text AS parent, c.relname::text AS name
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_class p ON p.oid = i.inhparent
WHERE p.oid IN ('mainspring.job'::regclass, 'mainspring.finished'::regclass,
    'mainspring.stream'::regclass)
ORDER BY c.relname

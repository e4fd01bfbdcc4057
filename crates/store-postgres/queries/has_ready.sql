-- Whether any job is ready. Index: the primary key of ready.
SELECT EXISTS (SELECT 1 FROM mainspring.ready)

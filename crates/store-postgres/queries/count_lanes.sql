-- How many lanes there are.
-- Index: the primary key. Locks: none.
SELECT count(*) FROM mainspring.lane

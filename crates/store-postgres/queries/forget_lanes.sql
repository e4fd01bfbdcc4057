-- Drops lanes of keys in which nothing waits. Rare: only while there are very many lanes.
-- Locks: the registry, so that nobody commits meanwhile.
SELECT mainspring.forget_lanes($1)

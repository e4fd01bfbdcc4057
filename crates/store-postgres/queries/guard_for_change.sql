-- Holds the registries for a change and raises their version.
-- Locks: the registry, exclusive.
SELECT mainspring.guard_for_change($1)

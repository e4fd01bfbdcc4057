-- Holds the registries still for the transaction and checks that they are those decided on.
-- Locks: the registry, shared.
SELECT mainspring.guard($1)

-- The version of the registries. One row.
SELECT version FROM mainspring.registry

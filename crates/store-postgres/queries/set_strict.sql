-- Tells submit() whether types must be registered.
UPDATE mainspring.registry SET are_types_strict = $1 WHERE are_types_strict <> $1

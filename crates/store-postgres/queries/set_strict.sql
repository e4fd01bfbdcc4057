-- Tells submit() whether types must be registered, and how long a key stays taken after its job.
UPDATE mainspring.registry SET are_types_strict = $1, key_window_secs = $2
WHERE (are_types_strict, key_window_secs) IS DISTINCT FROM ($1, $2)

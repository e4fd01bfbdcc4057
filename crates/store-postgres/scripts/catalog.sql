-- What the migrations make, one line each, without daily partitions and whatever else differs from
-- one database to the next. The schema is the first parameter.
SELECT line FROM (
    SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
        || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END AS line
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'index ' || i.relname || ' ' || replace(pg_get_indexdef(i.oid), $1 || '.', '')
        || CASE WHEN x.indisvalid THEN '' ELSE ' INVALID' END
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid
    WHERE c.relnamespace = to_regnamespace($1) AND NOT c.relispartition
    UNION ALL
    SELECT 'constraint ' || c.relname || '.' || k.conname || ' '
        || replace(pg_get_constraintdef(k.oid), $1 || '.', '')
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE c.relnamespace = to_regnamespace($1) AND NOT c.relispartition AND k.contype IN ('c', 'f', 'p', 'u')
    UNION ALL
    SELECT 'function ' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ') '
        || md5(replace(p.prosrc, $1 || '.', 'mainspring.'))
    FROM pg_proc p WHERE p.pronamespace = to_regnamespace($1)
    UNION ALL
    SELECT 'partition ' || c.relname
    FROM pg_class c
    WHERE c.relnamespace = to_regnamespace($1) AND c.relispartition AND c.relkind = 'r'
        AND c.relname ~ '_(old|later)$'
) w
ORDER BY line COLLATE "C"

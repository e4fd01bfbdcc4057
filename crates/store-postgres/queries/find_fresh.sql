-- Whether any job is ready in some lanes. Index: the primary key of ready.
SELECT EXISTS (
    SELECT FROM unnest($1::int[]) w (lane)
    CROSS JOIN LATERAL (SELECT 1 FROM mainspring.ready r WHERE r.lane = w.lane LIMIT 1) r
)

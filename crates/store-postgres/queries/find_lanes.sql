-- The lanes that have ready jobs, hopping from one to the next.
-- Index: the primary key of ready, a probe for each lane found. Locks: none.
WITH RECURSIVE hop (lane) AS (
    (SELECT lane FROM mainspring.ready ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT r.lane FROM mainspring.ready r WHERE r.lane > hop.lane ORDER BY r.lane LIMIT 1)
    FROM hop WHERE hop.lane IS NOT NULL
)
SELECT lane FROM hop WHERE lane IS NOT NULL LIMIT $1

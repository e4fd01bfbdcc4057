-- Dead-letter items that lists find from now on, each at the version it was listed at.
-- Index: the primary key. ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
UPDATE mainspring.item i SET is_listed = true
FROM unnest($1::uuid[], $2::int[]) w (id, version)
WHERE i.id = ANY (ARRAY[w.id]) AND i.version = w.version

-- Jobs that were started or ended do not expire. Index: the primary key.
-- BETWEEN, not =: see PLANS in link.rs.
DELETE FROM mainspring.expiry e USING unnest($1::timestamptz[], $2::uuid[]) w (expires_at, id)
WHERE (e.expires_at, e.id) BETWEEN (w.expires_at, w.id) AND (w.expires_at, w.id)

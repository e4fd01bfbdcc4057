-- Jobs that were started or ended do not expire. Index: the primary key.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
DELETE FROM mainspring.expiry e USING unnest($1::timestamptz[], $2::uuid[]) w (expires_at, id)
WHERE e.expires_at = ANY (ARRAY[w.expires_at]) AND e.id = w.id

-- Keys whose jobs have ended: free after their window. Index: the primary key.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
UPDATE mainspring.held_key k SET free_at = w.free_at
FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) w (hash, job, free_at)
WHERE k.hash = ANY (ARRAY[w.hash]) AND k.job = w.job

-- Jobs that nobody has started and that are due from now on: somebody made them ready by hand, or the
-- jobs that they waited for are done. Nothing else changes a row of job. Index: the primary key. That they still waited is told by delete_waiting, in the same commit.
-- ANY (ARRAY[..]), not =: see PLANS in connections/session.rs.
UPDATE mainspring.job j SET run_at = w.run_at, more = w.more::json
FROM unnest($1::uuid[], $2::timestamptz[], $3::text[]) w (id, run_at, more)
WHERE j.id = ANY (ARRAY[w.id])

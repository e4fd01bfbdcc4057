-- Adds to the numbers kept. Index: the primary key. Locks: under the stamp.
INSERT INTO mainspring.tally AS t (name, n) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n

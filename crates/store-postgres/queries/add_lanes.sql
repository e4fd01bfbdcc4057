-- Gives lanes their numbers. In a transaction of its own, so that nobody waits for a commit.
-- Index: the unique constraint of lane.
INSERT INTO mainspring.lane (tenant, queue, type, user_id)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
ON CONFLICT DO NOTHING

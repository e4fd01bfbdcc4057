-- When unstarted jobs expire.
INSERT INTO mainspring.expiry (expires_at, id) SELECT * FROM unnest($1::timestamptz[], $2::uuid[])

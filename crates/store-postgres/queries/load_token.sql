-- One token. Index: the primary key.
SELECT record FROM mainspring.token WHERE id = $1

-- Every token.
SELECT record FROM mainspring.token ORDER BY id

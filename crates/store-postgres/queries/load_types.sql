-- Every type.
SELECT record FROM mainspring.type ORDER BY name COLLATE "C"

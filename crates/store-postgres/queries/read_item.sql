-- One dead-letter item. Index: the primary key.
SELECT record FROM mainspring.item WHERE id = $1

-- Dead-letter items that lists do not find yet. Index: item_unlisted.
SELECT record FROM mainspring.item WHERE NOT is_listed ORDER BY id LIMIT $1

-- Every configured queue.
SELECT name, is_paused, is_by_due FROM mainspring.queue ORDER BY name COLLATE "C"

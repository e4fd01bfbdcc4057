-- Every configured queue.
SELECT name, is_paused, is_by_due, weight, backlog_max, backlog_bytes_max FROM mainspring.queue
ORDER BY name COLLATE "C"

-- Since when the job of each queue that waits longest has been due. Reads all ready rows, which are
-- narrow; only metrics ask, and not often.
SELECT l.queue, min(r.due_at)
FROM (SELECT lane, min(due_at) AS due_at FROM mainspring.ready GROUP BY lane) r
JOIN mainspring.lane l ON l.lane = r.lane
GROUP BY l.queue

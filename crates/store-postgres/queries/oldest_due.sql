-- Since when the job that waits longest has been due. Reads all ready rows, which are narrow; only
-- metrics ask, and not often.
SELECT min(due_at) FROM mainspring.ready

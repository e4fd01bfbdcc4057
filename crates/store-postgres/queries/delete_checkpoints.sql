-- Jobs that have ended leave nothing for a next try. Index: the primary key.
DELETE FROM mainspring.checkpoint WHERE job = ANY ($1)

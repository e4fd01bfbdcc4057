-- This server has stopped.
DELETE FROM mainspring.node WHERE id = $1

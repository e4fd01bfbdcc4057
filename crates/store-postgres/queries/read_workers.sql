-- The workers that other servers seen since $2 have heard from. Few rows.
SELECT workers FROM mainspring.node
WHERE id <> $1 AND seen_at >= $2 AND workers IS NOT NULL ORDER BY seen_at DESC LIMIT $3

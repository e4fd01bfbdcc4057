-- Dead-letter items that wait for a decision. Index: item_open.
SELECT count(*) FROM mainspring.item WHERE state IN ('open', 'discard_requested')

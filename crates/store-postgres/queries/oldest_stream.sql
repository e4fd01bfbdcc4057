-- Where the kept part of the stream begins. Index: stream_last.
SELECT last - moves FROM mainspring.stream ORDER BY last LIMIT 1

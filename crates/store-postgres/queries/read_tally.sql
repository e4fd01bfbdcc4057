-- All numbers kept.
SELECT name, n FROM mainspring.tally

-- compatible: servers list the labels of the jobs they write themselves, a batch at a time.
--
-- The trigger runs once for each job that has labels, and every job of a schedule has one: of 10,000
-- that were fired at the same instant it took four fifths of what their insertion took. It stays for
-- whoever else writes jobs: mainspring.submit(), and servers of before, which do not say that they
-- list labels.
DROP TRIGGER list_labels ON mainspring.job;
CREATE TRIGGER list_labels AFTER INSERT ON mainspring.job
FOR EACH ROW WHEN (NEW.more -> 'labels' IS NOT NULL
    AND current_setting('mainspring.labels', true) IS DISTINCT FROM 'listed')
EXECUTE FUNCTION mainspring.list_labels();

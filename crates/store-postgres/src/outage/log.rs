//! Outages as they are told: a line when one begins and one when it ends, however many ask
//! meanwhile. Knows no log; `outage.rs` writes the lines.

use std::time::Duration;
use tokio::time::Instant;

/// After a line about a beginning there is none for this long: a database that is there and refuses
/// some of the requests would otherwise begin and end with each of them.
const QUIET: Duration = Duration::from_secs(10);

/// What the log is told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// An outage begins; so many short ones before it were not told of.
    Begins { untold: u64 },
    /// It has ended.
    Ends { lasted: Duration, failed: u64 },
}

/// The present outage, if there is one, and what was said of those before.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    present: Option<Outage>,
    ended_at: Option<Instant>,
    told_at: Option<Instant>,
    untold: u64,
}

#[derive(Debug)]
struct Outage {
    why: String,
    since: Instant,
    failed: u64,
    is_told: bool,
}

impl Outages {
    /// Since when and why the database cannot be used.
    pub(crate) fn present(&self) -> Option<(String, Instant)> {
        self.present.as_ref().map(|outage| (outage.why.clone(), outage.since))
    }

    /// What was asked at `asked` was not answered by `now`.
    pub(crate) fn failed(&mut self, why: &str, asked: Instant, now: Instant) -> Option<Line> {
        // It was asked in an outage that is over by now.
        if self.present.is_none() && self.ended_at.is_some_and(|end| asked < end) {
            return None;
        }
        let outage = self.present.get_or_insert_with(|| Outage {
            why: String::new(),
            since: asked,
            failed: 0,
            is_told: false,
        });
        why.clone_into(&mut outage.why);
        outage.failed += 1;
        if outage.is_told || self.told_at.is_some_and(|at| now - at < QUIET) {
            return None;
        }
        outage.is_told = true;
        self.told_at = Some(now);
        Some(Line::Begins { untold: std::mem::take(&mut self.untold) })
    }

    /// The database was looked at and written to: whether that ends an outage, and the line.
    pub(crate) fn seen(&mut self, now: Instant) -> Option<Option<Line>> {
        let outage = self.present.take()?;
        self.ended_at = Some(now);
        let lasted = now.saturating_duration_since(outage.since);
        self.untold += u64::from(!outage.is_told);
        Some(outage.is_told.then_some(Line::Ends { lasted, failed: outage.failed }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_has_two_lines_however_many_ask() {
        let start = Instant::now();
        let at = |secs: u64| start + Duration::from_secs(secs);
        let mut outages = Outages::default();
        assert_eq!(outages.seen(at(0)), None);
        assert_eq!(outages.failed("gone", at(1), at(2)), Some(Line::Begins { untold: 0 }));
        for n in 0..100 {
            assert_eq!(outages.failed("gone", at(2), at(3 + n)), None);
        }
        assert_eq!(outages.present(), Some(("gone".to_owned(), at(1))));
        let ends = Line::Ends { lasted: Duration::from_secs(199), failed: 101 };
        assert_eq!(outages.seen(at(200)), Some(Some(ends)));
        assert_eq!(outages.seen(at(201)), None);
    }

    #[test]
    fn who_asked_in_an_outage_and_fails_after_it_begins_no_other() {
        let start = Instant::now();
        let at = |secs: u64| start + Duration::from_secs(secs);
        let mut outages = Outages::default();
        outages.failed("gone", at(1), at(2));
        outages.seen(at(100));
        assert_eq!(outages.failed("no answer in time", at(99), at(104)), None);
        assert_eq!(outages.present(), None);
        assert!(outages.failed("gone", at(100), at(104)).is_some(), "asked after it");
    }

    #[test]
    fn outages_that_come_and_go_with_every_request_are_told_of_every_ten_seconds() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut outages = Outages::default();
        let mut begins = Vec::new();
        for n in 0..210 {
            begins.extend(outages.failed("no memory", at(n * 100), at(n * 100 + 1)));
            outages.seen(at(n * 100 + 2));
        }
        let untold: Vec<u64> = begins
            .iter()
            .map(|line| match line {
                Line::Begins { untold } => *untold,
                Line::Ends { .. } => panic!("nothing ends here"),
            })
            .collect();
        assert_eq!(untold, [0, 99, 99]);
    }
}

//! Dates on which nothing happens, such as holidays: single ones and ranges, by the clocks of a
//! zone.

use super::{Date, Zone};
use crate::limits::EXCLUSIONS_MAX;
use crate::time::Timestamp;

/// Dates on which nothing happens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exclusions {
    /// As they were given, for showing them again.
    ranges: Box<[(Date, Date)]>,
    /// In order, and none of them touches the next.
    merged: Box<[(Date, Date)]>,
}

/// Why there are no such exclusions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadExclusions {
    /// More than [`EXCLUSIONS_MAX`].
    TooMany,
    /// The range at this place ends before it starts.
    Backwards(usize),
}

impl Exclusions {
    /// These ranges, each from its first to its last date.
    ///
    /// # Errors
    /// If there are too many, or one ends before it starts.
    pub fn new(ranges: Vec<(Date, Date)>) -> Result<Exclusions, BadExclusions> {
        if ranges.len() > EXCLUSIONS_MAX {
            return Err(BadExclusions::TooMany);
        }
        if let Some(index) = ranges.iter().position(|(first, last)| first > last) {
            return Err(BadExclusions::Backwards(index));
        }
        let mut sorted = ranges.clone();
        sorted.sort_unstable();
        let mut merged: Vec<(Date, Date)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match merged.last_mut() {
                Some((_, end)) if first.days() <= end.days() + 1 => *end = last.max(*end),
                Some(_) | None => merged.push((first, last)),
            }
        }
        Ok(Exclusions { ranges: ranges.into(), merged: merged.into() })
    }

    /// The ranges as they were given.
    pub fn ranges(&self) -> &[(Date, Date)] {
        &self.ranges
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether `at` is on one of these dates, by the clocks of `zone`.
    pub fn covers(&self, at: Timestamp, zone: &Zone) -> bool {
        self.last_date_covering(at, zone).is_some()
    }

    /// The last of the excluded dates without a break that `at` is on, if it is on one.
    pub(super) fn last_date_covering(&self, at: Timestamp, zone: &Zone) -> Option<Date> {
        if self.merged.is_empty() {
            return None;
        }
        let date = zone.date(at)?;
        let index = self.merged.partition_point(|(_, last)| *last < date);
        let (first, last) = self.merged.get(index)?;
        (*first <= date).then_some(*last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Rhythm;

    fn date(text: &str) -> Date {
        Date::parse(text).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    #[test]
    fn dates_are_those_of_the_zone() {
        let christmas = Exclusions::new(vec![(date("2026-12-25"), date("2026-12-26"))]).unwrap();
        let tokyo = Zone::parse("Asia/Tokyo").unwrap();
        for (instant, by_tokyo, by_utc) in [
            ("2026-12-24T14:59:59.999999Z", false, false),
            ("2026-12-24T15:00:00Z", true, false),
            ("2026-12-25T00:00:00Z", true, true),
            ("2026-12-26T14:59:59Z", true, true),
            ("2026-12-26T15:00:00Z", false, true),
            ("2026-12-27T00:00:00Z", false, false),
        ] {
            assert_eq!(christmas.covers(at(instant), &tokyo), by_tokyo, "{instant}");
            assert_eq!(christmas.covers(at(instant), &Zone::UTC), by_utc, "{instant}");
        }
    }

    #[test]
    fn ranges_may_overlap_and_touch() {
        let ranges = [("2026-01-05", "2026-01-09"), ("2026-01-01", "2026-01-04")];
        let ranges = ranges.into_iter().chain([("2026-01-02", "2026-01-20")]);
        let ranges: Vec<_> = ranges.map(|(a, b)| (date(a), date(b))).collect();
        let all = Exclusions::new(ranges.clone()).unwrap();
        assert_eq!(all.ranges(), ranges);
        assert_eq!(*all.merged, [(date("2026-01-01"), date("2026-01-20"))]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let day = (date("2026-01-01"), date("2026-01-01"));
        assert!(Exclusions::new(vec![day; EXCLUSIONS_MAX]).is_ok());
        assert_eq!(Exclusions::new(vec![day; EXCLUSIONS_MAX + 1]), Err(BadExclusions::TooMany));
        let backwards = (date("2026-01-02"), date("2026-01-01"));
        assert_eq!(Exclusions::new(vec![day, backwards]), Err(BadExclusions::Backwards(1)));
    }

    #[test]
    fn a_year_of_seconds_is_passed_in_one_step() {
        let secondly = Rhythm::Interval { every_secs: 1, phase_secs: 0 };
        let year = Exclusions::new(vec![(date("2026-01-01"), date("2026-12-31"))]).unwrap();
        let paris = Zone::parse("Europe/Paris").unwrap();
        let next = secondly.next_outside(at("2025-12-31T22:59:58Z"), &year, &paris);
        assert_eq!(next, Some(at("2025-12-31T22:59:59Z")));
        let next = secondly.next_outside(at("2025-12-31T22:59:59Z"), &year, &paris);
        assert_eq!(next, Some(at("2026-12-31T23:00:00Z")));
        let always = Exclusions::new(vec![(Date::FIRST, Date::LAST)]).unwrap();
        assert_eq!(secondly.next_outside(Timestamp(0), &always, &paris), None);
    }
}

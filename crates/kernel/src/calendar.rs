//! When something recurs: once, every so often, or by a cron pattern on the wall clock of a place.
//!
//! Pure: the rules of time zones are compiled in, so that every server and every test agrees, and
//! nobody is asked what time it is. Every question has a bounded cost ([`next`] says how bounded).
//! What a pattern means is in [`cron`], what happens when clocks are changed in [`next`], what is
//! told to people in [`describe`](Rhythm::describe).

pub mod cron;
pub mod date;
mod describe;
pub mod exclusions;
pub mod next;
pub mod zone;

pub use cron::{BadCron, Cron, Field};
pub use date::Date;
pub use describe::Language;
pub use exclusions::{BadExclusions, Exclusions};
pub use next::Remark;
pub use zone::Zone;

use crate::time::Timestamp;

/// The first second of the calendar: the start of the year 1, UTC.
pub const FIRST_SECOND: i64 = -62_135_596_800;
/// The last second of the calendar, 9999-12-30T22:00:00Z: in every zone it still is in 9999.
pub const LAST_SECOND: i64 = 253_402_207_200;

/// What happens to a fixed time that the clocks jump over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Gap {
    /// It fires once, at the instant of the jump.
    #[default]
    Shift,
    /// It does not fire that day.
    Skip,
}

impl Gap {
    /// All of them.
    pub const ALL: [Gap; 2] = [Gap::Shift, Gap::Skip];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Gap::Shift => "shift",
            Gap::Skip => "skip",
        }
    }

    /// The policy of that name.
    pub fn parse(text: &str) -> Option<Gap> {
        Gap::ALL.into_iter().find(|gap| gap.as_str() == text)
    }
}

/// What happens to a fixed time that the clocks show twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fold {
    /// It fires the first time only.
    #[default]
    Once,
    /// It fires both times.
    Twice,
}

impl Fold {
    /// All of them.
    pub const ALL: [Fold; 2] = [Fold::Once, Fold::Twice];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Fold::Once => "once",
            Fold::Twice => "twice",
        }
    }

    /// The policy of that name.
    pub fn parse(text: &str) -> Option<Fold> {
        Fold::ALL.into_iter().find(|fold| fold.as_str() == text)
    }
}

/// When something recurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rhythm {
    /// Once.
    At(Timestamp),
    /// At 1970-01-01T00:00:00Z plus `phase_secs` plus any multiple of `every_secs`.
    Interval {
        /// Seconds from one to the next. With zero it never comes.
        every_secs: u64,
        /// Seconds by which all of them are moved.
        phase_secs: u64,
    },
    /// When the clocks of a place show what the pattern says.
    Cron {
        /// The pattern.
        cron: Cron,
        /// Whose clocks.
        zone: Zone,
        /// What happens to times that the clocks jump over.
        gap: Gap,
        /// What happens to times that the clocks show twice.
        fold: Fold,
    },
}

impl Rhythm {
    /// The first instant strictly after `after`; `None` if there is none before the end of the
    /// calendar or, for a pattern, within [`next::SEARCH_YEARS`].
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Rhythm::At(at) => (*at > after && is_in_calendar(*at)).then_some(*at),
            Rhythm::Interval { every_secs, phase_secs } => {
                interval_after(*every_secs, *phase_secs, after)
            }
            Rhythm::Cron { cron, zone, gap, fold } => {
                next::next_after(cron, zone, (*gap, *fold), after)
            }
        }
    }

    /// The first instant strictly after `after` that is on no excluded date, by the clocks of
    /// `zone`. A stretch of excluded dates costs one step, however often it would have come in it.
    pub fn next_outside(
        &self,
        after: Timestamp,
        exclusions: &Exclusions,
        zone: &Zone,
    ) -> Option<Timestamp> {
        let mut after = after;
        loop {
            let at = self.next_after(after)?;
            let Some(last) = exclusions.last_date_covering(at, zone) else { return Some(at) };
            // One microsecond before the first instant that is outside again.
            after = Timestamp(zone.first_instant_beyond(at, last)?.0 - 1);
        }
    }

    /// Whether it comes at `at`.
    pub fn is_at(&self, at: Timestamp) -> bool {
        self.next_after(Timestamp(at.0.saturating_sub(1))) == Some(at)
    }

    /// What is worth a word about coming at `at`, which must be an instant at which this comes.
    pub fn remark(&self, at: Timestamp) -> Option<Remark> {
        match self {
            Rhythm::At(_) | Rhythm::Interval { .. } => None,
            Rhythm::Cron { cron, zone, .. } => next::remark(cron, zone, at),
        }
    }
}

fn is_in_calendar(at: Timestamp) -> bool {
    (FIRST_SECOND..=LAST_SECOND).contains(&at.0.div_euclid(1_000_000))
}

fn interval_after(every_secs: u64, phase_secs: u64, after: Timestamp) -> Option<Timestamp> {
    if every_secs == 0 {
        return None;
    }
    let (every, phase) = (i128::from(every_secs), i128::from(phase_secs % every_secs));
    let earliest = i128::from(after.0.div_euclid(1_000_000) + 1).max(i128::from(FIRST_SECOND));
    let steps = (earliest - phase + every - 1).div_euclid(every);
    let second = i64::try_from(phase + steps * every).ok()?;
    (second <= LAST_SECOND).then(|| Timestamp(second * 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(every_secs: u64, phase_secs: u64, after: i64) -> Option<i64> {
        let rhythm = Rhythm::Interval { every_secs, phase_secs };
        rhythm.next_after(Timestamp(after)).map(|at| at.0)
    }

    #[test]
    fn intervals_lie_on_a_grid_that_starts_with_1970() {
        assert_eq!(every(60, 0, 0), Some(60_000_000));
        assert_eq!(every(60, 0, -1), Some(0));
        assert_eq!(every(60, 0, 59_999_999), Some(60_000_000));
        assert_eq!(every(60, 0, 60_000_000), Some(120_000_000));
        assert_eq!(every(60, 7, 0), Some(7_000_000));
        assert_eq!(every(60, 67, 7_000_000), Some(67_000_000));
        assert_eq!(every(60, 7, -60_000_000), Some(-53_000_000));
        assert_eq!(every(1, 0, i64::MIN), Some(FIRST_SECOND * 1_000_000));
    }

    #[test]
    fn intervals_end_with_the_calendar() {
        assert_eq!(every(0, 0, 0), None);
        assert_eq!(every(u64::MAX, u64::MAX - 1, 0), None);
        assert_eq!(every(u64::MAX, 5, 0), Some(5_000_000));
        assert_eq!(every(1, 0, i64::MAX), None);
        assert_eq!(every(1, 0, LAST_SECOND * 1_000_000), None);
        assert_eq!(every(1, 0, LAST_SECOND * 1_000_000 - 1), Some(LAST_SECOND * 1_000_000));
    }

    #[test]
    fn an_instant_comes_once() {
        let at = Rhythm::At(Timestamp(5));
        assert_eq!(at.next_after(Timestamp(4)), Some(Timestamp(5)));
        assert_eq!(at.next_after(Timestamp(5)), None);
        assert_eq!(Rhythm::At(Timestamp::MAX).next_after(Timestamp(0)), None);
    }
}

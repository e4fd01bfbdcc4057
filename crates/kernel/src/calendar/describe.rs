//! A rhythm in plain words. Exact: two rhythms that differ in when they fire are told apart, and
//! what is too mixed for a sentence is told field by field. What is said stands here, how it is
//! said in one file per language.

mod chinese;
mod english;

use super::cron::{
    ALL_60, ALL_HOURS, ALL_MONTHS, Cron, DayRule, Days, DaysOfMonth, DaysOfWeek, Times,
};
use super::{Fold, Gap, Rhythm, Zone};

/// A language that rhythms are described in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Chinese.
    Chinese,
}

/// More times of day than this are told by their fields.
const TIMES_MAX: u32 = 6;

impl Rhythm {
    /// When it comes, in a sentence.
    pub fn describe(&self, language: Language) -> String {
        match (self, language) {
            (Rhythm::At(at), Language::English) => english::at(&instant(at.0)),
            (Rhythm::At(at), Language::Chinese) => chinese::at(&instant(at.0)),
            (Rhythm::Interval { every_secs, phase_secs }, language) => {
                let interval = Interval::new(*every_secs, *phase_secs);
                match language {
                    Language::English => english::interval(&interval),
                    Language::Chinese => chinese::interval(&interval),
                }
            }
            (Rhythm::Cron { cron, zone, gap, fold }, language) => {
                let said = Said::new(cron, zone, *gap, *fold);
                match language {
                    Language::English => english::cron(&said),
                    Language::Chinese => chinese::cron(&said),
                }
            }
        }
    }
}

/// An instant as RFC 3339 has it; one outside of the calendar as its end.
fn instant(micros: i64) -> String {
    let end = if micros < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    jiff::Timestamp::from_microsecond(micros).unwrap_or(end).to_string()
}

/// An interval, ready to be said.
struct Interval {
    /// Days, hours, minutes, seconds.
    parts: [u64; 4],
    /// The instant it is counted from, unless that goes without saying: an interval that divides
    /// the hour is on the hour.
    counted_from: Option<String>,
}

impl Interval {
    fn new(every: u64, phase: u64) -> Interval {
        let parts = [every / 86_400, every / 3600 % 24, every / 60 % 60, every % 60];
        let phase = phase.checked_rem(every).unwrap_or(0);
        let is_plain = phase == 0 && every != 0 && 3600 % every == 0;
        let from = i64::try_from(phase).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        Interval { parts, counted_from: (!is_plain).then(|| instant(from)) }
    }
}

/// A pattern, ready to be said.
struct Said<'a> {
    clock: Clock,
    /// The bits of the months; `None` for all.
    months: Option<u16>,
    days: DaysSaid,
    zone: &'a str,
    /// It has fixed times, and those that are jumped over are left out.
    is_skipping: bool,
    /// It has fixed times, and those that are shown twice are taken twice.
    is_repeating: bool,
}

/// The times of day.
enum Clock {
    /// A few times.
    Times(Vec<(u8, u8, u8)>),
    /// Field by field.
    Fields { seconds: Part, minutes: Part, hours: Option<u32> },
}

/// One field of the time of day.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Every value.
    All,
    /// Every so many, from 0 on, without a shorter step at the end.
    Every(u8),
    /// Only 0.
    Zero,
    /// These.
    These(u64),
}

/// The days.
enum DaysSaid {
    All,
    Month(DaysOfMonth),
    Week(DaysOfWeek),
    Both(DaysOfMonth, DaysOfWeek),
    Either(DaysOfMonth, DaysOfWeek),
}

impl<'a> Said<'a> {
    fn new(cron: &Cron, zone: &'a Zone, gap: Gap, fold: Fold) -> Said<'a> {
        let has_fixed_times = !cron.is_hourly() && *zone != Zone::UTC;
        Said {
            clock: Clock::new(&cron.times),
            months: (cron.days.months != ALL_MONTHS).then_some(cron.days.months),
            days: DaysSaid::new(&cron.days),
            zone: zone.name(),
            is_skipping: has_fixed_times && gap == Gap::Skip,
            is_repeating: has_fixed_times && fold == Fold::Twice,
        }
    }

    /// Whether "every day" goes without saying: every minute is every minute of every day.
    fn is_days_plain(&self) -> bool {
        let is_hourly = matches!(self.clock, Clock::Fields { hours: None, .. });
        is_hourly && self.months.is_none() && matches!(self.days, DaysSaid::All)
    }
}

impl Clock {
    fn new(times: &Times) -> Clock {
        let Times { seconds, minutes, hours } = *times;
        if seconds.count_ones() * minutes.count_ones() * hours.count_ones() <= TIMES_MAX {
            let mut list = Vec::new();
            for hour in values(u64::from(hours)) {
                for minute in values(minutes) {
                    list.extend(values(seconds).map(|second| (hour, minute, second)));
                }
            }
            return Clock::Times(list);
        }
        let hours = (hours != ALL_HOURS).then_some(hours);
        Clock::Fields { seconds: Part::new(seconds), minutes: Part::new(minutes), hours }
    }
}

impl Part {
    fn new(set: u64) -> Part {
        if set == ALL_60 {
            return Part::All;
        }
        if set == 1 {
            return Part::Zero;
        }
        let even = (2..=30u8).filter(|step| 60 % step == 0).find(|step| {
            set == (0..60).step_by(usize::from(*step)).fold(0, |set, value| set | 1 << value)
        });
        even.map_or(Part::These(set), Part::Every)
    }

    /// The bits of it.
    fn set(self) -> u64 {
        match self {
            Part::All => ALL_60,
            Part::Every(step) => {
                (0..60).step_by(usize::from(step)).fold(0, |set, value| set | 1 << value)
            }
            Part::Zero => 1,
            Part::These(set) => set,
        }
    }
}

impl DaysSaid {
    fn new(days: &Days) -> DaysSaid {
        let (month, week) = (days.of_month, days.of_week);
        match (days.rule, month.is_all(), week.is_all()) {
            (DayRule::Both, true, true) => DaysSaid::All,
            (DayRule::Both, true, false) => DaysSaid::Week(week),
            (DayRule::Both, false, true) => DaysSaid::Month(month),
            (DayRule::Both, false, false) => DaysSaid::Both(month, week),
            (DayRule::Either, false, false) => DaysSaid::Either(month, week),
            (DayRule::Either, true, _) | (DayRule::Either, _, true) => DaysSaid::All,
        }
    }
}

/// `HH:MM`, with seconds where one of the times has them.
fn times(list: &[(u8, u8, u8)]) -> Vec<String> {
    let has_seconds = list.iter().any(|(_, _, second)| *second != 0);
    let write = |(hour, minute, second): &(u8, u8, u8)| match has_seconds {
        true => format!("{hour:02}:{minute:02}:{second:02}"),
        false => format!("{hour:02}:{minute:02}"),
    };
    list.iter().map(write).collect()
}

fn values(set: u64) -> impl Iterator<Item = u8> {
    (0..64u8).filter(move |bit| set >> bit & 1 == 1)
}

/// The values of a set as runs: at least three in a row are one run, others stand alone.
fn runs(set: u64) -> Vec<(u8, u8)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for value in values(set) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == value => *last = value,
            Some(_) | None => runs.push((value, value)),
        }
    }
    let alone = |(first, last): (u8, u8)| match last - first {
        1 => vec![(first, first), (last, last)],
        _ => vec![(first, last)],
    };
    runs.into_iter().flat_map(alone).collect()
}

/// The bits of weekdays with Monday as 1 and Sunday as 7, so that weekends are together.
fn from_monday(weekdays: u8) -> u64 {
    let set = u64::from(weekdays);
    (set & 0b111_1110) | (set & 1) << 7
}

#[cfg(test)]
mod tests;

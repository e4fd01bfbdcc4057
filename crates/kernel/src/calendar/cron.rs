//! Cron patterns: which times of the clock match.
//!
//! A pattern has five fields (minute, hour, day of month, month, day of week) or six (second
//! first). Each field of it is a set of bits, so that the next matching time is found by looking at
//! months, not at minutes. `parse` below this file has the grammar.
//!
//! Days match by the rule of Vixie cron: when neither of the two day fields starts with `*` or is
//! `?`, a day matches if *either* field has it; otherwise only if *both* have it. So `0 0 13 * 5`
//! is every 13th and every Friday, and `0 0 */2 * 1` every Monday with an odd date.

mod parse;

use super::date::{civil, month_length};
use std::fmt;

/// A cron pattern that fires some day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: Box<str>,
    pub(super) times: Times,
    pub(super) days: Days,
}

/// The times of day that match: a bit for each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Times {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
}

/// The days that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Days {
    /// Bits 1 to 12.
    pub(super) months: u16,
    pub(super) of_month: DaysOfMonth,
    pub(super) of_week: DaysOfWeek,
    pub(super) rule: DayRule,
}

/// What the field for days of the month has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DaysOfMonth {
    /// Bits 1 to 31.
    pub(super) days: u32,
    /// Bit n: the day n days before the last.
    pub(super) before_last: u32,
    /// Bit n: the weekday nearest to day n.
    pub(super) nearest: u32,
    /// The last weekday.
    pub(super) last_weekday: bool,
}

/// What the field for days of the week has. Sunday is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DaysOfWeek {
    /// Bits 0 to 6.
    pub(super) days: u8,
    /// For each weekday the bits 1 to 5: the first, second ... of the month.
    pub(super) nth: [u8; 7],
    /// Bits 0 to 6: the last one of the month.
    pub(super) last: u8,
}

/// How the two day fields go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DayRule {
    /// A day must be in both.
    #[default]
    Both,
    /// A day must be in one of them.
    Either,
}

/// The fields of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Seconds, if there are six fields.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Days of the month.
    DayOfMonth,
    /// Months.
    Month,
    /// Days of the week.
    DayOfWeek,
}

impl Field {
    /// Its name, for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day of month",
            Field::Month => "month",
            Field::DayOfWeek => "day of week",
        }
    }
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadCron {
    /// The field it is about; `None` if it is about the whole.
    pub field: Option<Field>,
    /// Where in the text, in characters; the first is 1.
    pub column: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for BadCron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = self.field {
            write!(f, "field {}, ", field.as_str())?;
        }
        write!(f, "column {}: {}", self.column, self.reason)
    }
}

impl std::error::Error for BadCron {}

pub(super) const ALL_60: u64 = (1 << 60) - 1;
pub(super) const ALL_HOURS: u32 = (1 << 24) - 1;
pub(super) const ALL_DAYS: u32 = u32::MAX - 1;
pub(super) const ALL_MONTHS: u16 = 0b1_1111_1111_1110;
pub(super) const ALL_WEEKDAYS: u8 = (1 << 7) - 1;

/// Seconds of a day.
const DAY: i64 = 86_400;

impl Cron {
    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it runs in every hour of its days. Such a pattern goes by what the clocks show at
    /// any instant, whatever was done to the clocks; see [`next`](super::next).
    pub fn is_hourly(&self) -> bool {
        self.times.hours == ALL_HOURS
    }

    /// The first time of the clock from `from` on and before `until` that matches. Times of the
    /// clock are counted in seconds as if the clock were that of UTC.
    pub(super) fn next_local(&self, from: i64, until: i64) -> Option<i64> {
        if from >= until {
            return None;
        }
        let today = from.div_euclid(DAY);
        let (mut year, mut month, day) = civil(today);
        let mut first = today - i64::from(day) + 1;
        let mut skipped = (1u32 << day) - 1;
        while first * DAY < until {
            let length = month_length(year, month);
            let mut days = self.days.in_month(month, length, weekday(first)) & !skipped;
            skipped = 0;
            while days != 0 {
                let day = first + i64::from(days.trailing_zeros()) - 1;
                let earliest = if day == today { from.rem_euclid(DAY) } else { 0 };
                if let Some(second) = self.times.next(earliest) {
                    return Some(day * DAY + second).filter(|found| *found < until);
                }
                days &= days - 1;
            }
            first += i64::from(length);
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        }
        None
    }

    /// Whether this time of the clock matches.
    pub(super) fn matches(&self, local: i64) -> bool {
        self.next_local(local, local + 1).is_some()
    }
}

impl Times {
    /// The first time of day from `from` on that matches, in seconds.
    fn next(self, from: i64) -> Option<i64> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let time = |hour: i64, minute: i64, second: i64| hour * 3600 + minute * 60 + second;
        let (first_minute, first_second) = (lowest(self.minutes, 0)?, lowest(self.seconds, 0)?);
        if u64::from(self.hours) >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = lowest(self.seconds, second)
            {
                return Some(time(hour, minute, second));
            }
            if let Some(minute) = lowest(self.minutes, minute + 1) {
                return Some(time(hour, minute, first_second));
            }
        }
        let hour = lowest(u64::from(self.hours), hour + 1)?;
        Some(time(hour, first_minute, first_second))
    }
}

impl Days {
    /// The days of a month that match, as bits 1 to 31. The month is told by its number, its length
    /// and the weekday of its first day.
    fn in_month(&self, month: u8, length: u8, first_weekday: u8) -> u32 {
        if self.months >> month & 1 == 0 {
            return 0;
        }
        let all = ALL_DAYS & (u32::MAX >> (31 - length));
        let of_month = self.of_month.in_month(length, first_weekday);
        let of_week = self.of_week.in_month(length, first_weekday);
        let days = match self.rule {
            DayRule::Both => of_month & of_week,
            DayRule::Either => of_month | of_week,
        };
        days & all
    }

    /// Whether any day of any year matches. A year is one of fourteen: it starts with one of seven
    /// weekdays and is a leap year or not.
    fn ever(&self) -> bool {
        [2001, 2004].into_iter().any(|year| {
            (0..7).any(|new_year| {
                let mut weekday: u8 = new_year;
                (1..=12).any(|month| {
                    let (length, first) = (month_length(year, month), weekday);
                    weekday = (weekday + length) % 7;
                    self.in_month(month, length, first) != 0
                })
            })
        })
    }
}

impl DaysOfMonth {
    fn in_month(&self, length: u8, first_weekday: u8) -> u32 {
        let mut days = self.days;
        for before in bits(self.before_last) {
            // A month that has no such day has none: bit 0 is no day.
            days |= 1 << length.saturating_sub(before);
        }
        for day in bits(self.nearest).filter(|day| *day <= length) {
            days |= 1 << nearest_weekday(day, length, first_weekday);
        }
        if self.last_weekday {
            days |= 1 << nearest_weekday(length, length, first_weekday);
        }
        days
    }

    /// Whether every day of every month is in it.
    pub(super) fn is_all(&self) -> bool {
        self.days == ALL_DAYS
    }
}

impl DaysOfWeek {
    fn in_month(&self, length: u8, first_weekday: u8) -> u32 {
        if self.is_all() {
            return ALL_DAYS;
        }
        // Every seventh day from the first on.
        const WEEKLY: u32 = 1 << 1 | 1 << 8 | 1 << 15 | 1 << 22 | 1 << 29;
        let mut days = 0;
        for weekday in 0..7u8 {
            let offset = (weekday + 7 - first_weekday) % 7;
            if self.days >> weekday & 1 == 1 {
                days |= WEEKLY << offset;
            }
            for nth in bits(u32::from(self.nth[usize::from(weekday)])) {
                let day = 1 + offset + 7 * (nth - 1);
                days |= if day <= length { 1 << day } else { 0 };
            }
            if self.last >> weekday & 1 == 1 {
                let weeks = (length - 1 - offset) / 7;
                days |= 1 << (1 + offset + 7 * weeks);
            }
        }
        days
    }

    /// Whether every day of every week is in it.
    pub(super) fn is_all(&self) -> bool {
        self.days == ALL_WEEKDAYS
    }
}

/// The day from Monday to Friday that is nearest to `day`, in the same month.
fn nearest_weekday(day: u8, length: u8, first_weekday: u8) -> u8 {
    match (first_weekday + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        1..=5 => day,
        other => unreachable!("{other} is no remainder of seven"),
    }
}

/// The weekday of a day counted from 1970-01-01, which was a Thursday. Sunday is 0.
fn weekday(day: i64) -> u8 {
    u8::try_from((day + 4).rem_euclid(7)).expect("a remainder of seven")
}

/// The lowest bit of `set` that is not below `from`.
fn lowest(set: u64, from: i64) -> Option<i64> {
    let above = set & (u64::MAX << from);
    (above != 0).then(|| i64::from(above.trailing_zeros()))
}

/// The bits of `set`, lowest first.
pub(super) fn bits(set: u32) -> impl Iterator<Item = u8> {
    (0..32u8).filter(move |bit| set >> bit & 1 == 1)
}

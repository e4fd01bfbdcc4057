//! The calendar against an oracle that shares nothing with it but the offsets of the zones: it
//! walks through time minute by minute, or second by second, looks at the clock each time, and
//! remembers how far the clock has come. What it finds in a window is all that may fire there.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/patterns.rs"]
mod patterns;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use mainspring_kernel::Timestamp;
use mainspring_kernel::calendar::{Cron, Fold, Gap, Rhythm, Zone};
use patterns::{Chance, Pattern, Shape, pattern};

const DAY: i64 = 86_400;
/// The checks that a run must have made.
const CHECKS_MIN: u64 = 200_000;

/// Zones that have done what others have not: half-hour summer time, gaps at midnight, a date left
/// out, two hours of summer time, summer time that pauses for a month, rules that end.
const PECULIAR: [&str; 22] = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Tehran",
    "Antarctica/Troll",
    "Antarctica/Casey",
    "America/Scoresbysund",
    "Asia/Gaza",
    "Africa/Monrovia",
    "Asia/Pyongyang",
    "Pacific/Kwajalein",
    "America/Caracas",
    "America/St_Johns",
];

/// The seconds of a window, one by one or by the minute, and what the clock shows at each.
struct Walk {
    /// Pairs of instant and clock, in seconds.
    steps: Vec<(i64, i64)>,
    /// Seconds from one to the next.
    pace: i64,
    /// From here on firings count; before, the clock is only followed.
    first: i64,
    /// Up to here, not included.
    end: i64,
}

impl Walk {
    fn new(zone: &TimeZone, first: i64, end: i64, pace: i64) -> Walk {
        let start = (first - 2 * DAY - 7200).div_euclid(pace) * pace;
        let steps = (start..end).step_by(pace as usize).map(|at| (at, at + offset(zone, at)));
        Walk { steps: steps.collect(), pace, first, end }
    }

    /// Whether looking once a minute is enough.
    fn is_fine(&self) -> bool {
        self.pace == 1 || self.steps.iter().all(|(_, shown)| shown % 60 == 0)
    }

    /// Every second of the window at which the pattern fires.
    fn firings(&self, pattern: &Pattern, gap: Gap, fold: Fold) -> Vec<i64> {
        let lowest = self.steps.iter().map(|(_, shown)| shown).min().unwrap().div_euclid(DAY);
        let highest = self.steps.iter().map(|(_, shown)| shown).max().unwrap().div_euclid(DAY);
        let dates = (lowest..=highest).map(|day| pattern.matches_date(date(day)));
        let dates: Vec<bool> = dates.collect();
        let matches = |shown: i64| {
            pattern.matches_time(shown.rem_euclid(DAY))
                && dates[(shown.div_euclid(DAY) - lowest) as usize]
        };
        let is_hourly = pattern.is_hourly();
        let mut found = Vec::new();
        let mut passed = self.steps[0].1;
        for (at, shown) in self.steps.iter().copied() {
            let mut fires = matches(shown);
            if !is_hourly {
                if shown < passed {
                    fires &= fold == Fold::Twice;
                } else if gap == Gap::Shift {
                    fires |= (passed..shown).step_by(self.pace as usize).any(matches);
                }
            }
            passed = passed.max(shown + self.pace);
            if fires && at >= self.first {
                found.push(at);
            }
        }
        found
    }
}

fn offset(zone: &TimeZone, at: i64) -> i64 {
    i64::from(zone.to_offset(jiff::Timestamp::from_second(at).unwrap()).seconds())
}

fn date(day: i64) -> jiff::civil::Date {
    let midnight = jiff::Timestamp::from_second(day * DAY).unwrap();
    jiff::tz::Offset::UTC.to_datetime(midnight).date()
}

/// Compares what fires in a window with what the calendar says, from up to `count` places.
fn compare(
    chance: &mut Chance,
    rhythm: &Rhythm,
    found: &[i64],
    (first, end): (i64, i64),
    count: usize,
) -> u64 {
    let mut checks = 0;
    let mut check = |after: i64, expected: Option<i64>| {
        let next = rhythm.next_after(Timestamp(after)).map(|at| at.0);
        let is_right = match expected {
            Some(expected) => next == Some(expected * 1_000_000),
            None => next.is_none_or(|at| at >= end * 1_000_000),
        };
        assert!(is_right, "{rhythm:?} after {after}: {next:?}, but the oracle says {expected:?}");
        checks += 1;
    };
    check(first * 1_000_000 - 1, found.first().copied());
    for _ in 0..count.min(found.len() * 3) {
        let index = chance.below(found.len() as u64) as usize;
        let (at, next) = (found[index], found.get(index + 1).copied());
        let before = if index == 0 { first - 1 } else { found[index - 1] };
        check(at * 1_000_000 - 1, Some(at));
        check(at * 1_000_000, next);
        check(chance.within(before * 1_000_000, at * 1_000_000 - 1), Some(at));
    }
    if let Some(last) = found.last() {
        check(last * 1_000_000, None);
    }
    checks
}

fn rhythm(chance: &mut Chance, pattern: &Pattern, zone: &str) -> Option<(Rhythm, Gap, Fold)> {
    let gap = *chance.one_of(&[Gap::Shift, Gap::Skip]);
    let fold = *chance.one_of(&[Fold::Once, Fold::Twice]);
    match Cron::parse(&pattern.text) {
        Ok(cron) => {
            let zone = Zone::parse(zone).unwrap();
            Some((Rhythm::Cron { cron, zone, gap, fold }, gap, fold))
        }
        Err(bad) => {
            // Only patterns that never fire are refused: no date of any kind of year matches.
            assert!(bad.reason.starts_with("it never fires"), "{}: {bad}", pattern.text);
            let mut days = (date(10_957).year()..2029).flat_map(|year| {
                (1..=366).filter_map(move |day| {
                    let first = jiff::civil::Date::new(year, 1, 1).unwrap();
                    first.with().day_of_year(day).build().ok()
                })
            });
            assert!(!days.any(|date| pattern.matches_date(date)), "{} does fire", pattern.text);
            None
        }
    }
}

/// The instants from 1970 to 2110 at which the clocks of a zone are changed.
fn changes(zone: &TimeZone) -> Vec<i64> {
    let from = jiff::Timestamp::from_second(0).unwrap();
    let changes = zone.following(from).map(|change| change.timestamp().as_second());
    let changes = changes.take_while(|at| *at < 4_418_064_000);
    changes.filter(|at| offset(zone, *at) != offset(zone, at - 1)).collect()
}

/// Windows around one instant: two days by the minute, or an hour and a half by the second.
fn around(chance: &mut Chance, name: &str, zone: &TimeZone, at: i64, patterns: usize) -> u64 {
    let at = at.div_euclid(60) * 60;
    let mut walk = Walk::new(zone, at - DAY, at + DAY + DAY / 2, 60);
    let mut shape = Shape::Daily;
    if !walk.is_fine() || chance.below(24) == 0 {
        walk = Walk::new(zone, at - 5400, at + 5400, 1);
        shape = *chance.one_of(&[Shape::Seconds, Shape::Daily]);
    }
    let mut checks = 0;
    for _ in 0..patterns {
        let pattern = pattern(chance, shape);
        let Some((rhythm, gap, fold)) = rhythm(chance, &pattern, name) else { continue };
        let found = walk.firings(&pattern, gap, fold);
        checks += compare(chance, &rhythm, &found, (walk.first, walk.end), 12);
    }
    checks
}

#[test]
fn fires_exactly_when_an_oracle_that_walks_says_so() {
    let mut chance = Chance(20_261_116);
    let database = TimeZoneDatabase::bundled();
    let mut checks = 0;
    for name in PECULIAR {
        let zone = database.get(name).unwrap();
        let changes = changes(&zone);
        for at in changes.iter().rev().take(12).chain(changes.iter().take(12)) {
            checks += around(&mut chance, name, &zone, *at, 8);
        }
        for _ in 0..24 {
            let at = match changes.is_empty() {
                true => chance.within(0, 4_400_000_000),
                false => *chance.one_of(&changes),
            };
            checks += around(&mut chance, name, &zone, at, 8);
        }
        for _ in 0..8 {
            let at = chance.within(-60_000_000_000, 253_000_000_000);
            checks += around(&mut chance, name, &zone, at, 4);
        }
    }
    let peculiar = checks;
    let mut zones = 0;
    for name in database.available() {
        let zone = database.get(name.as_str()).unwrap();
        zones += 1;
        let changes = changes(&zone);
        for _ in 0..2 {
            let at = match changes.is_empty() {
                true => chance.within(0, 4_400_000_000),
                false => *chance.one_of(&changes),
            };
            checks += around(&mut chance, name.as_str(), &zone, at, 6);
        }
    }
    // Samoa had no 30 December in 2011.
    let apia = database.get("Pacific/Apia").unwrap();
    for _ in 0..20 {
        checks += around(&mut chance, "Pacific/Apia", &apia, 1_325_239_200, 20);
    }
    println!("{checks} next firings agree, {peculiar} of them in peculiar zones, {zones} zones");
    assert!(checks >= CHECKS_MIN, "only {checks} checks");
}

/// Rare days: month ends, leap days around 2100, fifth weekdays. Days are looked at one by one, the
/// clock only on those that may matter.
#[test]
fn rare_days_are_those_of_an_oracle_that_looks_at_every_day() {
    let mut chance = Chance(2_104);
    let database = TimeZoneDatabase::bundled();
    let (mut checks, mut widest) = (0, 0);
    for round in 0..400 {
        let name = *chance.one_of(&PECULIAR);
        let zone = database.get(name).unwrap();
        let mut pattern = pattern(&mut chance, Shape::Rare);
        if round % 8 == 0 {
            let weekday = chance.below(8) as i8;
            pattern = leap_day(weekday);
        }
        let Some((rhythm, gap, fold)) = rhythm(&mut chance, &pattern, name) else { continue };
        // From 1975 on, when offsets were whole minutes, to 2160, past the year 2100.
        let first = chance.within(5 * 366, 47_000);
        let mut found: Vec<i64> = Vec::new();
        let mut day = first;
        while day < 69_000 && found.len() < 4 {
            if (day - 1..=day + 1).any(|day| pattern.matches_date(date(day))) {
                let walk = Walk::new(&zone, day * DAY, (day + 1) * DAY, 60);
                assert!(walk.is_fine(), "{name} in whole minutes");
                found.extend(walk.firings(&pattern, gap, fold));
            }
            day += 1;
        }
        widest = found.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0).max(widest);
        checks += compare(&mut chance, &rhythm, &found, (first * DAY, day * DAY), 4);
    }
    println!("{checks} rare firings agree, up to {} days apart", widest / DAY);
    assert!(checks > 2_000 && widest > 27 * 365 * DAY, "{checks} checks, {widest} seconds");
}

/// 29 February on one weekday: `*/7` is Sunday and starts with a star; others by their fifth.
fn leap_day(weekday: i8) -> Pattern {
    let text = match weekday {
        0 | 7 => "0 12 29 2 */7".to_owned(),
        weekday => format!("0 12 ? 2 {weekday}#5"),
    };
    let only = |index: usize, length: usize| (0..length).map(|value| value == index).collect();
    Pattern {
        text,
        seconds: only(0, 60),
        minutes: only(0, 60),
        hours: only(12, 24),
        months: only(2, 13),
        of_month: vec![patterns::DayItem::Day(29)],
        of_week: vec![patterns::DayItem::Weekday(weekday)],
        has_star: true,
    }
}

//! Rhythms in English.

use super::{Clock, DaysSaid, Interval, Part, Said, from_monday, runs, times};
use crate::calendar::cron::{DaysOfMonth, DaysOfWeek, bits};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

pub(super) fn at(instant: &str) -> String {
    format!("Once, at {instant}")
}

pub(super) fn interval(interval: &Interval) -> String {
    let units = ["day", "hour", "minute", "second"];
    let parts: Vec<(u64, &str)> = interval.parts.into_iter().zip(units).collect();
    let parts: Vec<(u64, &str)> = parts.into_iter().filter(|(count, _)| *count > 0).collect();
    let text = match parts.as_slice() {
        [] => "Never".to_owned(),
        [(1, unit)] => format!("Every {unit}"),
        _ => {
            let words = parts.iter().map(|(count, unit)| counted(*count, unit));
            format!("Every {}", words.collect::<Vec<_>>().join(" "))
        }
    };
    match &interval.counted_from {
        Some(from) => format!("{text}, counted from {from}"),
        None => text,
    }
}

pub(super) fn cron(said: &Said<'_>) -> String {
    let mut text = clock(&said.clock);
    if !said.is_days_plain() {
        text.push_str(&days(said));
    }
    text.push_str(", ");
    text.push_str(said.zone);
    if said.is_skipping {
        text.push_str("; left out when the clocks jump over it");
    }
    if said.is_repeating {
        text.push_str("; twice when the clocks show it twice");
    }
    text
}

fn clock(clock: &Clock) -> String {
    let (seconds, minutes, hours) = match clock {
        Clock::Times(list) => return format!("At {}", list_of(times(list), "and")),
        Clock::Fields { seconds, minutes, hours } => (*seconds, *minutes, *hours),
    };
    let of_hours = match hours {
        None => " of every hour".to_owned(),
        Some(set) => format!(" of {}", numbered("hour", u64::from(set))),
    };
    let of_hours_if_some = if hours.is_none() { "" } else { &of_hours };
    if seconds == Part::Zero {
        return match minutes {
            Part::All => format!("Every minute{of_hours_if_some}"),
            Part::Every(step) => format!("Every {step} minutes{of_hours_if_some}"),
            Part::Zero | Part::These(_) => {
                format!("At {}{of_hours}", numbered("minute", minutes.set()))
            }
        };
    }
    let start = match seconds {
        Part::All => "Every second".to_owned(),
        Part::Every(step) => format!("Every {step} seconds"),
        Part::Zero | Part::These(_) => format!("At {}", numbered("second", seconds.set())),
    };
    let is_even = matches!(seconds, Part::All | Part::Every(_));
    match minutes {
        Part::All if is_even => format!("{start}{of_hours_if_some}"),
        Part::All => format!("{start} of every minute{of_hours_if_some}"),
        Part::Every(_) | Part::Zero | Part::These(_) => {
            format!("{start} of {}{of_hours}", numbered("minute", minutes.set()))
        }
    }
}

fn days(said: &Said<'_>) -> String {
    let months = said.months.map(|set| {
        list_of(named(u64::from(set), |month| MONTHS[usize::from(month) - 1].to_owned()), "and")
    });
    let within = |months: &Option<String>| match months {
        Some(months) => format!(" of {months}"),
        None => " of every month".to_owned(),
    };
    let only = match &months {
        Some(months) => format!(" in {months}"),
        None => String::new(),
    };
    match &said.days {
        DaysSaid::All => format!(" every day{only}"),
        DaysSaid::Month(days) => {
            format!(" on {}{}", list_of(of_month(days), "and"), within(&months))
        }
        DaysSaid::Week(days) => {
            let is_plain = days.last == 0 && days.nth == [0; 7];
            let is_single = is_plain && runs(from_monday(days.days)).iter().all(|(a, b)| a == b);
            let start = if is_single { "every" } else { "on" };
            let end = if is_plain { only } else { within(&months) };
            format!(" {start} {}{end}", list_of(of_week(days), "and"))
        }
        DaysSaid::Both(month, week) => format!(
            " on {} of the month if that is {}{only}",
            list_of(of_month(month), "or"),
            list_of(of_week(week), "or")
        ),
        DaysSaid::Either(month, week) => format!(
            " on {} of the month, and also on {}{only}",
            list_of(of_month(month), "and"),
            list_of(of_week(week), "and")
        ),
    }
}

fn of_month(days: &DaysOfMonth) -> Vec<String> {
    let mut items = Vec::new();
    if days.days != 0 {
        items.push(numbered("day", u64::from(days.days)));
    }
    for before in bits(days.before_last) {
        items.push(match before {
            0 => "the last day".to_owned(),
            before => format!("the day {} before the last", counted(u64::from(before), "day")),
        });
    }
    for day in bits(days.nearest) {
        items.push(format!("the weekday (Monday to Friday) nearest to day {day}"));
    }
    if days.last_weekday {
        items.push("the last weekday (Monday to Friday)".to_owned());
    }
    items
}

fn of_week(days: &DaysOfWeek) -> Vec<String> {
    let name = |weekday: usize| WEEKDAYS[(weekday + 6) % 7];
    let mut items = named(from_monday(days.days), |weekday| name(usize::from(weekday)).to_owned());
    for weekday in 1..=7usize {
        for nth in bits(u32::from(days.nth[weekday % 7])) {
            let ordinal = ORDINALS[usize::from(nth) - 1];
            items.push(format!("the {ordinal} {}", name(weekday)));
        }
    }
    for weekday in 1..=7usize {
        if days.last >> (weekday % 7) & 1 == 1 {
            items.push(format!("the last {}", name(weekday)));
        }
    }
    items
}

/// `minute 5`, `minutes 5, 7 and 10 to 20`.
fn numbered(unit: &str, set: u64) -> String {
    let plural = if set.count_ones() == 1 { "" } else { "s" };
    format!("{unit}{plural} {}", list_of(named(set, |value| value.to_string()), "and"))
}

/// Every run of a set by the names of its ends.
fn named(set: u64, name: impl Fn(u8) -> String) -> Vec<String> {
    let write = |(first, last): (u8, u8)| match first == last {
        true => name(first),
        false => format!("{} to {}", name(first), name(last)),
    };
    runs(set).into_iter().map(write).collect()
}

fn list_of(mut items: Vec<String>, last_word: &str) -> String {
    let last = items.pop().unwrap_or_default();
    match items.is_empty() {
        true => last,
        false => format!("{} {last_word} {last}", items.join(", ")),
    }
}

fn counted(count: u64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

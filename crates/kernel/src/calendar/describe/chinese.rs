//! Rhythms in Chinese.

use super::{Clock, DaysSaid, Interval, Part, Said, from_monday, runs, times};
use crate::calendar::cron::{DaysOfMonth, DaysOfWeek, bits};

const WEEKDAYS: [&str; 7] = ["周一", "周二", "周三", "周四", "周五", "周六", "周日"];

pub(super) fn at(instant: &str) -> String {
    format!("一次，{instant}")
}

pub(super) fn interval(interval: &Interval) -> String {
    let units = ["天", "小时", "分钟", "秒"];
    let parts = interval.parts.into_iter().zip(units).filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, unit)| format!("{count} {unit}")).collect();
    let text = match parts.is_empty() {
        true => "从不".to_owned(),
        false => format!("每 {}", parts.join(" ")),
    };
    match &interval.counted_from {
        Some(from) => format!("{text}，自 {from} 起算"),
        None => text,
    }
}

pub(super) fn cron(said: &Said<'_>) -> String {
    let mut text = String::new();
    if !said.is_days_plain() {
        text.push_str(&days(said));
        text.push(' ');
    }
    text.push_str(&clock(&said.clock));
    text.push_str(&format!("（{}）", said.zone));
    if said.is_skipping {
        text.push_str("；时钟跳过该时刻时不触发");
    }
    if said.is_repeating {
        text.push_str("；时钟重复该时刻时触发两次");
    }
    text
}

fn clock(clock: &Clock) -> String {
    let (seconds, minutes, hours) = match clock {
        Clock::Times(list) => return times(list).join("、"),
        Clock::Fields { seconds, minutes, hours } => (*seconds, *minutes, *hours),
    };
    let in_hours = hours.map(|set| format!("{} 时", numbers(u64::from(set))));
    if seconds == Part::Zero {
        return match (minutes, in_hours) {
            (Part::All, None) => "每分钟".to_owned(),
            (Part::All, Some(hours)) => format!("{hours}的每分钟"),
            (Part::Every(step), None) => format!("每 {step} 分钟"),
            (Part::Every(step), Some(hours)) => format!("{hours}内每 {step} 分钟"),
            (Part::Zero | Part::These(_), hours) => {
                let hours = hours.unwrap_or_else(|| "每小时".to_owned());
                format!("{hours}第 {} 分", numbers(minutes.set()))
            }
        };
    }
    let (every, of) = match seconds {
        Part::All => ("每秒".to_owned(), "的"),
        Part::Every(step) => (format!("每 {step} 秒"), "内"),
        Part::Zero | Part::These(_) => (format!("第 {} 秒", numbers(seconds.set())), ""),
    };
    match (minutes, in_hours) {
        (Part::All, None) if of.is_empty() => format!("每分钟{every}"),
        (Part::All, None) => every,
        (Part::All, Some(hours)) if of.is_empty() => format!("{hours}的每分钟{every}"),
        (Part::All, Some(hours)) => format!("{hours}{of}{every}"),
        (Part::Every(_) | Part::Zero | Part::These(_), hours) => {
            let hours = hours.unwrap_or_else(|| "每小时".to_owned());
            format!("{hours}第 {} 分{of}{every}", numbers(minutes.set()))
        }
    }
}

fn days(said: &Said<'_>) -> String {
    let months =
        said.months.map(|set| named(u64::from(set), |month| format!("{month} 月")).join("、"));
    let only = months.as_ref().map_or(String::new(), |months| format!("{months}的"));
    let within = |days: &str| {
        let space = if days.starts_with(|letter: char| letter.is_ascii_digit()) { " " } else { "" };
        match &months {
            Some(months) => format!("{months}的{space}{days}"),
            None => format!("每月{space}{days}"),
        }
    };
    match &said.days {
        DaysSaid::All => format!("{only}每天"),
        DaysSaid::Month(days) => within(&of_month(days).join("、")),
        DaysSaid::Week(days) if days.last == 0 && days.nth == [0; 7] => {
            format!("{only}每{}", of_week(days).join("、"))
        }
        DaysSaid::Week(days) => within(&of_week(days).join("、")),
        DaysSaid::Both(month, week) => {
            let (month, week) = (of_month(month).join("、"), of_week(week).join("或"));
            format!("{}（须为{week}）", within(&month))
        }
        DaysSaid::Either(month, week) => {
            let (month, week) = (of_month(month).join("、"), of_week(week).join("、"));
            format!("{}，以及{week}", within(&month))
        }
    }
}

fn of_month(days: &DaysOfMonth) -> Vec<String> {
    let mut items = named(u64::from(days.days), |day| format!("{day} 日"));
    for before in bits(days.before_last) {
        items.push(match before {
            0 => "最后一天".to_owned(),
            before => format!("倒数第 {} 天", before + 1),
        });
    }
    for day in bits(days.nearest) {
        items.push(format!("离 {day} 日最近的工作日（周一至周五）"));
    }
    if days.last_weekday {
        items.push("最后一个工作日（周一至周五）".to_owned());
    }
    items
}

fn of_week(days: &DaysOfWeek) -> Vec<String> {
    let name = |weekday: usize| WEEKDAYS[(weekday + 6) % 7];
    let mut items = named(from_monday(days.days), |weekday| name(usize::from(weekday)).to_owned());
    for weekday in 1..=7usize {
        for nth in bits(u32::from(days.nth[weekday % 7])) {
            items.push(format!("第 {nth} 个{}", name(weekday)));
        }
    }
    for weekday in 1..=7usize {
        if days.last >> (weekday % 7) & 1 == 1 {
            items.push(format!("最后一个{}", name(weekday)));
        }
    }
    items
}

fn numbers(set: u64) -> String {
    named(set, |value| value.to_string()).join("、")
}

/// Every run of a set by the names of its ends. A number has a space beside it, a word has none.
fn named(set: u64, name: impl Fn(u8) -> String) -> Vec<String> {
    let write = |(first, last): (u8, u8)| {
        let (start, end) = (name(first), name(last));
        if first == last {
            return start;
        }
        let before = if start.ends_with(|letter: char| letter.is_ascii_digit()) { " " } else { "" };
        let after = if end.starts_with(|letter: char| letter.is_ascii_digit()) { " " } else { "" };
        format!("{start}{before}至{after}{end}")
    };
    runs(set).into_iter().map(write).collect()
}

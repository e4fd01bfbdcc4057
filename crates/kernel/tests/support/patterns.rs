//! Random cron patterns, each as text and as what it means, told apart naively: nothing here is
//! shared with the calendar of the kernel. A date is asked, one at a time, whether it matches.

#![allow(dead_code, reason = "each test uses its part")]

use jiff::civil::{Date, Weekday};

/// The same numbers for the same seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number from `first` to `last`.
    pub(crate) fn within(&mut self, first: i64, last: i64) -> i64 {
        first + (self.next() % (last - first + 1) as u64) as i64
    }

    pub(crate) fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// One item of a day field.
#[derive(Debug, Clone)]
pub(crate) enum DayItem {
    Day(i8),
    BeforeLast(i8),
    LastWeekday,
    Nearest(i8),
    Weekday(i8),
    Nth(i8, i8),
    Last(i8),
}

/// A pattern: its text and its meaning.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) seconds: Vec<bool>,
    pub(crate) minutes: Vec<bool>,
    pub(crate) hours: Vec<bool>,
    pub(crate) months: Vec<bool>,
    pub(crate) of_month: Vec<DayItem>,
    pub(crate) of_week: Vec<DayItem>,
    pub(crate) has_star: bool,
}

impl Pattern {
    /// Whether every hour of the day is in it.
    pub(crate) fn is_hourly(&self) -> bool {
        self.hours.iter().all(|is_in| *is_in)
    }

    pub(crate) fn matches_date(&self, date: Date) -> bool {
        let month = self.of_month.iter().any(|item| is_on(item, date));
        let week = self.of_week.iter().any(|item| is_on(item, date));
        self.months[date.month() as usize]
            && if self.has_star { month && week } else { month || week }
    }

    /// Whether a second of the day, from 0 to 86399, matches.
    pub(crate) fn matches_time(&self, second: i64) -> bool {
        let second = second as usize;
        self.minutes[second / 60 % 60] && self.hours[second / 3600] && self.seconds[second % 60]
    }
}

fn is_working(date: Date) -> bool {
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

fn is_on(item: &DayItem, date: Date) -> bool {
    let weekday = date.weekday().to_sunday_zero_offset();
    let length = date.days_in_month();
    let in_month = || (1..=length).map(|day| Date::new(date.year(), date.month(), day).unwrap());
    match *item {
        DayItem::Day(day) => date.day() == day,
        DayItem::BeforeLast(count) => length - date.day() == count,
        DayItem::LastWeekday => in_month().rfind(|day| is_working(*day)) == Some(date),
        DayItem::Nearest(day) => {
            let near = in_month().filter(|day| is_working(*day));
            let near = near.min_by_key(|other| (other.day() - day).abs());
            day <= length && near == Some(date)
        }
        DayItem::Weekday(wanted) => weekday == wanted % 7,
        DayItem::Nth(wanted, nth) => weekday == wanted % 7 && (date.day() + 6) / 7 == nth,
        DayItem::Last(wanted) => weekday == wanted % 7 && date.day() + 7 > length,
    }
}

/// How much a random pattern leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Five fields, some time of most days.
    Daily,
    /// Six fields.
    Seconds,
    /// Five fields, a few days of a year or fewer.
    Rare,
}

/// A random pattern.
pub(crate) fn pattern(chance: &mut Chance, shape: Shape) -> Pattern {
    let mut words = Vec::new();
    let mut plain = |chance: &mut Chance, first: i64, last: i64, loose: u64| {
        let (text, set) = field(chance, first, last, loose);
        words.push(text);
        set
    };
    let seconds = match shape {
        Shape::Seconds => plain(chance, 0, 59, 4),
        Shape::Daily | Shape::Rare => (0..60).map(|second| second == 0).collect(),
    };
    let minutes = plain(chance, 0, 59, 3);
    let hours = plain(chance, 0, 23, 3);
    let loose = if shape == Shape::Rare { 1 } else { 6 };
    let (day_text, of_month, is_first_star) = month_days(chance, loose);
    words.push(day_text);
    let mut plain = |chance: &mut Chance, first: i64, last: i64, loose: u64| {
        let (text, set) = field(chance, first, last, loose);
        words.push(text);
        set
    };
    let months = plain(chance, 1, 12, if shape == Shape::Rare { 1 } else { 8 });
    let (week_text, of_week, is_second_star) = week_days(chance, if loose == 1 { 3 } else { 5 });
    words.push(week_text);
    let space = if chance.below(10) == 0 { "  " } else { " " };
    let has_star = is_first_star || is_second_star;
    let text = words.join(space);
    Pattern { text, seconds, minutes, hours, months, of_month, of_week, has_star }
}

/// A field of numbers; the more `loose`, the likelier is `*`.
fn field(chance: &mut Chance, first: i64, last: i64, loose: u64) -> (String, Vec<bool>) {
    let mut set = vec![false; last as usize + 1];
    if chance.below(loose + 2) < loose {
        if chance.below(2) == 0 {
            set[first as usize..].fill(true);
            return ("*".to_owned(), set);
        }
        let longest = if chance.below(2) == 0 { 5.min(last) } else { last };
        let step = chance.within(1, longest);
        let values = (first..=last).filter(|value| (value - first) % step == 0);
        values.for_each(|value| set[value as usize] = true);
        return (format!("*/{step}"), set);
    }
    let mut items = Vec::new();
    for _ in 0..=chance.below(3) {
        let from = chance.within(first, last);
        let to = chance.within(from, last);
        let step = chance.within(1, last);
        let (text, to, step) = match chance.below(6) {
            0 => (format!("{from}-{to}"), to, 1),
            1 => (format!("{from}-{to}/{step}"), to, step),
            2 => (format!("{from}/{step}"), last, step),
            3 => (format!("{from:02}"), from, 1),
            _ => (format!("{from}"), from, 1),
        };
        let values = (from..=to).filter(|value| (value - from) % step == 0);
        values.for_each(|value| set[value as usize] = true);
        items.push(text);
    }
    (items.join(","), set)
}

fn month_days(chance: &mut Chance, loose: u64) -> (String, Vec<DayItem>, bool) {
    if chance.below(loose + 4) < loose {
        let every = (1..=31).map(DayItem::Day).collect();
        return ((*chance.one_of(&["*", "?"])).to_owned(), every, true);
    }
    let mut items = Vec::new();
    let mut texts = Vec::new();
    let is_star = chance.below(8) == 0;
    if is_star {
        let step = chance.within(1, 31) as i8;
        texts.push(format!("*/{step}"));
        items.extend((1..=31).filter(|day| (day - 1) % step == 0).map(DayItem::Day));
    }
    for _ in 0..=chance.below(2) {
        let day = chance.within(1, 31) as i8;
        let (text, item) = match chance.below(9) {
            0 => ("L".to_owned(), DayItem::BeforeLast(0)),
            1 => (format!("L-{}", day.min(30)), DayItem::BeforeLast(day.min(30))),
            2 => ("LW".to_owned(), DayItem::LastWeekday),
            3 | 4 => (format!("{day}W"), DayItem::Nearest(day)),
            5 => ("29".to_owned(), DayItem::Day(29)),
            6 => ("31".to_owned(), DayItem::Day(31)),
            _ => (format!("{day}"), DayItem::Day(day)),
        };
        texts.push(text);
        items.push(item);
    }
    (texts.join(","), items, is_star)
}

fn week_days(chance: &mut Chance, loose: u64) -> (String, Vec<DayItem>, bool) {
    if chance.below(loose + 4) < loose {
        let every = (0..7).map(DayItem::Weekday).collect();
        return ((*chance.one_of(&["*", "?"])).to_owned(), every, true);
    }
    let names = ["SUN", "mon", "Tue", "WED", "THU", "fri", "SAT", "SUN"];
    let mut items = Vec::new();
    let mut texts = Vec::new();
    let is_star = chance.below(8) == 0;
    if is_star {
        let step = chance.within(1, 7) as i8;
        texts.push(format!("*/{step}"));
        items.extend((0..=7).filter(|day| day % step == 0).map(DayItem::Weekday));
    }
    for _ in 0..=chance.below(2) {
        let day = chance.within(0, 7) as i8;
        let nth = chance.within(1, 5) as i8;
        let name = match chance.below(2) {
            0 => names[day as usize].to_owned(),
            _ => day.to_string(),
        };
        match chance.below(7) {
            0 | 1 => {
                texts.push(format!("{name}#{nth}"));
                items.push(DayItem::Nth(day, nth));
            }
            2 => {
                texts.push(format!("{name}L"));
                items.push(DayItem::Last(day));
            }
            3 => {
                let last = chance.within(i64::from(day), 7) as i8;
                texts.push(format!("{day}-{last}"));
                items.extend((day..=last).map(DayItem::Weekday));
            }
            _ => {
                texts.push(name);
                items.push(DayItem::Weekday(day));
            }
        }
    }
    (texts.join(","), items, is_star)
}

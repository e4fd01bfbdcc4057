//! The grammar of cron patterns, read strictly: what is not in it is refused with field, column and
//! reason, never guessed.
//!
//! A field is a list of items between commas. An item is `*`, a value, a range `a-b`, or one of
//! these with a step: `*/n`, `a-b/n`, `a/n` (from `a` to the end). Months and weekdays have names
//! of three letters. 0 and 7 are Sunday; a range may end on it (`FRI-SUN`). In the day of month
//! also
//! `L` (the last), `L-n` (n days before it), `LW` (the last from Monday to Friday) and `nW` (the
//! one nearest to day n, in the same month); in the day of week `d#n` (the nth of the month) and
//! `dL` (the last). `?` alone in a day field is `*`.

use super::{
    ALL_60, ALL_DAYS, ALL_HOURS, ALL_MONTHS, ALL_WEEKDAYS, BadCron, Cron, DayRule, Days,
    DaysOfMonth, DaysOfWeek, Field, Times,
};
use crate::limits::CRON_BYTES_MAX;
use crate::text;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 6] =
    [Field::Second, Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A piece of the text, and where it starts.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    field: Field,
    column: usize,
}

impl<'a> Piece<'a> {
    fn bad<T>(self, reason: String) -> Result<T, BadCron> {
        Err(BadCron { field: Some(self.field), column: self.column, reason })
    }

    /// The part of it from `start`, in bytes, with this text.
    fn part(self, start: usize, text: &'a str) -> Piece<'a> {
        Piece { text, column: self.column + self.text[..start].chars().count(), ..self }
    }

    /// What is before the first `separator` and what is after it.
    fn split(self, separator: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let at = self.text.find(separator)?;
        let (before, after) = (&self.text[..at], &self.text[at + separator.len_utf8()..]);
        Some((self.part(0, before), self.part(at + separator.len_utf8(), after)))
    }

    /// What is before this last letter, whatever its case.
    fn without_last(self, letter: char) -> Option<Piece<'a>> {
        let (at, last) = self.text.char_indices().next_back()?;
        last.eq_ignore_ascii_case(&letter).then(|| self.part(0, &self.text[..at]))
    }
}

impl Cron {
    /// Reads a pattern of five or six fields, or one of `@yearly`, `@annually`, `@monthly`,
    /// `@weekly`, `@daily`, `@midnight` and `@hourly`.
    ///
    /// # Errors
    /// If the text is none, or if no day of any year matches.
    pub fn parse(text: &str) -> Result<Cron, BadCron> {
        let whole = |column: usize, reason: String| BadCron { field: None, column, reason };
        if text.len() > CRON_BYTES_MAX {
            return Err(whole(1, format!("longer than {CRON_BYTES_MAX} bytes")));
        }
        let is_stray =
            |letter: char| letter != '\t' && text::has_control(letter.encode_utf8(&mut [0; 4]));
        if let Some(at) = text.chars().position(is_stray) {
            return Err(whole(at + 1, text::NO_CONTROL.to_owned()));
        }
        let trimmed = text.trim_matches([' ', '\t']);
        let expanded = match trimmed.strip_prefix('@') {
            None => text,
            Some(_) => {
                let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(trimmed));
                let column = text.find('@').unwrap_or(0) + 1;
                let reason = || {
                    format!(
                        "`{trimmed}` is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly"
                    )
                };
                known.map(|(_, fields)| *fields).ok_or_else(|| whole(column, reason()))?
            }
        };
        let words = words(expanded);
        let fields = match words.len() {
            5 => &FIELDS[1..],
            6 => &FIELDS[..],
            0 => return Err(whole(1, "empty".to_owned())),
            count => {
                return Err(whole(1, format!("{count} fields, but there must be 5 or 6")));
            }
        };
        let mut cron = Cron { text: text.into(), times: Times::default(), days: Days::default() };
        cron.times.seconds = if words.len() == 5 { 1 } else { 0 };
        let mut stars = 0;
        for ((column, text), field) in words.iter().zip(fields) {
            let piece = Piece { text, field: *field, column: *column };
            let is_star = cron.read_field(piece)?;
            if is_star && matches!(field, Field::DayOfMonth | Field::DayOfWeek) {
                stars += 1;
            }
        }
        cron.days.rule = if stars == 0 { DayRule::Either } else { DayRule::Both };
        if !cron.days.ever() {
            return Err(whole(1, "it never fires: no day of any year matches".to_owned()));
        }
        Ok(cron)
    }

    /// Reads one field; says whether it starts with a star.
    fn read_field(&mut self, field: Piece<'_>) -> Result<bool, BadCron> {
        if field.text == "?" {
            return match field.field {
                Field::DayOfMonth => {
                    self.days.of_month.days = ALL_DAYS;
                    Ok(true)
                }
                Field::DayOfWeek => {
                    self.days.of_week.days = ALL_WEEKDAYS;
                    Ok(true)
                }
                Field::Second | Field::Minute | Field::Hour | Field::Month => {
                    field.bad("`?` stands in the two day fields only".to_owned())
                }
            };
        }
        let mut rest = field;
        while let Some((item, after)) = rest.split(',') {
            self.read_item(item)?;
            rest = after;
        }
        self.read_item(rest)?;
        Ok(field.text.starts_with('*'))
    }

    fn read_item(&mut self, item: Piece<'_>) -> Result<(), BadCron> {
        if item.text.is_empty() {
            return item.bad("a value is missing".to_owned());
        }
        let is_special = match item.field {
            Field::DayOfMonth => read_day_of_month(item, &mut self.days.of_month)?,
            Field::DayOfWeek => read_day_of_week(item, &mut self.days.of_week)?,
            Field::Second | Field::Minute | Field::Hour | Field::Month => false,
        };
        if is_special {
            return Ok(());
        }
        let set = read_set(item)?;
        match item.field {
            Field::Second => self.times.seconds |= set,
            Field::Minute => self.times.minutes |= set,
            Field::Hour => self.times.hours |= (set & u64::from(ALL_HOURS)) as u32,
            Field::DayOfMonth => self.days.of_month.days |= (set & u64::from(ALL_DAYS)) as u32,
            Field::Month => self.days.months |= (set & u64::from(ALL_MONTHS)) as u16,
            Field::DayOfWeek => {
                // 7 is Sunday, too.
                self.days.of_week.days |= ((set | set >> 7) & u64::from(ALL_WEEKDAYS)) as u8;
            }
        }
        Ok(())
    }
}

/// The words of a text and the columns they start at.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut column = 1;
    for word in text.split([' ', '\t']) {
        if !word.is_empty() {
            words.push((column, word));
        }
        column += word.chars().count() + 1;
    }
    words
}

/// `L`, `L-n`, `LW` and `nW`; false if the item is none of them.
fn read_day_of_month(item: Piece<'_>, days: &mut DaysOfMonth) -> Result<bool, BadCron> {
    if item.text.eq_ignore_ascii_case("L") {
        days.before_last |= 1;
    } else if item.text.eq_ignore_ascii_case("LW") {
        days.last_weekday = true;
    } else if let Some((before, count)) = item.split('-')
        && before.text.eq_ignore_ascii_case("L")
    {
        let count = number(count, 1, 30)?;
        days.before_last |= 1 << count;
    } else if let Some(day) = item.without_last('W') {
        let day = number(day, 1, 31)?;
        days.nearest |= 1 << day;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// `d#n` and `dL`; false if the item is none of them.
fn read_day_of_week(item: Piece<'_>, days: &mut DaysOfWeek) -> Result<bool, BadCron> {
    if let Some((weekday, nth)) = item.split('#') {
        let weekday = usize::from(value(weekday)? % 7);
        let nth = number(nth, 1, 5)?;
        days.nth[weekday] |= 1 << nth;
    } else if let Some(weekday) = item.without_last('L') {
        if weekday.text.is_empty() {
            return item.bad("`L` needs a weekday here, such as `5L`".to_owned());
        }
        let weekday = value(weekday)? % 7;
        days.last |= 1 << weekday;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// `*`, a value or a range, with or without a step.
fn read_set(item: Piece<'_>) -> Result<u64, BadCron> {
    let (lowest, highest) = span(item.field);
    let (base, step) = match item.split('/') {
        None => (item, None),
        Some((base, step)) => (base, Some(number(step, 1, highest)?)),
    };
    let (first, last) = if base.text == "*" {
        (lowest, highest)
    } else if let Some((first, last)) = base.split('-') {
        let (start, end) = (value(first)?, value(last)?);
        // The week may end with its Sunday.
        let end = if item.field == Field::DayOfWeek && end == 0 && start > 0 { 7 } else { end };
        if start > end {
            return base.bad(format!("the range `{}` runs backwards", base.text));
        }
        (start, end)
    } else {
        let start = value(base)?;
        (start, if step.is_some() { highest } else { start })
    };
    let step = usize::from(step.unwrap_or(1));
    Ok((first..=last).step_by(step).fold(0, |set, value| set | 1 << value))
}

/// The lowest and the highest value of a field.
const fn span(field: Field) -> (u8, u8) {
    match field {
        Field::Second | Field::Minute => (0, 59),
        Field::Hour => (0, 23),
        Field::DayOfMonth => (1, 31),
        Field::Month => (1, 12),
        Field::DayOfWeek => (0, 7),
    }
}

/// A value of its field: a number, or the name of a month or a weekday.
fn value(piece: Piece<'_>) -> Result<u8, BadCron> {
    let (names, first): (&[&str], usize) = match piece.field {
        Field::Month => (&MONTHS, 1),
        Field::DayOfWeek => (&WEEKDAYS, 0),
        Field::Second | Field::Minute | Field::Hour | Field::DayOfMonth => (&[], 0),
    };
    match names.iter().position(|name| name.eq_ignore_ascii_case(piece.text)) {
        Some(index) => Ok((index + first) as u8),
        None => {
            let (lowest, highest) = span(piece.field);
            number(piece, lowest, highest)
        }
    }
}

/// One or two digits, from `lowest` to `highest`.
fn number(piece: Piece<'_>, lowest: u8, highest: u8) -> Result<u8, BadCron> {
    let text = piece.text;
    if text.is_empty() {
        return piece.bad("a number is missing".to_owned());
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return piece.bad(format!("`{text}` is no value of this field"));
    }
    match text.parse::<u8>() {
        Ok(number) if text.len() <= 2 && (lowest..=highest).contains(&number) => Ok(number),
        Ok(_) | Err(_) => piece.bad(format!("{text} is not between {lowest} and {highest}")),
    }
}

const _: () = assert!(ALL_60.count_ones() == 60 && ALL_MONTHS.count_ones() == 12);

#[cfg(test)]
mod tests;

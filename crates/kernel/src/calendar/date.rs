//! Dates of the calendar, years 1 to 9999, without a time and without a zone.

use std::fmt;

/// One date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i32);

impl Date {
    /// The first of them: 0001-01-01.
    pub const FIRST: Date = Date(-719_162);
    /// The last of them: 9999-12-31.
    pub const LAST: Date = Date(2_932_896);

    /// From the number of days since 1970-01-01; `None` outside of the calendar.
    pub fn from_days(days: i32) -> Option<Date> {
        (Date::FIRST.0..=Date::LAST.0).contains(&days).then_some(Date(days))
    }

    /// Days since 1970-01-01.
    pub const fn days(self) -> i32 {
        self.0
    }

    /// Reads `YYYY-MM-DD`, and nothing else.
    pub fn parse(text: &str) -> Option<Date> {
        let bytes: &[u8; 10] = text.as_bytes().try_into().ok()?;
        let is_right = bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        if !is_right {
            return None;
        }
        let number = |from: usize, to: usize| text[from..to].parse::<u16>().ok();
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        let year = i32::from(year);
        let is_date = (1..=12).contains(&month) && (1..=month_length(year, month)).contains(&day);
        if year == 0 || !is_date {
            return None;
        }
        Date::from_days(days(year, month, day))
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(i64::from(self.0));
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Year, month and day of the date that is `days` after 1970-01-01. Years are counted from March,
/// so that a leap day is the last of its year; eras of 400 years are alike. jiff has the same, but
/// not for the last days of 9999.
pub(super) fn civil(days: i64) -> (i32, u8, u8) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (year + era * 400, if month < 10 { month + 3 } else { month - 9 });
    ((year + i64::from(month <= 2)) as i32, month as u8, day as u8)
}

/// How many days after 1970-01-01 that date is.
fn days(year: i32, month: u8, day: u8) -> i32 {
    let (month, day) = (i32::from(month), i32::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + 365 * year + year / 4 - year / 100 + day - 719_468
}

/// How many days a month has.
pub(super) fn month_length(year: i32, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_date_is_the_one_that_jiff_knows() {
        let mut date = jiff::civil::date(1, 1, 1);
        for day in Date::FIRST.days()..=Date::LAST.days() {
            let (year, month, of_month) = civil(i64::from(day));
            let known = (i32::from(date.year()), date.month() as u8, date.day() as u8);
            assert_eq!((year, month, of_month), known);
            assert_eq!(days(year, month, of_month), day);
            assert_eq!(month_length(year, month), date.days_in_month() as u8);
            date = date.tomorrow().unwrap_or(date);
        }
        assert_eq!(date, jiff::civil::Date::MAX);
    }

    #[test]
    fn only_dates_are_dates() {
        for good in ["0001-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31"] {
            assert_eq!(Date::parse(good).unwrap().to_string(), good);
        }
        assert_eq!(Date::parse("0001-01-01"), Some(Date::FIRST));
        assert_eq!(Date::parse("1969-12-31").map(Date::days), Some(-1));
        assert_eq!(Date::from_days(Date::LAST.days() + 1), None);
        for bad in ["", "0000-01-01", "2023-02-29", "2023-2-01", "10000-01-01", "2023-13-01"] {
            assert_eq!(Date::parse(bad), None, "{bad}");
        }
        for bad in
            ["2023-01-00", "2023/01/01", "+023-01-01", "2023-01-1x", "２023-01-1", " 2023-1-1"]
        {
            assert_eq!(Date::parse(bad), None, "{bad}");
        }
    }
}

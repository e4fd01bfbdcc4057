//! What is a pattern and what is none.

use super::super::bits;
use super::*;

fn read(text: &str) -> Cron {
    Cron::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

fn minutes(field: &str) -> Vec<u64> {
    let set = read(&format!("{field} * * * *")).times.minutes;
    (0..64).filter(|bit| set >> bit & 1 == 1).collect()
}

#[test]
fn fields_are_sets() {
    assert_eq!(minutes("*").len(), 60);
    assert_eq!(minutes("5"), [5]);
    assert_eq!(minutes("05,5,00"), [0, 5]);
    assert_eq!(minutes("*/20"), [0, 20, 40]);
    assert_eq!(minutes("7/25"), [7, 32, 57]);
    assert_eq!(minutes("10-20/5"), [10, 15, 20]);
    assert_eq!(minutes("10-12,50-59/7"), [10, 11, 12, 50, 57]);
    assert_eq!(minutes("*/59"), [0, 59]);
    assert_eq!(minutes("8-8"), [8]);
}

#[test]
fn names_have_any_case() {
    assert_eq!(read("0 0 1 jan,Mar-MAY *").days.months, 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5);
    let weekdays = |field: &str| read(&format!("0 0 * * {field}")).days.of_week.days;
    assert_eq!(weekdays("mon-FRI"), 0b011_1110);
    assert_eq!(weekdays("0"), 1);
    assert_eq!(weekdays("7"), 1);
    assert_eq!(weekdays("SAT-SUN"), 0b100_0001);
    assert_eq!(weekdays("5-7"), 0b110_0001);
    assert_eq!(weekdays("5-0"), 0b110_0001);
    assert_eq!(weekdays("SUN-MON"), 0b11);
    assert_eq!(weekdays("0-7"), ALL_WEEKDAYS);
    assert_eq!(weekdays("*/7"), 1);
    assert_eq!(weekdays("*/2"), 0b101_0101);
}

#[test]
fn special_days() {
    let month = read("0 0 L,l-3,lw,15W,1w * *").days.of_month;
    assert_eq!(month.before_last, 1 | 1 << 3);
    assert_eq!(month.nearest, 1 << 15 | 1 << 1);
    assert!(month.last_weekday && month.days == 0);
    let week = read("0 0 * * 5L,fri#2,7L,0#5,MON").days.of_week;
    assert_eq!((week.last, week.days), (1 << 5 | 1, 1 << 1));
    assert_eq!((week.nth[5], week.nth[0]), (1 << 2, 1 << 5));
}

#[test]
fn five_fields_start_with_minutes_and_six_with_seconds() {
    assert_eq!(read("1 2 3 4 *").times, Times { seconds: 1, minutes: 1 << 1, hours: 1 << 2 });
    let six = read("\t9  1 2\t3 4 * ");
    assert_eq!(six.times, Times { seconds: 1 << 9, minutes: 1 << 1, hours: 1 << 2 });
    assert_eq!(six.as_str(), "\t9  1 2\t3 4 * ");
}

#[test]
fn nicknames_are_patterns() {
    for (name, pattern) in NICKNAMES {
        let (short, long) = (read(name), read(pattern));
        assert_eq!((short.times, short.days), (long.times, long.days));
        assert_eq!(short.as_str(), name);
    }
    assert_eq!(read(" @Daily ").times, read("0 0 * * *").times);
}

/// The rule of Vixie cron for the two day fields.
#[test]
fn days_match_by_either_field_or_by_both() {
    for (pattern, rule) in [
        ("0 0 13 * 5", DayRule::Either),
        ("0 0 1-31 * 1-5", DayRule::Either),
        ("0 0 L * 5L", DayRule::Either),
        ("0 0 * * 5", DayRule::Both),
        ("0 0 13 * *", DayRule::Both),
        ("0 0 */2 * 1", DayRule::Both),
        ("0 0 1-7 * */2", DayRule::Both),
        ("0 0 *,3 * 1", DayRule::Both),
        ("0 0 3,* * 1", DayRule::Either),
        ("0 0 ? * 1", DayRule::Both),
        ("0 0 1 * ?", DayRule::Both),
    ] {
        assert_eq!(read(pattern).days.rule, rule, "{pattern}");
    }
}

#[test]
fn nonsense_is_refused_where_it_stands() {
    use Field::{DayOfMonth, DayOfWeek, Hour, Minute, Month, Second};
    for (text, field, column, reason) in [
        ("", None, 1, "empty"),
        (" \t ", None, 1, "empty"),
        ("* * * *", None, 1, "4 fields"),
        ("* * * * * * *", None, 1, "7 fields"),
        ("*\n* * * *", None, 2, "control"),
        ("* * * *\0 *", None, 8, "control"),
        ("@reboot", None, 1, "`@reboot` is none of"),
        ("  @every 5m", None, 3, "none of"),
        ("1,,2 * * * *", Some(Minute), 3, "a value is missing"),
        (", * * * *", Some(Minute), 1, "a value is missing"),
        ("1, * * * *", Some(Minute), 3, "a value is missing"),
        ("*/70 * * * *", Some(Minute), 3, "70 is not between 1 and 59"),
        ("*/60 * * * *", Some(Minute), 3, "60 is not between 1 and 59"),
        ("*/0 * * * *", Some(Minute), 3, "0 is not between 1 and 59"),
        ("*/ * * * *", Some(Minute), 3, "a number is missing"),
        ("*/5/5 * * * *", Some(Minute), 3, "`5/5` is no value"),
        ("/5 * * * *", Some(Minute), 1, "a number is missing"),
        ("+ * * * *", Some(Minute), 1, "`+` is no value"),
        ("+5 * * * *", Some(Minute), 1, "`+5` is no value"),
        ("-5 * * * *", Some(Minute), 1, "a number is missing"),
        ("5- * * * *", Some(Minute), 3, "a number is missing"),
        ("1-2-3 * * * *", Some(Minute), 3, "`2-3` is no value"),
        ("*-5 * * * *", Some(Minute), 1, "`*` is no value"),
        ("** * * * *", Some(Minute), 1, "`**` is no value"),
        ("60 * * * *", Some(Minute), 1, "60 is not between 0 and 59"),
        ("005 * * * *", Some(Minute), 1, "005 is not between"),
        ("99999999999999999999 * * * *", Some(Minute), 1, "is not between"),
        ("5-1 * * * *", Some(Minute), 1, "`5-1` runs backwards"),
        ("? * * * *", Some(Minute), 1, "`?` stands in"),
        ("* 24 * * *", Some(Hour), 3, "24 is not between 0 and 23"),
        ("* MON * * *", Some(Hour), 3, "`MON` is no value"),
        ("60 * * * * *", Some(Second), 1, "60 is not"),
        ("* * 0 * *", Some(DayOfMonth), 5, "0 is not between 1 and 31"),
        ("* * 32 * *", Some(DayOfMonth), 5, "32 is not"),
        ("* * 1,L-0 * *", Some(DayOfMonth), 9, "0 is not between 1 and 30"),
        ("* * L-31 * *", Some(DayOfMonth), 7, "31 is not"),
        ("* * W * *", Some(DayOfMonth), 5, "a number is missing"),
        ("* * 32W * *", Some(DayOfMonth), 5, "32 is not"),
        ("* * L-3W * *", Some(DayOfMonth), 7, "`3W` is no value"),
        ("* * ?,1 * *", Some(DayOfMonth), 5, "`?` is no value"),
        ("* * ?/2 * *", Some(DayOfMonth), 5, "`?` is no value"),
        ("* * 5#2 * *", Some(DayOfMonth), 5, "`5#2` is no value"),
        ("* * * 13 *", Some(Month), 7, "13 is not"),
        ("* * * 0 *", Some(Month), 7, "0 is not"),
        ("* * * JANUARY *", Some(Month), 7, "`JANUARY` is no value"),
        ("* * * L *", Some(Month), 7, "`L` is no value"),
        ("* * * * 8", Some(DayOfWeek), 9, "8 is not between 0 and 7"),
        ("* * * * L", Some(DayOfWeek), 9, "`L` needs a weekday"),
        ("* * * * 5#6", Some(DayOfWeek), 11, "6 is not between 1 and 5"),
        ("* * * * 5#0", Some(DayOfWeek), 11, "0 is not"),
        ("* * * * #2", Some(DayOfWeek), 9, "a number is missing"),
        ("* * * * FOOL", Some(DayOfWeek), 9, "`FOO` is no value"),
        ("* * * * 15W", Some(DayOfWeek), 9, "`15W` is no value"),
        ("* * * * ５", Some(DayOfWeek), 9, "`５` is no value"),
        ("é,x * * * *", Some(Minute), 1, "`é` is no value"),
        ("1,é2 * * * *", Some(Minute), 3, "`é2` is no value"),
    ] {
        let bad = Cron::parse(text).expect_err(text);
        assert_eq!((bad.field, bad.column), (field, column), "{text}: {bad}");
        assert!(bad.reason.contains(reason), "{text}: {bad}");
    }
    let long = format!("{} * * * *", "1,".repeat(200));
    assert!(Cron::parse(&long).unwrap_err().reason.contains("longer than 256 bytes"));
    let bad = Cron::parse("0 70 * * *").unwrap_err().to_string();
    assert_eq!(bad, "field hour, column 3: 70 is not between 0 and 23");
}

#[test]
fn what_never_fires_is_refused_as_such() {
    for never in [
        "0 0 31 2 *",
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 30W 2 *",
        "0 0 L-29 2 *",
        "0 0 LW * */6",
        "0 0 0 31 FEB ?",
    ] {
        let bad = Cron::parse(never).expect_err(never);
        assert!(bad.reason.starts_with("it never fires"), "{never}: {bad}");
    }
    for rare in
        ["0 0 29 2 *", "0 0 29 2 */7", "0 0 * 2 5#5", "0 0 L-28 2 *", "0 0 31 2 1", "0 0 29W 2 *"]
    {
        read(rare);
    }
}

#[test]
fn every_date_of_the_year_fires_unless_it_does_not_exist() {
    for month in 1..=12u8 {
        for day in 1..=31u8 {
            let exists =
                day <= if month == 2 { 29 } else { super::super::month_length(2001, month) };
            let pattern = format!("0 0 {day} {month} *");
            assert_eq!(Cron::parse(&pattern).is_ok(), exists, "{pattern}");
        }
    }
    assert_eq!(bits(0b1010).collect::<Vec<_>>(), [1, 3]);
}

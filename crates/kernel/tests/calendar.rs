//! The calendar by hand: what fires when clocks are changed, as a table that a person can check,
//! and what holds for every rhythm.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/patterns.rs"]
mod patterns;

use mainspring_kernel::Timestamp;
use mainspring_kernel::calendar::{
    Cron, Date, Exclusions, Fold, Gap, Language, Remark, Rhythm, Zone,
};
use patterns::{Chance, Shape, pattern};
use proptest::prelude::*;
use std::collections::HashMap;

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
}

fn cron(text: &str, zone: &str, gap: Gap, fold: Fold) -> Rhythm {
    let cron = Cron::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
    Rhythm::Cron { cron, zone: Zone::parse(zone).unwrap(), gap, fold }
}

/// What the clocks of `zone` show at the firings after `from`, as many as are expected.
#[track_caller]
fn check(rhythm: &Rhythm, zone: &str, from: &str, expected: &[&str]) {
    let zone = Zone::parse(zone).unwrap();
    let mut after = at(from);
    for expected in expected {
        let next = rhythm.next_after(after).expect("it goes on");
        assert_eq!(zone.local_text(next).unwrap(), *expected, "{rhythm:?}");
        after = next;
    }
}

#[test]
fn a_fixed_time_in_a_gap_fires_at_its_end_or_not_at_all() {
    let (york, eve) = ("America/New_York", "2026-03-07T12:00:00Z");
    let shift = |text: &str| cron(text, york, Gap::Shift, Fold::Once);
    let skip = |text: &str| cron(text, york, Gap::Skip, Fold::Once);
    check(
        &shift("30 2 * * *"),
        york,
        eve,
        &["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
    );
    check(&skip("30 2 * * *"), york, eve, &["2026-03-09T02:30:00-04:00"]);
    // What was jumped over fires once, together with what the clocks then show.
    check(
        &shift("*/20 2-3 * * *"),
        york,
        eve,
        &["2026-03-08T03:00:00-04:00", "2026-03-08T03:20:00-04:00", "2026-03-08T03:40:00-04:00"],
    );
    check(
        &skip("*/20 2-3 * * *"),
        york,
        eve,
        &["2026-03-08T03:00:00-04:00", "2026-03-08T03:20:00-04:00"],
    );
    check(
        &shift("0 */2 * * *"),
        york,
        "2026-03-08T06:00:00Z",
        &["2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"],
    );
}

#[test]
fn a_fixed_time_in_a_fold_fires_once_or_twice() {
    let (berlin, eve) = ("Europe/Berlin", "2026-10-24T12:00:00Z");
    let once = |text: &str| cron(text, berlin, Gap::Shift, Fold::Once);
    let twice = |text: &str| cron(text, berlin, Gap::Shift, Fold::Twice);
    check(
        &once("30 2 * * *"),
        berlin,
        eve,
        &["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
    );
    check(
        &twice("30 2 * * *"),
        berlin,
        eve,
        &["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"],
    );
    // Fixed times, though they come every half an hour: the hour field does not have all hours.
    check(
        &once("*/30 1-2 * * *"),
        berlin,
        "2026-10-24T23:30:00Z",
        &["2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T01:00:00+01:00"],
    );
    // Asked in the second pass, what was shown in the first does not come again.
    check(&once("* 2 * * *"), berlin, "2026-10-25T01:10:00Z", &["2026-10-26T02:00:00+01:00"]);
}

#[test]
fn hourly_patterns_run_in_real_time_whatever_the_policy() {
    for (gap, fold) in [(Gap::Shift, Fold::Once), (Gap::Skip, Fold::Twice), (Gap::Skip, Fold::Once)]
    {
        for pattern in ["*/15 * * * *", "*/15 */1 * * *", "*/15 0-23 * * *", "0 */15 * * * *"] {
            let rhythm = cron(pattern, "Europe/Berlin", gap, fold);
            for eve in ["2026-03-28T22:00:00Z", "2026-10-24T22:00:00Z"] {
                let mut last = at(eve);
                for _ in 0..24 {
                    let next = rhythm.next_after(last).unwrap();
                    assert_eq!(next.0 - last.0, 900_000_000, "{pattern}");
                    last = next;
                }
            }
        }
        let hourly = cron("30 * * * *", "Europe/Berlin", gap, fold);
        check(
            &hourly,
            "Europe/Berlin",
            "2026-10-24T23:45:00Z",
            &[
                "2026-10-25T02:30:00+02:00",
                "2026-10-25T02:30:00+01:00",
                "2026-10-25T03:30:00+01:00",
            ],
        );
        check(
            &hourly,
            "Europe/Berlin",
            "2026-03-29T00:00:00Z",
            &["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"],
        );
    }
}

#[test]
fn peculiar_changes_of_clocks() {
    let fixed = |text: &str, zone: &str| cron(text, zone, Gap::Shift, Fold::Once);
    // Midnight does not exist.
    let santiago = "America/Santiago";
    check(
        &fixed("0 0 * * *", santiago),
        santiago,
        "2026-09-05T12:00:00Z",
        &["2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"],
    );
    // Half an hour.
    let howe = "Australia/Lord_Howe";
    check(
        &fixed("15 2 * * *", howe),
        howe,
        "2026-10-03T12:00:00Z",
        &["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"],
    );
    check(
        &fixed("45 1 * * *", howe),
        howe,
        "2026-04-04T12:00:00Z",
        &["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
    );
    // A whole date.
    let apia = "Pacific/Apia";
    check(
        &fixed("0 12 30 12 *", apia),
        apia,
        "2011-01-01T00:00:00Z",
        &["2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"],
    );
    check(
        &cron("0 12 30 12 *", apia, Gap::Skip, Fold::Once),
        apia,
        "2011-01-01T00:00:00Z",
        &["2012-12-30T12:00:00+14:00"],
    );
    // Two hours.
    let troll = "Antarctica/Troll";
    check(
        &fixed("30 1 * * *", troll),
        troll,
        "2026-03-28T12:00:00Z",
        &["2026-03-29T03:00:00+02:00", "2026-03-30T01:30:00+02:00"],
    );
}

#[test]
fn rare_days() {
    let utc = |text: &str, from: &str, expected: &[&str]| {
        check(&cron(text, "UTC", Gap::Shift, Fold::Once), "UTC", from, expected);
    };
    utc("0 0 29 2 *", "2096-02-29T00:00:00Z", &["2104-02-29T00:00:00+00:00"]);
    utc(
        "0 0 29 2 */7",
        "2060-03-01T00:00:00Z",
        &["2088-02-29T00:00:00+00:00", "2128-02-29T00:00:00+00:00"],
    );
    utc(
        "0 0 L * *",
        "2026-01-31T12:00:00Z",
        &["2026-02-28T00:00:00+00:00", "2026-03-31T00:00:00+00:00", "2026-04-30T00:00:00+00:00"],
    );
    utc("0 0 L-30 * *", "2026-01-15T00:00:00Z", &["2026-03-01T00:00:00+00:00"]);
    utc(
        "0 0 LW * *",
        "2026-01-01T00:00:00Z",
        &["2026-01-30T00:00:00+00:00", "2026-02-27T00:00:00+00:00"],
    );
    // 1 August 2026 is a Saturday, 15 August too, 31 May a Sunday.
    utc("0 0 1W * *", "2026-07-15T00:00:00Z", &["2026-08-03T00:00:00+00:00"]);
    utc("0 0 15W * *", "2026-08-01T00:00:00Z", &["2026-08-14T00:00:00+00:00"]);
    utc("0 0 31W * *", "2026-05-01T00:00:00Z", &["2026-05-29T00:00:00+00:00"]);
    utc("0 0 31W * *", "2026-06-01T00:00:00Z", &["2026-07-31T00:00:00+00:00"]);
    utc("0 0 * * 5#5", "2026-02-01T00:00:00Z", &["2026-05-29T00:00:00+00:00"]);
    utc("0 0 * * FRIL", "2026-02-01T00:00:00Z", &["2026-02-27T00:00:00+00:00"]);
    // Friday the 13th, and every 13th and every Friday.
    utc(
        "0 0 13 * 5",
        "2026-11-10T00:00:00Z",
        &["2026-11-13T00:00:00+00:00", "2026-11-20T00:00:00+00:00"],
    );
}

#[test]
fn the_calendar_has_ends() {
    let secondly = cron("* * * * * *", "Pacific/Kiritimati", Gap::Shift, Fold::Once);
    let last = Timestamp(253_402_207_200_000_000);
    assert_eq!(secondly.next_after(Timestamp(last.0 - 1)), Some(last));
    assert_eq!(secondly.next_after(last), None);
    assert_eq!(secondly.next_after(Timestamp::MAX), None);
    let first = secondly.next_after(Timestamp(i64::MIN)).unwrap();
    assert_eq!(first, at("0001-01-01T00:00:00Z"));
    let silvester = cron("59 23 31 12 *", "Etc/GMT+12", Gap::Shift, Fold::Once);
    assert_eq!(silvester.next_after(at("9999-12-01T00:00:00Z")), None);
}

/// The second Sunday of March at half past two never comes in New York when gaps are skipped. That
/// is found out, not searched for for ever: a thousand times within the patience of a test.
#[test]
fn what_is_always_jumped_over_is_given_up() {
    let never = cron("30 2 8-14 3 */7", "America/New_York", Gap::Skip, Fold::Once);
    for year in 0..1_000 {
        let after = Timestamp(at("2026-01-01T00:00:00Z").0 + year * 86_400_000_000);
        assert_eq!(never.next_after(after), None);
    }
    let always = cron("30 2 8-14 3 */7", "America/New_York", Gap::Shift, Fold::Once);
    check(&always, "America/New_York", "2026-01-01T00:00:00Z", &["2026-03-08T03:00:00-04:00"]);
}

#[test]
fn firings_near_a_change_are_remarked() {
    let berlin = |text: &str| cron(text, "Europe/Berlin", Gap::Shift, Fold::Twice);
    for (pattern, instant, expected) in [
        ("30 2 * * *", "2026-03-29T01:00:00Z", Some(Remark::Shifted)),
        ("30 2 * * *", "2026-03-28T01:30:00Z", None),
        ("30 2 * * *", "2026-10-25T00:30:00Z", Some(Remark::FirstPass)),
        ("30 2 * * *", "2026-10-25T01:30:00Z", Some(Remark::SecondPass)),
        ("30 3 * * *", "2026-10-25T02:30:00Z", None),
        ("59 1 * * *", "2026-10-24T23:59:00Z", None),
        ("0 3 * * *", "2026-03-29T01:00:00Z", None),
    ] {
        let remark = berlin(pattern).remark(at(instant));
        assert_eq!(remark, expected, "{pattern} at {instant}");
    }
    assert_eq!(Rhythm::At(at("2026-10-25T00:30:00Z")).remark(at("2026-10-25T00:30:00Z")), None);
}

#[test]
fn excluded_dates_are_passed_over_through_changes_of_clocks() {
    let sao = "America/Sao_Paulo";
    let zone = Zone::parse(sao).unwrap();
    let day = Date::parse("2018-02-17").unwrap();
    let only = Exclusions::new(vec![(day, day)]).unwrap();
    // Midnight of that day was put back to 23:00 of the same day.
    let minutely = cron("* * * * *", sao, Gap::Shift, Fold::Once);
    let next = minutely.next_outside(at("2018-02-17T02:00:00Z"), &only, &zone).unwrap();
    assert_eq!(zone.local_text(next).unwrap(), "2018-02-18T00:00:00-03:00");
    let before = minutely.next_outside(at("2018-02-17T01:58:00Z"), &only, &zone).unwrap();
    assert_eq!(zone.local_text(before).unwrap(), "2018-02-16T23:59:00-02:00");
}

/// Equal words mean equal meaning: of many patterns, no two that match at different times are told
/// with the same words, in either language.
#[test]
fn different_patterns_have_different_descriptions() {
    let mut chance = Chance(7);
    for language in [Language::English, Language::Chinese] {
        let mut told: HashMap<String, (String, Vec<i64>)> = HashMap::new();
        let (mut kept, mut same) = (0, 0);
        while kept < 6_000 {
            let shape = *chance.one_of(&[Shape::Daily, Shape::Seconds, Shape::Rare]);
            let text = if chance.below(2) == 0 {
                pattern(&mut chance, shape).text
            } else {
                small(&mut chance)
            };
            let Ok(_) = Cron::parse(&text) else { continue };
            let rhythm = cron(&text, "UTC", Gap::Shift, Fold::Once);
            kept += 1;
            let mut after = at("2024-01-01T00:00:00Z");
            let firings = std::iter::from_fn(|| {
                after = rhythm.next_after(after)?;
                // The next day, so that days show and not only minutes.
                let found = after.0;
                after = Timestamp(after.0 + chance_step(found));
                Some(found)
            });
            let firings: Vec<i64> = firings.take(60).collect();
            let words = rhythm.describe(language);
            match told.get(&words) {
                Some((other, known)) => {
                    assert_eq!(*known, firings, "`{other}` and `{text}` are both: {words}");
                    same += usize::from(*other != text);
                }
                None => {
                    told.insert(words, (text, firings));
                }
            }
        }
        println!("{} descriptions of {kept} patterns, {same} told by several", told.len());
    }
}

/// From a firing to where the next is looked for: some seconds, some hours, some days.
fn chance_step(found: i64) -> i64 {
    [0, 7_000_000, 3_601_000_000, 90_000_000_000][(found / 1_000_000 % 4) as usize]
}

/// Patterns of few words, of which many are alike.
fn small(chance: &mut Chance) -> String {
    let minute = *chance.one_of(&["0", "5", "*", "*/30", "0,30", "1-3", "0-1"]);
    let hour = *chance.one_of(&["0", "*", "1-3", "0-23", "*/12"]);
    let day = *chance.one_of(&["*", "?", "1", "1-31", "*/2", "L", "LW", "1W", "1,L", "L-1"]);
    let month = *chance.one_of(&["*", "1", "1-12", "2,3"]);
    let week = *chance.one_of(&["*", "1", "0-6", "*/2", "1#1", "1L", "5,6,0", "1,1#2"]);
    format!("{minute} {hour} {day} {month} {week}")
}

fn zones() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "UTC",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Africa/Casablanca",
        "Asia/Tehran",
        "America/Santiago",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Strictly after; nothing between; the next of an instant in between is the same next.
    #[test]
    fn next_is_the_next(seed: u64, zone in zones(), second in -10_000_000_000i64..20_000_000_000,
                        micro in 0i64..1_000_000, skip: bool, twice: bool) {
        let shape = [Shape::Daily, Shape::Seconds, Shape::Rare][(seed % 3) as usize];
        let text = pattern(&mut Chance(seed), shape).text;
        let Ok(cron) = Cron::parse(&text) else { return Ok(()) };
        let gap = if skip { Gap::Skip } else { Gap::Shift };
        let fold = if twice { Fold::Twice } else { Fold::Once };
        let rhythm = Rhythm::Cron { cron, zone: Zone::parse(zone).unwrap(), gap, fold };
        let mut after = Timestamp(second * 1_000_000 + micro);
        for round in 0..20u64 {
            let Some(next) = rhythm.next_after(after) else { break };
            prop_assert!(next > after && next.0 % 1_000_000 == 0);
            let between = after.0 + ((next.0 - after.0 - 1) as u64 / (round + 1)) as i64;
            prop_assert_eq!(rhythm.next_after(Timestamp(between)), Some(next));
            prop_assert_eq!(rhythm.next_after(Timestamp(next.0 - 1)), Some(next));
            after = next;
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9*/,#?LWlw \t@a-zé-]{0,40}") {
        if let Err(bad) = Cron::parse(&text) {
            prop_assert!(bad.column >= 1 && bad.column <= text.chars().count().max(1) + 1);
            prop_assert!(!bad.to_string().is_empty());
        }
    }

    #[test]
    fn any_characters_are_read_or_refused(text: String, name: String) {
        let _ = Cron::parse(&text);
        let _ = Zone::parse(&name);
        let _ = Date::parse(&text);
    }

    #[test]
    fn intervals_are_the_grid(
        every in 1u64..1_000_000,
        phase: u64,
        after in -(1i64 << 52)..1 << 52,
    ) {
        let rhythm = Rhythm::Interval { every_secs: every, phase_secs: phase };
        let next = rhythm.next_after(Timestamp(after)).unwrap();
        let (second, every) = (next.0 / 1_000_000, every as i64);
        prop_assert!(next.0 > after && next.0 - after <= every * 1_000_000);
        prop_assert_eq!((second as i128 - phase as i128).rem_euclid(every as i128), 0);
    }
}

//! Firings on time, late, missed, left out; and the ends of schedules.

use crate::clockwork::{Clockwork, ID, START, every, s};
use mainspring_kernel::calendar::{Cron, Date, Exclusions, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::entity::schedule::{Misfire, ScheduleCommand, ScheduleSpec};
use mainspring_kernel::{Backlog, Command, Rejection, Timestamp, firing};

type Line = (i64, i64, u64, &'static str, String);

fn line(at: i64, until: i64, count: u64, kind: &'static str, reason: &str) -> Line {
    (at, until, count, kind, reason.to_owned())
}

#[test]
fn every_instant_on_time_has_one_job_and_the_alarm_moves_on() {
    let mut it = Clockwork::of(every(60));
    assert_eq!(it.schedule().next_fire_at(), Some(s(60)));
    it.live_until(s(305));
    assert_eq!(it.fired(), [60, 120, 180, 240, 300]);
    assert_eq!((it.schedule().runs, it.schedule().skipped), (5, 0));
    assert_eq!(it.schedule().last_fire_at, Some(s(300)));
    assert_eq!(it.schedule().next_at, Some(s(360)));
    assert_eq!(it.history()[4], line(300, 300, 1, "fired", ""));
    let job = it.latest().clone();
    assert_eq!(job.run_at, s(300));
    let label = job.extras.as_ref().unwrap().labels.last().unwrap().clone();
    assert_eq!((&*label.0, &*label.1), ("schedule_id", &*ID.to_string()));
    let origin = firing::origin(&job).unwrap();
    assert_eq!((origin.entity, origin.at, origin.is_watched), (ID, s(300), false));
}

#[test]
fn ringing_twice_or_too_early_does_nothing() {
    let mut it = Clockwork::of(every(60));
    let ring = |at| Command::Ring { entity: ID, at, jobs: vec![] };
    assert_eq!(it.run(&ring(s(60))), Err(Rejection::NotDue), "it is not time");
    it.now = s(60);
    assert!(it.run(&ring(s(60))).is_ok());
    assert_eq!(it.run(&ring(s(60))), Err(Rejection::NotDue), "another server was faster");
    assert_eq!(it.fired(), [60]);
}

/// A server comes back at second 605 to a schedule of every minute that fired at 60.
#[test]
fn what_was_missed_goes_by_the_policy() {
    let cases: [(Misfire, u32, &[i64], &[Line]); 4] = [
        (
            Misfire::Coalesce,
            100,
            &[60, 600],
            &[line(120, 540, 8, "coalesced", "misfire"), line(600, 600, 1, "late", "")],
        ),
        (Misfire::Skip, 100, &[60], &[line(120, 600, 9, "skipped", "misfire")]),
        (
            Misfire::All,
            100,
            &[60, 120, 180, 240, 300, 360, 420, 480, 540, 600],
            &[line(600, 600, 1, "late", "")],
        ),
        (
            Misfire::All,
            3,
            &[60, 480, 540, 600],
            &[
                line(120, 420, 6, "skipped", "misfire_limit"),
                line(480, 480, 1, "late", ""),
                line(540, 540, 1, "late", ""),
                line(600, 600, 1, "late", ""),
            ],
        ),
    ];
    for (misfire, misfire_limit, fired, lines) in cases {
        let mut it = Clockwork::of(ScheduleSpec { misfire, misfire_limit, ..every(60) });
        it.live_until(s(61));
        it.wake_at(s(605));
        assert_eq!(it.fired(), fired, "{misfire:?}");
        let history = it.history();
        assert_eq!(history[history.len() - lines.len()..], *lines, "{misfire:?}");
        let recorded: u64 = history.iter().map(|line| line.2).sum();
        assert_eq!(recorded, 10, "each firing is told of once: {history:?}");
        let schedule = it.schedule();
        assert_eq!(u64::from(schedule.runs) + schedule.skipped, 10);
        assert_eq!(schedule.next_at, Some(s(660)));
    }
}

#[test]
fn a_little_late_is_not_missed() {
    for misfire in Misfire::ALL {
        let mut it = Clockwork::of(ScheduleSpec { misfire, ..every(60) });
        it.wake_at(Timestamp(s(60).0 + 1_000_000));
        assert_eq!(it.fired(), [60], "{misfire:?}");
        assert_eq!(it.history(), [line(60, 60, 1, "fired", "")]);
    }
    let mut it = Clockwork::of(every(60));
    it.wake_at(s(63));
    assert_eq!(it.history(), [line(60, 60, 1, "late", "")]);
    assert_eq!(it.schedule().history[0].late_ms, 3_000);
}

#[test]
fn coalescing_keeps_its_place_while_more_is_due() {
    // A server so slow that each turn takes longer than the interval.
    let mut it = Clockwork::of(every(1));
    for second in 0..20 {
        it.now = s(10 + 5 * second);
        it.ring();
    }
    assert!(it.fired().len() >= 9, "it fires all the same: {:?}", it.fired());
}

#[test]
fn a_long_absence_takes_several_turns_and_forgets_nothing() {
    let mut it = Clockwork::of(every(1));
    it.wake_at(s(10_000));
    assert_eq!(it.fired(), [10_000]);
    assert_eq!((it.schedule().runs, it.schedule().skipped), (1, 9_999));
    assert_eq!(it.history().len(), 2, "neighbours share an entry: {:?}", it.history());
    assert!(it.rings > 6 && it.rings < 12, "{} turns", it.rings);
}

#[test]
fn a_year_every_second_is_bounded_in_every_turn() {
    let mut it = Clockwork::of(ScheduleSpec { misfire: Misfire::All, ..every(1) });
    it.now = s(366 * 86_400);
    for _ in 0..50 {
        assert!(it.ring());
    }
    assert!(it.schedule().skipped > 50_000);
    assert_eq!(it.fired(), [] as [i64; 0], "the latest hundred only");
}

#[test]
fn days_that_are_left_out_are_recorded_and_not_made_up_for() {
    let day = |text| Date::parse(text).unwrap();
    let exclude = Exclusions::new(vec![(day("2026-01-06"), day("2026-01-07"))]).unwrap();
    let spec = ScheduleSpec { exclude, ..every(43_200) };
    let mut it = Clockwork::of(spec.clone());
    assert_eq!(it.schedule().next_fire_at(), Some(s(43_200)));
    it.live_until(s(43_200));
    assert_eq!(it.schedule().next_at, Some(s(86_400)), "its alarm is set for what it tells of");
    assert_eq!(it.schedule().next_fire_at(), Some(s(3 * 86_400)));
    it.live_until(s(4 * 86_400 - 1));
    assert_eq!(it.fired(), [43_200, 259_200, 302_400]);
    assert_eq!(it.history()[1], line(86_400, 216_000, 4, "skipped", "excluded"));
    assert_eq!(it.schedule().skipped, 4);
    // Missed together with others: the latest that is not left out makes up for them.
    let mut it = Clockwork::of(spec);
    it.wake_at(s(2 * 86_400));
    assert_eq!(it.fired(), [43_200]);
    let kinds: Vec<_> = it.history().into_iter().map(|line| (line.0, line.3, line.4)).collect();
    assert_eq!(kinds[0], (43_200, "late", String::new()));
    assert_eq!(kinds[1], (86_400, "skipped", "excluded".to_owned()));
}

#[test]
fn it_ends_by_count_by_date_and_by_nature() {
    let mut it = Clockwork::of(ScheduleSpec { max_runs: Some(3), ..every(60) });
    it.live_until(s(1_000));
    assert_eq!((it.fired().len(), it.schedule().state()), (3, "ended"));
    assert_eq!(it.schedule().next_fire_at(), None);
    let mut it = Clockwork::of(ScheduleSpec { end_at: Some(s(180)), ..every(60) });
    it.live_until(s(1_000));
    assert_eq!((it.fired(), it.schedule().state()), (vec![60, 120, 180], "ended"));
    let mut it = Clockwork::of(ScheduleSpec { start_at: Some(s(120)), ..every(60) });
    it.live_until(s(190));
    assert_eq!(it.fired(), [120, 180], "start_at is the first");
    let mut it = Clockwork::of(ScheduleSpec { rhythm: Rhythm::At(s(7)), ..every(60) });
    it.live_until(s(1_000));
    assert_eq!((it.fired(), it.schedule().state()), (vec![7], "ended"));
    // One that was missed is made up for, and then it has ended.
    let mut it = Clockwork::of(ScheduleSpec { rhythm: Rhythm::At(s(7)), ..every(60) });
    it.wake_at(s(9_000));
    assert_eq!((it.fired(), it.schedule().state()), (vec![7], "ended"));
    let skip = ScheduleSpec { misfire: Misfire::Skip, rhythm: Rhythm::At(s(7)), ..every(60) };
    let mut it = Clockwork::of(skip);
    it.wake_at(s(9_000));
    assert_eq!((it.fired(), it.schedule().state()), (vec![], "ended"));
}

#[test]
fn max_runs_holds_while_catching_up() {
    let spec = ScheduleSpec { misfire: Misfire::All, max_runs: Some(2), ..every(60) };
    let mut it = Clockwork::of(spec);
    it.wake_at(s(900));
    assert_eq!(it.fired(), [60, 120]);
    assert_eq!(it.schedule().state(), "ended");
}

#[test]
fn jitter_moves_the_start_and_never_the_firing() {
    let spec = ScheduleSpec { jitter_secs: 30, ..every(60) };
    let mut it = Clockwork::of(spec.clone());
    it.live_until(s(60 * 200));
    assert_eq!(it.fired(), (1..=200).map(|turn| turn * 60).collect::<Vec<_>>());
    let delays = |it: &Clockwork| -> Vec<i64> {
        it.jobs.values().map(|job| job.run_at.0 - firing::origin(job).unwrap().at.0).collect()
    };
    let all = delays(&it);
    assert!(all.iter().all(|delay| (0..=30_000_000).contains(delay)), "{all:?}");
    let late = all.iter().filter(|delay| **delay > 15_000_000).count();
    assert!((60..140).contains(&late), "{late} of 200 in the later half");
    let mut again = Clockwork::of(spec);
    again.live_until(s(60 * 200));
    assert_eq!(delays(&again), all, "the same for ever");
}

#[test]
fn a_job_that_is_refused_is_recorded_and_the_rhythm_goes_on() {
    let mut it = Clockwork::of(every(60));
    let open = it.backlog;
    it.backlog = Backlog { tenant: 10, tenant_max: 5, ..Backlog::UNBOUNDED };
    it.live_until(s(125));
    assert_eq!(it.fired(), [] as [i64; 0]);
    assert_eq!(it.history(), [line(60, 120, 2, "skipped", "refused: TENANT_BACKLOG_FULL")]);
    it.backlog = open;
    it.live_until(s(185));
    assert_eq!(it.fired(), [180]);
    assert_eq!(it.schedule().skipped, 2);
}

#[test]
fn clocks_that_are_changed_fire_as_the_calendar_says() {
    // New York: 2026-03-08 02:00 -> 03:00, 2026-11-01 02:00 -> 01:00.
    let spec = |text: &str, gap, fold| {
        let zone = Zone::parse("America/New_York").unwrap();
        let cron = Cron::parse(text).unwrap();
        let rhythm = Rhythm::Cron { cron, zone: zone.clone(), gap, fold };
        ScheduleSpec { rhythm, zone, ..every(60) }
    };
    let hours = |it: &Clockwork| -> Vec<i64> { it.fired().iter().map(|at| at / 3_600).collect() };
    let day = |month_day: i64| s(month_day * 86_400);
    // 2026-03-07 is 61 days after the start; 02:30 in New York is 07:30 UTC, then 06:30.
    for (gap, expected) in [(Gap::Shift, 3), (Gap::Skip, 2)] {
        let mut it = Clockwork::empty();
        it.now = day(61);
        it.create(spec("30 2 * * *", gap, Fold::Once)).unwrap();
        it.live_until(day(64));
        assert_eq!(it.fired().len(), expected, "{gap:?}: {:?}", hours(&it));
    }
    for (fold, expected) in [(Fold::Once, 3), (Fold::Twice, 4)] {
        let mut it = Clockwork::empty();
        // 2026-10-31 is 299 days after the start.
        it.now = day(299);
        it.create(spec("30 1 * * *", Gap::Shift, fold)).unwrap();
        it.live_until(day(302));
        assert_eq!(it.fired().len(), expected, "{fold:?}: {:?}", hours(&it));
        let distinct: std::collections::BTreeSet<_> = it.fired().into_iter().collect();
        assert_eq!(distinct.len(), expected, "each firing has its own instant");
    }
}

#[test]
fn the_history_is_bounded_and_keeps_the_latest() {
    let mut it = Clockwork::of(every(60));
    it.live_until(s(60 * 350));
    let history = it.history();
    assert_eq!(history.len(), 100);
    assert_eq!((history[0].0, history[99].0), (60 * 251, 60 * 350));
    assert_eq!(it.schedule().runs, 350);
}

#[test]
fn the_start_is_what_the_tests_say_it_is() {
    assert_eq!(START.0 % 86_400_000_000, 0);
    assert_eq!(Zone::UTC.date(START), Date::parse("2026-01-05"));
}

#[test]
fn one_that_has_ended_goes_after_a_while_unless_it_is_made_to_fire_again() {
    let day = 24 * 3_600;
    let once = || ScheduleSpec { rhythm: Rhythm::At(s(7)), ..every(60) };
    let mut it = Clockwork::of(once());
    it.live_until(s(7 + 30 * day - 1));
    assert_eq!(it.schedule().state(), "ended");
    it.live_until(s(7 + 30 * day));
    assert!(it.entity.is_none(), "it is kept for thirty days");
    assert_eq!(it.fired(), [7]);
    let mut it = Clockwork::of(once());
    it.live_until(s(9));
    let spec = Box::new(ScheduleSpec { rhythm: Rhythm::At(s(60 * day)), ..every(60) });
    it.ask(ScheduleCommand::Update { id: ID, spec }).unwrap();
    it.live_until(s(50 * day));
    assert_eq!(it.schedule().state(), "active", "it is not over");
    it.live_until(s(61 * day));
    assert_eq!((it.fired(), it.schedule().state()), (vec![7, 60 * day], "ended"));
}

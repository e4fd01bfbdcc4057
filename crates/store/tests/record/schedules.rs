//! Schedules as they are kept, for the golden bytes.

use super::samples::{NOW, hash, id, later, user};
use mainspring_kernel::calendar::{Cron, Date, Exclusions, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::entity::schedule::{
    Account, Misfire, Outcome, OutcomeKind, Overlap, Pause, Schedule, ScheduleSpec, Status,
    TaskPlan, Template, Waiting,
};
use mainspring_kernel::{JobType, QueueName, Timestamp};
use std::sync::Arc;

pub(crate) fn plain_schedule() -> Schedule {
    let rhythm = Rhythm::Interval { every_secs: 60, phase_secs: 5 };
    Schedule {
        spec: ScheduleSpec::plain(JobType::stored("mill".into()), rhythm),
        namespace: "user:ada".into(),
        template: None,
        task: None,
        status: Status::Active,
        next_at: Some(later(60)),
        catch_up_at: None,
        waiting: None,
        outstanding: Vec::new(),
        last_fire_at: None,
        runs: 0,
        by_hand: 0,
        skipped: 0,
        failures_in_a_row: 0,
        history: Vec::new(),
        fired: Account::default(),
        gone_at: None,
    }
}

/// One that has everything, made of whatever there is.
pub(crate) fn full_schedule(name: Arc<str>, small: u32, at: Option<Timestamp>) -> Schedule {
    let date = |text| Date::parse(text).expect("a date");
    let days =
        vec![(date("2026-12-24"), date("2026-12-26")), (date("0001-01-01"), date("9999-12-31"))];
    let instant = at.unwrap_or(NOW);
    let outcome = |kind, reason: Option<&str>, job| Outcome {
        at: instant,
        until: later(90),
        count: u64::from(small),
        kind,
        reason: reason.map(Into::into),
        job,
        late_ms: 12,
    };
    let pause = Pause { by: Some(user("ada")), at: instant, note: Some("for the night".into()) };
    Schedule {
        spec: ScheduleSpec {
            name: Some(name.as_ref().into()),
            payload: "{\"a\":1}".into(),
            rhythm: Rhythm::At(instant),
            misfire: Misfire::All,
            misfire_limit: small,
            overlap: Overlap::QueueOne,
            jitter_secs: small,
            start_at: at,
            end_at: at,
            max_runs: Some(small),
            exclude: Exclusions::new(days).expect("two ranges"),
            zone: Zone::parse("Europe/Berlin").expect("a zone"),
            pause_after_failures: Some(3),
            queue: Some(QueueName::stored("slow".into())),
            priority: Some(9),
            timeout_ms: Some(5_000),
            max_retries: Some(2),
            labels: vec![("team".into(), "red".into()), ("site".into(), "\u{e9}".into())],
            ..ScheduleSpec::plain(JobType::stored(name), Rhythm::At(instant))
        },
        namespace: "system".into(),
        template: Some(Template { name: "nightly".into(), entry: hash("entry") }),
        task: None,
        status: Status::Paused(Box::new(pause)),
        next_at: at,
        catch_up_at: at,
        waiting: at.map(|at| Waiting { at, look_at: later(99) }),
        outstanding: vec![id(3), id(4)],
        last_fire_at: at,
        runs: small,
        by_hand: 2,
        skipped: u64::from(small) << 9,
        failures_in_a_row: 1,
        history: vec![
            outcome(OutcomeKind::Fired, None, Some(id(3))),
            outcome(OutcomeKind::Late, Some("queued"), Some(id(4))),
            outcome(OutcomeKind::Skipped, Some("overlap"), None),
            outcome(OutcomeKind::Coalesced, Some("misfire"), None),
            outcome(OutcomeKind::Backfilled, None, None),
        ],
        fired: Account::default(),
        gone_at: None,
    }
}

/// One that has fired, with a gap.
pub(crate) fn fired_schedule() -> Schedule {
    let stretches = vec![(later(-120), later(60)), (later(300), later(300))];
    Schedule { fired: Account::stored(stretches).expect("two stretches"), ..plain_schedule() }
}

pub(crate) fn cron_schedule() -> Schedule {
    let plain = plain_schedule();
    let zone = Zone::parse("America/New_York").expect("a zone");
    let rhythm = Rhythm::Cron {
        cron: Cron::parse("30 2 * * 1-5").expect("a pattern"),
        zone: zone.clone(),
        gap: Gap::Skip,
        fold: Fold::Twice,
    };
    let spec = ScheduleSpec {
        rhythm,
        zone,
        misfire: Misfire::Skip,
        overlap: Overlap::CancelRunning,
        ..plain.spec
    };
    Schedule { spec, status: Status::Ended, next_at: None, ..plain }
}

/// One that fires for a plan.
pub(crate) fn plan_schedule() -> Schedule {
    let task_id = "nightly".into();
    Schedule {
        task: Some(TaskPlan {
            job: id(1),
            task_id,
            window_secs: Some(777_600),
            gone_at: Some(later(70)),
        }),
        ..cron_schedule()
    }
}

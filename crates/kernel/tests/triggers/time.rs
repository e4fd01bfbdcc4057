//! Recurring and scheduled triggers; runs that do not end; what is refused.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use crate::sentry::{Sentry, changed, files, ms, on, plain};
use mainspring_kernel::entity::trigger::{LastStatus, Outcome, TriggerSpec, TriggerType};
use mainspring_kernel::limits::TRIGGER_LOG_MAX;
use mainspring_kernel::{Backlog, Rejection};

#[test]
fn a_recurring_one_fires_once_however_late_and_goes_on_from_then() {
    let mut sentry = Sentry::of(plain(TriggerType::Recurring), Vec::new());
    assert_eq!(sentry.trigger().next_run_at, Some(ms(60_000)));
    sentry.wake_at(ms(59_999));
    assert_eq!(sentry.runs(), 0);
    sentry.wake_at(ms(200_000));
    assert_eq!(sentry.runs(), 1);
    assert_eq!(sentry.trigger().last_triggered_at, Some(ms(200_000)));
    assert_eq!(sentry.trigger().next_run_at, Some(ms(260_000)));
    sentry.finish();
    assert_eq!(sentry.trigger().last_status, Some(LastStatus::Ok));
    sentry.wake_at(ms(260_000));
    assert_eq!(sentry.runs(), 2);
}

#[test]
fn a_run_that_has_not_ended_holds_the_next_one_up() {
    let mut sentry = Sentry::of(plain(TriggerType::Recurring), Vec::new());
    sentry.wake_at(ms(60_000));
    sentry.live_until(ms(400_000));
    assert_eq!(sentry.runs(), 1);
    sentry.end(false);
    // Nobody told it: it looks for itself, and fires at once, once.
    sentry.live_until(ms(800_000));
    assert_eq!(sentry.runs(), 2);
    assert_eq!(sentry.trigger().last_status, Some(LastStatus::Error));
    assert_eq!(sentry.trigger().last_error.as_deref(), Some("no paper"));
}

#[test]
fn a_run_that_is_stuck_is_given_up_after_two_hours() {
    let mut sentry = Sentry::of(on(changed("a")), vec![files(0, None)]);
    sentry.now = ms(1_000);
    sentry.see(vec![files(0, Some(ms(0)))]).unwrap();
    sentry.wake_at(ms(1_000));
    let writes = sentry.writes;
    sentry.live_until(ms(7_200_999));
    assert_eq!(sentry.trigger().running_at(), Some(ms(1_000)));
    assert!(sentry.writes - writes < 12, "it is not looked at all the time");
    sentry.live_until(ms(7_201_000));
    assert_eq!(sentry.trigger().running_at(), None);
    assert_eq!(sentry.trigger().last_status, Some(LastStatus::Error));
    assert_eq!(sentry.trigger().last_error.as_deref(), Some("stuck"));
    assert!(sentry.trigger().log.iter().any(|line| line.outcome == Outcome::Stuck));
    // Its end does not matter any more.
    sentry.end(true);
    assert_eq!(sentry.tell(), Err(Rejection::NotDue));
}

#[test]
fn a_scheduled_one_is_gone_when_it_has_fired() {
    let mut sentry = Sentry::of(plain(TriggerType::Scheduled), Vec::new());
    sentry.wake_at(ms(29_999));
    assert_eq!(sentry.runs(), 0);
    sentry.wake_at(ms(90_000));
    assert_eq!((sentry.runs(), sentry.entity.is_none()), (1, true));
}

#[test]
fn what_is_refused_is_tried_again_and_takes_no_edge() {
    let full = Backlog { tenant_max: 1, ..Backlog::UNBOUNDED };
    for spec in [plain(TriggerType::Scheduled), on(changed("a"))] {
        let mut sentry = Sentry::of(spec, vec![files(0, None)]);
        sentry.backlog = full;
        sentry.now = ms(40_000);
        let _ = sentry.see(vec![files(0, Some(ms(0)))]);
        sentry.wake_at(ms(40_000));
        assert_eq!(sentry.runs(), 0);
        assert_eq!(sentry.trigger().last_status, Some(LastStatus::Skipped));
        let said = Some("refused: TENANT_BACKLOG_FULL");
        assert_eq!(sentry.trigger().last_error.as_deref(), said);
        assert_eq!(sentry.trigger().next_run_at, Some(ms(45_000)));
        sentry.backlog = Backlog::UNBOUNDED;
        sentry.wake_at(ms(45_000));
        assert_eq!(sentry.runs(), 1);
    }
}

#[test]
fn the_log_is_bounded_and_tells_of_what_changed() {
    let mut sentry = Sentry::of(on(changed("a")), vec![files(0, None)]);
    for turn in 1..100 {
        sentry.now = ms(turn * 10_000);
        sentry.see(vec![files(0, Some(ms(turn * 10_000 - 1_000)))]).unwrap();
        sentry.wake_at(ms(turn * 10_000));
        sentry.finish();
    }
    assert_eq!(sentry.runs(), 99);
    assert_eq!(sentry.trigger().log.len(), TRIGGER_LOG_MAX);
    assert_eq!(sentry.log()[TRIGGER_LOG_MAX - 3..], ["due", "fired", "not_yet"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let recurring = || plain(TriggerType::Recurring);
    let refused = [
        TriggerSpec { interval_secs: None, ..recurring() },
        TriggerSpec { interval_secs: Some(0), ..recurring() },
        TriggerSpec { interval_secs: Some(u64::MAX), ..recurring() },
        TriggerSpec { run_at: None, ..plain(TriggerType::Scheduled) },
        TriggerSpec { condition: None, ..on(changed("a")) },
        TriggerSpec { cooldown_secs: u64::MAX, ..on(changed("a")) },
        TriggerSpec { name: "".into(), ..recurring() },
        TriggerSpec { name: "a\0".into(), ..recurring() },
        TriggerSpec { name: "x".repeat(161).into(), ..recurring() },
        TriggerSpec { prompt: "".into(), ..recurring() },
        TriggerSpec { prompt: "x".repeat(16_385).into(), ..recurring() },
        TriggerSpec { priority: 11, ..recurring() },
        TriggerSpec { timeout_secs: Some(0), ..recurring() },
        TriggerSpec { trace: Some("".into()), ..recurring() },
        TriggerSpec { parent_task_id: Some("x".repeat(201).into()), ..recurring() },
    ];
    for spec in refused {
        let shown: String = format!("{spec:?}").chars().take(200).collect();
        let mut sentry = Sentry::empty();
        let told = sentry.create(spec, Vec::new(), Default::default());
        assert!(matches!(told, Err(Rejection::FieldInvalid { .. })), "{shown}");
    }
}

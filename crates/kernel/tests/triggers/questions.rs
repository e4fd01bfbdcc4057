//! Questions that a worker answers.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use crate::sentry::{Sentry, asked, changed, exists, files, ms, on};
use mainspring_kernel::entity::trigger::{Condition, LastStatus, TriggerSpec};

#[test]
fn a_yes_fires_and_the_next_question_waits_for_the_cooldown() {
    let spec = TriggerSpec { cooldown_secs: 30, ..on(asked()) };
    let mut sentry = Sentry::of(spec, Vec::new());
    sentry.wake_at(ms(0));
    assert_eq!((sentry.questions(), sentry.runs()), (1, 0));
    let question = sentry.latest();
    assert_eq!(&*question.payload, r#"{"prompt":"is it time?"}"#);
    assert_eq!(question.timeout_ms, 120_000);
    assert_eq!(question.expires_at(), Some(ms(120_000)));
    assert_eq!(sentry.trigger().running_at(), Some(ms(0)));
    sentry.now = ms(1_000);
    sentry.answer(r#"{"resultType":"text","result":"Yes"}"#);
    sentry.tell().unwrap();
    sentry.wake_at(ms(1_000));
    assert_eq!((sentry.questions(), sentry.runs()), (1, 1));
    sentry.finish();
    sentry.wake_at(ms(29_999));
    assert_eq!(sentry.questions(), 1);
    sentry.wake_at(ms(30_000));
    assert_eq!(sentry.questions(), 2);
    assert_eq!(sentry.log(), ["undecided", "asked", "due", "fired", "undecided", "asked"]);
}

#[test]
fn a_no_is_asked_again_and_a_failure_is_told() {
    let mut sentry = Sentry::of(on(asked()), Vec::new());
    sentry.wake_at(ms(0));
    sentry.answer("\"no\"");
    sentry.tell().unwrap();
    sentry.wake_at(ms(4_999));
    assert_eq!((sentry.questions(), sentry.runs()), (1, 0));
    sentry.wake_at(ms(5_000));
    assert_eq!(sentry.questions(), 2);
    sentry.end(false);
    sentry.tell().unwrap();
    assert_eq!(sentry.trigger().last_status, Some(LastStatus::Error));
    assert_eq!(sentry.trigger().last_error.as_deref(), Some("evaluation: no paper"));
    sentry.wake_at(ms(10_000));
    assert_eq!((sentry.questions(), sentry.runs()), (3, 0));
}

#[test]
fn nobody_is_asked_what_is_decided_already() {
    let condition = Condition::And(vec![exists("a"), asked()]);
    let mut sentry = Sentry::of(on(condition), vec![files(0, None)]);
    sentry.wake_at(ms(60_000));
    assert_eq!(sentry.questions(), 0);
    sentry.see(vec![files(0, Some(ms(0)))]).unwrap();
    sentry.wake_at(ms(60_000));
    assert_eq!(sentry.questions(), 1);
    sentry.now = ms(60_001);
    sentry.answer("true");
    sentry.tell().unwrap();
    sentry.wake_at(ms(60_001));
    assert_eq!(sentry.runs(), 1);
}

#[test]
fn an_edge_outlives_a_no() {
    let condition = Condition::And(vec![changed("a"), asked()]);
    let mut sentry = Sentry::of(on(condition), vec![files(0, None)]);
    sentry.now = ms(1_000);
    sentry.see(vec![files(0, Some(ms(0)))]).unwrap();
    sentry.wake_at(ms(1_000));
    sentry.answer("false");
    sentry.tell().unwrap();
    sentry.wake_at(ms(20_000));
    sentry.answer("true");
    sentry.tell().unwrap();
    sentry.wake_at(ms(20_000));
    assert_eq!(sentry.runs(), 1);
}

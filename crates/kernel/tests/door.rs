//! The kernel's door: text that nobody can keep, instants that jump the queue, keys from before,
//! types that a file and a person both change.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::command::{Claim, CommitEffect, Ending, Fail, RunInternally, Submit};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::{Digest, digest};
use mainspring_kernel::idempotency::Keyed;
use mainspring_kernel::retry::{Backoff, delay_ms};
use mainspring_kernel::{
    Command, Event, Facts, Failure, Job, JobId, Receipt, Rejection, Timestamp, TypeSpec, WorkerId,
    decide,
};
use world::{World, user, wish};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
/// One of each kind: NUL, C0, a line break, DEL, C1.
const STRAYS: [char; 5] = ['\0', '\u{1b}', '\n', '\u{7f}', '\u{9f}'];

fn facts() -> Facts<'static> {
    Facts { fresh_id: 1, fresh_secret: 2, ..Facts::at(NOW) }
}

fn submitted(wish: Submit) -> Result<Job, Rejection> {
    let decision = decide(&Command::Submit(Box::new(wish)), &facts())?;
    match decision.events.into_iter().next() {
        Some(Event::JobSubmitted(job)) => Ok(*job),
        other => panic!("a submission gives a job, not {other:?}"),
    }
}

fn refused_field(outcome: Result<impl std::fmt::Debug, Rejection>) -> &'static str {
    match outcome.unwrap_err() {
        Rejection::FieldInvalid { field, reason } => {
            assert_eq!(reason, "must not contain control characters");
            field
        }
        other => panic!("not a matter of a field: {other}"),
    }
}

#[test]
fn control_characters_are_refused_in_every_text_of_a_submission() {
    for stray in STRAYS {
        let bad = || format!("a{stray}b").into_boxed_str();
        let refused = |change: &dyn Fn(&mut Submit)| {
            let mut wish = wish();
            change(&mut wish);
            refused_field(submitted(wish))
        };
        assert_eq!(refused(&|wish| wish.trace = Some(bad())), "trace_id");
        assert_eq!(refused(&|wish| wish.subject = Some(bad())), "subject");
        assert_eq!(refused(&|wish| wish.labels = vec![(bad(), "v".into())]), "labels");
        assert_eq!(refused(&|wish| wish.labels = vec![("n".into(), bad())]), "labels");
        let keyed = |key: &str, scope: Option<&str>| {
            let wish = wish();
            let (tenant, user, job_type) = (&wish.tenant, &wish.user, &wish.job_type);
            let (payload, window_secs) = ("1", None);
            refused_field(
                Keyed { tenant, user, key, scope, job_type, payload, window_secs }.idempotency(),
            )
        };
        assert_eq!(keyed(&bad(), None), "idempotency_key");
        assert_eq!(keyed("k", Some(&bad())), "idempotency_scope");
        assert!(mainspring_kernel::QueueName::new(&bad()).is_err());
        assert!(WorkerId::new(&bad()).is_err());
    }
}

#[test]
fn a_taken_key_does_not_let_a_bad_one_pass() {
    let wish = wish();
    let mut key = Keyed {
        tenant: &wish.tenant,
        user: &wish.user,
        key: "k",
        scope: None,
        job_type: &wish.job_type,
        payload: &wish.payload,
        window_secs: None,
    }
    .idempotency()
    .unwrap();
    key.key = "k\0".into();
    let holder = KeyHolder { job: JobId(7), fingerprint: None, free_at: None };
    let facts = Facts { key_holder: Some(holder), ..facts() };
    let idempotency = Some(Box::new(key));
    let command = Command::Submit(Box::new(Submit { idempotency, ..wish }));
    assert_eq!(refused_field(decide(&command, &facts)), "idempotency_key");
}

#[test]
fn other_texts_that_name_something_are_refused_too() {
    let mut world = World::default();
    let job = running(&mut world);
    let token = world.jobs[&job].lease().unwrap().token();
    for stray in STRAYS {
        let name = format!("e{stray}").into();
        let effect = CommitEffect { job, token, name, value: "1".into() };
        assert_eq!(refused_field(world.ask(Command::CommitEffect(effect)).answer), "name");
        let spec =
            TypeSpec { domain: format!("{stray}").into(), ..TypeSpec::plain(wish().job_type) };
        assert_eq!(refused_field(world.ask(Command::SetType(Box::new(spec))).answer), "domain");
    }
    fail(&mut world, job, "E", "m");
    let key = Some("a\0".into());
    let requeue = Command::RequeueItem { item: job.dlq(), by: user("ann"), key };
    assert_eq!(refused_field(world.ask(requeue).answer), "Idempotency-Key");
}

/// A job that runs.
fn running(world: &mut World) -> JobId {
    let wish = Submit { max_retries: Some(0), ..wish() };
    world.ask(Command::Submit(Box::new(wish))).answer.unwrap();
    let job = *world.jobs.keys().last().unwrap();
    let worker = WorkerId::new("w").unwrap();
    world.ask(Command::Claim(Claim { job, worker, lease_ms: 9_999 })).answer.unwrap();
    job
}

fn fail(world: &mut World, job: JobId, code: &str, message: &str) {
    let token = world.jobs[&job].lease().unwrap().token();
    let failure = Failure { code: code.into(), message: message.into(), retryable: false };
    let (retry_delay_ms, result, snooze_ms) = (None, None, None);
    let fail = Fail { job, token, failure, retry_delay_ms, result, snooze_ms };
    world.ask(Command::Fail(fail)).answer.unwrap();
}

#[test]
fn a_workers_last_word_is_kept_without_the_stray_bytes() {
    let mut world = World::default();
    let job = running(&mut world);
    fail(&mut world, job, "E\0", "line 1\n\tline 2\0\u{1b}[0m");
    let last_failure = world.jobs[&job].last_failure.clone().unwrap();
    assert_eq!(&*last_failure.failure.code, "E_");
    assert_eq!(&*last_failure.failure.message, "line 1\n\tline 2\u{fffd}\u{fffd}[0m");
    // Bounded, although each replacement is longer than what it replaces.
    let job = running(&mut world);
    fail(&mut world, job, "E", &"\0".repeat(100_000));
    let kept = world.jobs[&job].last_failure.clone().unwrap().failure.message;
    assert!(kept.len() <= mainspring_kernel::limits::MESSAGE_BYTES_MAX && kept.len() > 4_000);
}

#[test]
fn the_past_counts_as_the_moment_of_submission() {
    for past in [i64::MIN, -62_167_219_200_000_000, 0, NOW.0 - 1] {
        let job = submitted(Submit { run_at: Some(Timestamp(past)), ..wish() }).unwrap();
        assert_eq!((job.run_at, job.created_at), (NOW, NOW));
    }
    let ahead = Timestamp(NOW.0 + 1);
    assert_eq!(submitted(Submit { run_at: Some(ahead), ..wish() }).unwrap().run_at, ahead);
}

#[test]
fn a_key_of_before_is_hit_by_the_same_text_and_by_nothing_else() {
    let ask = |payload: &str, held: Digest| {
        let wish = Submit { payload: payload.into(), ..wish() };
        let (tenant, user, job_type) = (&wish.tenant, &wish.user, &wish.job_type);
        let (key, scope, window_secs) = ("k", None, None);
        let key = Keyed { tenant, user, key, scope, job_type, payload, window_secs };
        let idempotency = Some(Box::new(key.idempotency().unwrap()));
        let holder = KeyHolder { job: JobId(7), fingerprint: Some(held), free_at: None };
        let facts = Facts { key_holder: Some(holder), ..facts() };
        let command = Command::Submit(Box::new(Submit { idempotency, ..wish.clone() }));
        decide(&command, &facts).map(|decision| decision.receipt)
    };
    let before = digest(&[b"native", b"mail", br#"{"a": 1}"#]);
    let hit = Ok(Receipt::Existing { job: JobId(7), state: None });
    assert_eq!(ask(r#"{"a": 1}"#, before), hit);
    assert_eq!(ask(r#"{"a":1}"#, before), Err(Rejection::IdempotencyConflict));
    let now = mainspring_kernel::idempotency::fingerprint(&wish().job_type, r#"{"a": 1}"#).unwrap();
    assert_eq!(ask(r#"{"a":1}"#, now), hit);
    assert_eq!(ask(r#"{"a":2}"#, now), Err(Rejection::IdempotencyConflict));
}

#[test]
fn the_delay_that_is_told_is_the_rules_own() {
    let mut world = World::default();
    world.ask(Command::Submit(Box::new(wish()))).answer.unwrap();
    let job = *world.jobs.keys().last().unwrap();
    for retry in 1..=3_u16 {
        let failure = Failure { code: "E".into(), message: "m".into(), retryable: true };
        let ending = Ending::Failure(failure);
        world.now = world.now.plus_millis(12_345);
        let run = Command::RunInternally(RunInternally { job, by: user("ann"), ending });
        let Receipt::Ran { retry_after_ms, retry_at, .. } = world.ask(run).answer.unwrap().receipt
        else {
            panic!("a run is told as one")
        };
        let rule = delay_ms(Backoff::DEFAULT, job, retry);
        assert_eq!(retry_after_ms, Some(rule));
        assert_eq!(retry_at, Some(world.now.plus_millis(rule)));
    }
}

#[test]
fn what_the_file_said_of_a_type_outlives_a_change_by_hand() {
    let set = |spec: TypeSpec, known: Option<&TypeSpec>| {
        let facts = Facts { job_type: known, ..facts() };
        match &decide(&Command::SetType(Box::new(spec)), &facts).unwrap().events[..] {
            [Event::TypeSet(spec)] => (**spec).clone(),
            other => panic!("one type, not {other:?}"),
        }
    };
    let plain = TypeSpec::plain(wish().job_type);
    let by_file = TypeSpec { file_entry: Some(Digest([1; 16])), ..plain.clone() };
    let stored = set(by_file.clone(), None);
    let by_hand = set(TypeSpec { priority: 9, ..plain.clone() }, Some(&stored));
    assert_eq!((by_hand.priority, by_hand.file_entry), (9, by_file.file_entry));
    let newer = TypeSpec { file_entry: Some(Digest([2; 16])), ..plain.clone() };
    assert_eq!(set(newer.clone(), Some(&by_hand)), newer);
    assert_eq!(set(plain.clone(), None), plain);
}

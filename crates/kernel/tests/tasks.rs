//! Names that callers choose, and moves by the table of the task contract.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::command::Submit;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::idempotency::{alias, alias_hash};
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::registry::TASK;
use mainspring_kernel::retry::Backoff;
use mainspring_kernel::view::tasks;
use mainspring_kernel::{
    Command, Decision, Event, Facts, Job, JobId, JobType, Receipt, Rejection, TenantId, Timestamp,
    TypeSpec, decide,
};
use proptest::prelude::*;
use world::{Act, World, acts, wish};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn named(id: &str) -> Submit {
    let tenant = TenantId::stored("acme".into());
    Submit { alias: Some(Box::new(alias(&tenant, "task", id, Some(60)))), ..wish() }
}

fn submit(wish: &Submit, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    decide(&Command::Submit(Box::new(wish.clone())), facts)
}

fn job(id: u128) -> Job {
    let facts = Facts { fresh_id: id, ..Facts::at(NOW) };
    let decision = submit(&named("a"), &facts).unwrap();
    let Some(Event::JobSubmitted(job)) = decision.events.into_iter().next() else {
        panic!("a submission makes a job")
    };
    *job
}

fn held_by(id: u128, free_at: Option<Timestamp>) -> Option<KeyHolder> {
    Some(KeyHolder { job: JobId(id), fingerprint: None, free_at })
}

/// The job that is answered, if it is an old one.
fn existing(outcome: Result<Decision, Rejection>) -> Option<JobId> {
    match outcome.unwrap().receipt {
        Receipt::Existing { job, .. } => Some(job),
        _ => None,
    }
}

#[test]
fn a_name_is_taken_for_as_long_as_its_job_is_kept() {
    let kept = job(7);
    let facts = Facts { fresh_id: 9, alias_holder: held_by(7, None), ..Facts::at(NOW) };
    let with_job = Facts { alias_job: Some(&kept), ..facts };
    assert_eq!(existing(submit(&named("a"), &with_job)), Some(JobId(7)));
    // Whatever else the wish says: a name is not a fingerprint.
    let other = Submit { payload: "2".into(), timeout_ms: Some(5), ..named("a") };
    assert_eq!(existing(submit(&other, &with_job)), Some(JobId(7)));
    assert_eq!(existing(submit(&named("a"), &facts)), None, "the job is gone");
    let over = Facts { alias_holder: held_by(7, Some(NOW)), ..with_job };
    assert_eq!(existing(submit(&named("a"), &over)), None, "the note is over");
    assert_eq!(existing(submit(&wish(), &with_job)), None, "no name was asked for");
}

#[test]
fn a_name_and_a_key_of_different_jobs_are_refused() {
    let (seven, eight) = (job(7), job(8));
    let hash = alias_hash(&TenantId::stored("acme".into()), "x", "k");
    let key = Idempotency {
        hash,
        scope: "s".into(),
        key: "k".into(),
        fingerprint: None,
        window_secs: Some(60),
    };
    let both = Submit { idempotency: Some(Box::new(key)), ..named("a") };
    let named_only =
        Facts { alias_holder: held_by(7, None), alias_job: Some(&seven), ..Facts::at(NOW) };
    assert_eq!(existing(submit(&both, &named_only)), Some(JobId(7)));
    let same = Facts { key_holder: held_by(7, None), key_job: Some(&seven), ..named_only };
    assert_eq!(existing(submit(&both, &same)), Some(JobId(7)));
    let other = Facts { key_holder: held_by(8, None), key_job: Some(&eight), ..named_only };
    assert_eq!(submit(&both, &other), Err(Rejection::KeysDisagree));
    let freed = Facts { key_holder: held_by(8, Some(NOW)), ..other };
    assert_eq!(existing(submit(&both, &freed)), Some(JobId(7)), "the key is free again");
}

#[test]
fn names_of_tenants_and_namespaces_are_apart_and_bounded() {
    let of =
        |tenant: &str, space, id: &str| alias_hash(&TenantId::stored(tenant.into()), space, id);
    let one = of("acme", "task", "a");
    assert_eq!(one, of("acme", "task", "a"));
    for other in [of("acme", "run", "a"), of("other", "task", "a"), of("acme", "task", "b")] {
        assert_ne!(one, other);
    }
    for bad in ["", "a\u{0}", "a\tb", &*"x".repeat(201)] {
        let refused = submit(&named(bad), &Facts::at(NOW)).unwrap_err();
        assert!(matches!(refused, Rejection::FieldInvalid { field: "id", .. }), "{bad:?}");
    }
    assert!(submit(&named(&"x".repeat(200)), &Facts::at(NOW)).is_ok());
}

#[test]
fn the_type_of_tasks_is_there_without_being_registered_and_never_waits() {
    let strict = Facts { are_types_strict: true, ..Facts::at(NOW) };
    let task = Submit { job_type: JobType::stored(TASK.into()), ..wish() };
    assert!(submit(&task, &strict).is_ok());
    assert!(matches!(submit(&wish(), &strict), Err(Rejection::TypeUnknown { .. })));
    let slow = Backoff { base_ms: 9, max_ms: 9 };
    for (spec, kept) in [
        (TypeSpec { backoff: slow, ..TypeSpec::task() }, Backoff::NONE),
        (TypeSpec { backoff: slow, ..TypeSpec::plain(JobType::stored("mill".into())) }, slow),
    ] {
        let decision = decide(&Command::SetType(Box::new(spec)), &Facts::at(NOW)).unwrap();
        let [Event::TypeSet(spec)] = &decision.events[..] else { panic!("{decision:?}") };
        assert_eq!(spec.backoff, kept);
    }
}

proptest! {
    /// Whatever happened to a task: a move by hand passes exactly if the table has it (and a try is
    /// left), leads where it says, and otherwise nothing happens.
    #[test]
    fn moves_by_hand_follow_the_contracts_table(
        history in acts(),
        to in prop::sample::select(tasks::State::ALL),
    ) {
        let mut world = World::default();
        for (number, act) in &history {
            world.act(*number, act);
        }
        let outcome = world.act(0, &Act::MoveTask { to }).unwrap();
        let Some(before) = outcome.before else { return Ok(()) };
        let from = tasks::state(&before, world.now);
        let has_try = before.retry_count < before.max_retries;
        let is_retry = (from, to) == (tasks::State::Running, tasks::State::Ready);
        let is_legal = from.may_become(to) && (has_try || !is_retry);
        let after = &world.jobs[&before.id];
        match outcome.answer {
            Ok(_) => {
                prop_assert!(is_legal, "{from} to {to}");
                prop_assert_eq!(tasks::state(after, world.now), to);
            }
            Err(no) => {
                prop_assert!(!is_legal, "{from} to {to}: {no}");
                prop_assert_eq!(no, Rejection::IllegalTaskMove { from, to });
                prop_assert_eq!(after, &before);
            }
        }
    }
}

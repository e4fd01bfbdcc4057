//! What is let in: the bounds of a submission, the idempotency rule, the bounds of a type, and the
//! two-person rule for dropping a dead letter.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::command::Submit;
use mainspring_kernel::dlq::DlqState;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::limits::*;
use mainspring_kernel::{
    Command, Decision, DlqId, Facts, JobId, Principal, QueueName, Receipt, Rejection, StateName,
    Timestamp, TokenId, TypeSpec, decide,
};
use world::{Act, Holder, World, principal, user, wish};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn facts() -> Facts<'static> {
    Facts {
        now: NOW,
        fresh_id: 1,
        fresh_secret: 2,
        job: None,
        item: None,
        job_type: None,
        are_types_strict: false,
        key_holder: None,
        key_job: None,
    }
}

fn submit(wish: Submit, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    decide(&Command::Submit(Box::new(wish)), facts)
}

/// `None` for accepted, else the field that was refused.
fn refused(change: impl FnOnce(&mut Submit)) -> Option<&'static str> {
    let mut wish = wish();
    change(&mut wish);
    match submit(wish, &facts()) {
        Ok(_) => None,
        Err(Rejection::FieldInvalid { field, .. }) => Some(field),
        Err(other) => panic!("not a matter of a field: {other}"),
    }
}

fn text(bytes: usize) -> Box<str> {
    "x".repeat(bytes).into()
}

fn key(name: &str) -> Option<Box<Idempotency>> {
    Some(Box::new(Idempotency {
        hash: digest(&[name.as_bytes()]),
        scope: "s".into(),
        key: name.into(),
        fingerprint: Some(digest(&[b"one"])),
        window_secs: None,
    }))
}

#[test]
fn numbers_of_a_submission_have_both_bounds() {
    assert_eq!(refused(|_| ()), None);
    assert_eq!(refused(|wish| wish.timeout_ms = Some(0)), Some("timeout_ms"));
    assert_eq!(refused(|wish| wish.timeout_ms = Some(TIMEOUT_MS_MIN)), None);
    assert_eq!(refused(|wish| wish.timeout_ms = Some(TIMEOUT_MS_MAX)), None);
    assert_eq!(refused(|wish| wish.timeout_ms = Some(TIMEOUT_MS_MAX + 1)), Some("timeout_ms"));
    assert_eq!(refused(|wish| wish.max_retries = Some(RETRIES_MAX)), None);
    assert_eq!(refused(|wish| wish.max_retries = Some(RETRIES_MAX + 1)), Some("max_retries"));
    assert_eq!(refused(|wish| wish.priority = Some(255)), None);
}

#[test]
fn times_of_a_submission_have_bounds() {
    let edge = NOW.plus_millis(RUN_AHEAD_MS_MAX);
    assert_eq!(refused(|wish| wish.run_at = Some(Timestamp(i64::MIN))), None);
    assert_eq!(refused(|wish| wish.run_at = Some(edge)), None);
    assert_eq!(refused(|wish| wish.run_at = Some(Timestamp(edge.0 + 1))), Some("run_at"));
    assert_eq!(refused(|wish| wish.delay_ms = Some(u64::MAX)), Some("run_at"));
    let both = |wish: &mut Submit| (wish.run_at, wish.delay_ms) = (Some(NOW), Some(1));
    assert_eq!(refused(both), Some("delay_ms"));
    assert_eq!(refused(|wish| wish.expires_at = Some(NOW)), Some("expires_at"));
    assert_eq!(refused(|wish| wish.expires_at = Some(Timestamp(NOW.0 + 1))), None);
    let too_soon = |wish: &mut Submit| {
        wish.delay_ms = Some(10);
        wish.expires_at = Some(NOW.plus_millis(10));
    };
    assert_eq!(refused(too_soon), Some("expires_at"));
}

#[test]
fn texts_of_a_submission_have_bounds() {
    let long = || text(NAME_BYTES_MAX + 1);
    let label = |name: usize, value: usize| vec![(text(name), text(value))];
    let most = NAME_BYTES_MAX;
    assert_eq!(refused(|wish| wish.payload = text(PAYLOAD_BYTES_MAX).into()), None);
    assert_eq!(refused(|wish| wish.payload = text(PAYLOAD_BYTES_MAX + 1).into()), Some("payload"));
    assert_eq!(refused(|wish| wish.trace = Some(text(most))), None);
    assert_eq!(refused(|wish| wish.trace = Some(long())), Some("trace_id"));
    assert_eq!(refused(|wish| wish.trace = Some(text(0))), Some("trace_id"));
    assert_eq!(refused(|wish| wish.subject = Some(long())), Some("subject"));
    assert_eq!(refused(|wish| wish.labels = label(most, most)), None);
    assert_eq!(refused(|wish| wish.labels = label(most + 1, 1)), Some("labels"));
    assert_eq!(refused(|wish| wish.labels = label(1, most + 1)), Some("labels"));
    let many = |count: usize| {
        move |wish: &mut Submit| wish.labels = (1..=count).map(|n| (text(n), text(1))).collect()
    };
    assert_eq!(refused(many(LABELS_MAX)), None);
    assert_eq!(refused(many(LABELS_MAX + 1)), Some("labels"));
    let keyed = |bytes| move |wish: &mut Submit| wish.idempotency = key(&text(bytes));
    assert_eq!(refused(keyed(0)), Some("idempotency_key"));
    assert_eq!(refused(keyed(KEY_BYTES_MAX)), None);
    assert_eq!(refused(keyed(KEY_BYTES_MAX + 1)), Some("idempotency_key"));
}

#[test]
fn a_key_that_is_taken_answers_with_its_job_or_a_conflict() {
    let holder = |fingerprint: Option<&[u8]>, free_at| KeyHolder {
        job: JobId(7),
        fingerprint: fingerprint.map(|text| digest(&[text])),
        free_at,
    };
    let ask = |holder, is_keyed: bool| {
        let facts = Facts { key_holder: Some(holder), ..facts() };
        let idempotency = if is_keyed { key("k") } else { None };
        submit(Submit { idempotency, ..wish() }, &facts).map(|decision| {
            assert_eq!(decision.events.is_empty(), decision.receipt == existing());
            decision.receipt
        })
    };
    let new = Ok(Receipt::Submitted { job: JobId(1) });
    let later = Some(Timestamp(NOW.0 + 1));
    assert_eq!(ask(holder(Some(b"one"), None), true), Ok(existing()), "the same wish is a hit");
    let other = ask(holder(Some(b"two"), None), true);
    assert_eq!(other, Err(Rejection::IdempotencyConflict), "another wish is a conflict");
    assert_eq!(ask(holder(None, None), true), Ok(existing()), "nothing to compare is a hit");
    assert_eq!(ask(holder(Some(b"two"), later), true), Err(Rejection::IdempotencyConflict));
    assert_eq!(ask(holder(Some(b"two"), Some(NOW)), true), new, "the window is over");
    assert_eq!(ask(holder(Some(b"one"), None), false), new, "no key, no rule");
}

fn existing() -> Receipt {
    Receipt::Existing { job: JobId(7), state: None }
}

#[test]
fn a_type_gives_the_defaults_and_an_unknown_one_is_refused_where_types_are_strict() {
    let mut spec = TypeSpec::plain(wish().job_type);
    spec.queue = QueueName::new("slow").unwrap();
    (spec.priority, spec.max_retries, spec.timeout_ms) = (9, 5, 77);
    let facts = Facts { job_type: Some(&spec), are_types_strict: true, ..facts() };
    let made = |wish| match &submit(wish, &facts).unwrap().events[..] {
        [mainspring_kernel::Event::JobSubmitted(job)] => job.clone(),
        other => panic!("one job, not {other:?}"),
    };
    let job = made(wish());
    assert_eq!((job.priority, job.max_retries, job.timeout_ms), (9, 5, 77));
    assert_eq!(job.queue.as_str(), "slow");
    let job = made(Submit { priority: Some(1), max_retries: Some(0), ..wish() });
    assert_eq!((job.priority, job.max_retries), (1, 0));
    let strict = Facts { job_type: None, ..facts };
    assert_eq!(submit(wish(), &strict).unwrap_err().code(), "TYPE_UNKNOWN");
}

#[test]
fn the_defaults_of_a_type_keep_the_bounds_of_a_submission() {
    let set = |timeout_ms, max_retries| {
        let spec = TypeSpec { timeout_ms, max_retries, ..TypeSpec::plain(wish().job_type) };
        decide(&Command::SetType(Box::new(spec)), &facts()).is_ok()
    };
    assert!(set(TIMEOUT_MS_MIN, 0) && set(TIMEOUT_MS_MAX, RETRIES_MAX));
    assert!(!set(0, 0) && !set(TIMEOUT_MS_MAX + 1, 0) && !set(1, RETRIES_MAX + 1));
}

/// A world with one dead letter, after `acts`.
fn dead_letter(acts: &[Act]) -> World {
    let mut world = World::default();
    let fail = Act::Fail { by: Holder::Newest, code: "E", retryable: false, delay_ms: None };
    let submit = Act::Submit { ahead_ms: None, max_retries: 0, timeout_ms: 99, expires_ms: None };
    for act in [submit, Act::Claim { lease_ms: 999 }, fail].iter().chain(acts) {
        assert!(world.act(0, act).unwrap().answer.is_ok());
    }
    world
}

fn approve(world: &mut World, by: Principal) -> Result<Receipt, Rejection> {
    let command = Command::ApproveDiscard { item: DlqId(1), by: Box::new(by) };
    world.ask(command).answer.map(|decision| decision.receipt)
}

#[test]
fn a_discard_takes_two_people_not_two_tokens() {
    let asked = || dead_letter(&[Act::Propose { by: "ann", reason: "why" }]);
    let done = Ok(Receipt::Item { state: "discarded" });
    let same = Err(Rejection::SamePerson);
    let minted = |by: &str, at: i64| Principal {
        token_issued_by: user(by),
        token_issued_at: Timestamp(World::default().now.0 + at),
        ..principal("bob")
    };
    assert_eq!(approve(&mut asked(), principal("ann")), same);
    let other_token = Principal { token: TokenId(99), ..principal("ann") };
    assert_eq!(approve(&mut asked(), other_token), same, "a second token is the same person");
    assert_eq!(approve(&mut asked(), minted("ann", 0)), same, "minted for the purpose");
    assert_eq!(approve(&mut asked(), minted("ann", 9)), same, "minted for the purpose");
    assert_eq!(approve(&mut asked(), minted("ann", -1)), done, "bob had it before ann asked");
    assert_eq!(approve(&mut asked(), minted("root", 9)), done, "somebody else gave it to bob");
    let mut world = asked();
    assert_eq!(approve(&mut world, principal("bob")), done);
    assert!(matches!(&world.items[&DlqId(1)].state,
        DlqState::Discarded { proposal, approved_by }
            if proposal.by == user("ann") && *approved_by == user("bob")));
    assert!(approve(&mut world, principal("eve")).is_err(), "once is enough");
    assert_eq!(world.jobs[&JobId(1)].state.name(), StateName::Failed, "the job stays as it was");
}

#[test]
fn a_rejected_discard_leaves_the_item_open() {
    let propose = |by| Act::Propose { by, reason: "why" };
    let mut world = dead_letter(&[propose("ann"), Act::Reject]);
    assert_eq!(world.items[&DlqId(1)].state, DlqState::Open);
    assert!(approve(&mut world, principal("bob")).is_err(), "the request is gone");
    assert!(world.act(0, &propose("bob")).unwrap().answer.is_ok());
    assert_eq!(approve(&mut world, principal("bob")), Err(Rejection::SamePerson));
    assert!(world.act(0, &Act::Reject).unwrap().answer.is_ok());
    assert!(world.act(0, &Act::Requeue { key: None }).unwrap().answer.is_ok());
}

#[test]
fn a_reviewed_discard_names_two_different_people_and_a_reason() {
    let review = |reason: &str, one: &str, two: &str| {
        let command = Command::DiscardReviewed {
            item: DlqId(1),
            reason: reason.into(),
            reviewer: one.into(),
            reviewer_2: two.into(),
        };
        dead_letter(&[]).ask(command).answer.map_err(|rejection| rejection.code()).err()
    };
    assert_eq!(review("why", "ann", "bob"), None);
    for (reason, one, two) in [
        ("why", "ann", "ann"),
        ("why", "ann", " ann "),
        ("why", "", "bob"),
        ("why", "ann", "  "),
        ("why", "", ""),
        (" ", "ann", "bob"),
    ] {
        assert_eq!(
            review(reason, one, two),
            Some("APPROVAL_REQUIRED"),
            "{reason:?} {one:?} {two:?}"
        );
    }
}

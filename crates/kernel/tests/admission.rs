//! What is let in: the bounds of a submission, the idempotency rule, the bounds of a type, and the
//! two-person rule for dropping a dead letter.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::backlog::held_bytes;
use mainspring_kernel::command::Submit;
use mainspring_kernel::dlq::DlqState;
use mainspring_kernel::entity::alert::ALERT_TYPE;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::idempotency::alert_key;
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::limits::*;
use mainspring_kernel::{
    Backlog, Command, Decision, DlqId, Facts, JobId, JobType, Principal, QueueName, Receipt,
    Rejection, Role, Roles, StateName, Timestamp, Token, TokenId, TypeSpec, decide,
};
use world::{Act, Holder, World, holder_of, principal, user, wish};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn facts() -> Facts<'static> {
    Facts { fresh_id: 1, fresh_secret: 2, ..Facts::at(NOW) }
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

#[test]
fn a_wish_that_could_never_be_taken_is_told_without_facts() {
    assert_eq!(wish().check(), Ok(()));
    let both = Submit { run_at: Some(NOW), delay_ms: Some(1), ..wish() };
    assert_eq!(both.check().unwrap_err().code(), "REQ_VALIDATION_FAILED");
    let traceless = Submit { trace: Some(text(0)), ..wish() };
    assert_eq!(traceless.check().unwrap_err().code(), "REQ_VALIDATION_FAILED");
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
    let version = world.items[&DlqId(1)].version;
    let command = Command::ApproveDiscard { item: DlqId(1), by: Box::new(by), version };
    world.ask(command).answer.map(|decision| decision.receipt)
}

fn ask(world: &mut World, by: Principal) -> Result<Receipt, Rejection> {
    let command =
        Command::RequestDiscard { item: DlqId(1), by: Box::new(by), reason: "why".into() };
    world.ask(command).answer.map(|decision| decision.receipt)
}

/// Adds a token that `issuer` made for `name` at `at`.
fn mint(world: &mut World, name: &str, issuer: &Principal, at: Timestamp) -> Principal {
    let id = world.people.len() as u128 + 1;
    let token = Token {
        issued_at: at,
        issued_by: issuer.user.clone(),
        issued_with: Some(issuer.token),
        ..holder_of((name, id))
    };
    world.people.push(token.clone());
    token.principal()
}

const DONE: Result<Receipt, Rejection> = Ok(Receipt::Item { state: "discarded" });

#[test]
fn a_discard_takes_two_people_not_two_tokens() {
    let asked = || dead_letter(&[Act::Propose { by: "ann", reason: "why" }]);
    let same = Err(Rejection::SamePerson);
    assert_eq!(approve(&mut asked(), principal("ann")), same);
    let other_token = Principal { token: TokenId(99), ..principal("ann") };
    assert_eq!(approve(&mut asked(), other_token), same, "a second token is the same person");
    for spelling in ["Ann", "ANN", "a\u{200b}nn", "\u{430}nn", "\u{ff41}nn"] {
        let other_name = Principal { user: user(spelling), ..principal("bob") };
        assert_eq!(approve(&mut asked(), other_name), same, "{spelling:?} is ann");
    }
    let mut world = asked();
    assert_eq!(approve(&mut world, principal("bob")), DONE);
    assert!(matches!(&world.items[&DlqId(1)].state,
        DlqState::Discarded { proposal, approved_by }
            if proposal.by == user("ann") && *approved_by == user("bob")
                && proposal.token == Some(principal("ann").token)));
    assert!(approve(&mut world, principal("eve")).is_err(), "once is enough");
    assert_eq!(world.jobs[&JobId(1)].state.name(), StateName::Failed, "the job stays as it was");
}

#[test]
fn people_the_asker_made_do_not_count_directly_or_through_others() {
    let made = Err(Rejection::NotIndependent);
    let mut world = dead_letter(&[]);
    let long_ago = Timestamp::from_millis(5);
    let puppet = mint(&mut world, "puppet", &principal("ann"), long_ago);
    let second = mint(&mut world, "second-admin", &principal("ann"), long_ago);
    let grandchild = mint(&mut world, "grandchild", &second, long_ago);
    assert!(ask(&mut world, principal("ann")).is_ok());
    for own in [&puppet, &second, &grandchild] {
        assert_eq!(approve(&mut world, own.clone()), made, "{}", own.user);
    }
    assert!(world.act(0, &Act::Reject).unwrap().answer.is_ok());
    // Nor the other way round: the maker of the asker is the asker's hand.
    assert!(ask(&mut world, grandchild.clone()).is_ok());
    for maker in [principal("ann"), second] {
        assert_eq!(approve(&mut world, maker.clone()), made, "{}", maker.user);
    }
    assert_eq!(approve(&mut world, principal("bob")), DONE);
}

#[test]
fn a_token_that_does_not_name_its_parent_stands_for_all_its_issuer_had() {
    let mut world = dead_letter(&[]);
    let long_ago = Timestamp::from_millis(5);
    let second = mint(&mut world, "second-admin", &principal("ann"), long_ago);
    mint(&mut world, "old-style", &second, Timestamp::from_millis(6));
    let old = world.people.last_mut().unwrap();
    old.issued_with = None;
    let old = old.principal();
    assert!(ask(&mut world, principal("ann")).is_ok());
    assert_eq!(approve(&mut world, old), Err(Rejection::NotIndependent));
}

#[test]
fn a_token_issued_after_the_first_request_never_counts() {
    let mut world = dead_letter(&[Act::Propose { by: "ann", reason: "why" }]);
    let now = world.now;
    let root = Principal { token: TokenId(98), ..principal("root") };
    let late = mint(&mut world, "late", &root, now);
    assert_eq!(approve(&mut world, late.clone()), Err(Rejection::TokenTooNew));
    assert!(world.act(0, &Act::Reject).unwrap().answer.is_ok());
    world.now = world.now.plus_millis(60_000);
    assert!(ask(&mut world, principal("ann")).is_ok(), "bob could still approve");
    assert_eq!(approve(&mut world, late), Err(Rejection::TokenTooNew), "asking again is no reset");
    assert_eq!(approve(&mut world, principal("bob")), DONE);
}

#[test]
fn a_request_is_too_old_after_seven_days_and_can_be_made_again() {
    let expired = Err(Rejection::RequestExpired);
    let mut world = dead_letter(&[Act::Propose { by: "ann", reason: "why" }]);
    let asked_at = world.now;
    world.now = asked_at.plus_millis(APPROVAL_WITHIN_MS);
    assert_eq!(approve(&mut world, principal("bob")), expired);
    assert_eq!(approve(&mut world, principal("ann")), Err(Rejection::SamePerson));
    assert!(world.act(0, &Act::Reject).unwrap().answer.is_ok());
    assert!(ask(&mut world, principal("ann")).is_ok());
    world.now = world.now.plus_millis(APPROVAL_WITHIN_MS - 1);
    assert_eq!(approve(&mut world, principal("bob")), DONE, "a moment before it is not");
}

#[test]
fn where_only_one_person_can_exist_the_discard_is_refused() {
    let alone = Err(Rejection::NoSecondPerson);
    let mut world = dead_letter(&[]);
    world.people.truncate(1);
    assert_eq!(ask(&mut world, principal("ann")), alone);
    mint(&mut world, "puppet", &principal("ann"), Timestamp::EPOCH);
    mint(&mut world, "ANN", &principal("zoe"), Timestamp::EPOCH);
    assert_eq!(ask(&mut world, principal("ann")), alone, "those are ann");
    let now = world.now;
    mint(&mut world, "late", &principal("zoe"), now);
    assert_eq!(ask(&mut world, principal("ann")), alone, "let in too late");
    let weak = mint(&mut world, "weak", &principal("zoe"), Timestamp::EPOCH);
    world.people.last_mut().unwrap().roles = Roles::of(&[Role::Operator]);
    assert_eq!(ask(&mut world, principal("ann")), alone, "{} may not approve", weak.user);
    world.people.last_mut().unwrap().roles = Roles::of(&[Role::Approver]);
    world.people.last_mut().unwrap().revoked_at = Some(Timestamp::EPOCH);
    assert_eq!(ask(&mut world, principal("ann")), alone, "revoked");
    world.people.last_mut().unwrap().revoked_at = None;
    assert!(ask(&mut world, principal("ann")).is_ok());
}

#[test]
fn an_approval_names_the_version_that_was_read() {
    let mut world = dead_letter(&[Act::Propose { by: "ann", reason: "why" }]);
    for version in [0, 1, 3] {
        let by = Box::new(principal("bob"));
        let answer = world.ask(Command::ApproveDiscard { item: DlqId(1), by, version }).answer;
        assert_eq!(answer, Err(Rejection::VersionChanged { now: 2 }));
    }
    assert_eq!(approve(&mut world, principal("bob")), DONE);
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
            by: Box::new(principal("replay")),
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

#[test]
fn a_reviewed_discard_takes_reviewers_with_tokens_of_their_own() {
    let review = |world: &mut World, by: &Principal, one: &str, two: &str| {
        let command = Command::DiscardReviewed {
            item: DlqId(1),
            by: Box::new(by.clone()),
            reason: "why".into(),
            reviewer: one.into(),
            reviewer_2: two.into(),
        };
        world.ask(command).answer.map(|decision| decision.receipt).map_err(|no| no.code())
    };
    let refused = Err("APPROVAL_REQUIRED");
    let mut world = dead_letter(&[]);
    let replay = mint(&mut world, "replay", &principal("zoe"), Timestamp::EPOCH);
    assert_eq!(review(&mut world, &replay, "x", "y"), refused, "nobody of that name");
    assert_eq!(review(&mut world, &replay, "ann", "y"), refused, "one is not enough");
    assert_eq!(review(&mut world, &replay, "ann", "replay"), refused, "the caller is no reviewer");
    mint(&mut world, "puppet", &principal("ann"), Timestamp::EPOCH);
    assert_eq!(review(&mut world, &replay, "ann", "puppet"), refused, "ann made the puppet");
    mint(&mut world, "self-made", &replay, Timestamp::EPOCH);
    assert_eq!(review(&mut world, &replay, "ann", "self-made"), refused, "the caller made it");
    let own = mint(&mut world, "replay-2", &principal("bob"), Timestamp::EPOCH);
    assert_eq!(review(&mut world, &own, "ann", "bob"), refused, "bob made the caller");
    let done = Ok(Receipt::Item { state: "discarded" });
    assert_eq!(review(&mut world, &replay, "ANN", "bob"), done);
}

#[test]
fn broken_glass_needs_a_reason_and_leaves_a_mark() {
    let broken = |world: &mut World, reason: &str| {
        let by = Box::new(principal("ann"));
        world.ask(Command::BreakGlass { item: DlqId(1), by, reason: reason.into() }).answer
    };
    let mut world = dead_letter(&[]);
    world.people.truncate(1);
    assert_eq!(broken(&mut world, " ").map_err(|no| no.code()).err(), Some("APPROVAL_REQUIRED"));
    assert!(broken(&mut world, "the disk is full").is_ok(), "one person is enough");
    let DlqState::GlassBroken(mark) = &world.items[&DlqId(1)].state else { panic!() };
    assert_eq!((&mark.by, &*mark.reason, mark.at), (&user("ann"), "the disk is full", world.now));
    assert!(broken(&mut world, "again").is_err());
}

#[test]
fn what_waits_has_a_bound_for_the_tenant_and_one_for_all() {
    let plain = submit(wish(), &facts()).unwrap();
    let [mainspring_kernel::Event::JobSubmitted(job)] = &plain.events[..] else {
        panic!("one job, not {:?}", plain.events);
    };
    let bytes = held_bytes(job);
    let asked = |tenant: u64, all: u64| {
        let backlog =
            Backlog { tenant, tenant_max: 10_000, all, all_max: 20_000, ..Backlog::UNBOUNDED };
        submit(wish(), &Facts { backlog, ..facts() }).map(|_| ()).map_err(|no| no.code())
    };
    assert_eq!(asked(10_000 - bytes, 20_000 - bytes), Ok(()), "up to the last byte");
    assert_eq!(asked(10_001 - bytes, 0), Err("TENANT_BACKLOG_FULL"));
    assert_eq!(asked(0, 20_001 - bytes), Err("BACKLOG_FULL"));
    assert_eq!(asked(u64::MAX, u64::MAX), Err("TENANT_BACKLOG_FULL"), "one's own is told first");
    // A repeat makes nothing that could wait, and a bad wish is bad whatever waits.
    let full = Backlog {
        tenant: 10_000,
        tenant_max: 10_000,
        all: 20_000,
        all_max: 20_000,
        ..Backlog::UNBOUNDED
    };
    let holder = KeyHolder { job: JobId(9), fingerprint: None, free_at: None };
    let known = Facts { key_holder: Some(holder), backlog: full, ..facts() };
    assert!(submit(Submit { idempotency: key("k"), ..wish() }, &known).is_ok());
    let bad = Submit { timeout_ms: Some(0), ..wish() };
    let told = submit(bad, &Facts { backlog: full, ..facts() }).unwrap_err().code();
    assert_eq!(told, "REQ_VALIDATION_FAILED");
}

#[test]
fn what_the_server_says_of_a_tenant_is_not_kept_back_by_what_the_tenant_has_waiting() {
    let message = || Submit {
        job_type: JobType::new(ALERT_TYPE).unwrap(),
        idempotency: Some(Box::new(alert_key(&wish().tenant, "k"))),
        ..wish()
    };
    let full = Backlog { tenant: 9, tenant_max: 1, jobs: 9, jobs_max: 1, ..Backlog::UNBOUNDED };
    assert!(submit(message(), &Facts { backlog: full, ..facts() }).is_ok());
    let told = submit(wish(), &Facts { backlog: full, ..facts() }).unwrap_err().code();
    assert_eq!(told, "TENANT_BACKLOG_FULL");
    // What everybody may have together is everybody's, also the server's.
    let all = Backlog { all: 9, all_max: 9, ..full };
    let told = submit(message(), &Facts { backlog: all, ..facts() }).unwrap_err().code();
    assert_eq!(told, "BACKLOG_FULL");
}

#[test]
fn everything_a_caller_sends_with_a_job_counts() {
    let bytes = |wish: Submit| {
        let made = submit(wish, &facts()).unwrap();
        let [mainspring_kernel::Event::JobSubmitted(job)] = &made.events[..] else {
            panic!("one job, not {:?}", made.events);
        };
        held_bytes(job)
    };
    let plain = bytes(wish());
    assert_eq!(plain, (JOB_BYTES + wish().payload.len()) as u64 + traced(&wish()));
    let longer = Submit { payload: format!("\"{}\"", "x".repeat(1_000)).as_str().into(), ..wish() };
    assert_eq!(bytes(longer), plain + 1_002 - wish().payload.len() as u64);
    let labels = vec![("name".into(), "value".into()), ("n".into(), "v".into())];
    assert_eq!(bytes(Submit { labels, ..wish() }), plain + 11);
    assert_eq!(bytes(Submit { subject: Some("subject".into()), ..wish() }), plain + 7);
    let keyed = Submit { idempotency: key("four"), ..wish() };
    let scope = keyed.idempotency.as_ref().map_or(0, |key| key.scope.len() as u64);
    assert_eq!(bytes(keyed), plain + 4 + scope);
}

fn traced(wish: &Submit) -> u64 {
    wish.trace.as_ref().map_or(0, |trace| trace.len() as u64)
}

/// Root makes carl's token, carl makes ann's; what carl got later has nothing to do with ann.
#[test]
fn whose_hands_a_token_went_through_is_told_by_the_tokens_there_were() {
    use mainspring_kernel::TokenId;
    use mainspring_kernel::person::{Hand, People};
    let issued = |whose: (&'static str, u128), by: &str, at: i64, with: Option<u128>| Token {
        issued_by: world::user(by),
        issued_at: Timestamp(at),
        issued_with: with.map(TokenId),
        ..world::holder_of(whose)
    };
    let is_free_of = |ann: Token, second: Token| {
        let (carl, bob) =
            (issued(("carl", 2), "root", 10, None), issued(("bob", 4), "sys", 0, None));
        let all = [&ann, &carl, &second, &bob];
        let mut people = People::new(&all);
        people.are_independent(Hand::from(&ann), Hand::from(&bob))
    };
    let by_bob = |at| issued(("carl", 3), "bob", at, None);
    // Which of carl's tokens made ann's is not known: those he had by then count.
    let ann = || issued(("ann", 1), "carl", 20, None);
    assert!(is_free_of(ann(), by_bob(21)), "bob's came later");
    assert!(!is_free_of(ann(), by_bob(20)), "bob's may have made it");
    // It is known: that one counts, whatever the clocks said.
    let ann = || issued(("ann", 1), "carl", 20, Some(3));
    assert!(!is_free_of(ann(), by_bob(21)), "bob's has made it");
    assert!(is_free_of(issued(("ann", 1), "carl", 20, Some(2)), by_bob(5)), "root's has");
}

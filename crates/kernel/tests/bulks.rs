//! The rules of bulk operations, without a store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_kernel::command::Submit;
use mainspring_kernel::dlq::Proposal;
use mainspring_kernel::entity::alert::Milli;
use mainspring_kernel::entity::bulk::{
    Bulk, BulkAction, BulkCommand, BulkFilter, BulkSpec, BulkStatus, Canary, Target, page_id,
};
use mainspring_kernel::entity::{Body, EntityId, Kind};
use mainspring_kernel::limits::{BULK_KEEP_MS, BULK_MAX, BULK_WAIT_MS, OUTCOMES_PER_PAGE};
use mainspring_kernel::{
    Backlog, Command, Decision, DlqItem, DlqState, Entity, Event, Facts, Job, JobId, JobType,
    Principal, Rejection, Role, Roles, State, StateName, TenantId, Timestamp, Token, TokenId,
    UserId, decide, evolve,
};

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const ID: EntityId = EntityId { kind: Kind::Bulk, bits: 77 };

fn tenant(name: &str) -> TenantId {
    TenantId::stored(name.into())
}

fn user(name: &str) -> UserId {
    UserId::stored(name.into())
}

fn token(id: u128, name: &str, issued_by: &str, at_ms: i64) -> Token {
    Token {
        id: TokenId(id),
        digest: [0; 32],
        tenant: tenant("acme"),
        user: user(name),
        roles: Roles::of(&[Role::Approver, Role::Operator]),
        issued_at: Timestamp::from_millis(at_ms),
        issued_by: user(issued_by),
        issued_with: None,
        expires_at: None,
        revoked_at: None,
    }
}

fn ann() -> Token {
    token(1, "ann", "root", 5)
}

fn bob() -> Token {
    token(2, "bob", "root", 5)
}

fn spec(action: BulkAction) -> BulkSpec {
    let state = (action == BulkAction::Cancel).then_some(StateName::Queued);
    let filter = BulkFilter { state, error_code: Some("E".into()), ..BulkFilter::default() };
    BulkSpec { action, filter, reason: "the database was away".into(), canary: None }
}

fn ask(command: BulkCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    decide(&command.into(), facts)
}

fn create(spec: BulkSpec, matched: u64) -> Result<Decision, Rejection> {
    let (ann, bob) = (ann(), bob());
    let tokens = [&ann, &bob];
    let facts = Facts { tokens: &tokens, ..Facts::at(NOW) };
    create_by(&ann.principal(), spec, matched, &facts)
}

fn create_by(
    by: &Principal,
    spec: BulkSpec,
    matched: u64,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let command = BulkCommand::Create {
        id: ID,
        tenant: tenant("acme"),
        by: Box::new(by.clone()),
        spec: Box::new(spec),
        matched,
        approval_above: 10,
    };
    ask(command, facts)
}

/// The operation that a decision left behind.
fn left(decided: Result<Decision, Rejection>) -> Entity {
    match decided.unwrap().events.pop() {
        Some(Event::EntitySet(entity)) => *entity,
        other => panic!("{other:?}"),
    }
}

fn bulk(entity: &Entity) -> &Bulk {
    let Body::Bulk(bulk) = &entity.body else { panic!("{entity:?}") };
    bulk
}

fn job(id: u128, state: State) -> Job {
    let job_type = JobType::stored("t".into());
    let wish = Submit::plain(tenant("acme"), user("sub"), job_type);
    let facts = Facts { fresh_id: id, ..Facts::at(NOW) };
    let made = decide(&Command::Submit(Box::new(wish)), &facts).unwrap().events.remove(0);
    let Event::JobSubmitted(job) = made else { panic!("{made:?}") };
    Job { state, ..*job }
}

fn item(id: u128) -> DlqItem {
    let job = job(id, State::DlqRecorded);
    DlqItem {
        id: job.id.dlq(),
        created_at: NOW,
        updated_at: NOW,
        version: 1,
        state: DlqState::Open,
        first_asked_at: None,
        job: Box::new(job),
    }
}

/// Does it to an item.
fn step(entity: &Entity, item: &DlqItem, fresh: u128) -> Result<Decision, Rejection> {
    let action = bulk(entity).spec.action;
    let facts = Facts { entity: Some(entity), item: Some(item), fresh_id: fresh, ..Facts::at(NOW) };
    ask(BulkCommand::Step { id: ID, action, target: Target::Item(item.id) }, &facts)
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |change: fn(&mut BulkSpec), action| {
        let mut spec = spec(action);
        change(&mut spec);
        create(spec, 1).unwrap_err().to_string()
    };
    use BulkAction::{Cancel, Discard, Pause, Requeue, Resume};
    for action in [Requeue, Discard, Cancel] {
        assert!(create(spec(action), 0).is_ok());
        let empty = refused(|spec| spec.filter.error_code = None, action);
        assert_eq!(empty, "filter must name something besides the state");
        assert_eq!(refused(|spec| spec.reason = " \t".into(), action), "reason must say why");
        assert!(refused(|spec| spec.reason = "x".repeat(4097).into(), action).contains("4096"));
        assert!(refused(|spec| spec.reason = "a\u{0}".into(), action).contains("control"));
    }
    let with = |first, ratio| Some(Canary { first, max_failure_ratio: Milli(ratio) });
    assert_eq!(with(1, 1), with(1, 1));
    for canary in [with(0, 0), with(101, 0), with(1, 1_001)] {
        let refused = create(BulkSpec { canary, ..spec(Requeue) }, 1).unwrap_err();
        assert_eq!(refused.code(), "REQ_VALIDATION_FAILED");
    }
    for action in [Discard, Cancel] {
        let refused = create(BulkSpec { canary: with(1, 0), ..spec(action) }, 1).unwrap_err();
        assert_eq!(refused.to_string(), "canary belongs to requeue");
    }
    let status = "filter must have a status: queued, running or retrying";
    assert_eq!(refused(|spec| spec.filter.state = None, Cancel), status);
    assert_eq!(refused(|spec| spec.filter.state = Some(StateName::Failed), Cancel), status);
    assert!(refused(|spec| spec.filter.signature = Some("x".into()), Cancel).contains("none"));
    for (action, state) in
        [(Pause, StateName::Running), (Pause, StateName::Failed), (Resume, StateName::Queued)]
    {
        let mut spec = spec(Cancel);
        (spec.action, spec.filter.state) = (action, Some(state));
        assert!(create(spec, 1).unwrap_err().to_string().contains("status"), "{state}");
    }
    assert!(refused(|s| s.filter.state = Some(StateName::Queued), Requeue).contains("state"));
    assert_eq!(create(spec(Requeue), BULK_MAX + 1), Err(Rejection::BulkTooLarge));
}

#[test]
fn many_things_take_a_second_person() {
    let few = left(create(spec(BulkAction::Requeue), 10));
    assert_eq!((few.state(), few.alarm_at()), ("running", None));
    let many = left(create(spec(BulkAction::Requeue), 11));
    assert_eq!(
        (many.state(), many.alarm_at()),
        ("awaiting_approval", Some(NOW.plus_millis(BULK_WAIT_MS)))
    );
    // Nothing is done before.
    assert_eq!(step(&many, &item(5), 9), Err(Rejection::NotDue));
    let (ann, bob) = (ann(), bob());
    let (other, made, new) = (
        token(3, "\u{430}nn", "root", 5),
        token(4, "eve", "ann", 5),
        token(5, "eve", "root", i64::MAX / 2000),
    );
    let tokens = [&ann, &bob, &other, &made, &new];
    let facts = Facts { entity: Some(&many), tokens: &tokens, ..Facts::at(NOW) };
    let approve = |by: &Token, version| {
        ask(BulkCommand::Approve { id: ID, by: Box::new(by.principal()), version }, &facts)
    };
    assert_eq!(approve(&ann, 1), Err(Rejection::SamePerson));
    assert_eq!(approve(&other, 1), Err(Rejection::SamePerson), "looks alike");
    assert_eq!(approve(&made, 1), Err(Rejection::NotIndependent));
    assert_eq!(approve(&new, 1), Err(Rejection::TokenTooNew));
    assert_eq!(approve(&bob, 2), Err(Rejection::EntityChanged { kind: Kind::Bulk }));
    let agreed = left(approve(&bob, 1));
    assert_eq!(agreed.state(), "running");
    assert_eq!(bulk(&agreed).approved.as_ref().unwrap().by, user("bob"));
    let facts = Facts { entity: Some(&agreed), ..facts };
    let again = BulkCommand::Approve { id: ID, by: Box::new(bob.principal()), version: 2 };
    assert_eq!(ask(again, &facts), Err(Rejection::BulkConflict { state: "running" }));
    // Where nobody could agree, nothing begins; and who does not agree in time does not.
    let alone = [&ann, &other, &made];
    let facts = Facts { tokens: &alone, ..Facts::at(NOW) };
    let refused = create_by(&ann.principal(), spec(BulkAction::Requeue), 11, &facts);
    assert_eq!(refused, Err(Rejection::NoSecondPerson));
    let at = many.alarm_at().unwrap();
    let facts = Facts { entity: Some(&many), ..Facts::at(at) };
    let late = left(decide(&Command::Ring { entity: ID, at, jobs: Vec::new() }, &facts));
    assert_eq!(late.state(), "stopped");
    assert_eq!(late.alarm_at(), Some(at.plus_millis(BULK_KEEP_MS)));
}

#[test]
fn nothing_is_done_twice_and_every_outcome_is_kept() {
    let mut entity = left(create(spec(BulkAction::Requeue), 10));
    let Body::Bulk(begun) = &mut entity.body else { panic!("no operation") };
    begun.matched = 53;
    let mut pages = 0;
    for n in (1..=(OUTCOMES_PER_PAGE as u128 + 3)).rev() {
        let mut item = item(n);
        if n % 10 == 0 {
            let proposal = Proposal { by: user("x"), reason: "r".into(), at: NOW, token: None };
            item.state = DlqState::DiscardRequested(proposal);
        }
        let decided = step(&entity, &item, 1_000 + n).unwrap();
        let made = decided.events.iter().any(|event| matches!(event, Event::JobSubmitted(_)));
        assert_eq!(made, n % 10 != 0, "{n}");
        for event in &decided.events {
            if let Event::EntitySet(set) = event
                && let Body::BulkPage(page) = &set.body
            {
                assert_eq!((set.id, page.outcomes.len()), (page_id(ID, 0), OUTCOMES_PER_PAGE));
                pages += 1;
            }
        }
        let next = left(Ok(decided));
        // Whoever comes second, and whoever is behind, does nothing.
        for behind in [n, n + 1] {
            assert_eq!(step(&next, &self::item(behind), 1), Err(Rejection::NotDue), "{behind}");
        }
        entity = next;
    }
    let bulk = bulk(&entity);
    assert_eq!((bulk.done, bulk.failed, bulk.pages, pages), (48, 5, 1, 1));
    assert_eq!(bulk.outcomes.len(), 3);
    let facts = Facts { entity: Some(&entity), ..Facts::at(NOW) };
    assert_eq!(step(&entity, &item(0), 1), Err(Rejection::NotDue), "more than it was about");
    let early = BulkCommand::Finish { id: ID, behind: Some(7) };
    assert_eq!(ask(early, &facts), Err(Rejection::NotDue), "somebody else is ahead");
    let done = left(ask(BulkCommand::Finish { id: ID, behind: Some(1) }, &facts));
    assert_eq!(done.state(), "done");
    let facts = Facts { entity: Some(&done), ..Facts::at(NOW) };
    let stop = BulkCommand::Stop { id: ID, by: user("x"), why: None };
    assert_eq!(ask(stop, &facts), Err(Rejection::BulkConflict { state: "done" }));
}

#[test]
fn strangers_and_full_backlogs_are_left_alone() {
    let entity = left(create(spec(BulkAction::Requeue), 10));
    let mut foreign = item(5);
    foreign.job.tenant = tenant("other");
    assert_eq!(step(&entity, &foreign, 1), Err(Rejection::NotDue));
    let item = item(5);
    let backlog = Backlog { tenant: 1, tenant_max: 1, ..Backlog::UNBOUNDED };
    let facts =
        Facts { entity: Some(&entity), item: Some(&item), backlog, fresh_id: 9, ..Facts::at(NOW) };
    let target = Target::Item(item.id);
    let step = |action| ask(BulkCommand::Step { id: ID, action, target }, &facts);
    assert_eq!(step(BulkAction::Requeue), Err(Rejection::TenantBacklogFull), "it waits for room");
    assert_eq!(step(BulkAction::Discard), Err(Rejection::NotDue), "that was not asked for");
}

#[test]
fn only_jobs_that_are_still_so_are_cancelled() {
    let entity = left(create(spec(BulkAction::Cancel), 10));
    let (waits, moved) = (job(9, State::Queued), job(8, State::Retrying { due_at: NOW }));
    let step = |entity: &Entity, job: &Job| {
        let (action, target) = (BulkAction::Cancel, Target::Job(job.id));
        let facts = Facts { entity: Some(entity), job: Some(job), ..Facts::at(NOW) };
        ask(BulkCommand::Step { id: ID, action, target }, &facts)
    };
    let decided = step(&entity, &waits).unwrap();
    assert!(matches!(&decided.events[0], Event::JobMoved(event) if event.job == waits.id));
    let one = left(Ok(decided));
    let two = left(step(&one, &moved));
    assert_eq!((bulk(&two).done, bulk(&two).failed), (1, 1));
    assert_eq!(bulk(&two).outcomes[1].code.as_deref(), Some("JOB_CANCEL_CONFLICT"));
}

fn of_jobs(action: BulkAction, state: StateName) -> Entity {
    let mut spec = spec(BulkAction::Cancel);
    (spec.action, spec.filter.state) = (action, Some(state));
    left(create(spec, 10))
}

fn step_job(entity: &Entity, action: BulkAction, job: &Job, now: Timestamp) -> Decision {
    let target = Target::Job(job.id);
    let facts = Facts { entity: Some(entity), job: Some(job), ..Facts::at(now) };
    ask(BulkCommand::Step { id: ID, action, target }, &facts).unwrap()
}

/// The job after the moves of a decision, and what became of the step.
fn moved(mut job: Job, decided: Decision) -> (Job, Option<String>) {
    for event in &decided.events {
        if let Event::JobMoved(event) = event {
            evolve(&mut job, event).unwrap();
        }
    }
    let entity = left(Ok(decided));
    let code = bulk(&entity).outcomes[0].code.as_deref().map(str::to_owned);
    (job, code)
}

#[test]
fn what_waits_is_paused_and_is_due_again_as_it_was() {
    use BulkAction::{Pause, Resume};
    let conflict = Some("JOB_PAUSE_CONFLICT".to_owned());
    let pause = |job: Job, state: StateName| {
        let decided = step_job(&of_jobs(Pause, state), Pause, &job, NOW);
        moved(job, decided)
    };
    let resume = |job: Job, now: Timestamp| {
        let decided = step_job(&of_jobs(Resume, StateName::Retrying), Resume, &job, now);
        moved(job, decided)
    };
    let later = NOW.plus_millis(60_000);
    for run_at in [NOW, later] {
        let job = Job { run_at, ..job(9, State::Queued) };
        let tries = job.retry_count;
        let (held, code) = pause(job, StateName::Queued);
        assert_eq!((code, held.due_at()), (None, Some(Timestamp::NEVER)));
        assert_eq!(held.retry_count, tries, "no try is used up");
        // Once is enough.
        let (held, code) = pause(held, StateName::Retrying);
        assert_eq!(code, conflict);
        let (free, code) = resume(held.clone(), NOW);
        assert_eq!((code, free.due_at()), (None, Some(run_at)), "not before it was to run");
        assert_eq!(resume(free, NOW).1, conflict, "it is not paused any more");
        let (free, _) = resume(held, later);
        assert_eq!(free.due_at(), Some(later), "at once, if that has passed");
    }
    // One that waits for something else, runs, has moved on or has ended is left alone.
    for (state, named) in [
        (State::Retrying { due_at: Timestamp::NEVER }, StateName::Retrying),
        (State::Retrying { due_at: NOW }, StateName::Queued),
        (State::Failed { finished_at: NOW }, StateName::Queued),
    ] {
        let before = job(9, state);
        let (after, code) = pause(before.clone(), named);
        assert_eq!((after, code), (before, conflict.clone()));
    }
    let waits = job(9, State::Retrying { due_at: Timestamp::NEVER });
    assert_eq!(resume(waits, NOW).1, conflict, "nobody paused it");
}

#[test]
fn a_discard_is_asked_for_with_the_askers_own_token() {
    let entity = left(create(spec(BulkAction::Discard), 10));
    let (ann, bob, item) = (ann(), bob(), item(5));
    let (both, alone) = ([&ann, &bob], [&ann]);
    let step = |tokens| {
        let (action, target) = (BulkAction::Discard, Target::Item(item.id));
        let facts = Facts { entity: Some(&entity), item: Some(&item), tokens, ..Facts::at(NOW) };
        ask(BulkCommand::Step { id: ID, action, target }, &facts)
    };
    let decided = step(&both[..]).unwrap();
    let Event::ItemChanged { state, .. } = &decided.events[0] else { panic!("{decided:?}") };
    let DlqState::DiscardRequested(proposal) = &**state else { panic!("{state:?}") };
    assert_eq!((proposal.by.as_str(), proposal.token), ("ann", Some(ann.id)));
    let refused = left(step(&alone[..]));
    assert_eq!(bulk(&refused).outcomes[0].code.as_deref(), Some("APPROVAL_NO_SECOND_PERSON"));
}

#[test]
fn the_first_ones_decide_about_the_others() {
    let canary = Some(Canary { first: 2, max_failure_ratio: Milli(500) });
    let entity = left(create(BulkSpec { canary, ..spec(BulkAction::Requeue) }, 10));
    let one = left(step(&entity, &item(9), 101));
    assert_eq!(one.state(), "running");
    let two = left(step(&one, &item(8), 102));
    assert_eq!((two.state(), &bulk(&two).canaries), ("canary", &vec![JobId(101), JobId(102)]));
    assert_eq!(step(&two, &item(7), 103), Err(Rejection::NotDue), "it waits");
    let judge = |states: [Option<State>; 2]| {
        let jobs = states.map(|state| state.map(|state| job(1, state)));
        let watched = [(JobId(101), jobs[0].as_ref()), (JobId(102), jobs[1].as_ref())];
        let facts = Facts { entity: Some(&two), watched: &watched, ..Facts::at(NOW) };
        ask(BulkCommand::Judge { id: ID, jobs: vec![JobId(101), JobId(102)] }, &facts)
    };
    let well = || Some(State::Succeeded { finished_at: NOW, result: None });
    let badly = || Some(State::Failed { finished_at: NOW });
    assert_eq!(judge([well(), Some(State::Queued)]), Err(Rejection::NotDue));
    assert_eq!(judge([badly(), Some(State::Queued)]), Err(Rejection::NotDue), "half may fail");
    for on in [[well(), well()], [well(), badly()], [None, well()]] {
        let next = left(judge(on));
        assert_eq!((next.state(), bulk(&next).is_judged), ("running", true));
        assert_eq!(left(step(&next, &item(7), 103)).state(), "running", "the others go on");
    }
    for over in [[badly(), badly()], [None, badly()]] {
        let next = left(judge(over));
        assert_eq!(next.state(), "stopped");
        let told = bulk(&next).stopped.as_ref().unwrap();
        assert_eq!((&*told.why, &told.by), ("2 of the first 2 jobs failed", &None));
        assert_eq!(bulk(&next).status, BulkStatus::Stopped);
        assert_eq!(step(&next, &item(7), 103), Err(Rejection::NotDue));
    }
}

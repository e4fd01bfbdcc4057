//! One fixed value of every kind of record: what the golden bytes are made of.

use super::bulks::{bulk, bulk_page};
use super::governed::{alert, audit_entry, audit_head, gate, object, plain_object};
use super::limits::{circuit, flowing, keyed, meter, share_of_tenant, tenant_card};
use super::schedules::{
    cron_schedule, fired_schedule, full_schedule, plain_schedule, plan_schedule,
};
use super::subscriptions;
use super::waits;
use mainspring_kernel::dlq::Proposal;
use mainspring_kernel::entity::beacon::Beacon;
use mainspring_kernel::entity::question::{Asked, Question, Standing};
use mainspring_kernel::entity::schedule::Schedule;
use mainspring_kernel::entity::trigger::Trigger;
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::event::{Change, Hold, HoldCode, JOB_CANCELLED, KeyHolder, TASK_EXPIRED};
use mainspring_kernel::evolve::Reason;
use mainspring_kernel::executor::{Executor, Process, Webhook};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::{Bucket, CircuitState, Meter};
use mainspring_kernel::job::{
    AcceptedReport, Actor, Effect, EffectTotals, Extras, Idempotency, LastFailure, LeaseToken,
    ProgressNote,
};
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::retry::Backoff;
use mainspring_kernel::{
    DlqItem, DlqState, Entity, EntityId, Event, Failure, Job, JobEvent, JobId, JobType, Lease,
    QueueName, QueueOrder, QueueSpec, Roles, State, StateName, TenantId, Timestamp, Token, TokenId,
    Transition, TypeSpec, UserId, WorkerId,
};
use mainspring_store::JobWithHistory;
use mainspring_store::record::Record;
use std::sync::Arc;

pub(crate) const NOW: Timestamp = Timestamp(1_790_000_000_000_000);

pub(crate) fn later(seconds: i64) -> Timestamp {
    Timestamp(NOW.0 + seconds * 1_000_000)
}

pub(crate) fn id(number: u128) -> JobId {
    JobId((0x01a0_c2f4_1800_7000_u128 << 64) | number)
}

pub(crate) fn hash(text: &str) -> Digest {
    // Not a real one: the bytes kept must not depend on how digests are made.
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(text.bytes().cycle()).for_each(|(to, from)| *to = from);
    Digest(bytes)
}

pub(crate) fn user(name: &str) -> UserId {
    UserId::stored(name.into())
}

fn worker() -> WorkerId {
    WorkerId::stored("worker-7".into())
}

fn failure() -> Failure {
    let message = "the mill caught fire: \u{1f525}".into();
    Failure { code: "MILL_BURNT".into(), message, retryable: true }
}

fn report() -> Box<AcceptedReport> {
    let token = LeaseToken { fence: 3, secret: 0xfeed_beef };
    Box::new(AcceptedReport { token, digest: hash("said") })
}

pub(crate) fn lease() -> Lease {
    Lease {
        fence: 3,
        secret: 0xfeed_beef,
        worker: worker(),
        granted_at: NOW,
        expires_at: later(60),
        deadline_at: later(900),
        settled_at: None,
        due_at: None,
        holder: None,
    }
}

/// A job with nothing in it that is not asked for.
pub(crate) fn plain_job(payload: &str) -> Job {
    Job {
        id: id(1),
        tenant: TenantId::stored("acme".into()),
        user: user("ada"),
        job_type: JobType::stored("report.render".into()),
        queue: QueueName::stored("default".into()),
        payload: payload.into(),
        priority: 50,
        max_retries: 3,
        retry_count: 0,
        timeout_ms: 900_000,
        seq: 1,
        fence: 0,
        created_at: NOW,
        updated_at: NOW,
        run_at: NOW,
        started_at: None,
        trace: None,
        idempotency: None,
        last_failure: None,
        last_report: None,
        extras: None,
        state: State::Queued,
    }
}

/// A job with everything in it.
pub(crate) fn full_job(state: State) -> Job {
    let effect = |name: &str, value: &str| Effect {
        name: name.into(),
        value: value.into(),
        committed_at: later(5),
    };
    Job {
        retry_count: 2,
        seq: 6,
        fence: 3,
        updated_at: later(40),
        run_at: later(-7),
        started_at: Some(later(30)),
        trace: Some("trace_given".into()),
        idempotency: Some(Box::new(Idempotency {
            hash: hash("key"),
            scope: "orders".into(),
            key: "order-17".into(),
            fingerprint: Some(hash("fields")),
            window_secs: Some(86_400),
        })),
        last_failure: Some(Box::new(LastFailure {
            failure: failure(),
            at: later(20),
            is_exhausted: true,
            result: None,
        })),
        last_report: Some(report()),
        extras: Some(Box::new(Extras {
            parent: Some(id(9)),
            source_dlq: Some(id(8).dlq()),
            subject: Some("order 17".into()),
            labels: vec![("team".into(), "mill".into()), ("empty".into(), "".into())],
            expires_at: Some(later(3600)),
            effects: vec![effect("charge", r#"{"id":17}"#), effect("mail", "null")],
            effects_elsewhere: EffectTotals::default(),
            progress_pct: Some(40),
            alias: None,
            plan: None,
            traceparent: None,
            bounds: None,
            course: None,
            limit_keys: None,
        })),
        state,
        ..plain_job(r#"{"n":1.50,"text":"ä"}"#)
    }
}

/// A job whose caller chose its name.
fn named_job() -> Job {
    let mut job = full_job(State::Queued);
    job.extras_mut().alias = Some(Box::new(Idempotency {
        hash: hash("name"),
        scope: "task".into(),
        key: "task_20260225_0001".into(),
        fingerprint: None,
        window_secs: Some(777_600),
    }));
    job
}

/// A job that stands for a plan.
fn planned_job() -> Job {
    let mut job = named_job();
    job.extras_mut().plan = Some(EntityId { kind: Kind::Schedule, bits: id(10).0 });
    job
}

fn moved(actor: Actor, change: Change) -> Event {
    Event::JobMoved(JobEvent { job: id(1), seq: 7, at: later(41), actor, change })
}

/// A claim as a pull makes it: at the instant of the commit.
pub(crate) fn claim() -> Event {
    let (actor, change) = (Actor::Worker(worker()), Change::Claimed(Box::new(lease())));
    Event::JobMoved(JobEvent { job: id(1), seq: 2, at: NOW, actor, change })
}

fn proposal() -> Proposal {
    Proposal { by: user("ada"), reason: "a test order".into(), at: later(50), token: None }
}

/// As it is written since proposals name their token.
fn signed() -> Proposal {
    Proposal { token: Some(TokenId(77)), ..proposal() }
}

pub(crate) fn item(state: DlqState) -> DlqItem {
    DlqItem {
        id: id(1).dlq(),
        job: Box::new(full_job(State::DlqPending)),
        created_at: later(41),
        updated_at: later(60),
        version: 2,
        state,
        first_asked_at: None,
    }
}

pub(crate) fn token(expires_at: Option<Timestamp>, revoked_at: Option<Timestamp>) -> Token {
    Token {
        id: TokenId(77),
        digest: [0xab; 32],
        tenant: TenantId::stored("acme".into()),
        user: user("ada"),
        roles: Roles(0b0100_1001),
        issued_at: NOW,
        issued_by: user("root"),
        issued_with: None,
        expires_at,
        revoked_at,
    }
}

fn issued_with() -> Token {
    Token { issued_with: Some(TokenId(7)), ..token(None, None) }
}

fn asked_before() -> DlqItem {
    DlqItem { first_asked_at: Some(later(50)), ..item(DlqState::Open) }
}

pub(crate) fn spec(limit: Option<u32>, scope: ConcurrencyScope) -> TypeSpec {
    TypeSpec {
        domain: "paper".into(),
        is_schedulable: false,
        concurrency_limit: limit,
        concurrency_scope: scope,
        backoff: Backoff { base_ms: 250, max_ms: 60_000 },
        ..TypeSpec::plain(JobType::stored("report.render".into()))
    }
}

fn executed(executor: Executor) -> Event {
    let file_entry = Some(Digest([0xfe; 16])).filter(|_| executor == Executor::InProcess);
    let executor = Some(Box::new(executor));
    Event::TypeSet(Box::new(TypeSpec {
        file_entry,
        executor,
        ..spec(None, ConcurrencyScope::Global)
    }))
}

fn process() -> Process {
    Process {
        command: "/usr/bin/render".into(),
        args: vec!["--page".into(), "7".into()],
        cwd: Some("/srv/paper".into()),
        env: vec!["LANG".into(), "INK=black".into()],
        is_shell: false,
        kill_grace_ms: 5_000,
    }
}

fn webhook() -> Webhook {
    Webhook { url: "https://paper.example/render".into(), timeout_ms: 30_000 }
}

fn queue(is_paused: bool, order: QueueOrder) -> QueueSpec {
    QueueSpec { is_paused, order, ..QueueSpec::plain(QueueName::stored("slow".into())) }
}

#[expect(clippy::too_many_lines, reason = "a flat list")]
pub(crate) fn moves() -> Vec<(&'static str, Event)> {
    let by_worker = || Actor::Worker(worker());
    vec![
        ("event_claimed", moved(by_worker(), Change::Claimed(Box::new(lease())))),
        (
            "event_claimed_by_hand",
            moved(Actor::User(user("ada")), Change::Claimed(Box::new(lease()))),
        ),
        (
            "event_succeeded",
            moved(by_worker(), Change::Succeeded { result: None, report: Some(report()) }),
        ),
        (
            "event_succeeded_with_result",
            moved(by_worker(), Change::Succeeded { result: Some("[1]".into()), report: None }),
        ),
        (
            "event_retry_scheduled",
            moved(
                by_worker(),
                Change::RetryScheduled {
                    failure: failure(),
                    due_at: later(43),
                    report: Some(report()),
                },
            ),
        ),
        (
            "event_retry_scheduled_by_reaper",
            moved(
                Actor::Reaper,
                Change::RetryScheduled { failure: failure(), due_at: later(43), report: None },
            ),
        ),
        ("event_released", moved(by_worker(), released(Some("going home")))),
        ("event_released_without_reason", moved(by_worker(), released(None))),
        (
            "event_released_to_wait",
            moved(
                by_worker(),
                Change::Released {
                    reason: None,
                    report: report(),
                    due_at: Some(Timestamp::NEVER),
                    hold: None,
                },
            ),
        ),
        (
            "event_dead_lettered",
            moved(
                by_worker(),
                Change::DeadLettered {
                    failure: failure(),
                    is_exhausted: true,
                    report: Some(report()),
                    result: None,
                },
            ),
        ),
        (
            "event_dead_lettered_with_result",
            moved(
                by_worker(),
                Change::DeadLettered {
                    failure: failure(),
                    is_exhausted: false,
                    report: None,
                    result: Some(r#"{"done":3}"#.into()),
                },
            ),
        ),
        (
            "event_held",
            moved(
                Actor::Reaper,
                Change::Released {
                    due_at: None,
                    reason: None,
                    report: report(),
                    hold: Some(Hold { code: HoldCode::GateClosed, until: later(60) }),
                },
            ),
        ),
        ("event_hastened", moved(Actor::User(user("ada")), Change::Hastened)),
        ("event_unblocked", moved(Actor::Reaper, Change::Unblocked { run_at: later(70) })),
        ("event_dlq_recorded", moved(Actor::Reaper, Change::DlqRecorded)),
        ("event_failed", moved(Actor::Reaper, Change::Failed)),
        (
            "event_cancelled",
            moved(
                Actor::User(user("ada")),
                Change::Cancelled { code: JOB_CANCELLED, reason: Some("changed my mind".into()) },
            ),
        ),
        (
            "event_expired",
            moved(Actor::Reaper, Change::Cancelled { code: TASK_EXPIRED, reason: None }),
        ),
    ]
}

fn released(reason: Option<&str>) -> Change {
    let reason = reason.map(Into::into);
    Change::Released { reason, report: report(), due_at: None, hold: None }
}

pub(crate) fn events() -> Vec<(&'static str, Event)> {
    let renewed = |progress_pct, settled| Event::LeaseRenewed {
        job: id(1),
        fence: 3,
        expires_at: later(99),
        progress_pct,
        note: None,
        settled,
    };
    let settled = renewed(None, Some((later(990), later(95))));
    let effect =
        Effect { name: "charge".into(), value: r#"{"id":17}"#.into(), committed_at: later(5) };
    let changed = |state| Event::ItemChanged {
        item: id(1).dlq(),
        version: 3,
        at: later(61),
        state: Box::new(state),
    };
    let mut all = vec![
        ("event_job_submitted", Event::JobSubmitted(Box::new(plain_job("{}")))),
        ("event_job_submitted_full", Event::JobSubmitted(Box::new(full_job(State::Queued)))),
        ("event_job_submitted_named", Event::JobSubmitted(Box::new(named_job()))),
        ("event_job_submitted_planned", Event::JobSubmitted(Box::new(planned_job()))),
        ("event_lease_renewed", renewed(None, None)),
        ("event_lease_renewed_with_progress", renewed(Some(40), None)),
        ("event_lease_renewed_and_settled", settled),
        ("event_effect_committed", Event::EffectCommitted { job: id(1), effect }),
        ("event_item_opened", Event::ItemOpened(Box::new(item(DlqState::Open)))),
        ("event_item_open_again", changed(DlqState::Open)),
        ("event_item_requeued", changed(requeued())),
        ("event_item_discard_requested", changed(DlqState::DiscardRequested(proposal()))),
        ("event_item_discarded", changed(discarded())),
        ("event_item_discard_signed", changed(DlqState::DiscardRequested(signed()))),
        ("event_item_glass_broken", changed(DlqState::GlassBroken(signed()))),
        ("event_entity_set", Event::EntitySet(Box::new(entity(None)))),
        ("event_entity_set_with_alarm", Event::EntitySet(Box::new(entity(Some(later(70)))))),
        ("event_schedule_plain", schedule(plain_schedule())),
        ("event_schedule_everything", schedule(full_schedule("mill".into(), 7, Some(later(70))))),
        ("event_schedule_cron", schedule(cron_schedule())),
        ("event_schedule_fired", schedule(fired_schedule())),
        ("event_schedule_of_plan", schedule(plan_schedule())),
        ("event_question_open", question(Standing::Open)),
        ("event_question_token", question_with_token()),
        (
            "event_question_answered",
            question(Standing::Answered { answer: "blue".into(), by: user("bob"), at: later(20) }),
        ),
        ("event_question_defaulted", question(Standing::Defaulted { at: later(21) })),
        ("event_question_expired", question(Standing::Expired { at: later(22) })),
        ("event_question_withdrawn", question(Standing::Withdrawn { at: later(23) })),
        ("event_trigger_plain", trigger(crate::triggers::plain())),
        ("event_trigger_everything", trigger(crate::triggers::full(7, Some(later(70))))),
        ("event_entity_removed", Event::EntityRemoved { entity: entity(None).id, version: 5 }),
        ("event_type_set", Event::TypeSet(Box::new(spec(Some(4), ConcurrencyScope::User)))),
        (
            "event_type_set_by_file",
            Event::TypeSet(Box::new(TypeSpec {
                file_entry: Some(Digest([0xfe; 16])),
                ..spec(None, ConcurrencyScope::Global)
            })),
        ),
        ("event_type_set_promised", super::limits::promised(spec(None, ConcurrencyScope::Global))),
        ("event_type_set_pulled", executed(Executor::Pull)),
        ("event_type_set_in_process", executed(Executor::InProcess)),
        ("event_type_set_process", executed(Executor::Process(process()))),
        ("event_type_set_webhook", executed(Executor::Webhook(webhook()))),
        ("event_queue_set", Event::QueueSet(queue(true, QueueOrder::Due))),
        ("event_token_issued", Event::TokenIssued(Box::new(token(Some(later(9)), None)))),
        ("event_object_plain", governed(Kind::Object, plain_object())),
        ("event_object", governed(Kind::Object, object("exp_1", Some(later(70)), 3))),
        ("event_gate", governed(Kind::Gate, gate(None))),
        ("event_tenant", governed(Kind::Tenant, tenant_card())),
        ("event_audit_head", governed(Kind::AuditHead, audit_head())),
        ("event_audit_entry", governed(Kind::AuditEntry, audit_entry(Some("{}"), 12))),
        ("event_audit_denied", governed(Kind::AuditEntry, audit_entry(None, 13))),
        ("event_alert", governed(Kind::Alert, alert("", None))),
        ("event_alert_over", governed(Kind::Alert, alert("mill", Some(later(80))))),
        ("event_bulk", governed(Kind::Bulk, bulk("mill", None, 3))),
        ("event_bulk_over", governed(Kind::Bulk, bulk("mill", Some(later(80)), 7))),
        ("event_bulk_page", governed(Kind::BulkPage, bulk_page())),
        ("event_gate_with_reason", governed(Kind::Gate, gate(Some("an incident")))),
        ("event_subscription_fresh", governed(Kind::Subscription, subscriptions::fresh())),
        ("event_subscription_consumer", governed(Kind::Subscription, subscriptions::consumer())),
        ("event_subscription", governed(Kind::Subscription, full_subscription())),
        ("event_token_revoked", Event::TokenRevoked { token: TokenId(77), at: later(8) }),
    ];
    all.extend(moves());
    all.extend(waiting());
    all
}

fn waiting() -> [(&'static str, Event); 3] {
    let of = |small| governed(Kind::Wait, waits::full(70_000, later(70), small));
    [
        ("event_wait", of(3)),
        ("event_wait_without_batch", of(2)),
        ("event_lease_renewed_with_note", noted()),
    ]
}

/// A heartbeat that says more than a number.
fn noted() -> Event {
    let message = Some("half of it".into());
    let note = ProgressNote { message, checkpoint: Some(r#"{"row":17}"#.into()) };
    Event::LeaseRenewed {
        job: id(1),
        fence: 3,
        expires_at: later(99),
        progress_pct: Some(50),
        note: Some(Box::new(note)),
        settled: None,
    }
}

/// A job with bounds and a course.
fn bounded() -> JobWithHistory {
    let (bounds, course) = (Some(waits::all_bounds(later(900))), Some(waits::whole_course()));
    let extras = Some(Box::new(Extras { bounds, course, ..Extras::default() }));
    let job = Job { extras, ..plain_job("{}") };
    JobWithHistory { history: vec![Transition::submitted(&job)], job }
}

/// A job that another system's trace leads to.
fn traced() -> JobWithHistory {
    let traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into());
    let extras = Some(Box::new(Extras { traceparent, ..Extras::default() }));
    let job = Job { extras, ..plain_job("{}") };
    JobWithHistory { history: vec![Transition::submitted(&job)], job }
}

/// A job that limits count by key.
fn full_subscription() -> Body {
    subscriptions::full("mail".into(), 70_000, Some(later(70)), 3)
}

fn entity(alarm_at: Option<Timestamp>) -> Entity {
    Entity {
        id: EntityId { kind: Kind::Beacon, bits: id(9).0 },
        version: 4,
        tenant: TenantId::stored("acme".into()),
        owner: user("ada"),
        created_at: later(1),
        updated_at: later(10),
        body: body("mill".into(), 60_000, alarm_at, 7),
    }
}

/// What an entity is, made of whatever there is.
pub(crate) fn body(name: Arc<str>, large: u64, at: Option<Timestamp>, small: u32) -> Body {
    let job_type = JobType::stored(name);
    Body::Beacon(Beacon { job_type, every_ms: large, next_at: at, fired: small, missed: 1 })
}

fn governed(kind: Kind, body: Body) -> Event {
    let id = EntityId { kind, bits: id(11).0 };
    Event::EntitySet(Box::new(Entity { id, body, ..entity(None) }))
}

fn schedule(body: Schedule) -> Event {
    Event::EntitySet(Box::new(Entity {
        id: EntityId { kind: Kind::Schedule, bits: id(10).0 },
        body: Body::Schedule(Box::new(body)),
        ..entity(None)
    }))
}

fn question(standing: Standing) -> Event {
    Event::EntitySet(Box::new(Entity {
        id: EntityId { kind: Kind::Question, bits: id(11).0 },
        body: question_body(standing, Some(later(90))),
        ..entity(None)
    }))
}

fn question_with_token() -> Event {
    let Event::EntitySet(mut entity) = question(Standing::Open) else { unreachable!("it is one") };
    if let Body::Question(question) = &mut entity.body {
        question.secret = Some(77);
        question.kept_until = Some(later(95));
    }
    Event::EntitySet(entity)
}

fn trigger(body: Trigger) -> Event {
    Event::EntitySet(Box::new(Entity {
        id: EntityId { kind: Kind::Trigger, bits: id(11).0 },
        body: Body::Trigger(Box::new(body)),
        ..entity(None)
    }))
}

/// A question, made of whatever there is.
pub(crate) fn question_body(standing: Standing, deadline: Option<Timestamp>) -> Body {
    Body::Question(Box::new(Question {
        job: id(11),
        asked: Asked {
            text: "which colour?".into(),
            options: vec!["blue".into(), "gr\u{fc}n".into()],
            default: deadline.map(|_| "blue".into()),
            deadline,
        },
        count: 2,
        standing,
        secret: None,
        kept_until: None,
    }))
}

fn requeued() -> DlqState {
    DlqState::Requeued { job: id(2), by: user("bob"), key: Some("again-1".into()) }
}

fn discarded() -> DlqState {
    DlqState::Discarded { proposal: proposal(), approved_by: user("bob") }
}

fn snapshot(job: Job) -> Record {
    let history = vec![
        Transition::submitted(&job),
        Transition {
            seq: 2,
            from: Some(StateName::Queued),
            to: StateName::Running,
            at: later(30),
            attempt: 1,
            reason: None,
            actor: Actor::Worker(worker()),
        },
        Transition {
            seq: 3,
            from: Some(StateName::Running),
            to: StateName::Retrying,
            at: later(31),
            attempt: 1,
            reason: Some(Box::new(Reason { code: "MILL_BURNT".into(), message: "hot".into() })),
            actor: Actor::Worker(worker()),
        },
        Transition {
            seq: 4,
            from: Some(StateName::Retrying),
            to: StateName::Cancelled,
            at: later(32),
            attempt: 2,
            reason: Some(Box::new(Reason { code: TASK_EXPIRED.into(), message: "late".into() })),
            actor: Actor::Reaper,
        },
    ];
    Record::Job(Box::new(JobWithHistory { job, history }))
}

pub(crate) fn records() -> Vec<(&'static str, Record)> {
    let finished_at = later(42);
    let job = |state| snapshot(full_job(state));
    let key = |fingerprint, free_at| Record::Key {
        hash: hash("key"),
        holder: KeyHolder { job: id(1), fingerprint, free_at },
    };
    let whole = |spec: TypeSpec| Record::Type(Box::new(spec));
    vec![
        ("entity_job_plain", snapshot(plain_job("{}"))),
        ("entity_job_queued", job(State::Queued)),
        ("entity_job_running", job(State::Running(Box::new(lease())))),
        (
            "entity_job_running_settled",
            job(State::Running(Box::new(Lease { settled_at: Some(later(95)), ..lease() }))),
        ),
        (
            "entity_job_running_governed",
            job(State::Running(Box::new(Lease {
                due_at: Some(later(3)),
                holder: Some(user("eve")),
                ..lease()
            }))),
        ),
        ("entity_job_retrying", job(State::Retrying { due_at: later(50) })),
        ("entity_job_dlq_pending", job(State::DlqPending)),
        ("entity_job_dlq_recorded", job(State::DlqRecorded)),
        (
            "entity_job_succeeded",
            job(State::Succeeded { finished_at, result: Some(r#"{"ok":true}"#.into()) }),
        ),
        ("entity_job_succeeded_silently", job(State::Succeeded { finished_at, result: None })),
        ("entity_job_failed", job(State::Failed { finished_at })),
        ("entity_job_cancelled", job(State::Cancelled { finished_at })),
        ("entity_item_open", Record::Item(Box::new(item(DlqState::Open)))),
        ("entity_item_requeued", Record::Item(Box::new(item(requeued())))),
        (
            "entity_item_discard_requested",
            Record::Item(Box::new(item(DlqState::DiscardRequested(proposal())))),
        ),
        ("entity_item_discarded", Record::Item(Box::new(item(discarded())))),
        ("entity_item_asked_before", Record::Item(Box::new(asked_before()))),
        ("entity_type_global", whole(spec(None, ConcurrencyScope::Global))),
        ("entity_type_tenant", whole(spec(Some(0), ConcurrencyScope::Tenant))),
        ("entity_queue_aged", Record::Queue(queue(false, QueueOrder::Aged))),
        ("entity_queue_due", Record::Queue(queue(true, QueueOrder::Due))),
        ("entity_token", Record::Token(Box::new(token(None, None)))),
        ("entity_token_revoked", Record::Token(Box::new(token(None, Some(later(8)))))),
        ("entity_token_issued_with", Record::Token(Box::new(issued_with()))),
        ("entity_with_alarm", Record::Entity(Box::new(entity(Some(later(70)))))),
        ("entity_key_held", key(None, None)),
        ("entity_key_free_at", key(Some(hash("fields")), Some(later(90_000)))),
        ("entity_counters", Record::Counters(vec![0, 1, 300, u64::MAX])),
        ("entity_job_traced", Record::Job(Box::new(traced()))),
        ("entity_job_bounded", Record::Job(Box::new(bounded()))),
        ("entity_moves", Record::Moves(subscriptions::moves())),
        ("entity_job_keyed", Record::Job(Box::new(keyed()))),
        ("entity_type_flow", whole(flowing())),
        ("entity_queue_of_tenant", Record::Queue(share_of_tenant())),
        ("entity_bucket", meter(Meter::Bucket(Bucket { full_at: 1_790_000_000_123_456_789 }))),
        ("entity_circuit_closed", circuit(CircuitState::Closed { ends: 0b1011, count: 4 })),
        ("entity_circuit_open", circuit(CircuitState::Open { until: later(30) })),
        ("entity_circuit_half_open", circuit(CircuitState::HalfOpen { probe: id(7) })),
    ]
}

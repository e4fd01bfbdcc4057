//! Strategies for every type that is ever written.

use mainspring_kernel::dlq::Proposal;
use mainspring_kernel::entity::question::Standing;
use mainspring_kernel::entity::schedule::{Account, Schedule};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::event::{CANCEL_CODES, Change, Hold, HoldCode, KeyHolder};
use mainspring_kernel::evolve::Reason;
use mainspring_kernel::executor::{Executor, Process, Webhook};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::{
    Bucket, Circuit, CircuitState, Flow, KeySource, LimitKeys, Meter, Pause, RateLimit,
};
use mainspring_kernel::job::{
    AcceptedReport, Actor, Effect, EffectTotals, Extras, Idempotency, LastFailure, LeaseToken,
    Payload,
};
use mainspring_kernel::registry::{ConcurrencyScope, Sla, TenantShare};
use mainspring_kernel::retry::Backoff;
use mainspring_kernel::{
    DlqId, DlqItem, DlqState, Entity, EntityId, Event, Failure, Job, JobEvent, JobId, JobType,
    Lease, QueueName, QueueOrder, QueueSpec, Roles, State, StateName, TenantId, Timestamp, Token,
    TokenId, Transition, TypeSpec, UserId, WorkerId,
};
use mainspring_store::JobWithHistory;
use mainspring_store::record::Record;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use std::sync::Arc;

fn name() -> BoxedStrategy<Arc<str>> {
    prop_oneof![
        Just(Arc::from("acme")),
        Just(Arc::from("\u{e4}\u{1f525}")),
        "[!-~]{1,30}".prop_map(Arc::from),
        Just(Arc::from("x".repeat(200))),
    ]
    .boxed()
}

fn text() -> BoxedStrategy<Box<str>> {
    any::<String>().prop_map(Into::into).boxed()
}

fn payload() -> BoxedStrategy<Payload> {
    prop_oneof![any::<String>().prop_map(Payload::from), Just(Payload::from("x".repeat(70_000)))]
        .boxed()
}

pub(crate) fn instant() -> BoxedStrategy<Timestamp> {
    let near = 1_790_000_000_000_000..1_790_000_900_000_000i64;
    prop_oneof![8 => near, 1 => any::<i64>(), 1 => Just(i64::MAX), 1 => Just(i64::MIN)]
        .prop_map(Timestamp)
        .boxed()
}

fn hash() -> BoxedStrategy<Digest> {
    any::<[u8; 16]>().prop_map(Digest).boxed()
}

fn job_id() -> BoxedStrategy<JobId> {
    any::<u128>().prop_map(JobId).boxed()
}

fn user() -> BoxedStrategy<UserId> {
    name().prop_map(UserId::stored).boxed()
}

fn worker() -> BoxedStrategy<WorkerId> {
    name().prop_map(WorkerId::stored).boxed()
}

fn failure() -> BoxedStrategy<Failure> {
    (any::<String>(), text(), any::<bool>())
        .prop_map(|(code, message, retryable)| Failure { code: code.into(), message, retryable })
        .boxed()
}

fn report() -> BoxedStrategy<Box<AcceptedReport>> {
    (any::<u32>(), any::<u128>(), hash())
        .prop_map(|(fence, secret, digest)| {
            Box::new(AcceptedReport { token: LeaseToken { fence, secret }, digest })
        })
        .boxed()
}

fn lease() -> BoxedStrategy<Box<Lease>> {
    let whose = (of(instant()), of(instant()), of(user()));
    (any::<u32>(), any::<u128>(), worker(), instant(), instant(), instant(), whose)
        .prop_map(|(fence, secret, worker, granted_at, expires_at, deadline_at, whose)| {
            let (settled_at, due_at, holder) = whose;
            Box::new(Lease {
                fence,
                secret,
                worker,
                granted_at,
                expires_at,
                deadline_at,
                settled_at,
                due_at,
                holder,
            })
        })
        .boxed()
}

fn hold() -> BoxedStrategy<Hold> {
    let codes = proptest::sample::select(HoldCode::ALL.to_vec());
    (codes, instant()).prop_map(|(code, until)| Hold { code, until }).boxed()
}

fn state() -> BoxedStrategy<State> {
    prop_oneof![
        Just(State::Queued),
        lease().prop_map(State::Running),
        instant().prop_map(|due_at| State::Retrying { due_at }),
        Just(State::DlqPending),
        Just(State::DlqRecorded),
        (instant(), of(payload()))
            .prop_map(|(finished_at, result)| State::Succeeded { finished_at, result }),
        instant().prop_map(|finished_at| State::Failed { finished_at }),
        instant().prop_map(|finished_at| State::Cancelled { finished_at }),
    ]
    .boxed()
}

fn idempotency() -> BoxedStrategy<Box<Idempotency>> {
    (hash(), text(), text(), of(hash()), of(any::<u32>()))
        .prop_map(|(hash, scope, key, fingerprint, window_secs)| {
            Box::new(Idempotency { hash, scope, key, fingerprint, window_secs })
        })
        .boxed()
}

fn last_failure() -> BoxedStrategy<Box<LastFailure>> {
    (failure(), instant(), any::<bool>(), of(payload()))
        .prop_map(|(failure, at, is_exhausted, result)| {
            Box::new(LastFailure { failure, at, is_exhausted, result })
        })
        .boxed()
}

fn effect() -> BoxedStrategy<Effect> {
    (text(), payload(), instant())
        .prop_map(|(name, value, committed_at)| Effect { name, value, committed_at })
        .boxed()
}

fn extras() -> BoxedStrategy<Box<Extras>> {
    let rest = (
        of(instant()),
        vec(effect(), 0..3),
        of(any::<u8>()),
        of(idempotency()),
        of(any::<u128>()),
        of(super::waits::bounds()),
        of(super::waits::course()),
    );
    (of(job_id()), of(any::<u128>()), of(text()), vec((text(), text()), 0..4), rest)
        .prop_map(|(parent, dlq, subject, labels, rest)| {
            let (expires_at, effects, progress_pct, alias, plan, bounds, course) = rest;
            let source_dlq = dlq.map(DlqId);
            // With some that have no parent, with and without a plan.
            let is_traced = plan.is_none_or(|bits| bits % 2 == 0) && parent.is_none();
            let labels_too = labels.clone();
            let traceparent = is_traced.then(|| subject.clone()).flatten();
            Box::new(Extras {
                parent,
                source_dlq,
                subject,
                labels,
                expires_at,
                effects,
                effects_elsewhere: EffectTotals::default(),
                progress_pct,
                alias,
                plan: plan.map(|bits| EntityId { kind: Kind::Schedule, bits }),
                limit_keys: is_traced.then(|| Box::new(keys(&labels_too))),
                traceparent,
                bounds,
                course,
            })
        })
        .boxed()
}

fn keys(labels: &[(Box<str>, Box<str>)]) -> LimitKeys {
    let [one, other] = [labels.first(), labels.get(1)].map(|it| it.map(|(name, _)| name.clone()));
    LimitKeys { concurrency: one, rate: other }
}

pub(crate) fn job() -> BoxedStrategy<Job> {
    let names = (name(), name(), name(), name(), payload());
    let numbers = any::<(u8, u16, u16, u32, u32, u32)>();
    let instants = (instant(), instant(), instant(), of(instant()));
    let rare = (of(text()), of(idempotency()), of(last_failure()), of(report()), of(extras()));
    (job_id(), names, numbers, instants, rare, state())
        .prop_map(|(id, names, numbers, instants, rare, state)| Job {
            id,
            tenant: TenantId::stored(names.0),
            user: UserId::stored(names.1),
            job_type: JobType::stored(names.2),
            queue: QueueName::stored(names.3),
            payload: names.4,
            priority: numbers.0,
            max_retries: numbers.1,
            retry_count: numbers.2,
            timeout_ms: numbers.3,
            seq: numbers.4,
            fence: numbers.5,
            created_at: instants.0,
            updated_at: instants.1,
            run_at: instants.2,
            started_at: instants.3,
            trace: rare.0,
            idempotency: rare.1,
            last_failure: rare.2,
            last_report: rare.3,
            extras: rare.4,
            state,
        })
        .boxed()
}

fn actor() -> BoxedStrategy<Actor> {
    prop_oneof![user().prop_map(Actor::User), worker().prop_map(Actor::Worker), Just(Actor::Reaper)]
        .boxed()
}

fn change() -> BoxedStrategy<Change> {
    let codes = proptest::sample::select(CANCEL_CODES.to_vec());
    prop_oneof![
        lease().prop_map(Change::Claimed),
        (of(payload()), of(report()))
            .prop_map(|(result, report)| Change::Succeeded { result, report }),
        (failure(), instant(), of(report())).prop_map(|(failure, due_at, report)| {
            Change::RetryScheduled { failure, due_at, report }
        }),
        (of(text()), report(), of(instant()), of(hold())).prop_map(
            |(reason, report, due_at, hold)| { Change::Released { reason, report, due_at, hold } }
        ),
        Just(Change::Hastened),
        instant().prop_map(|run_at| Change::Unblocked { run_at }),
        (failure(), any::<bool>(), of(report()), of(payload())).prop_map(
            |(failure, is_exhausted, report, result)| Change::DeadLettered {
                failure,
                is_exhausted,
                report,
                result,
            }
        ),
        Just(Change::DlqRecorded),
        Just(Change::Failed),
        (codes, of(text())).prop_map(|(code, reason)| Change::Cancelled { code, reason }),
    ]
    .boxed()
}

fn proposal() -> BoxedStrategy<Proposal> {
    (user(), text(), instant(), of(any::<u128>()))
        .prop_map(|(by, reason, at, token)| Proposal { by, reason, at, token: token.map(TokenId) })
        .boxed()
}

fn item_state() -> BoxedStrategy<DlqState> {
    prop_oneof![
        Just(DlqState::Open),
        (job_id(), user(), of(text())).prop_map(|(job, by, key)| DlqState::Requeued {
            job,
            by,
            key
        }),
        proposal().prop_map(DlqState::DiscardRequested),
        (proposal(), user())
            .prop_map(|(proposal, approved_by)| DlqState::Discarded { proposal, approved_by }),
        proposal().prop_map(DlqState::GlassBroken),
    ]
    .boxed()
}

fn item() -> BoxedStrategy<Box<DlqItem>> {
    (any::<u128>(), job(), instant(), instant(), any::<u32>(), item_state(), of(instant()))
        .prop_map(|(id, job, created_at, updated_at, version, state, first_asked_at)| {
            let (id, job) = (DlqId(id), Box::new(job));
            Box::new(DlqItem { id, job, created_at, updated_at, version, state, first_asked_at })
        })
        .boxed()
}

fn spec() -> BoxedStrategy<Box<TypeSpec>> {
    let scopes = prop_oneof![
        Just(ConcurrencyScope::Global),
        Just(ConcurrencyScope::Tenant),
        Just(ConcurrencyScope::User)
    ];
    let numbers = any::<(bool, u8, u32, u16, Option<u32>, u32, u32, Option<[u8; 16]>)>();
    let sla = any::<(Option<u32>, Option<u32>)>();
    (name(), text(), name(), scopes, numbers, of(executor()), flow(), of(sla))
        .prop_map(|(name, domain, queue, concurrency_scope, n, executor, flow, sla)| {
            Box::new(TypeSpec {
                name: JobType::stored(name),
                domain,
                is_schedulable: n.0,
                priority: n.1,
                timeout_ms: n.2,
                max_retries: n.3,
                concurrency_limit: n.4,
                concurrency_scope,
                queue: QueueName::stored(queue),
                backoff: Backoff { base_ms: n.5, max_ms: n.6 },
                file_entry: n.7.map(Digest),
                executor: executor.map(Box::new),
                flow: Box::new(flow),
                sla: sla.map(|(start_within_ms, finish_within_ms)| Sla {
                    start_within_ms,
                    finish_within_ms,
                }),
            })
        })
        .boxed()
}

fn flow() -> BoxedStrategy<Flow> {
    let source = || of(text()).prop_map(|text| text.map(KeySource::new));
    let rate = (any::<u64>(), any::<u32>(), source())
        .prop_map(|(nanos, burst, key)| RateLimit::stored(nanos, burst, key));
    let circuit = any::<(u16, u8, u32)>().prop_map(|(failure_permille, min_calls, open_secs)| {
        Circuit { failure_permille, min_calls, open_secs }
    });
    let pause = (name(), instant()).prop_map(|(by, at)| Pause { by: UserId::stored(by), at });
    (source(), of(rate), of(circuit), any::<u32>(), of(pause))
        .prop_map(|(concurrency_key, rate_limit, circuit, circuit_turn, paused)| Flow {
            concurrency_key,
            rate_limit,
            circuit,
            circuit_turn,
            paused,
        })
        .boxed()
}

fn meter() -> BoxedStrategy<Meter> {
    let state = prop_oneof![
        any::<(u128, u8)>().prop_map(|(ends, count)| CircuitState::Closed { ends, count }),
        instant().prop_map(|until| CircuitState::Open { until }),
        job_id().prop_map(|probe| CircuitState::HalfOpen { probe }),
    ];
    prop_oneof![
        any::<i64>().prop_map(|full_at| Meter::Bucket(Bucket { full_at })),
        (state, instant()).prop_map(|(state, at)| Meter::Circuit { state, at }),
    ]
    .boxed()
}

fn executor() -> BoxedStrategy<Executor> {
    let texts = || vec(text(), 0..3);
    let process = (text(), texts(), of(text()), texts(), any::<(bool, u32)>()).prop_map(
        |(command, args, cwd, env, (is_shell, kill_grace_ms))| {
            Executor::Process(Process { command, args, cwd, env, is_shell, kill_grace_ms })
        },
    );
    let webhook = (text(), any::<u32>())
        .prop_map(|(url, timeout_ms)| Executor::Webhook(Webhook { url, timeout_ms }));
    prop_oneof![Just(Executor::Pull), Just(Executor::InProcess), process, webhook].boxed()
}

fn queue() -> BoxedStrategy<QueueSpec> {
    let orders = prop_oneof![Just(QueueOrder::Aged), Just(QueueOrder::Due)];
    (name(), any::<bool>(), orders)
        .prop_map(|(name, is_paused, order)| QueueSpec {
            name: QueueName::stored(name),
            is_paused,
            order,
            share: is_paused.then_some(TenantShare {
                weight: 3,
                backlog_max: Some(7),
                backlog_bytes_max: None,
            }),
        })
        .boxed()
}

fn token() -> BoxedStrategy<Box<Token>> {
    let names = (name(), name(), name());
    let instants = (instant(), of(instant()), of(instant()));
    (any::<u128>(), any::<[u8; 32]>(), names, any::<u8>(), instants, of(any::<u128>()))
        .prop_map(|(id, digest, names, roles, instants, parent)| {
            Box::new(Token {
                id: TokenId(id),
                digest,
                tenant: TenantId::stored(names.0),
                user: UserId::stored(names.1),
                roles: Roles(roles),
                issued_at: instants.0,
                issued_by: UserId::stored(names.2),
                issued_with: parent.map(TokenId),
                expires_at: instants.1,
                revoked_at: instants.2,
            })
        })
        .boxed()
}

pub(crate) fn event() -> BoxedStrategy<Event> {
    prop_oneof![
        3 => job().prop_map(|job| Event::JobSubmitted(Box::new(job))),
        6 => (job_id(), any::<u32>(), instant(), actor(), change()).prop_map(
            |(job, seq, at, actor, change)| {
                Event::JobMoved(JobEvent { job, seq, at, actor, change })
            }
        ),
        1 => (
            job_id(),
            any::<u32>(),
            instant(),
            of(any::<u8>()),
            of(super::waits::note()),
            of((instant(), instant())),
        )
            .prop_map(|(job, fence, expires_at, progress_pct, note, settled)| {
                Event::LeaseRenewed { job, fence, expires_at, progress_pct, note, settled }
            }),
        1 => (job_id(), effect())
            .prop_map(|(job, effect)| Event::EffectCommitted { job, effect }),
        1 => item().prop_map(Event::ItemOpened),
        1 => (any::<u128>(), any::<u32>(), instant(), item_state()).prop_map(
            |(item, version, at, state)| {
                Event::ItemChanged { item: DlqId(item), version, at, state: Box::new(state) }
            }
        ),
        1 => entity().prop_map(Event::EntitySet),
        1 => (entity(), any::<u32>()).prop_map(|(entity, version)| {
            Event::EntityRemoved { entity: entity.id, version }
        }),
        1 => spec().prop_map(Event::TypeSet),
        1 => queue().prop_map(Event::QueueSet),
        1 => token().prop_map(Event::TokenIssued),
        1 => (any::<u128>(), instant())
            .prop_map(|(token, at)| Event::TokenRevoked { token: TokenId(token), at }),
    ]
    .boxed()
}

fn entity() -> BoxedStrategy<Box<Entity>> {
    let body =
        (name(), any::<u64>(), of(instant()), any::<u32>()).prop_map(|(name, large, at, small)| {
            match large % 12 {
                0 => super::samples::body(name, large, at, small),
                1 => {
                    let answered = |at| Standing::Answered {
                        answer: name.as_ref().into(),
                        by: UserId::stored(name.clone()),
                        at,
                    };
                    super::samples::question_body(at.map_or(Standing::Open, answered), at)
                }
                2 => Body::Trigger(Box::new(crate::triggers::full(small, at))),
                3 => super::governed::object(&name, at, small),
                4 => super::governed::gate(Some(&name)),
                5 => super::governed::audit_entry(Some(&name), small),
                6 => super::governed::alert(&name, at),
                7 => super::bulks::bulk(&name, at, small),
                8 => super::bulks::bulk_page(),
                9 => super::subscriptions::full(name, large, at, small),
                10 => super::waits::full(large, at.unwrap_or_default(), small),
                _ => {
                    let full = super::schedules::full_schedule(name, small, at);
                    let stretches = at.map(|at| (at, at.plus_millis(u64::from(small))));
                    let fired = Account::stored(stretches.into_iter().collect());
                    Body::Schedule(Box::new(Schedule {
                        fired: fired.expect("one stretch"),
                        ..full
                    }))
                }
            }
        });
    (any::<u128>(), any::<u32>(), name(), user(), instant(), instant(), body)
        .prop_map(|(bits, version, tenant, owner, created_at, updated_at, body)| {
            let id = EntityId { kind: body.kind(), bits };
            let tenant = TenantId::stored(tenant);
            Box::new(Entity { id, version, tenant, owner, created_at, updated_at, body })
        })
        .boxed()
}

fn transition() -> BoxedStrategy<Transition> {
    let states = || proptest::sample::select(StateName::ALL.to_vec());
    let reason = (any::<String>(), text())
        .prop_map(|(code, message)| Box::new(Reason { code: code.into(), message }));
    (any::<u32>(), of(states()), states(), instant(), any::<u32>(), of(reason), actor())
        .prop_map(|(seq, from, to, at, attempt, reason, actor)| Transition {
            seq,
            from,
            to,
            at,
            attempt,
            reason,
            actor,
        })
        .boxed()
}

pub(crate) fn record() -> BoxedStrategy<Record> {
    prop_oneof![
        3 => (job(), vec(transition(), 0..6))
            .prop_map(|(job, history)| Record::Job(Box::new(JobWithHistory { job, history }))),
        1 => item().prop_map(Record::Item),
        1 => entity().prop_map(Record::Entity),
        1 => spec().prop_map(Record::Type),
        1 => queue().prop_map(Record::Queue),
        1 => token().prop_map(Record::Token),
        1 => (hash(), job_id(), of(hash()), of(instant())).prop_map(
            |(hash, job, fingerprint, free_at)| Record::Key {
                hash,
                holder: KeyHolder { job, fingerprint, free_at },
            }
        ),
        1 => vec(any::<u64>(), 0..20).prop_map(Record::Counters),
        1 => (any::<[u8; 16]>(), meter())
            .prop_map(|(key, meter)| Record::Meter { key: Digest(key), meter }),
    ]
    .boxed()
}

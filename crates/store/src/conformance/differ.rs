//! The same random life on two stores, step by step. They must answer alike all along and look
//! alike in the end; the seed repeats a run.

use super::bench::{
    Bench, Pull, complete, fail, key, kind, queue, submit, tenant, token, user, wish,
};
use super::dump::dump;
use super::effects::commit as effect;
use super::entities;
use super::lease::beat;
use super::registry::token as a_token;
use super::waits::{leave, snooze};
use crate::store::Store;
use crate::{ItemFilter, JobFilter, Scope};
use mainspring_kernel::calendar::Rhythm;
use mainspring_kernel::command::{
    Ended, Ending, Follows, Plan, Release, RunInternally, Submit, TypeChange,
};
use mainspring_kernel::entity::question::{Asked, QuestionCommand};
use mainspring_kernel::entity::schedule::ScheduleSpec;
use mainspring_kernel::entity::tenant::TenantCommand;
use mainspring_kernel::entity::wait::Wait;
use mainspring_kernel::entity::{EntityId, Kind};
use mainspring_kernel::executor::Executor;
use mainspring_kernel::flow::{Circuit, Flow, KeySource, RateLimit};
use mainspring_kernel::job::{After, AfterCondition, Bounds, Idempotency};
use mainspring_kernel::registry::{ConcurrencyScope, Sla, TenantShare};
use mainspring_kernel::view::tasks;
use mainspring_kernel::{
    Command, DlqId, Failure, Job, JobId, Principal, QueueOrder, QueueSpec, Receipt, Role, Roles,
    StateName, Timestamp, Token, TokenId, TypeSpec, firing, idempotency,
};
use std::sync::Arc;

const TENANTS: [&str; 2] = ["acme", "other"];
const QUEUES: [&str; 2] = ["default", "slow"];
const TYPES: [&str; 2] = ["mill", "saw"];

/// A small generator (xorshift): chance that a seed repeats.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Lives `steps` random batches on both stores.
///
/// # Panics
/// If the stores ever differ, with the seed and the step.
pub async fn differ(seed: u64, steps: usize, left: Arc<dyn Store>, right: Arc<dyn Store>) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut left, mut right) = (Bench::new(left), Bench::new(right));
    let mut jobs: Vec<JobId> = Vec::new();
    let mut granted: Vec<Job> = Vec::new();
    let mut wanting: Vec<Command> = Vec::new();
    for step in 0..steps {
        let mut commands = Vec::new();
        for _ in 0..dice.below(4) {
            commands.push(command(&mut dice, &jobs, &granted, &left));
        }
        if dice.below(4) == 0 && commands.len() > 1 {
            // Some of them touch the same thing: then none is taken.
            commands = vec![Command::Together(commands)];
        }
        let overdue = sorted(left.overdue().await);
        assert_eq!(overdue, sorted(right.overdue().await), "overdue, seed {seed} step {step}");
        // What is overdue may be left alone for a while, and a pull may meet it.
        if dice.below(3) > 0 {
            commands.extend(overdue.into_iter().map(|job| Command::Reap { job }));
        }
        commands.append(&mut wanting);
        let due = entities::alarms(&left, 4).await;
        assert_eq!(due, entities::alarms(&right, 4).await, "alarms, seed {seed} step {step}");
        if dice.below(3) > 0 {
            commands.extend(due.into_iter().map(entities::rung));
        }
        let pull = (dice.below(2) == 0).then(|| pull(&mut dice));
        let ours = left.batch(&commands, pull.clone()).await;
        let theirs = right.batch(&commands, pull.clone()).await;
        assert_eq!(ours, theirs, "answers, seed {seed} step {step}: {commands:?}, {pull:?}");
        for (command, outcome) in commands.iter().zip(&ours.0) {
            match (command, outcome) {
                (Command::Ring { entity, at, .. }, Ok(Receipt::Wanting { jobs })) => {
                    let (entity, at, jobs) = (*entity, *at, jobs.clone());
                    wanting.push(Command::Ring { entity, at, jobs });
                }
                (_, Ok(receipt)) => jobs.extend(made(receipt)),
                (_, Err(_)) => {}
            }
        }
        granted.extend(ours.1);
        let some = 1 + dice.below(9_000) as u64;
        let millis = dice.one_of(&[0, 1, some, some, some, 31_000]);
        left.pass(millis);
        right.pass(millis);
        if dice.below(4) == 0 {
            for bench in [&left, &right] {
                bench.store.wake(bench.now).await.expect("reads work");
            }
        }
        if dice.below(3) == 0 {
            let filter = filter(&mut dice, &jobs);
            let limit = 1 + dice.below(5);
            let ours = list(&left, &filter, limit).await;
            let theirs = list(&right, &filter, limit).await;
            assert_eq!(ours, theirs, "lists, seed {seed} step {step}: {filter:?}");
            let filter = item_filter(&mut dice, filter);
            let ours = super::dlq::listed(&left, &filter, limit).await;
            let theirs = super::dlq::listed(&right, &filter, limit).await;
            assert_eq!(ours, theirs, "items, seed {seed} step {step}: {filter:?}");
            let filter = entities::any_filter(filter.job.scope, &mut |bound| dice.below(bound));
            let ours = entities::listed(&left, &filter, limit).await;
            let theirs = entities::listed(&right, &filter, limit).await;
            assert_eq!(ours, theirs, "entities, seed {seed} step {step}: {filter:?}");
        }
        if dice.below(30) == 0 || step + 1 == steps {
            let ours = dump(&*left.store, left.now).await.expect("reads work");
            let theirs = dump(&*right.store, right.now).await.expect("reads work");
            assert!(ours == theirs, "dumps, seed {seed} step {step}: {}", parted(&ours, &theirs));
        }
    }
}

/// What a filter finds, and how much that is told to be.
async fn list(bench: &Bench, filter: &JobFilter, limit: usize) -> (Vec<JobId>, usize) {
    let count = bench.store.count_jobs(filter, 20).await.expect("reads work");
    (bench.list(filter, limit).await, count)
}

/// A filter of any kind.
fn filter(dice: &mut Dice, jobs: &[JobId]) -> JobFilter {
    let scope = match dice.below(4) {
        0 => Scope::Tenant(tenant(dice.one_of(&TENANTS))),
        1 => Scope::User(tenant(dice.one_of(&TENANTS)), user(dice.one_of(&["ada", "bob"]))),
        _ => Scope::All,
    };
    let mut filter = JobFilter::of(scope);
    for _ in 0..dice.below(4) {
        match dice.below(8) {
            0 | 1 => filter.state = Some(dice.one_of(&StateName::ALL)),
            2 => filter.job_type = Some(kind(dice.one_of(&TYPES))),
            3 => filter.queue = Some(queue(dice.one_of(&QUEUES))),
            4 => filter.user = Some(user(dice.one_of(&["ada", "bob"]))),
            5 => filter.labels.push(("team".to_owned(), dice.one_of(&["red", "blue"]).to_owned())),
            6 => {
                let codes = ["BROKEN", "BY", "TASK_TIMEOUT", "TASK_LEASE_LOST"];
                filter.error_code = Some(dice.one_of(&codes).to_owned());
            }
            _ if jobs.is_empty() || dice.below(2) == 0 => filter.trace_id = Some("t1".to_owned()),
            _ => {
                let at = i64::try_from(dice.one_of(jobs).0 >> 80).unwrap_or(0);
                let at = Some(Timestamp::from_millis(at));
                match dice.below(3) {
                    0 => filter.since = at,
                    1 => filter.until = at,
                    _ => {
                        let id = dice.one_of(jobs).to_string();
                        filter.trace_id = Some(format!("trace_{}", &id[4..]));
                    }
                }
            }
        }
    }
    filter
}

fn item_filter(dice: &mut Dice, job: JobFilter) -> ItemFilter {
    let states = [None, Some("open"), Some("requeued"), Some("discard_requested")];
    ItemFilter {
        state: dice.one_of(&states).map(str::to_owned),
        job: JobFilter { state: None, ..job },
        ..ItemFilter::of(Scope::All)
    }
}

/// The lines in which two texts differ.
fn parted(ours: &str, theirs: &str) -> String {
    let only = |of: &str, not: &str| {
        let has = |line: &&str| !not.lines().any(|other| other == *line);
        of.lines().filter(has).collect::<Vec<_>>().join("\n")
    };
    format!("\nleft:\n{}\nright:\n{}", only(ours, theirs), only(theirs, ours))
}

/// A pull of anything, or of one tenant, of some queues, of some types.
fn pull(dice: &mut Dice) -> Pull {
    let [first, second] = QUEUES.map(queue);
    let queues = match dice.below(4) {
        0 => Some(vec![first]),
        1 => Some(vec![second, first]),
        _ => None,
    };
    Pull {
        tenant: dice.one_of(&[None, None, Some(TENANTS[0]), Some(TENANTS[1])]),
        queues,
        types: (dice.below(4) == 0).then(|| vec![kind(dice.one_of(&TYPES))]),
        lease_ms: dice.one_of(&[5_000, 60_000]),
        limit: 1 + dice.below(4),
    }
}

/// Jobs that a receipt tells of as new.
fn made(receipt: &Receipt) -> Vec<JobId> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "two receipts tell of new jobs")]
    match receipt {
        Receipt::Submitted { job } => vec![*job],
        Receipt::Together(parts) => parts.iter().flat_map(made).collect(),
        _ => Vec::new(),
    }
}

fn sorted(mut ids: Vec<JobId>) -> Vec<JobId> {
    ids.sort_unstable();
    ids
}

fn command(dice: &mut Dice, jobs: &[JobId], granted: &[Job], bench: &Bench) -> Command {
    match dice.below(16) {
        0..=5 if !granted.is_empty() => {
            // Mostly of late: the old ones have ended.
            let from = granted.len().saturating_sub(6);
            let job = &granted[from + dice.below(granted.len() - from)];
            report(dice, job, bench)
        }
        6 | 7 if !jobs.is_empty() => on_job(dice, jobs, bench),
        8 | 9 if !jobs.is_empty() => {
            let item = dice.one_of(jobs).dlq();
            on_item(dice, item)
        }
        10 if dice.below(2) == 0 => settings(dice),
        10 => entities::any_command(&mut |bound| dice.below(bound)),
        11 if dice.below(2) == 0 && !granted.is_empty() => told(dice, granted),
        11 if !jobs.is_empty() => {
            let some = (0..3).map(|_| dice.one_of(jobs)).collect();
            Command::Settle { entity: Wait::id_of(dice.one_of(jobs)), jobs: some }
        }
        12 => batch(dice, bench),
        13 if !jobs.is_empty() => {
            let condition = dice.one_of(&[AfterCondition::Success, AfterCondition::End]);
            let mut some: Vec<JobId> = (0..=dice.below(2)).map(|_| dice.one_of(jobs)).collect();
            some.dedup();
            let wish = Submit { plan: None, ended: None, alias: None, ..new(dice, bench) };
            let after = Some(After { jobs: some, members: 0, condition });
            let bounds = Bounds { after, ..wish.bounds.clone() };
            submit(Submit { bounds, may_name_others: dice.below(2) == 0, ..wish })
        }
        _ => submit(new(dice, bench)),
    }
}

/// Jobs of which some wait for others among them.
fn batch(dice: &mut Dice, bench: &Bench) -> Command {
    let apart = |wish: Submit| Submit { plan: None, idempotency: None, alias: None, ..wish };
    let mut wishes: Vec<Submit> = (0..=dice.below(4)).map(|_| apart(new(dice, bench))).collect();
    let last = wishes.len() - 1;
    if last > 0 {
        wishes[last].ended = None;
        wishes[last].follows = Some(match dice.below(2) {
            0 => Follows::All,
            _ => Follows::Some(vec![0]),
        });
    }
    Command::Together(wishes.into_iter().map(submit).collect())
}

/// A word of a job that may have ended, to the entity that it came from if it came from one.
fn told(dice: &mut Dice, granted: &[Job]) -> Command {
    let job = &granted[dice.below(granted.len())];
    let stranger = EntityId { kind: Kind::Schedule, bits: 1 };
    let entity = firing::origin(job).map_or(stranger, |origin| origin.entity);
    Command::Settle { entity, jobs: vec![job.id] }
}

/// What a worker says.
fn report(dice: &mut Dice, job: &Job, bench: &Bench) -> Command {
    match dice.below(12) {
        10 => snooze(job, dice.one_of(&[0, 4_000])),
        11 => leave(job, "on it", dice.one_of(&[None, Some("[1]"), Some("[2]")])),
        0 | 1 => complete(job),
        2..=5 => fail(job, dice.below(3) > 0),
        6 => beat(job, dice.one_of(&[5_000, 30_000]), dice.one_of(&[None, Some(5)])),
        7 => effect(job, dice.one_of(&["1", "2"])),
        8 => Command::ExtendLease { job: job.id, until: bench.now.plus_millis(50_000) },
        _ => Command::Release(Release { job: job.id, token: token(job), reason: None }),
    }
}

/// What people and time do to a job.
fn on_job(dice: &mut Dice, jobs: &[JobId], bench: &Bench) -> Command {
    let (job, by) = (dice.one_of(jobs), user("ada"));
    match dice.below(7) {
        5 => QuestionCommand::Ask { job, token: None, by, asked: Box::new(asked(dice, bench)) }
            .into(),
        6 => QuestionCommand::Answer { job, answer: "yes".into(), by, shown: None }.into(),
        0 => Command::Reap { job },
        4 => Command::MoveTask { job, to: dice.one_of(tasks::State::ALL), by },
        1 => Command::ExtendLease { job, until: bench.now.plus_millis(9_000) },
        2 => {
            let failure = Failure { code: "BY".into(), message: "hand".into(), retryable: true };
            let ending = match dice.below(4) {
                0 => Ending::Success,
                1 => Ending::DeadLetter(failure),
                2 => Ending::Told(Ended::Well { result: Some("1".into()) }),
                _ => Ending::Failure(failure),
            };
            Command::RunInternally(RunInternally { job, by, ending })
        }
        _ => Command::Cancel { job, by, reason: dice.one_of(&[None, Some("why")]).map(Into::into) },
    }
}

/// What a job asks a person.
fn asked(dice: &mut Dice, bench: &Bench) -> Asked {
    Asked {
        text: "go on?".into(),
        options: Vec::new(),
        default: dice.one_of(&[None, Some("no")]).map(Into::into),
        deadline: dice.one_of(&[None, Some(bench.now.plus_millis(4_000))]),
    }
}

/// How a job ended that is only to be kept.
fn ended(dice: &mut Dice) -> Ended {
    let result = dice.one_of(&[None, Some("7")]).map(Into::into);
    let failure = Failure { code: "GONE".into(), message: "long ago".into(), retryable: false };
    match dice.below(2) {
        0 => Ended::Well { result },
        _ => Ended::Badly { failure, result },
    }
}

fn on_item(dice: &mut Dice, item: DlqId) -> Command {
    let by = user("ada");
    match dice.below(6) {
        0 | 1 => {
            let key = dice.one_of(&[None, Some("r1")]).map(Into::into);
            Command::RequeueItem { item, by, key }
        }
        2 => Command::RequestDiscard { item, by: somebody(dice), reason: "old".into() },
        3 => {
            let (by, version) = (somebody(dice), dice.one_of(&[2, 2, 4, 6]));
            Command::ApproveDiscard { item, by, version }
        }
        4 => Command::RejectDiscard { item, by },
        _ if dice.below(8) == 0 => {
            Command::BreakGlass { item, by: somebody(dice), reason: "now".into() }
        }
        _ => Command::DiscardReviewed {
            item,
            by: somebody(dice),
            reason: "old".into(),
            reviewer: "ada".into(),
            reviewer_2: "bob".into(),
        },
    }
}

/// One of the holders of the tokens that [`settings`] issues.
fn somebody(dice: &mut Dice) -> Box<Principal> {
    Box::new(holder(dice.one_of(&[1, 2, 3])).principal())
}

fn holder(id: u128) -> Token {
    let names = ["ada", "bob", "eve"];
    let roles = Roles::of(&[Role::Operator, Role::Approver]);
    Token { user: user(names[id as usize - 1]), roles, ..a_token(id) }
}

/// A wish for a job.
fn new(dice: &mut Dice, bench: &Bench) -> Submit {
    let ancient = Timestamp(-61_000_000_000_000_000);
    let name = (dice.below(4) == 0).then(|| Box::new(alias(dice.one_of(&["a1", "a2", "a3"]))));
    let plan = (name.is_some() && dice.below(3) == 0).then(|| Box::new(plan(dice)));
    let ended = (plan.is_none() && dice.below(12) == 0).then(|| Box::new(ended(dice)));
    Submit {
        ended,
        tenant: tenant(dice.one_of(&TENANTS)),
        user: user(dice.one_of(&["ada", "bob"])),
        job_type: kind(dice.one_of(&TYPES)),
        queue: dice.one_of(&[None, Some(QUEUES[0]), Some(QUEUES[1])]).map(queue),
        priority: Some(dice.one_of(&[0, 50, 99])),
        delay_ms: dice.one_of(&[None, None, Some(7_001)]),
        run_at: if dice.below(20) == 0 { Some(ancient) } else { None },
        max_retries: Some(dice.one_of(&[0, 2])),
        timeout_ms: dice.one_of(&[None, Some(3_000)]),
        expires_at: dice.one_of(&[None, Some(bench.now.plus_millis(20_000))]),
        trace: dice.one_of(&[None, None, Some("t1"), Some("t2")]).map(Into::into),
        labels: match dice.below(4) {
            0 => vec![("team".into(), dice.one_of(&["red", "blue"]).into())],
            1 => vec![("site".into(), "é".into()), ("team".into(), "red".into())],
            _ => Vec::new(),
        },
        idempotency: match dice.below(4) {
            0 => key(dice.one_of(&["k1", "k2", "k3"]), dice.one_of(&[None, Some(30)])),
            _ => None,
        },
        alias: name,
        plan,
        bounds: Bounds {
            deadline_at: dice.one_of(&[None, None, Some(bench.now.plus_millis(25_000))]),
            queue_timeout_ms: dice.one_of(&[None, None, Some(8_000)]),
            after: None,
        },
        payload: dice.one_of(&["{}", r#"{"n":1}"#, r#"{"n":"two"}"#]).into(),
        concurrency_key: dice.one_of(&[None, None, None, Some("own")]).map(Into::into),
        ..wish()
    }
}

/// A schedule to be made beside a job that stands for it.
fn plan(dice: &mut Dice) -> Plan {
    let rhythm = Rhythm::Interval { every_secs: dice.one_of(&[3, 20]), phase_secs: 0 };
    let bits = (1 << 80) + dice.below(1 << 30) as u128;
    let spec = Box::new(ScheduleSpec::plain(kind(dice.one_of(&TYPES)), rhythm));
    Plan { schedule: EntityId { kind: Kind::Schedule, bits }, spec }
}

fn alias(id: &str) -> Idempotency {
    idempotency::alias(&tenant("acme"), "test", id, Some(30))
}

fn settings(dice: &mut Dice) -> Command {
    let which = dice.below(6);
    if which == 5 {
        return TenantCommand::Set {
            tenant: tenant(dice.one_of(&TENANTS)),
            version: dice.below(4) as u32,
            share: TenantShare {
                weight: dice.one_of(&[1, 2, 5]),
                backlog_max: dice.one_of(&[None, None, Some(40)]),
                backlog_bytes_max: dice.one_of(&[None, None, Some(30_000)]),
            },
            is_paused: dice.below(4) == 0,
            by: user("ada"),
        }
        .into();
    }
    if which == 0 {
        let id = 1 + dice.below(3) as u128;
        return match dice.below(2) {
            0 => Command::IssueToken(Box::new(holder(id))),
            _ => Command::RevokeToken { token: TokenId(id) },
        };
    }
    if which < 3 {
        return Command::SetQueue(QueueSpec {
            name: queue(dice.one_of(&QUEUES)),
            is_paused: dice.below(3) == 0,
            order: dice.one_of(&[QueueOrder::Aged, QueueOrder::Due]),
            share: None,
        });
    }
    if which == 3 && dice.below(3) == 0 {
        let change = match dice.below(3) {
            0 => TypeChange::Pause { by: user("ada") },
            1 => TypeChange::Resume,
            _ => TypeChange::ResetCircuit,
        };
        return Command::ChangeType { name: kind(dice.one_of(&TYPES)), change };
    }
    let scopes = [ConcurrencyScope::Global, ConcurrencyScope::Tenant, ConcurrencyScope::User];
    Command::SetType(Box::new(TypeSpec {
        concurrency_limit: dice.one_of(&[None, Some(0), Some(1), Some(3)]),
        concurrency_scope: dice.one_of(&scopes),
        executor: (dice.below(2) == 0).then(|| Box::new(Executor::InProcess)),
        flow: Box::new(flow(dice)),
        sla: (dice.below(3) == 0)
            .then_some(Sla { start_within_ms: Some(2_000), finish_within_ms: None }),
        ..TypeSpec::plain(kind(dice.one_of(&TYPES)))
    }))
}

/// What holds jobs of a type back.
fn flow(dice: &mut Dice) -> Flow {
    let sources = [None, Some("team"), Some("/n")];
    let source = |dice: &mut Dice| dice.one_of(&sources).map(KeySource::new);
    let rate = dice.one_of(&[None, None, Some((0.2, 1)), Some((3.0, 2)), Some((0.5, 4))]);
    let circuit = dice.one_of(&[None, None, Some((500, 2)), Some((1000, 3))]);
    Flow {
        concurrency_key: source(dice),
        rate_limit: rate.map(|(rate, burst)| RateLimit::new(rate, Some(burst), source(dice))),
        circuit: circuit.map(|(failure_permille, min_calls)| Circuit {
            failure_permille,
            min_calls,
            open_secs: dice.one_of(&[2, 20]),
        }),
        ..Flow::default()
    }
}

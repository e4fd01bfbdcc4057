//! Triggers: what a store must make of decisions about what was seen and about runs.

use super::bench::{Bench, any, complete, tenant, user};
use super::entities::{alarms, rung};
use crate::{JobFilter, Scope};
use mainspring_kernel::entity::trigger::{
    Condition, Ended, Pace, Past, Seen, Sight, Trigger, TriggerCommand, TriggerSpec, TriggerType,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Command, EntityId, Job, JobId, Receipt, Rejection, Timestamp};

fn id(bits: u128) -> EntityId {
    EntityId { kind: Kind::Trigger, bits }
}

fn spec(kind: TriggerType) -> TriggerSpec {
    TriggerSpec {
        name: "watch".into(),
        kind,
        interval_secs: Some(7),
        run_at: Some(Timestamp::EPOCH),
        condition: Some(changed()),
        cooldown_secs: 0,
        prompt: "look".into(),
        priority: 5,
        timeout_secs: None,
        trace: None,
        parent_task_id: None,
        pace: Pace { check_ms: 1_000, settle_ms: 0, stuck_ms: 30_000 },
        sees_tenant: true,
    }
}

fn changed() -> Condition {
    Condition::FileChanged { path: "a/*".into(), fires_on_init: false }
}

fn create(bits: u128, spec: TriggerSpec) -> Command {
    let (tenant, owner, past) = (tenant("acme"), user("ada"), Box::default());
    let (id, sights) = (id(bits), vec![files(Some(Timestamp::EPOCH))]);
    TriggerCommand::Create { id, tenant, owner, spec: Box::new(spec), sights, past }.into()
}

fn files(newest: Option<Timestamp>) -> Sight {
    Sight { leaf: 0, seen: Seen::Files(newest) }
}

/// Something that happens to triggers, by lot.
pub(super) fn any_command(below: &mut dyn FnMut(usize) -> usize) -> Command {
    let id = id(1 + below(4) as u128);
    let start = Timestamp::from_millis(1_790_000_000_000);
    let seen = match below(3) {
        0 => Seen::Files(None),
        1 => Seen::Files(Some(start.plus_millis(1_000 * below(400) as u64))),
        _ => Seen::Task(Some(Box::new(Ended {
            job: JobId(1 + below(3) as u128),
            is_done: below(2) == 0,
            trace: Some("t1".into()),
            parent_task_id: None,
        }))),
    };
    let sights = vec![Sight { leaf: below(3) as u16, seen }];
    let command = match below(8) {
        0 => TriggerCommand::Pause { id, by: user("bob"), note: Some("tea".into()) },
        1 => TriggerCommand::Resume { id, sights },
        2 if below(3) == 0 => TriggerCommand::Remove { id },
        // Mostly of another time: it is left alone then, on every store.
        3 => TriggerCommand::Observe { id, made_at: start, sights },
        _ => TriggerCommand::Create {
            id,
            tenant: tenant(["acme", "other"][below(2)]),
            owner: user(["ada", "bob"][below(2)]),
            spec: Box::new(any_spec(below)),
            sights,
            past: Box::new(Past { is_initialized: below(2) == 0, ..Past::default() }),
        },
    };
    command.into()
}

fn any_spec(below: &mut dyn FnMut(usize) -> usize) -> TriggerSpec {
    let condition = match below(4) {
        0 => changed(),
        1 => Condition::And(Vec::new()),
        2 => Condition::Or(vec![
            Condition::TaskDone { task: "t1".into() },
            Condition::LlmEval { prompt: "now?".into() },
        ]),
        _ => Condition::And(vec![
            Condition::FileChanged { path: "a".into(), fires_on_init: true },
            Condition::FileExists { path: "b".into() },
            Condition::TaskFailed { task: "t1".into() },
        ]),
    };
    TriggerSpec {
        condition: Some(condition),
        cooldown_secs: [0, 3, 60][below(3)],
        trace: [None, Some("t2")][below(2)].map(Into::into),
        interval_secs: Some([1, 7, 45][below(3)]),
        ..spec(TriggerType::ALL[below(3)])
    }
}

async fn trigger(bench: &Bench, bits: u128) -> Option<Trigger> {
    let entity = bench.store.entity(id(bits)).await.expect("reads work")?;
    let Body::Trigger(trigger) = entity.body else { panic!("no trigger: {entity:?}") };
    Some(*trigger)
}

async fn see(
    bench: &mut Bench,
    bits: u128,
    made_at: Timestamp,
    newest: Timestamp,
) -> Result<Receipt, Rejection> {
    let sights = vec![files(Some(newest))];
    bench.one(TriggerCommand::Observe { id: id(bits), made_at, sights }.into()).await
}

/// Rings what is due until nothing is, as the engine does.
async fn ring_all(bench: &mut Bench) {
    for _ in 0..100 {
        let due = alarms(bench, 100).await;
        if due.is_empty() {
            return;
        }
        for alarm in due {
            if let Receipt::Wanting { jobs } = bench.done(rung(alarm)).await {
                let again = Command::Ring { entity: alarm.0, at: alarm.1, jobs };
                assert_eq!(bench.done(again).await, Receipt::Done);
            }
        }
    }
    panic!("it rings for ever");
}

async fn jobs(bench: &Bench) -> usize {
    bench.store.count_jobs(&JobFilter::of(Scope::All), 1_000).await.expect("reads work")
}

async fn pulled(bench: &mut Bench) -> Job {
    let mut granted = bench.pull(any(5)).await;
    assert_eq!(granted.len(), 1);
    granted.remove(0)
}

pub(super) async fn an_edge_has_one_run_whoever_saw_it(bench: &mut Bench) {
    let made_at = bench.now;
    bench.done(create(1, spec(TriggerType::Conditional))).await;
    bench.pass(1_000);
    let newest = bench.now;
    assert_eq!(see(bench, 1, made_at, newest).await, Ok(Receipt::Done));
    let again = see(bench, 1, made_at, newest).await;
    assert_eq!(again, Err(Rejection::NotDue), "another server saw it, too");
    ring_all(bench).await;
    assert_eq!(jobs(bench).await, 1);
    assert_eq!(see(bench, 1, made_at, newest).await, Err(Rejection::NotDue));
    let run = pulled(bench).await;
    assert_eq!(run.job_type.as_str(), "agent_run");
    // What changes while it runs is kept for later.
    bench.pass(1_000);
    let newer = bench.now;
    assert_eq!(see(bench, 1, made_at, newer).await, Ok(Receipt::Done));
    ring_all(bench).await;
    assert_eq!(jobs(bench).await, 1);
    bench.done(complete(&run)).await;
    bench.done(Command::Settle { entity: id(1), jobs: vec![run.id] }).await;
    ring_all(bench).await;
    assert_eq!(jobs(bench).await, 2);
    let state = trigger(bench, 1).await.expect("it is there");
    assert_eq!((state.fired, state.last_mtime()), (2, Some(newer)));
}

pub(super) async fn a_scheduled_trigger_is_gone_when_it_has_fired(bench: &mut Bench) {
    let run_at = Some(bench.now.plus_millis(5_000));
    bench.done(create(1, TriggerSpec { run_at, ..spec(TriggerType::Scheduled) })).await;
    ring_all(bench).await;
    assert_eq!(jobs(bench).await, 0);
    bench.pass(5_000);
    ring_all(bench).await;
    assert_eq!((jobs(bench).await, trigger(bench, 1).await), (1, None));
    // The name is free again.
    bench.done(create(1, spec(TriggerType::Recurring))).await;
    bench.pass(7_000);
    ring_all(bench).await;
    assert_eq!(jobs(bench).await, 2);
}

pub(super) async fn a_run_that_is_stuck_holds_its_trigger_up_no_longer(bench: &mut Bench) {
    bench.done(create(1, spec(TriggerType::Recurring))).await;
    bench.pass(7_000);
    ring_all(bench).await;
    bench.pass(29_000);
    ring_all(bench).await;
    assert_eq!(jobs(bench).await, 1, "it waits for its run");
    bench.pass(2_000);
    ring_all(bench).await;
    assert_eq!(jobs(bench).await, 2, "it fires once, however often it was to");
    let state = trigger(bench, 1).await.expect("it is there");
    assert_eq!(state.last_error.as_deref(), Some("stuck"));
    assert_eq!(state.next_run_at, Some(bench.now.plus_millis(7_000)));
}

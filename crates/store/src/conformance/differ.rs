//! The same random life on two stores, step by step. They must answer alike all along and look
//! alike in the end; the seed repeats a run.

use super::bench::{
    Bench, Pull, any, complete, fail, key, kind, queue, submit, tenant, user, wish,
};
use super::dump::dump;
use super::lease::beat;
use crate::store::Store;
use mainspring_kernel::command::Submit;
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::{Command, Job, JobId, QueueOrder, QueueSpec, TypeSpec};
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

/// Lives `steps` random batches on both stores. Each pull names one tenant and one queue, because
/// whose turn it is among several is a store's own memory.
///
/// # Panics
/// If the stores ever differ, with the seed and the step.
pub async fn differ(seed: u64, steps: usize, left: Arc<dyn Store>, right: Arc<dyn Store>) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut left, mut right) = (Bench::new(left), Bench::new(right));
    let mut jobs: Vec<JobId> = Vec::new();
    let mut granted: Vec<Job> = Vec::new();
    for step in 0..steps {
        let mut commands = Vec::new();
        for _ in 0..dice.below(4) {
            commands.push(command(&mut dice, &jobs, &granted, &left));
        }
        let overdue = sorted(left.overdue().await);
        assert_eq!(overdue, sorted(right.overdue().await), "overdue, seed {seed} step {step}");
        commands.extend(overdue.into_iter().map(|job| Command::Reap { job }));
        let pull = (dice.below(2) == 0).then(|| Pull {
            tenant: Some(dice.one_of(&TENANTS)),
            queues: Some(vec![queue(dice.one_of(&QUEUES))]),
            ..any(1 + dice.below(3))
        });
        let ours = left.batch(&commands, pull.clone()).await;
        let theirs = right.batch(&commands, pull).await;
        assert_eq!(ours, theirs, "answers, seed {seed} step {step}: {commands:?}");
        granted.extend(ours.1);
        jobs = left.list(&super::bench::everything(), 100).await;
        let millis = 1 + dice.below(9_000) as u64;
        left.pass(millis);
        right.pass(millis);
        if step % 20 == 0 || step + 1 == steps {
            let ours = dump(&*left.store, left.now).await.expect("reads work");
            let theirs = dump(&*right.store, right.now).await.expect("reads work");
            assert_eq!(ours, theirs, "dumps, seed {seed} step {step}");
        }
    }
}

fn sorted(mut ids: Vec<JobId>) -> Vec<JobId> {
    ids.sort_unstable();
    ids
}

fn command(dice: &mut Dice, jobs: &[JobId], granted: &[Job], bench: &Bench) -> Command {
    let by = user("ada");
    match dice.below(12) {
        5 if !granted.is_empty() => complete(&granted[dice.below(granted.len())]),
        6 | 7 if !granted.is_empty() => {
            fail(&granted[dice.below(granted.len())], dice.below(3) > 0)
        }
        8 if !granted.is_empty() => beat(&granted[dice.below(granted.len())], 30_000, Some(5)),
        9 if !jobs.is_empty() => Command::Cancel { job: dice.one_of(jobs), by, reason: None },
        10 if !jobs.is_empty() => {
            Command::RequeueItem { item: dice.one_of(jobs).dlq(), by, key: None }
        }
        11 => settings(dice),
        _ => submit(Submit {
            tenant: tenant(dice.one_of(&TENANTS)),
            job_type: kind(dice.one_of(&TYPES)),
            queue: Some(queue(dice.one_of(&QUEUES))),
            priority: Some(dice.one_of(&[0, 50, 99])),
            delay_ms: dice.one_of(&[None, None, Some(7_001)]),
            max_retries: Some(dice.one_of(&[0, 2])),
            expires_at: dice.one_of(&[None, Some(bench.now.plus_millis(20_000))]),
            idempotency: match dice.below(4) {
                0 => key(dice.one_of(&["k1", "k2", "k3"]), dice.one_of(&[None, Some(30)])),
                _ => None,
            },
            ..wish()
        }),
    }
}

fn settings(dice: &mut Dice) -> Command {
    if dice.below(2) == 0 {
        return Command::SetQueue(QueueSpec {
            name: queue(dice.one_of(&QUEUES)),
            is_paused: dice.below(3) == 0,
            order: dice.one_of(&[QueueOrder::Aged, QueueOrder::Due]),
        });
    }
    let scopes = [ConcurrencyScope::Global, ConcurrencyScope::Tenant, ConcurrencyScope::User];
    Command::SetType(Box::new(TypeSpec {
        concurrency_limit: dice.one_of(&[None, Some(1), Some(3)]),
        concurrency_scope: dice.one_of(&scopes),
        ..TypeSpec::plain(kind(dice.one_of(&TYPES)))
    }))
}

//! Every legal native history shows as a legal history in every view, with the right counters at
//! every step. Histories are made by driving `decide` and `evolve` with random acts.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::event::{Change, TASK_RETRY_EXHAUSTED};
use mainspring_kernel::view::{Move, Moves, agent, jobs, native, scheduler, tasks};
use mainspring_kernel::{Job, StateName};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;
use std::fmt::Debug;
use world::{Line, World, acts};

/// A history as one view shows it: where it stands, and that it got there by legal moves.
struct Shown<S> {
    last: S,
    may_become: fn(S, S) -> bool,
    seen: BTreeSet<(S, S)>,
}

impl<S: Copy + Ord + Debug> Shown<S> {
    fn start(first: S, may_become: fn(S, S) -> bool) -> Self {
        Shown { last: first, may_become, seen: BTreeSet::new() }
    }

    fn follow(&mut self, moves: Moves<S>) {
        for Move { from, to } in moves {
            assert_eq!(from, self.last, "moves connect");
            assert!((self.may_become)(from, to), "the view has no move {from:?} to {to:?}");
            self.seen.insert((from, to));
            self.last = to;
        }
    }
}

/// The counters by their definitions, counted from what happened and not from the job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Count {
    starts: u32,
    retries: u32,
    burials: u32,
}

impl Count {
    fn add(&mut self, change: &Change) {
        match change {
            Change::Claimed(_) => self.starts += 1,
            Change::RetryScheduled { .. } => self.retries += 1,
            Change::DeadLettered { .. } => self.burials += 1,
            Change::Succeeded { .. }
            | Change::Released { .. }
            | Change::Hastened
            | Change::Unblocked { .. }
            | Change::DlqRecorded
            | Change::Failed
            | Change::Cancelled { .. } => {}
        }
    }

    /// 000 attempt, 002 attempts, 003 retry_count, 004 attempt.
    fn shown(self) -> [u32; 4] {
        let started = self.starts.min(1) * (self.retries + 1);
        [self.retries + 1, started, self.retries, self.retries + self.burials]
    }
}

fn counters(job: &Job) -> [u32; 4] {
    let native = u32::from(native::retry_count(job));
    [tasks::attempt(job), agent::attempts(job), native, scheduler::attempt(job)]
}

#[derive(Default)]
struct Seen {
    native: BTreeSet<(StateName, StateName)>,
    tasks: BTreeSet<(tasks::State, tasks::State)>,
    jobs: BTreeSet<(jobs::State, jobs::State)>,
    agent: BTreeSet<(agent::State, agent::State)>,
    scheduler: BTreeSet<(scheduler::State, scheduler::State)>,
    reasons: BTreeSet<agent::FailureReason>,
}

fn check_history(history: &[Line], seen: &mut Seen) {
    let mut native = Shown::start(native::State::Queued, native::may_become);
    let mut tasks = Shown::start(tasks::State::Pending, tasks::State::may_become);
    let mut jobs = Shown::start(jobs::State::Queued, jobs::State::may_become);
    let mut agent = Shown::start(agent::State::Queue, agent::State::may_become);
    let mut scheduler = Shown::start(scheduler::State::Queued, scheduler::State::may_become);
    let mut count = Count::default();
    let mut before = count.shown();
    for Line { change, transition, job } in history {
        assert_eq!(tasks::last_shown(job, transition), tasks.last, "what was last shown is known");
        native.follow(native::moves(transition));
        tasks.follow(tasks::moves(tasks.last, transition, job.run_at));
        jobs.follow(jobs::moves(transition));
        agent.follow(agent::moves(transition));
        scheduler.follow(scheduler::moves(transition));

        assert_eq!(native.last, native::state(job));
        assert_eq!(jobs.last, jobs::state(job));
        assert_eq!(agent.last, agent::state(job));
        assert_eq!(scheduler.last, scheduler::state(job));
        assert_eq!(tasks.last, tasks::state(job, transition.at));

        if let Some(change) = change {
            count.add(change);
        }
        let now = counters(job);
        assert_eq!(now, count.shown(), "counters after {transition:?}");
        for (was, is) in before.into_iter().zip(now) {
            assert!(is == was || is == was + 1, "counters neither fall nor skip");
        }
        assert_eq!(transition.attempt, before[0], "a move belongs to the attempt before it");
        assert!(now[0] <= tasks::max_attempts(job) && now[3] <= scheduler::max_attempts(job));
        before = now;

        check_errors(change.as_ref(), job);
        let reason = agent::failure_reason(job);
        assert_eq!(reason.is_some(), agent.last == agent::State::Failed);
        seen.reasons.extend(reason);
    }
    seen.native.extend(native.seen);
    seen.tasks.extend(tasks.seen);
    seen.jobs.extend(jobs.seen);
    seen.agent.extend(agent.seen);
    seen.scheduler.extend(scheduler.seen);
}

fn check_errors(change: Option<&Change>, job: &Job) {
    if let Some(Change::DeadLettered { failure, is_exhausted, .. }) = change {
        let code = if *is_exhausted { TASK_RETRY_EXHAUSTED } else { &*failure.code };
        assert_eq!(tasks::last_error_code(job), Some(code));
        assert!(!is_exhausted || failure.retryable && job.retry_count == job.max_retries);
    }
    if let Some(Change::RetryScheduled { failure, .. }) = change {
        assert_eq!(tasks::last_error_code(job), Some(&*failure.code));
    }
}

fn check(acts: &[(usize, world::Act)], seen: &mut Seen) {
    let mut world = World::default();
    for (number, act) in acts {
        world.act(*number, act);
    }
    for history in world.histories.values() {
        check_history(history, seen);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_legal_in_every_view(acts in acts()) {
        check(&acts, &mut Seen::default());
    }
}

/// The moves of a view's own table.
fn table<S: Copy + Ord>(all: &[S], may_become: fn(S, S) -> bool) -> BTreeSet<(S, S)> {
    let pairs = all.iter().flat_map(|from| all.iter().map(move |to| (*from, *to)));
    pairs.filter(|(from, to)| may_become(*from, *to)).collect()
}

/// The property above would hold for histories in which nothing happens; this shows that all of
/// every table happens in them.
#[test]
fn generated_histories_use_every_move_of_every_table() {
    let mut runner = TestRunner::deterministic();
    let mut seen = Seen::default();
    for _ in 0..3_000 {
        let acts = acts().new_tree(&mut runner).unwrap().current();
        check(&acts, &mut seen);
    }
    assert_eq!(seen.native, table(&StateName::ALL, native::may_become));
    assert_eq!(seen.tasks, table(tasks::State::ALL, tasks::State::may_become));
    let full = table(jobs::State::ALL, jobs::State::may_become);
    assert_eq!(seen.jobs, full);
    assert_eq!(seen.agent, table(agent::State::ALL, agent::State::may_become));
    assert_eq!(seen.scheduler, table(scheduler::State::ALL, scheduler::State::may_become));
    assert_eq!(seen.reasons.len(), agent::FailureReason::ALL.len());
}

#[test]
fn wire_names_round_trip_and_terminal_states_have_no_way_out() {
    for state in tasks::State::ALL {
        assert_eq!(tasks::State::parse(state.as_str()), Some(*state));
        let is_end = tasks::State::ALL.iter().all(|to| !state.may_become(*to));
        assert_eq!(state.is_terminal(), is_end);
    }
    for state in jobs::State::ALL {
        let is_end = jobs::State::ALL.iter().all(|to| !state.may_become(*to));
        assert_eq!(state.is_terminal(), is_end);
    }
    for state in agent::State::ALL {
        let is_end = agent::State::ALL.iter().all(|to| !state.may_become(*to));
        assert_eq!(state.is_terminal(), is_end);
    }
    for state in scheduler::State::ALL {
        let is_end = scheduler::State::ALL.iter().all(|to| !state.may_become(*to));
        assert_eq!(state.is_terminal(), is_end);
    }
    assert_eq!(
        (scheduler::max_retries(3), scheduler::max_retries(1), scheduler::max_retries(0)),
        (2, 0, 0)
    );
}

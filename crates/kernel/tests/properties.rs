//! What holds for every job in every history, whatever is asked of it and whatever the clock does.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::dlq::DlqState;
use mainspring_kernel::event::Change;
use mainspring_kernel::{Command, Decision, Event, Job, Receipt, Rejection, State, StateName};
use proptest::prelude::*;
use std::collections::BTreeSet;
use world::{Act, Line, Outcome, World, acts};

fn played(acts: &[(usize, Act)]) -> World {
    let mut world = World::default();
    for (number, act) in acts {
        world.act(*number, act);
    }
    world
}

/// Numbers, fences, counters and times of one history.
fn check_history(history: &[Line]) {
    let mut fences = Vec::new();
    let mut completions = 0;
    for (index, Line { change, transition, job }) in history.iter().enumerate() {
        assert_eq!(transition.seq as usize, index + 1, "numbers are 1, 2, 3 without gaps");
        assert_eq!(job.seq, transition.seq);
        assert_eq!(transition.to, job.state.name());
        assert!(job.retry_count <= job.max_retries, "retries are bounded");
        assert!(job.created_at <= transition.at && job.updated_at == transition.at);
        assert!(job.started_at.is_none_or(|start| job.created_at <= start));
        match change {
            Some(Change::Claimed(lease)) => fences.push(lease.fence),
            Some(Change::Succeeded { .. }) => completions += 1,
            Some(_) | None => {}
        }
    }
    for pair in history.windows(2) {
        let [before, after] = pair else { unreachable!("windows of two") };
        assert_eq!(after.transition.from, Some(before.transition.to), "moves connect");
        let is_hastened = matches!(after.change, Some(Change::Hastened | Change::Unblocked { .. }))
            && matches!(before.transition.to, StateName::Queued | StateName::Retrying);
        let is_legal = before.transition.to.may_become(after.transition.to) || is_hastened;
        assert!(is_legal, "the table allows it");
        assert!(!before.transition.to.is_terminal(), "a finished job never moves");
        assert!(before.transition.at <= after.transition.at, "a job's clock never runs back");
    }
    assert!(fences.is_sorted_by(|a, b| a < b), "fences strictly increase: {fences:?}");
    assert!(completions <= 1, "at most one completion is accepted");
}

/// `failed` only after `dlq_recorded`, with exactly one item written right before that.
fn check_burials(world: &World) {
    for job in world.jobs.values() {
        let opened = world.events.iter().enumerate().filter_map(|(index, event)| match event {
            Event::ItemOpened(item) if item.id == job.id.dlq() => Some(index),
            _ => None,
        });
        let moved = |wanted: fn(&Change) -> bool| {
            world.events.iter().position(|event| {
                matches!(event, Event::JobMoved(moved)
                    if moved.job == job.id && wanted(&moved.change))
            })
        };
        let pending = moved(|change| matches!(change, Change::DeadLettered { .. }));
        let recorded = moved(|change| matches!(change, Change::DlqRecorded));
        let failed = moved(|change| matches!(change, Change::Failed));
        let opened: Vec<usize> = opened.collect();
        assert_eq!(opened.len(), usize::from(recorded.is_some()), "one item per dead letter");
        if let (Some(&item), Some(recorded)) = (opened.first(), recorded) {
            assert!(pending.is_some_and(|pending| pending < item) && item < recorded);
        }
        assert!(failed.is_none_or(|failed| recorded.is_some_and(|at| at < failed)));
        assert_eq!(failed.is_some(), job.state.name() == StateName::Failed);
    }
}

/// A discarded item has two different people behind it; a requeued one exactly one new job.
fn check_items(world: &World) {
    let mut successors = BTreeSet::new();
    for item in world.items.values() {
        let history = &world.histories[&item.id.job()];
        let pending = history.iter().find(|line| line.transition.to == StateName::DlqPending);
        // Its effects are told by the job itself.
        let pending = pending.map(|line| {
            let mut job = line.job.clone();
            job.forget_effects();
            job
        });
        assert_eq!(pending.as_ref(), Some(&*item.job), "the item shows what failed");
        match &item.state {
            DlqState::Discarded { proposal, approved_by } => {
                assert_ne!(proposal.by, *approved_by);
                assert!(!proposal.reason.trim().is_empty());
            }
            DlqState::Requeued { job, .. } => {
                let new = &world.jobs[job];
                assert_eq!(new.extras.as_ref().unwrap().source_dlq, Some(item.id));
                assert!(successors.insert(*job), "one item, one new job");
            }
            DlqState::GlassBroken(mark) => assert!(!mark.reason.trim().is_empty()),
            DlqState::Open | DlqState::DiscardRequested(_) => {}
        }
    }
    let sources = world.jobs.values().filter_map(|job| job.extras.as_ref()?.source_dlq);
    assert_eq!(sources.count(), successors.len());
}

/// What one act may and may not have done to the job it names.
fn check_outcome(outcome: &Outcome, after: Option<&Job>) {
    let Outcome { command, before, answer } = outcome;
    let Some(before) = before else { return };
    let after = after.expect("jobs are not lost");
    match answer {
        Err(_) => assert_eq!(before, after, "a refusal changes nothing"),
        Ok(Decision { events, .. }) if events.is_empty() => assert_eq!(before, after),
        Ok(_) => {
            assert!(!before.state.name().is_terminal(), "{} moved a finished job", command.name())
        }
    }
    let is_granted = matches!(command, Command::Claim(_)) && answer.is_ok();
    if is_granted {
        assert!(before.lease().is_none(), "at most one live lease");
        assert!(before.due_at().is_some_and(|due| due <= after.updated_at), "never before run_at");
    }
    assert_eq!((&before.payload, before.id), (&after.payload, after.id));
    let is_hastened = before.state == State::Queued && after.state == State::Queued;
    if before.seq != after.seq && is_hastened {
        let waited = after.created_at.0 + 1;
        assert_eq!(after.run_at.0, after.updated_at.0.max(waited));
        assert!(after.run_at <= before.run_at);
    } else {
        assert_eq!(before.run_at, after.run_at);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// Nothing panics is part of it: every command meets every state here.
    #[test]
    fn every_history_keeps_the_promises(acts in acts()) {
        let mut world = World::default();
        for (number, act) in &acts {
            if let Some(outcome) = world.act(*number, act) {
                let id = outcome.command.job();
                check_outcome(&outcome, id.and_then(|id| world.jobs.get(&id)));
            }
        }
        world.histories.values().for_each(|history| check_history(history));
        check_burials(&world);
        check_items(&world);
    }

    #[test]
    fn replay_equals_live(acts in acts()) {
        let live = played(&acts);
        let mut replayed = World::default();
        live.events.iter().for_each(|event| replayed.apply(event));
        prop_assert_eq!(&live.jobs, &replayed.jobs);
        prop_assert_eq!(&live.items, &replayed.items);
        for (id, history) in &live.histories {
            let lines = |line: &Line| (line.transition.clone(), line.job.clone());
            let again: Vec<_> = replayed.histories[id].iter().map(lines).collect();
            prop_assert_eq!(history.iter().map(lines).collect::<Vec<_>>(), again);
        }
    }

    /// A second look right after the first finds nothing to do, and every wait ends.
    #[test]
    fn the_reaper_is_idempotent_and_leaves_nothing_hanging(acts in acts()) {
        let mut world = played(&acts);
        // Long enough for every lease, deadline and half-finished burial.
        world.now = world.now.plus_millis(10_000_000_000);
        let ids: Vec<_> = world.jobs.keys().copied().collect();
        for job in ids {
            let _ = world.ask(Command::Reap { job });
            let again = world.ask(Command::Reap { job });
            prop_assert_eq!(again.answer, Err(Rejection::NotDue));
            let state = world.jobs[&job].state.name();
            let waits = matches!(state, StateName::Queued | StateName::Retrying);
            prop_assert!(waits || state.is_terminal(), "{} hangs", state);
        }
    }

    /// The first value committed under a name is the value for good.
    #[test]
    fn an_effect_is_committed_once(acts in acts()) {
        let mut world = World::default();
        let mut firsts = BTreeSet::new();
        for (number, act) in &acts {
            let Some(outcome) = world.act(*number, act) else { continue };
            let Command::CommitEffect(wish) = &outcome.command else { continue };
            let Ok(Decision { receipt: Receipt::Effect { value, is_first }, .. }) = outcome.answer
            else { continue };
            let name = (wish.job, wish.name.clone());
            prop_assert_eq!(firsts.insert(name), is_first);
            prop_assert_eq!(&world.jobs[&wish.job].effect(&wish.name).unwrap().value, &value);
        }
    }
}

/// An event that does not follow is refused and changes nothing: replay cannot be talked into it.
#[test]
fn an_event_out_of_order_is_a_mismatch() {
    let mut world = World::default();
    world.act(0, &Act::Submit { ahead_ms: None, max_retries: 0, timeout_ms: 9, expires_ms: None });
    world.act(0, &Act::Claim { lease_ms: 1_000 });
    let Some(Event::JobMoved(claimed)) = world.events.last().cloned() else {
        panic!("the claim is the last event")
    };
    let mut job = world.jobs.values().next().unwrap().clone();
    let before = job.clone();
    for event in [
        claimed.clone(),
        mainspring_kernel::JobEvent { seq: 4, ..claimed.clone() },
        mainspring_kernel::JobEvent { seq: 3, change: Change::Failed, ..claimed },
    ] {
        assert!(mainspring_kernel::evolve(&mut job, &event).is_err());
        assert_eq!(job, before);
    }
    assert!(
        mainspring_kernel::evolve::renew(&mut job, 9, before.updated_at, (None, None), None)
            .is_err()
    );
    assert_eq!(job, before);
}

//! Moves by hand, for replay and rehearsal. They obey the same transition table as everything else.

use super::{Decision, MoveChain, Receipt, attempt, cancel, claim, dead_letter};
use crate::command::{Ended, Ending, RunInternally};
use crate::event::{Change, Event, INTERNAL_TRANSITION, TASK_EXECUTION_FAILED};
use crate::evolve::evolve;
use crate::facts::Facts;
use crate::job::{Actor, Failure, Job, Payload, StateName};
use crate::limits::LEASE_MS_DEFAULT;
use crate::name::{UserId, WorkerId};
use crate::rejection::Rejection;
use crate::retry::delay_ms;
use crate::time::Timestamp;
use crate::view::{jobs, tasks};

pub(super) fn transition(
    to: StateName,
    by: &UserId,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let from = job.state.name();
    let no_try_left = to == StateName::Retrying && job.retry_count >= job.max_retries;
    let is_plan_started = job.plan().is_some() && to == StateName::Running;
    if !from.may_become(to) || to == StateName::Cancelled || no_try_left || is_plan_started {
        return Err(Rejection::IllegalMove { from, to });
    }
    let mut moves = MoveChain::of(job, facts, Actor::User(by.clone()));
    match to {
        StateName::Running => {
            let lease = claim::lease(job, &worker(), LEASE_MS_DEFAULT, facts, &moves);
            moves.push(Change::Claimed(Box::new(lease)));
        }
        StateName::Succeeded => {
            moves.push(Change::Succeeded { result: None, report: None });
        }
        StateName::Retrying => {
            retry(job, by_hand(true), &mut moves, facts);
        }
        StateName::DlqPending => {
            let failure = by_hand(false);
            moves.push(Change::DeadLettered {
                failure,
                is_exhausted: false,
                report: None,
                result: None,
            });
        }
        StateName::DlqRecorded => dead_letter::record(job.clone(), &mut moves),
        StateName::Failed => {
            moves.push(Change::Failed);
        }
        StateName::Queued | StateName::Cancelled => {
            return Err(Rejection::IllegalMove { from, to });
        }
    }
    Ok(moves.into_state(to))
}

/// A move that the job orchestration contract names. Its states are coarser than ours: what looks
/// like one of its moves is refused unless exactly that is brought about. So a job that waits for
/// its next try, which it shows as running, cannot be started, nor end, by hand.
pub(super) fn move_shown(
    to: jobs::State,
    by: &UserId,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    use jobs::State;
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let from = job.state.name();
    let mut moves = MoveChain::of(job, facts, Actor::User(by.clone()));
    match (from, to) {
        (StateName::Queued, State::Running) if job.plan().is_none() => {
            let lease = claim::lease(job, &worker(), LEASE_MS_DEFAULT, facts, &moves);
            moves.push(Change::Claimed(Box::new(lease)));
            Ok(moves.into_state(StateName::Running))
        }
        (StateName::Running, State::Succeeded) => {
            moves.push(Change::Succeeded { result: None, report: None });
            Ok(moves.into_state(StateName::Succeeded))
        }
        (StateName::Running, State::Failed) => {
            Ok(dead_letter::bury(job, reported_by_hand(false).into(), false, moves))
        }
        (
            StateName::Queued
            | StateName::Running
            | StateName::Retrying
            | StateName::DlqPending
            | StateName::DlqRecorded
            | StateName::Succeeded
            | StateName::Failed
            | StateName::Cancelled,
            State::Queued | State::Running | State::Succeeded | State::Failed | State::Cancelled,
        ) => Err(Rejection::IllegalMove { from, to: to.native() }),
    }
}

/// A move by the table of the task contract, which knows fewer states and one way to each. A plan
/// makes tasks and is none: it can only be cancelled.
pub(super) fn move_task(
    to: tasks::State,
    by: &UserId,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    use tasks::State as Shown;
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let from = tasks::state(job, facts.now);
    let has_no_try_left =
        from == Shown::Running && to == Shown::Ready && job.retry_count >= job.max_retries;
    let is_plan_started = job.plan().is_some() && to != Shown::Cancelled;
    if !from.may_become(to) || has_no_try_left || is_plan_started {
        return Err(Rejection::IllegalTaskMove { from, to });
    }
    let mut moves = MoveChain::of(job, facts, Actor::User(by.clone()));
    match to {
        Shown::Ready if from == Shown::Pending => {
            moves.push(Change::Hastened);
            Ok(moves.into_state(StateName::Queued))
        }
        Shown::Ready => {
            retry(job, reported_by_hand(true), &mut moves, facts);
            Ok(moves.into_state(StateName::Retrying))
        }
        Shown::Running => {
            let lease = claim::lease(job, &worker(), LEASE_MS_DEFAULT, facts, &moves);
            moves.push(Change::Claimed(Box::new(lease)));
            Ok(moves.into_state(StateName::Running))
        }
        Shown::Succeeded => {
            moves.push(Change::Succeeded { result: None, report: None });
            Ok(moves.into_state(StateName::Succeeded))
        }
        Shown::Failed => Ok(dead_letter::bury(job, reported_by_hand(false).into(), false, moves)),
        Shown::Cancelled => cancel::cancel(by, None, facts),
        Shown::Pending => Err(Rejection::IllegalTaskMove { from, to }),
    }
}

/// The failure of an attempt that somebody reports by hand, in contracts that know no other way.
fn reported_by_hand(retryable: bool) -> Failure {
    let code = TASK_EXECUTION_FAILED.into();
    Failure { code, message: "moved by hand".into(), retryable }
}

/// The next try of a running job, as if its worker had failed.
fn retry(job: &Job, failure: Failure, moves: &mut MoveChain, facts: &Facts<'_>) {
    let delay = delay_ms(attempt::backoff(job, facts), job.id, job.retry_count + 1);
    let due_at = moves.at.plus_millis(delay);
    moves.push(Change::RetryScheduled { failure, due_at, report: None });
}

pub(super) fn run(run: &RunInternally, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let from = job.state.name();
    let is_told = matches!(run.ending, Ending::Told(_));
    if is_told && (from == StateName::Running || job.due_at() == Some(Timestamp::NEVER)) {
        return Err(Rejection::LeaseLost);
    }
    let mut moves = MoveChain::of(job, facts, Actor::User(run.by.clone()));
    let mut running = job.clone();
    if from != StateName::Running {
        if !from.may_become(StateName::Running) || job.plan().is_some() {
            return Err(Rejection::IllegalMove { from, to: StateName::Running });
        }
        let lease = claim::lease(job, &worker(), LEASE_MS_DEFAULT, facts, &moves);
        let event = moves.push(Change::Claimed(Box::new(lease)));
        evolve(&mut running, event).expect("the table allows the claim");
    }
    let decision = match &run.ending {
        Ending::Success => {
            moves.push(Change::Succeeded { result: None, report: None });
            moves.into_state(StateName::Succeeded)
        }
        Ending::DeadLetter(failure) => {
            dead_letter::bury(&running, attempt::kept(failure).into(), false, moves)
        }
        Ending::Failure(failure) => {
            attempt::end_attempt(&running, attempt::kept(failure).into(), None, moves, facts)
        }
        Ending::Told(ended) => {
            attempt::check_result(told_result(ended))?;
            told(&running, ended, moves)
        }
    };
    Ok(summed_up(job, decision))
}

fn told_result(ended: &Ended) -> Option<&Payload> {
    match ended {
        Ended::Well { result } | Ended::Badly { result, .. } => result.as_ref(),
    }
}

/// Ends a running job as somebody tells who never had a lease.
fn told(running: &Job, ended: &Ended, mut moves: MoveChain) -> Decision {
    match ended {
        Ended::Well { result } => {
            moves.push(Change::Succeeded { result: result.clone(), report: None });
            moves.into_state(StateName::Succeeded)
        }
        Ended::Badly { failure, result } => {
            let (failure, result) = (attempt::kept(failure), result.clone());
            let failed = attempt::Failed { failure, report: None, result };
            dead_letter::bury(running, failed, false, moves)
        }
    }
}

/// Ends a job that waits, because what it waited for did not come.
pub(crate) fn give_up(job: &Job, failure: Failure, actor: Actor, facts: &Facts<'_>) -> Vec<Event> {
    let moves = MoveChain::of(job, facts, actor);
    dead_letter::bury(job, failure.into(), false, moves).events
}

/// What makes a new job one that ended elsewhere: its one attempt starts and ends now.
pub(super) fn end_elsewhere(job: &Job, ended: &Ended, facts: &Facts<'_>) -> Vec<Event> {
    let mut moves = MoveChain::of(job, facts, Actor::User(job.user.clone()));
    let mut running = job.clone();
    let lease = claim::lease(job, &worker(), LEASE_MS_DEFAULT, facts, &moves);
    let event = moves.push(Change::Claimed(Box::new(lease)));
    evolve(&mut running, event).expect("a new job can be claimed");
    told(&running, ended, moves).events
}

/// The receipt of a run by hand: where the job stands after `decision`.
fn summed_up(job: &Job, decision: Decision) -> Decision {
    let mut after = job.clone();
    let mut at = job.updated_at;
    for event in &decision.events {
        if let Event::JobMoved(event) = event {
            evolve(&mut after, event).expect("a decision's own events apply in order");
            at = event.at;
        }
    }
    let state = after.state.name();
    let receipt = Receipt::Ran {
        state,
        retry_count: after.retry_count,
        item: (state == StateName::Failed).then(|| job.id.dlq()),
        retry_at: after.due_at(),
        retry_after_ms: after.due_at().map(|due| due.since(at).as_millis() as u64),
    };
    Decision { receipt, ..decision }
}

fn by_hand(retryable: bool) -> Failure {
    Failure { code: INTERNAL_TRANSITION.into(), message: "moved by hand".into(), retryable }
}

fn worker() -> WorkerId {
    WorkerId::stored("internal".into())
}

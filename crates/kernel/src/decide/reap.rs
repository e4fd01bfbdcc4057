//! The server enforces time: start-to-close timeout, lease, expiry; and it finishes DLQ moves.
//!
//! The reaper may look at a job at any moment and as often as it likes: every rule here compares
//! with the clock and the present state, so a late or repeated look changes nothing.

use super::{Decision, MoveChain, Receipt, attempt, claim, dead_letter};
use crate::event::{
    Change, Event, QUEUE_TIMEOUT, TASK_EXPIRED, TASK_LEASE_LOST, TASK_TIMEOUT, TOTAL_TIMEOUT,
};
use crate::facts::Facts;
use crate::id::JobId;
use crate::job::{Actor, Failure, GaveUp, Job, Lease, Settled, State, StateName};
use crate::limits::DLQ_UNFINISHED_MS;
use crate::rejection::Rejection;
use crate::time::Timestamp;

pub(super) fn reap(facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let mut moves = MoveChain::of(job, facts, Actor::Reaper);
    let is_unfinished = job.updated_at.plus_millis(DLQ_UNFINISHED_MS) <= facts.now;
    match &job.state {
        // The clock was set forward, or nobody could be reached: it only looks as if the lease had
        // run out.
        State::Running(lease) if attempt::is_live(lease, facts) => {
            let settled = attempt::settled(lease, facts).ok_or(Rejection::NotDue)?;
            Ok(renewed(job.id, lease.fence, settled.expires_at, Some(settled)))
        }
        State::Running(lease) if lease.ends_at() <= facts.now => {
            Ok(attempt::end_attempt(job, lost(job, lease, facts).into(), None, moves, facts))
        }
        State::Queued | State::Retrying { .. } if claim::has_expired(job, facts.now) => {
            Ok(give_up(job, moves))
        }
        State::DlqPending if is_unfinished => {
            dead_letter::record(job.clone(), &mut moves);
            moves.push(Change::Failed);
            Ok(moves.into_state(StateName::Failed))
        }
        State::DlqRecorded if is_unfinished => {
            moves.push(Change::Failed);
            Ok(moves.into_state(StateName::Failed))
        }
        State::Queued
        | State::Running(_)
        | State::Retrying { .. }
        | State::DlqPending
        | State::DlqRecorded
        | State::Succeeded { .. }
        | State::Failed { .. }
        | State::Cancelled { .. } => Err(Rejection::NotDue),
    }
}

pub(super) fn extend(until: Timestamp, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let lease = job.lease().ok_or(Rejection::NotDue)?;
    let settled = attempt::settled(lease, facts);
    let expires_at = settled.map_or(lease.expires_at, |settled| settled.expires_at);
    if settled.is_none() && expires_at >= until {
        return Err(Rejection::NotDue);
    }
    Ok(renewed(job.id, lease.fence, expires_at.max(until), settled))
}

fn renewed(job: JobId, fence: u32, expires_at: Timestamp, settled: Option<Settled>) -> Decision {
    let settled = settled.map(|settled| (settled.deadline_at, settled.at));
    Decision {
        events: vec![Event::LeaseRenewed {
            job,
            fence,
            expires_at,
            progress_pct: None,
            note: None,
            settled,
        }],
        receipt: Receipt::Renewed { expires_at },
    }
}

/// Ends a job that waited past a bound: one that was never started is cancelled, any other goes to
/// the dead-letter queue.
fn give_up(job: &Job, mut moves: MoveChain) -> Decision {
    let (code, text) = match job.gives_up_at() {
        Some((_, GaveUp::Deadline)) => (TOTAL_TIMEOUT, "the job was not done by its deadline"),
        Some((_, GaveUp::QueueTimeout)) => {
            (QUEUE_TIMEOUT, "the job waited longer for a worker than its queue timeout allows")
        }
        Some((_, GaveUp::Expiry)) | None => {
            (TASK_EXPIRED, "the job was not started before it expired")
        }
    };
    if job.state.name() == StateName::Queued {
        moves.push(Change::Cancelled { code, reason: Some(text.into()) });
        return moves.into_state(StateName::Cancelled);
    }
    let message = match &job.last_failure {
        Some(last) => format!("{text}; its last try ended with {}", last.failure.code).into(),
        None => text.into(),
    };
    let failure = Failure { code: code.into(), message, retryable: false };
    dead_letter::bury(job, failure.into(), false, moves)
}

/// What ended the attempt is what came first, however late the reaper looks.
fn lost(job: &Job, lease: &Lease, facts: &Facts<'_>) -> Failure {
    let (expires_at, deadline_at) = attempt::settled(lease, facts)
        .map_or((lease.expires_at, lease.deadline_at), |it| (it.expires_at, it.deadline_at));
    let timed_out_at = lease.granted_at.plus_millis(u64::from(job.timeout_ms));
    let is_last = job.deadline_at().is_some_and(|at| at <= timed_out_at);
    let (code, message) = match (deadline_at <= expires_at, is_last) {
        (true, true) => (TOTAL_TIMEOUT, "the job was not done by its deadline"),
        (true, false) => (TASK_TIMEOUT, "the attempt ran past its start-to-close timeout"),
        (false, _) => (TASK_LEASE_LOST, "the worker stopped renewing its lease"),
    };
    Failure { code: code.into(), message: message.into(), retryable: code != TOTAL_TIMEOUT }
}

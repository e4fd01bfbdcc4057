//! The server enforces time: start-to-close timeout, lease, expiry; and it finishes DLQ moves.
//!
//! The reaper may look at a job at any moment and as often as it likes: every rule here compares
//! with the clock and the present state, so a late or repeated look changes nothing.

use super::{Decision, Moves, Receipt, attempt, claim, dead_letter};
use crate::event::{Change, Event, TASK_EXPIRED, TASK_LEASE_LOST, TASK_TIMEOUT};
use crate::facts::Facts;
use crate::job::{Actor, Failure, Lease, State, StateName};
use crate::limits::DLQ_UNFINISHED_MS;
use crate::rejection::Rejection;
use crate::time::Timestamp;

pub(super) fn reap(facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let mut moves = Moves::of(job, facts, Actor::Reaper);
    let is_unfinished = job.updated_at.plus_millis(DLQ_UNFINISHED_MS) <= facts.now;
    match &job.state {
        State::Running(lease) if lease.ends_at() <= facts.now => {
            Ok(attempt::end_attempt(job, lost(lease), None, None, moves, facts))
        }
        State::Queued if claim::has_expired(job, facts.now) => {
            moves.push(Change::Cancelled {
                code: TASK_EXPIRED,
                reason: Some("the job was not started before it expired".into()),
            });
            Ok(moves.into_state(StateName::Cancelled))
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
    let Some(lease) = job.lease().filter(|lease| lease.expires_at < until) else {
        return Err(Rejection::NotDue);
    };
    let renewed = Event::LeaseRenewed {
        job: job.id,
        fence: lease.fence,
        expires_at: until,
        progress_pct: None,
    };
    Ok(Decision { events: vec![renewed], receipt: Receipt::Renewed { expires_at: until } })
}

/// What ended the attempt is what came first, however late the reaper looks.
fn lost(lease: &Lease) -> Failure {
    let (code, message) = if lease.deadline_at <= lease.expires_at {
        (TASK_TIMEOUT, "the attempt ran past its start-to-close timeout")
    } else {
        (TASK_LEASE_LOST, "the worker stopped renewing its lease")
    };
    Failure { code: code.into(), message: message.into(), retryable: true }
}

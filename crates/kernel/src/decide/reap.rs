//! The server enforces time: start-to-close timeout, lease, expiry; and it finishes DLQ moves.
//!
//! The reaper may look at a job at any moment and as often as it likes: every rule here compares
//! with the clock and the present state, so a late or repeated look changes nothing.

use super::{Decision, MoveChain, Receipt, attempt, claim, dead_letter};
use crate::event::{Change, Event, TASK_EXPIRED, TASK_LEASE_LOST, TASK_TIMEOUT};
use crate::facts::Facts;
use crate::id::JobId;
use crate::job::{Actor, Failure, Lease, Settled, State, StateName};
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
            Ok(attempt::end_attempt(job, lost(lease, facts), None, None, moves, facts))
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
        events: vec![Event::LeaseRenewed { job, fence, expires_at, progress_pct: None, settled }],
        receipt: Receipt::Renewed { expires_at },
    }
}

/// What ended the attempt is what came first, however late the reaper looks.
fn lost(lease: &Lease, facts: &Facts<'_>) -> Failure {
    let (expires_at, deadline_at) = attempt::settled(lease, facts)
        .map_or((lease.expires_at, lease.deadline_at), |it| (it.expires_at, it.deadline_at));
    let (code, message) = if deadline_at <= expires_at {
        (TASK_TIMEOUT, "the attempt ran past its start-to-close timeout")
    } else {
        (TASK_LEASE_LOST, "the worker stopped renewing its lease")
    };
    Failure { code: code.into(), message: message.into(), retryable: true }
}

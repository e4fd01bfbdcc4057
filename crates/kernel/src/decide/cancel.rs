//! Ending a job by request. A running job's worker learns of it with its next heartbeat.

use super::{Decision, MoveChain, attempt};
use crate::event::{Change, JOB_CANCELLED};
use crate::facts::Facts;
use crate::job::{Actor, StateName};
use crate::name::UserId;
use crate::rejection::Rejection;

pub(crate) fn cancel(
    by: &UserId,
    reason: Option<&str>,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let state = job.state.name();
    if !state.may_become(StateName::Cancelled) {
        return Err(Rejection::CancelConflict { state });
    }
    let mut moves = MoveChain::of(job, facts, Actor::User(by.clone()));
    moves.push(Change::Cancelled { code: JOB_CANCELLED, reason: reason.map(attempt::cut) });
    Ok(moves.into_state(StateName::Cancelled))
}

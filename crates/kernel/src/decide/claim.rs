//! Handing a waiting job to one worker under a fenced lease.

use super::{Decision, MoveChain};
use crate::command::Claim;
use crate::event::Change;
use crate::facts::Facts;
use crate::governance::is_governed;
use crate::job::{Actor, Job, Lease, StateName};
use crate::limits::{LEASE_MS_MAX, LEASE_MS_MIN};
use crate::name::WorkerId;
use crate::rejection::Rejection;
use crate::time::Timestamp;

pub(super) fn claim(claim: &Claim, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let Some(due_at) = job.due_at() else {
        return Err(Rejection::IllegalMove { from: job.state.name(), to: StateName::Running });
    };
    // A governed job is handed out by the rules of its object.
    if due_at > facts.now || has_expired(job, facts.now) || is_governed(&job.job_type) {
        return Err(Rejection::NotDue);
    }
    let mut moves = MoveChain::of(job, facts, Actor::Worker(claim.worker.clone()));
    let lease = lease(job, &claim.worker, claim.lease_ms, facts, &moves);
    moves.push(Change::Claimed(Box::new(lease)));
    Ok(moves.into_state(StateName::Running))
}

/// Whether `job` was to be started by now and was not: it is the reaper's, not a worker's.
pub(super) fn has_expired(job: &Job, now: Timestamp) -> bool {
    job.gives_up_at().is_some_and(|(end, _)| end <= now)
}

/// The next lease of `job`: its fence is greater than any before it.
pub(super) fn lease(
    job: &Job,
    worker: &WorkerId,
    lease_ms: u32,
    facts: &Facts<'_>,
    moves: &MoveChain,
) -> Lease {
    let lease_ms = lease_ms.clamp(LEASE_MS_MIN, LEASE_MS_MAX);
    let timed_out_at = moves.at.plus_millis(u64::from(job.timeout_ms));
    Lease {
        fence: job.fence + 1,
        secret: facts.fresh_secret,
        worker: worker.clone(),
        granted_at: moves.at,
        expires_at: moves.at.plus_millis(u64::from(lease_ms)),
        deadline_at: job.deadline_at().map_or(timed_out_at, |at| at.min(timed_out_at)),
        settled_at: None,
        due_at: None,
        holder: None,
    }
}

//! A job that waits for something else than time: it is given back unused and not due, until
//! whatever it waits for makes it due.

use super::attempt::{self, Reporter};
use super::{MoveChain, claim};
use crate::event::{Change, Event};
use crate::evolve::evolve;
use crate::facts::Facts;
use crate::fingerprint::Digest;
use crate::job::{AcceptedReport, Actor, Job, LeaseToken, State, StateName};
use crate::limits::LEASE_MS_DEFAULT;
use crate::name::{UserId, WorkerId};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// Whether `job` waits for something else than time.
pub(crate) fn is_parked(job: &Job) -> bool {
    job.state == State::Retrying { due_at: Timestamp::NEVER }
}

/// Has the job wait: for the holder of its lease, or for `by` if nobody holds it. `said` is the
/// digest of the report; the repeat of one that was accepted brings nothing about.
pub(crate) fn park(
    token: Option<LeaseToken>,
    by: &UserId,
    said: Digest,
    reason: &str,
    facts: &Facts<'_>,
) -> Result<Vec<Event>, Rejection> {
    let (mut moves, token) = match token {
        Some(token) => match attempt::holder(token, said, facts)? {
            Reporter::Repeats(_) => return Ok(Vec::new()),
            Reporter::Holds(job, lease) => {
                (MoveChain::of(job, facts, Actor::Worker(lease.worker.clone())), token)
            }
        },
        None => {
            let job = facts.job.ok_or(Rejection::LeaseLost)?;
            let from = job.state.name();
            if from == StateName::Running || is_parked(job) || job.plan().is_some() {
                return Err(Rejection::LeaseLost);
            }
            if !from.may_become(StateName::Running) {
                return Err(Rejection::IllegalMove { from, to: StateName::Running });
            }
            let mut moves = MoveChain::of(job, facts, Actor::User(by.clone()));
            let worker = WorkerId::stored("internal".into());
            let lease = claim::lease(job, &worker, LEASE_MS_DEFAULT, facts, &moves);
            let token = lease.token();
            let event = moves.push(Change::Claimed(Box::new(lease)));
            evolve(&mut job.clone(), event).expect("the table allows the claim");
            (moves, token)
        }
    };
    moves.push(Change::Released {
        hold: None,
        reason: Some(attempt::cut(reason)),
        report: Box::new(AcceptedReport { token, digest: said }),
        due_at: Some(Timestamp::NEVER),
    });
    Ok(moves.events)
}

/// Makes a job that waits due at once.
pub(crate) fn hasten(job: &Job, actor: Actor, facts: &Facts<'_>) -> Vec<Event> {
    let mut moves = MoveChain::of(job, facts, actor);
    moves.push(Change::Hastened);
    moves.events
}

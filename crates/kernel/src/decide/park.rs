//! A job that waits for something else than time: it is given back unused and not due, until
//! whatever it waits for makes it due.

use super::attempt::{self, Reporter};
use super::{Decision, MoveChain, Receipt, claim};
use crate::event::{Change, Event, Hold, HoldCode};
use crate::evolve::evolve;
use crate::facts::Facts;
use crate::fingerprint::{Digest, digest};
use crate::governance::is_governed;
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
            let lease = claim::lease(job, &house(), LEASE_MS_DEFAULT, facts, &moves);
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

/// Whether somebody has `job` wait until somebody lets it go.
fn is_paused(job: &Job) -> bool {
    let said = job.last_report.as_ref().map(|last| last.digest);
    is_parked(job) && said == Some(digest(&[PAUSED]))
}

/// What the report of a pause says, by which it is told from other waits.
const PAUSED: &[u8] = b"paused";

/// Has a job wait that nobody holds, until it is resumed: as if it had been handed to the house and
/// been given back unused. One that waits for something else goes on to wait for that.
pub(crate) fn pause(by: &UserId, reason: &str, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    if is_governed(&job.job_type) {
        return Err(Rejection::JobGoverned);
    }
    let state = job.state.name();
    let waits = job.due_at().is_some_and(|due_at| due_at != Timestamp::NEVER);
    if !waits || job.plan().is_some() {
        return Err(Rejection::PauseConflict { state });
    }
    let mut moves = MoveChain::of(job, facts, Actor::User(by.clone()));
    let lease = claim::lease(job, &house(), LEASE_MS_DEFAULT, facts, &moves);
    let report = AcceptedReport { token: lease.token(), digest: digest(&[PAUSED]) };
    moves.push(Change::Claimed(Box::new(lease)));
    moves.push(Change::Released {
        due_at: None,
        reason: Some(attempt::cut(reason)),
        report: Box::new(report),
        hold: Some(Hold { code: HoldCode::Paused, until: Timestamp::NEVER }),
    });
    Ok(moves.into_state(StateName::Retrying))
}

/// Lets a job go that was paused: it is due as it was, or at once if that has passed.
pub(crate) fn resume(by: &UserId, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    if !is_paused(job) {
        return Err(Rejection::PauseConflict { state: job.state.name() });
    }
    let actor = Actor::User(by.clone());
    if job.run_at <= facts.now {
        let receipt = Receipt::Moved { state: StateName::Retrying };
        return Ok(Decision { events: hasten(job, actor, facts), receipt });
    }
    let mut moves = MoveChain::of(job, facts, actor);
    let lease = claim::lease(job, &house(), LEASE_MS_DEFAULT, facts, &moves);
    let report = AcceptedReport { token: lease.token(), digest: digest(&[b"resumed"]) };
    moves.push(Change::Claimed(Box::new(lease)));
    moves.push(Change::Released {
        due_at: Some(job.run_at),
        reason: None,
        report: Box::new(report),
        hold: None,
    });
    Ok(moves.into_state(StateName::Retrying))
}

/// Who holds a job for as long as it takes to put it aside.
fn house() -> WorkerId {
    WorkerId::stored("internal".into())
}

/// Makes a job that waits due at once.
pub(crate) fn hasten(job: &Job, actor: Actor, facts: &Facts<'_>) -> Vec<Event> {
    let mut moves = MoveChain::of(job, facts, actor);
    moves.push(Change::Hastened);
    moves.events
}

//! Jobs on governed objects: who gets one, who may go on with it, and what it leaves behind when it
//! is done. The object and the gates are looked at in the very commit that hands a job out or takes
//! a report, so nothing gets past a change that somebody was told of.

use super::{Decision, MoveChain, Receipt, attempt, claim, dead_letter};
use crate::command::{Ack, GovernedClaim, Heartbeat, Renew};
use crate::entity::Entity;
use crate::entity::object::{self, Epistemic, Object, UnknownType};
use crate::event::{Change, Hold, HoldCode, UNKNOWABLE_TRIES_EXHAUSTED};
use crate::evolve::evolve;
use crate::facts::Facts;
use crate::fingerprint::digest;
use crate::governance::{Action, Duty, Gate, RiskTier};
use crate::job::{AcceptedReport, Actor, Failure, Job, Lease, StateName};
use crate::limits::{HELD_LOOK_MS, LEASE_MS_MIN, NAME_BYTES_MAX};
use crate::name::WorkerId;
use crate::rejection::Rejection;
use crate::text::refuse_control;
use crate::time::Timestamp;

/// Hands a governed job out; or parks it, if it may not be; or ends it, if it never will.
pub(super) fn claim(wish: &GovernedClaim, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::JobUnknown)?;
    let duty = Duty::of(&job.job_type).ok_or(Rejection::NotDue)?;
    let Some(due_at) = job.due_at() else {
        return Err(Rejection::IllegalMove { from: job.state.name(), to: StateName::Running });
    };
    if due_at > wish.clock.due_by(facts.now) || claim::has_expired(job, facts.now) {
        return Err(Rejection::NotDue);
    }
    let governed = facts.entity.and_then(|entity| Some((entity, object::of(entity)?)));
    let verdict = match governed {
        Some((_, object)) => verdict(object, duty.action, facts),
        None => Verdict::Go,
    };
    let mut moves = MoveChain::of(job, facts, Actor::Worker(wish.claim.worker.clone()));
    match (verdict, governed) {
        (Verdict::Held(code, gate), Some((entity, object))) => {
            Ok(park(job, (entity, object), code, gate, facts))
        }
        (Verdict::Over, _) => Ok(end(job, facts)),
        (Verdict::Go | Verdict::Counted | Verdict::Held(..), _) => {
            let lease = claim::lease(job, &wish.claim.worker, wish.claim.lease_ms, facts, &moves);
            let (due_at, holder) = (Some(due_at), Some(wish.holder.clone()));
            moves.push(Change::Claimed(Box::new(Lease { due_at, holder, ..lease })));
            let mut decision = moves.into_state(StateName::Running);
            if let (Verdict::Counted, Some((entity, object))) = (verdict, governed) {
                decision.events.push(object::verified(entity, object, facts.now));
            }
            Ok(decision)
        }
    }
}

/// What may become of a job, in the light of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Go,
    /// It may go, and counts as a verification.
    Counted,
    Held(HoldCode, Option<Gate>),
    /// The object was looked at as often as it may be.
    Over,
}

fn verdict(object: &Object, action: Action, facts: &Facts<'_>) -> Verdict {
    let is_high = object.risk_tier == RiskTier::High;
    if let (true, Some(gate)) = (is_high, facts.closed_gate) {
        return Verdict::Held(HoldCode::GateClosed, Some(gate));
    }
    if object.epistemic == Epistemic::Certain {
        return Verdict::Go;
    }
    if action != Action::Verify {
        return match is_high {
            true => Verdict::Held(HoldCode::ObjectUncertain, None),
            false => Verdict::Go,
        };
    }
    let budget = object.budget(facts.governance);
    if object.unknown_type.is_some_and(UnknownType::is_unknowable) {
        let most = facts.governance.unknowable_tries_max;
        let is_over = object.verify_tries >= most || object.verifies_used >= budget;
        return if is_over { Verdict::Over } else { Verdict::Counted };
    }
    match object.verifies_used < budget {
        true => Verdict::Counted,
        false => Verdict::Held(HoldCode::AutoVerifyBudget, None),
    }
}

/// Puts a job out of the way until its object changes or the gates open: as if it had been handed
/// to the house itself and been given back unused, which every view of it knows how to tell.
fn park(
    job: &Job,
    (entity, object): (&Entity, &Object),
    code: HoldCode,
    gate: Option<Gate>,
    facts: &Facts<'_>,
) -> Decision {
    let mut moves = MoveChain::of(job, facts, Actor::Reaper);
    let noted = object::parked((entity, object), job.id, gate, facts.now);
    let until = match noted {
        Some(_) => Timestamp::NEVER,
        // Nobody would let it go: it looks for itself.
        None => moves.at.plus_millis(HELD_LOOK_MS),
    };
    let lease = claim::lease(job, &house(), LEASE_MS_MIN, facts, &moves);
    let report = AcceptedReport { token: lease.token(), digest: digest(&[b"held"]) };
    moves.push(Change::Claimed(Box::new(lease)));
    moves.push(Change::Released {
        due_at: None,
        reason: Some(code.text(gate).into()),
        report: Box::new(report),
        hold: Some(Hold { code, until }),
    });
    let mut decision = moves.into_state(StateName::Retrying);
    decision.events.extend(noted);
    decision
}

/// The way out for an object that cannot be known: its verifications end as dead letters.
fn end(job: &Job, facts: &Facts<'_>) -> Decision {
    let mut moves = MoveChain::of(job, facts, Actor::Reaper);
    let mut running = job.clone();
    let lease = claim::lease(job, &house(), LEASE_MS_MIN, facts, &moves);
    let event = moves.push(Change::Claimed(Box::new(lease)));
    evolve(&mut running, event).expect("a waiting job may be claimed");
    let failure = Failure {
        code: UNKNOWABLE_TRIES_EXHAUSTED.into(),
        message: "the object cannot be known and was verified as often as it may be".into(),
        retryable: false,
    };
    dead_letter::bury(&running, failure.into(), false, moves)
}

/// Takes a job as done, and writes down what that makes of its object.
pub(super) fn ack(ack: &Ack, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    if let Some(id) = &ack.audit_event_id {
        if id.is_empty() || id.len() > NAME_BYTES_MAX {
            let reason = "must be between 1 and 200 bytes long";
            return Err(Rejection::FieldInvalid { field: "audit_event_id", reason });
        }
        refuse_control("audit_event_id", id)?;
    }
    let held = facts.job.filter(|job| attempt::live_lease(job, ack.report.token, facts).is_some());
    let Some(job) = held else { return attempt::complete(&ack.report, facts) };
    if let Some(taken_back) = taken_back(job, facts) {
        return Ok(taken_back);
    }
    let mut decision = attempt::complete(&ack.report, facts)?;
    let duty = Duty::of(&job.job_type).ok_or(Rejection::LeaseLost)?;
    let left = (duty.action, ack.next_action_at, ack.audit_event_id.as_deref());
    if ack.keeps_object {
        decision.events.extend(object::acted((facts.entity, job), left, facts.now));
    }
    Ok(decision)
}

/// Renews the lease of a governed job, if its object may still be worked on.
pub(super) fn renew(renew: &Renew, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let Heartbeat { token, .. } = renew.beat;
    let held = facts.job.filter(|job| attempt::live_lease(job, token, facts).is_some());
    match held.and_then(|job| taken_back(job, facts)) {
        Some(taken_back) => Ok(taken_back),
        None => attempt::heartbeat(&renew.beat, facts),
    }
}

/// A gate was closed since a job was handed out: it waits again, and no try is used up.
fn taken_back(job: &Job, facts: &Facts<'_>) -> Option<Decision> {
    let object = facts.entity.and_then(object::of)?;
    let gate = facts.closed_gate.filter(|_| object.risk_tier == RiskTier::High)?;
    let lease = job.lease()?;
    let mut moves = MoveChain::of(job, facts, Actor::Reaper);
    let (code, until) = (HoldCode::GateClosed, moves.at);
    let report = AcceptedReport { token: lease.token(), digest: digest(&[b"held"]) };
    moves.push(Change::Released {
        due_at: None,
        reason: Some(code.text(Some(gate)).into()),
        report: Box::new(report),
        hold: Some(Hold { code, until }),
    });
    let Decision { events, .. } = moves.into_state(StateName::Retrying);
    Some(Decision { events, receipt: Receipt::TakenBack { gate } })
}

/// Who holds a job that is nobody's to have.
fn house() -> WorkerId {
    WorkerId::stored("governance".into())
}

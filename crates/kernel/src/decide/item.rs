//! Decisions about dead-letter items. The two-person rule is here and nowhere else; it compares
//! people, not tokens.

use super::{Decision, Receipt};
use crate::access::Principal;
use crate::dlq::{DlqItem, DlqState, Proposal};
use crate::event::Event;
use crate::facts::Facts;
use crate::id::JobId;
use crate::job::{Extras, Job, State};
use crate::limits::KEY_BYTES_MAX;
use crate::name::UserId;
use crate::rejection::Rejection;
use crate::text::refuse_control;

pub(super) fn requeue(
    by: &UserId,
    key: Option<&str>,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    if let Some(key) = key {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            let reason = "must be between 1 and 512 bytes long";
            return Err(Rejection::FieldInvalid { field: "Idempotency-Key", reason });
        }
        refuse_control("Idempotency-Key", key)?;
    }
    match &item.state {
        DlqState::Open => {}
        DlqState::Requeued { job, key: Some(first), .. } if key == Some(first) => {
            return Ok(Decision { events: Vec::new(), receipt: Receipt::Requeued { job: *job } });
        }
        state @ (DlqState::Requeued { .. }
        | DlqState::DiscardRequested(_)
        | DlqState::Discarded { .. }) => {
            return Err(Rejection::RequeueConflict { state: state.as_str() });
        }
    }
    let job = again(item, facts);
    let id = job.id;
    let state = DlqState::Requeued { job: id, by: by.clone(), key: key.map(Into::into) };
    Ok(Decision {
        events: vec![Event::JobSubmitted(Box::new(job)), changed(item, state, facts)],
        receipt: Receipt::Requeued { job: id },
    })
}

/// The job of `item` from the beginning: same work, new id, a clean slate.
fn again(item: &DlqItem, facts: &Facts<'_>) -> Job {
    let old = &item.job;
    let mut extras = Extras { source_dlq: Some(item.id), ..Extras::default() };
    if let Some(had) = &old.extras {
        extras.parent = had.parent;
        extras.subject.clone_from(&had.subject);
        extras.labels.clone_from(&had.labels);
    }
    Job {
        id: JobId(facts.fresh_id),
        retry_count: 0,
        seq: 1,
        fence: 0,
        created_at: facts.now,
        updated_at: facts.now,
        run_at: facts.now,
        started_at: None,
        trace: Some(old.trace_id().into()),
        idempotency: None,
        trouble: None,
        last_report: None,
        extras: Some(Box::new(extras)),
        state: State::Queued,
        ..(**old).clone()
    }
}

pub(super) fn request_discard(
    by: &UserId,
    reason: &str,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    let reason = stated(reason)?;
    let DlqState::Open = item.state else {
        return Err(Rejection::DiscardConflict { state: item.state.as_str() });
    };
    let proposal = Proposal { by: by.clone(), reason, at: facts.now };
    Ok(stands(item, DlqState::DiscardRequested(proposal), facts))
}

pub(super) fn approve_discard(by: &Principal, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    let DlqState::DiscardRequested(proposal) = &item.state else {
        return Err(Rejection::DiscardConflict { state: item.state.as_str() });
    };
    // A token the proposer made after asking is the proposer's own hand, whatever name it bears.
    let made_for_this = by.token_issued_by == proposal.by && by.token_issued_at >= proposal.at;
    if by.user == proposal.by || made_for_this {
        return Err(Rejection::SamePerson);
    }
    let state = DlqState::Discarded { proposal: proposal.clone(), approved_by: by.user.clone() };
    Ok(stands(item, state, facts))
}

pub(super) fn reject_discard(facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    let DlqState::DiscardRequested(_) = item.state else {
        return Err(Rejection::DiscardConflict { state: item.state.as_str() });
    };
    Ok(stands(item, DlqState::Open, facts))
}

pub(super) fn discard_reviewed(
    reason: &str,
    reviewer: &str,
    reviewer_2: &str,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let reason = stated(reason)?;
    let missing = Rejection::ApprovalRequired { reason: "a discard needs two different reviewers" };
    let (Ok(first), Ok(second)) = (UserId::new(reviewer.trim()), UserId::new(reviewer_2.trim()))
    else {
        return Err(missing);
    };
    if first == second {
        return Err(missing);
    }
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    match item.state {
        DlqState::Open | DlqState::DiscardRequested(_) => {}
        DlqState::Requeued { .. } | DlqState::Discarded { .. } => {
            return Err(Rejection::DiscardConflict { state: item.state.as_str() });
        }
    }
    let proposal = Proposal { by: first, reason, at: facts.now };
    Ok(stands(item, DlqState::Discarded { proposal, approved_by: second }, facts))
}

fn stated(reason: &str) -> Result<Box<str>, Rejection> {
    match reason.trim() {
        "" => Err(Rejection::ApprovalRequired { reason: "a discard needs a reason" }),
        reason => Ok(super::attempt::cut(reason)),
    }
}

fn stands(item: &DlqItem, state: DlqState, facts: &Facts<'_>) -> Decision {
    let name = state.as_str();
    Decision { events: vec![changed(item, state, facts)], receipt: Receipt::Item { state: name } }
}

fn changed(item: &DlqItem, state: DlqState, facts: &Facts<'_>) -> Event {
    Event::ItemChanged {
        item: item.id,
        version: item.version + 1,
        at: facts.now.max(item.updated_at),
        state: Box::new(state),
    }
}

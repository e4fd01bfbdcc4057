//! Decisions about dead-letter items. Dropping one takes two people: `two_people.rs`.

use super::two_people::{self, Asked};
use super::{Decision, Receipt};
use crate::access::{Principal, Role, Token};
use crate::dlq::{DlqItem, DlqState, Proposal};
use crate::event::Event;
use crate::facts::Facts;
use crate::id::JobId;
use crate::job::{Extras, Job, State};
use crate::limits::KEY_BYTES_MAX;
use crate::name::UserId;
use crate::person::{Hand, People, Person};
use crate::rejection::Rejection;
use crate::text::refuse_control;

pub(crate) fn requeue(
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
        | DlqState::Discarded { .. }
        | DlqState::GlassBroken(_)) => {
            return Err(Rejection::RequeueConflict { state: state.as_str() });
        }
    }
    let job = again(item, facts);
    facts.backlog.admit(&job)?;
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
        extras.traceparent.clone_from(&had.traceparent);
        extras.limit_keys.clone_from(&had.limit_keys);
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
        last_failure: None,
        last_report: None,
        extras: Some(Box::new(extras)),
        state: State::Queued,
        ..(**old).clone()
    }
}

pub(crate) fn request_discard(
    by: &Principal,
    reason: &str,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    let reason = stated(reason)?;
    let DlqState::Open = item.state else {
        return Err(Rejection::DiscardConflict { state: item.state.as_str() });
    };
    let asked_at = item.first_asked_at.unwrap_or(facts.now);
    two_people::could_be_approved(by, &item.job.tenant, asked_at, facts)?;
    Ok(stands(item, DlqState::DiscardRequested(proposal(by, reason, facts)), facts))
}

pub(super) fn approve_discard(
    by: &Principal,
    version: u32,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    let DlqState::DiscardRequested(proposal) = &item.state else {
        return Err(Rejection::DiscardConflict { state: item.state.as_str() });
    };
    if version != item.version {
        return Err(Rejection::VersionChanged { now: item.version });
    }
    let asked = Asked {
        by: &proposal.by,
        token: proposal.token,
        at: proposal.at,
        first_at: item.first_asked_at.unwrap_or(proposal.at),
    };
    two_people::approve(by, asked, facts)?;
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

/// Two reviewers named by a third party: both must be people of their own, by tokens that neither
/// the other nor whoever names them had a hand in.
pub(super) fn discard_reviewed(
    by: &Principal,
    reason: &str,
    reviewers: [&str; 2],
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let reason = stated(reason)?;
    let missing = Rejection::ApprovalRequired { reason: "a discard needs two different reviewers" };
    let [Ok(first), Ok(second)] = reviewers.map(|name| UserId::new(name.trim())) else {
        return Err(missing);
    };
    let (one, two) = (Person::of(&first), Person::of(&second));
    if one.is(&two) {
        return Err(missing);
    }
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    if !item.state.is_waiting() {
        return Err(Rejection::DiscardConflict { state: item.state.as_str() });
    }
    let mut people = People::new(facts.tokens);
    let asked_at = item.first_asked_at.unwrap_or(facts.now);
    let mut tokens_of = |person: &Person| -> Vec<&Token> {
        let mut tokens = people.tokens_of(person);
        tokens.retain(|token| {
            may_act(token, item, &[Role::Operator, Role::Approver], facts)
                && token.issued_at < asked_at
                && people.are_independent(Hand::from(by), Hand::from(*token))
        });
        tokens
    };
    let (ones, twos) = (tokens_of(&one), tokens_of(&two));
    let mut pairs = ones.iter().flat_map(|one| twos.iter().map(move |two| (*one, *two)));
    if !pairs.any(|(one, two)| people.are_independent(Hand::from(one), Hand::from(two))) {
        return Err(Rejection::ApprovalRequired {
            reason: "both reviewers must be people with tokens of their own, \
                     which neither the other nor the caller had a hand in",
        });
    }
    let proposal = Proposal { by: first, reason, at: facts.now, token: Some(by.token) };
    Ok(stands(item, DlqState::Discarded { proposal, approved_by: second }, facts))
}

/// One person alone, in an emergency. Nothing is checked but that there is a reason; the item
/// shows for ever who did it, why and when.
pub(super) fn break_glass(
    by: &Principal,
    reason: &str,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let item = facts.item.ok_or(Rejection::ItemUnknown)?;
    let reason = stated(reason)?;
    if !item.state.is_waiting() {
        return Err(Rejection::DiscardConflict { state: item.state.as_str() });
    }
    Ok(stands(item, DlqState::GlassBroken(proposal(by, reason, facts)), facts))
}

fn proposal(by: &Principal, reason: Box<str>, facts: &Facts<'_>) -> Proposal {
    Proposal { by: by.user.clone(), reason, at: facts.now, token: Some(by.token) }
}

/// Whether the holder of `token` may act on `item` in one of `roles` now.
fn may_act(token: &Token, item: &DlqItem, roles: &[Role], facts: &Facts<'_>) -> bool {
    token.is_live(facts.now) && token.reaches(&item.job.tenant) && token.roles.any(roles)
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

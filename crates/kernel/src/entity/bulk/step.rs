//! What is done to one item or job, and that it was: one decision, by the same rules as if somebody
//! asked for it alone.

use super::decide::{changed, known};
use super::{Bulk, BulkAction, BulkPage, BulkStatus, Outcome, Target, page_id};
use crate::access::Token;
use crate::decide::{self, Decision, Receipt};
use crate::entity::{Body, Entity};
use crate::event::Event;
use crate::facts::Facts;
use crate::limits::{BULK_KEEP_MS, OUTCOMES_PER_PAGE};
use crate::name::TenantId;
use crate::rejection::{Class, Rejection};

pub(super) fn step(
    action: BulkAction,
    target: Target,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let (entity, bulk) = known(facts)?;
    let is_next = bulk.cursor.is_none_or(|last| target.bits() < last);
    let is_there = tenant(target, facts).is_none_or(|tenant| *tenant == entity.tenant);
    // Nothing is done to more things than were shown to whoever asked and agreed.
    let is_on = bulk.status == BulkStatus::Running && bulk.spec.action == action && bulk.left() > 0;
    // Another server may have got ahead.
    if !is_on || !is_next || !is_there {
        return Err(Rejection::NotDue);
    }
    let acted = match act(entity, bulk, facts) {
        // There may be room later: it waits.
        Err(no) if matches!(no.class(), Class::Share | Class::Room) => return Err(no),
        acted => acted,
    };
    let (mut events, outcome) = match acted {
        Ok(Decision { events, receipt }) => {
            let made = if let Receipt::Requeued { job } = receipt { Some(job) } else { None };
            (events, Outcome { target: target.bits(), made, code: None })
        }
        Err(no) => {
            let code = Some(no.code().into());
            (Vec::new(), Outcome { target: target.bits(), made: None, code })
        }
    };
    let mut next = bulk.clone();
    next.cursor = Some(target.bits());
    match outcome.code {
        None => next.done += 1,
        Some(_) => next.failed += 1,
    }
    if let (false, Some(made)) = (bulk.is_judged, outcome.made) {
        next.canaries.push(made);
        let first = bulk.spec.canary.map_or(0, |canary| canary.first as usize);
        if next.canaries.len() >= first {
            next.status = BulkStatus::Canary;
        }
    }
    next.outcomes.push(outcome);
    if next.outcomes.len() >= OUTCOMES_PER_PAGE {
        events.push(page(entity, &mut next, facts));
    }
    let Decision { events: own, receipt } = changed(entity, next, facts);
    events.extend(own);
    Ok(Decision { events, receipt })
}

/// Whose it is, if it is there.
fn tenant<'a>(target: Target, facts: &Facts<'a>) -> Option<&'a TenantId> {
    match target {
        Target::Item(_) => facts.item.map(|item| &item.job.tenant),
        Target::Job(_) => facts.job.map(|job| &job.tenant),
    }
}

fn act(entity: &Entity, bulk: &Bulk, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let by = &entity.owner;
    match bulk.spec.action {
        BulkAction::Requeue => {
            let key = entity.id.to_string();
            decide::requeue(by, Some(&key), facts)
        }
        BulkAction::Discard => {
            let token = |token: &&&Token| token.id == bulk.asked_with;
            let asker = facts.tokens.iter().find(token).ok_or(Rejection::TokenUnknown)?;
            decide::request_discard(&asker.principal(), &bulk.spec.reason, facts)
        }
        BulkAction::Cancel => {
            let job = facts.job.ok_or(Rejection::JobUnknown)?;
            let state = job.state.name();
            // It has moved on since the filter admitted it.
            if bulk.spec.filter.state.is_some_and(|wanted| wanted != state) {
                return Err(Rejection::CancelConflict { state });
            }
            decide::cancel(by, Some(&bulk.spec.reason), facts)
        }
        BulkAction::Pause => {
            let job = facts.job.ok_or(Rejection::JobUnknown)?;
            let state = job.state.name();
            if bulk.spec.filter.state != Some(state) {
                return Err(Rejection::PauseConflict { state });
            }
            decide::pause(by, &bulk.spec.reason, facts)
        }
        BulkAction::Resume => decide::resume(by, facts),
    }
}

/// The outcomes so far as a page of their own.
fn page(entity: &Entity, bulk: &mut Bulk, facts: &Facts<'_>) -> Event {
    let outcomes = std::mem::take(&mut bulk.outcomes);
    let id = page_id(entity.id, bulk.pages);
    bulk.pages += 1;
    Event::EntitySet(Box::new(Entity {
        id,
        version: 1,
        tenant: entity.tenant.clone(),
        owner: entity.owner.clone(),
        created_at: facts.now,
        updated_at: facts.now,
        body: Body::BulkPage(BulkPage {
            keep_until: facts.now.plus_millis(2 * BULK_KEEP_MS),
            outcomes,
        }),
    }))
}

/// A page that is past keeping goes.
pub(in crate::entity) fn ring_page(entity: &Entity) -> Decision {
    let gone = Event::EntityRemoved { entity: entity.id, version: entity.version + 1 };
    Decision { events: vec![gone], receipt: Receipt::Done }
}

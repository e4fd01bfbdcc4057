//! What people ask of an operation, and what time does to it.

use super::check::check_matched;
use super::{Bulk, BulkCommand, BulkSpec, BulkStatus, Signed, Stopped, step};
use crate::access::Principal;
use crate::decide::{Decision, Receipt, two_people};
use crate::entity::alert::Milli;
use crate::entity::{Body, Entity, EntityId, Kind};
use crate::event::Event;
use crate::facts::Facts;
use crate::job::StateName;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::name::{TenantId, UserId};
use crate::rejection::Rejection;
use crate::text::refuse_control;

pub(in crate::entity) fn decide(
    command: &BulkCommand,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    match command {
        BulkCommand::Create { id, tenant, by, spec, matched, approval_above } => {
            let needs_approval = *matched > *approval_above;
            create((*id, tenant), by, spec, (*matched, needs_approval), facts)
        }
        BulkCommand::Approve { by, version, .. } => approve(by, *version, facts),
        BulkCommand::Stop { by, why, .. } => stop(by, why.as_deref(), facts),
        BulkCommand::Step { action, target, .. } => step::step(*action, *target, facts),
        BulkCommand::Judge { .. } => judge(facts),
        BulkCommand::Finish { behind, .. } => finish(*behind, facts),
    }
}

fn create(
    (id, tenant): (EntityId, &TenantId),
    by: &Principal,
    spec: &BulkSpec,
    (matched, needs_approval): (u64, bool),
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    if facts.entity.is_some() {
        return Err(Rejection::EntityExists { kind: Kind::Bulk });
    }
    spec.check()?;
    check_matched(matched)?;
    if needs_approval {
        two_people::could_be_approved(by, tenant, facts.now, facts)?;
    }
    let status = match needs_approval {
        true => BulkStatus::AwaitingApproval,
        false => BulkStatus::Running,
    };
    let bulk = Bulk {
        spec: spec.clone(),
        asked_with: by.token,
        asked_at: facts.now,
        matched,
        status,
        approved: None,
        stopped: None,
        cursor: None,
        done: 0,
        failed: 0,
        outcomes: Vec::new(),
        pages: 0,
        canaries: Vec::new(),
        is_judged: spec.canary.is_none(),
        ended_at: None,
    };
    let entity = Entity {
        id,
        version: 1,
        tenant: tenant.clone(),
        owner: by.user.clone(),
        created_at: facts.now,
        updated_at: facts.now,
        body: Body::Bulk(Box::new(bulk)),
    };
    Ok(Decision { events: vec![Event::EntitySet(Box::new(entity))], receipt: Receipt::Done })
}

fn approve(by: &Principal, version: u32, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, bulk) = known(facts)?;
    if bulk.status != BulkStatus::AwaitingApproval {
        return Err(Rejection::BulkConflict { state: bulk.status.as_str() });
    }
    if version != entity.version {
        return Err(Rejection::EntityChanged { kind: Kind::Bulk });
    }
    let asked = two_people::Asked {
        by: &entity.owner,
        token: Some(bulk.asked_with),
        at: bulk.asked_at,
        first_at: bulk.asked_at,
    };
    two_people::approve(by, asked, facts)?;
    let approved = Some(Signed { by: by.user.clone(), at: facts.now });
    let next = Bulk { approved, status: BulkStatus::Running, ..bulk.clone() };
    Ok(changed(entity, next, facts))
}

fn stop(by: &UserId, why: Option<&str>, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, bulk) = known(facts)?;
    let why = why.unwrap_or("");
    if why.len() > MESSAGE_BYTES_MAX {
        let reason = "must be at most 4096 bytes long";
        return Err(Rejection::FieldInvalid { field: "reason", reason });
    }
    refuse_control("reason", why)?;
    if !bulk.is_live() {
        return Err(Rejection::BulkConflict { state: bulk.status.as_str() });
    }
    Ok(changed(entity, stopped(bulk, Some(by), why, facts), facts))
}

fn stopped(bulk: &Bulk, by: Option<&UserId>, why: &str, facts: &Facts<'_>) -> Bulk {
    Bulk {
        status: BulkStatus::Stopped,
        stopped: Some(Stopped { by: by.cloned(), why: why.into() }),
        canaries: Vec::new(),
        ended_at: Some(facts.now),
        ..bulk.clone()
    }
}

/// Goes on once all of the first jobs have ended and few enough of them badly; ends as soon as too
/// many have. A job that is gone is nobody's proof that it ended well.
fn judge(facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, bulk) = known(facts)?;
    let canary = bulk.spec.canary.filter(|_| bulk.status == BulkStatus::Canary);
    let canary = canary.ok_or(Rejection::NotDue)?;
    let state = |id| {
        let (_, job) = facts.watched.iter().find(|(watched, _)| *watched == id)?;
        job.map(|job| job.state.name())
    };
    let states: Vec<Option<StateName>> = bulk.canaries.iter().map(|id| state(*id)).collect();
    let is_bad = |state: &&Option<StateName>| {
        matches!(state, None | Some(StateName::Failed | StateName::Cancelled))
    };
    let failed = states.iter().filter(is_bad).count() as u64;
    let count = states.len() as u64;
    if Milli::share(failed, count) > canary.max_failure_ratio {
        let why = format!("{failed} of the first {count} jobs failed");
        return Ok(changed(entity, stopped(bulk, None, &why, facts), facts));
    }
    if !states.iter().flatten().all(|state| state.is_terminal()) {
        return Err(Rejection::NotDue);
    }
    let next =
        Bulk { status: BulkStatus::Running, canaries: Vec::new(), is_judged: true, ..bulk.clone() };
    Ok(changed(entity, next, facts))
}

fn finish(behind: Option<u128>, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, bulk) = known(facts)?;
    if bulk.status != BulkStatus::Running || bulk.cursor != behind {
        return Err(Rejection::NotDue);
    }
    let (status, ended_at) = (BulkStatus::Done, Some(facts.now));
    Ok(changed(entity, Bulk { status, ended_at, canaries: Vec::new(), ..bulk.clone() }, facts))
}

/// Nobody has agreed in time, or it is past keeping.
pub(in crate::entity) fn ring(entity: &Entity, bulk: &Bulk, facts: &Facts<'_>) -> Decision {
    match bulk.is_live() {
        true => changed(entity, stopped(bulk, None, "nobody approved it in time", facts), facts),
        false => {
            let gone = Event::EntityRemoved { entity: entity.id, version: entity.version + 1 };
            Decision { events: vec![gone], receipt: Receipt::Done }
        }
    }
}

pub(super) fn changed(entity: &Entity, bulk: Bulk, facts: &Facts<'_>) -> Decision {
    let entity = entity.changed(Body::Bulk(Box::new(bulk)), facts.now);
    Decision { events: vec![Event::EntitySet(Box::new(entity))], receipt: Receipt::Done }
}

pub(super) fn known<'a>(facts: &Facts<'a>) -> Result<(&'a Entity, &'a Bulk), Rejection> {
    let unknown = Rejection::EntityUnknown { kind: Kind::Bulk };
    let entity = facts.entity.ok_or(unknown.clone())?;
    let Body::Bulk(bulk) = &entity.body else { return Err(unknown) };
    Ok((entity, bulk))
}

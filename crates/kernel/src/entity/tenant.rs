//! Tenants as operators set them: how much of the turns they get, how much they may have waiting,
//! whether they are paused. The entity tells who set it; dispatch and submission go by the share in
//! a queue of the tenant's own, which is set in the same commit, as a gate's is.

use super::{Body, Entity, EntityCommand, EntityId, Kind};
use crate::command::Command;
use crate::decide::{Decision, Receipt};
use crate::event::Event;
use crate::facts::Facts;
use crate::fingerprint::digest;
use crate::flow::Pause;
use crate::governance::tenant_queue;
use crate::limits::TENANT_WEIGHT_MAX;
use crate::name::{TenantId, UserId};
use crate::registry::{QueueSpec, TenantShare};
use crate::rejection::Rejection;

/// A tenant that somebody has set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantCard {
    /// What it gets and may have.
    pub share: TenantShare,
    /// Who paused it, if somebody did.
    pub paused: Option<Pause>,
}

/// What can be asked of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantCommand {
    /// Set all of it.
    Set {
        /// The tenant.
        tenant: TenantId,
        /// At which version it was read; zero if nobody had set it.
        version: u32,
        /// What it gets and may have.
        share: TenantShare,
        /// Whether nothing of it is handed out from now on.
        is_paused: bool,
        /// Who asks.
        by: UserId,
    },
}

/// The id of a tenant's entity.
pub fn tenant_id(tenant: &TenantId) -> EntityId {
    let bits = u128::from_be_bytes(digest(&[b"tenant-card", tenant.as_str().as_bytes()]).0);
    EntityId { kind: Kind::Tenant, bits }
}

impl TenantCommand {
    pub(super) fn entity(&self) -> EntityId {
        let TenantCommand::Set { tenant, .. } = self;
        tenant_id(tenant)
    }
}

impl From<TenantCommand> for Command {
    fn from(command: TenantCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Tenant(command)))
    }
}

pub(super) fn decide(command: &TenantCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let TenantCommand::Set { tenant, version, share, is_paused, by } = command;
    if facts.entity.map_or(0, |entity| entity.version) != *version {
        return Err(Rejection::EntityChanged { kind: Kind::Tenant });
    }
    if share.weight == 0 || share.weight > TENANT_WEIGHT_MAX {
        let reason = "must be between 1 and 100";
        return Err(Rejection::FieldInvalid { field: "weight", reason });
    }
    let card = facts
        .entity
        .and_then(|entity| if let Body::Tenant(card) = &entity.body { Some(card) } else { None });
    let known = card.and_then(|card| card.paused.clone());
    // Who paused it first did.
    let pause = || known.unwrap_or_else(|| Pause { by: by.clone(), at: facts.now });
    let card = TenantCard { share: *share, paused: is_paused.then(pause) };
    let made = (command.entity(), tenant, by);
    let entity = Entity::set(facts.entity, made, Body::Tenant(card), facts.now);
    let queue = QueueSpec {
        is_paused: *is_paused,
        share: Some(*share),
        ..QueueSpec::plain(tenant_queue(tenant))
    };
    let events = vec![Event::EntitySet(Box::new(entity)), Event::QueueSet(queue)];
    Ok(Decision { events, receipt: Receipt::Done })
}

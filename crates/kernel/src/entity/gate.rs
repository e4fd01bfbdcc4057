//! Gates: each stands before the jobs on high-risk objects of one tenant. The entity tells who set
//! it when and why; what holds the jobs is the pause of the gate's queue, which is set in the same
//! commit (`governance.rs`).

use super::{Body, Entity, EntityCommand, EntityId, Kind};
use crate::command::Command;
use crate::decide::{Decision, Receipt};
use crate::event::Event;
use crate::facts::Facts;
use crate::governance::{self, Gate, words};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::name::{TenantId, UserId};
use crate::registry::{QueueOrder, QueueSpec};
use crate::rejection::Rejection;
use crate::text::refuse_control;

words! {
    /// What a gate does.
    GateState {
        /// Lets everything pass.
        Pass = "pass",
        /// Holds everything that it stands before.
        Block = "block",
    }
}

/// A gate that somebody has set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateCard {
    /// Which gate.
    pub gate: Gate,
    /// What it does.
    pub state: GateState,
    /// Who set it last.
    pub by: UserId,
    /// Why.
    pub reason: Option<Box<str>>,
}

/// What can be asked of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateCommand {
    /// Open or close it.
    Set {
        /// The tenant.
        tenant: TenantId,
        /// Which gate.
        gate: Gate,
        /// At which version it was read; zero if nobody had set it.
        version: u32,
        /// What it does from now on.
        state: GateState,
        /// Who asks.
        by: UserId,
        /// Why.
        reason: Option<Box<str>>,
    },
}

impl GateCommand {
    pub(super) fn entity(&self) -> EntityId {
        let GateCommand::Set { tenant, gate, .. } = self;
        governance::gate_id(tenant, *gate)
    }
}

impl From<GateCommand> for Command {
    fn from(command: GateCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Gate(command)))
    }
}

pub(super) fn decide(command: &GateCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let GateCommand::Set { tenant, gate, version, state, by, reason } = command;
    if facts.entity.map_or(0, |entity| entity.version) != *version {
        return Err(Rejection::EntityChanged { kind: Kind::Gate });
    }
    if let Some(reason) = reason {
        if reason.len() > MESSAGE_BYTES_MAX {
            let reason = "must be at most 4096 bytes long";
            return Err(Rejection::FieldInvalid { field: "reason", reason });
        }
        refuse_control("reason", reason)?;
    }
    let card = GateCard { gate: *gate, state: *state, by: by.clone(), reason: reason.clone() };
    let made = (command.entity(), tenant, by);
    let entity = Entity::set(facts.entity, made, Body::Gate(card), facts.now);
    let queue = QueueSpec {
        name: governance::gate_queue(tenant, *gate),
        is_paused: *state == GateState::Block,
        order: QueueOrder::Aged,
        share: None,
    };
    let events = vec![Event::EntitySet(Box::new(entity)), Event::QueueSet(queue)];
    Ok(Decision { events, receipt: Receipt::Done })
}

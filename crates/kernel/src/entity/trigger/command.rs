//! What can be asked of a trigger. Whether the caller may ask is the contract's business.

use super::{Past, Sight, TriggerSpec};
use crate::command::Command;
use crate::entity::{EntityCommand, EntityId};
use crate::name::{TenantId, UserId};
use crate::time::Timestamp;

/// What can be asked of a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerCommand {
    /// Make a new one.
    Create {
        /// Its id: [`super::named`] of the tenant and its name.
        id: EntityId,
        /// The tenant.
        tenant: TenantId,
        /// Whose it is.
        owner: UserId,
        /// What it is to do.
        spec: Box<TriggerSpec>,
        /// What there is to see as it is made: what files changed before that is no edge.
        sights: Vec<Sight>,
        /// What it brings along from elsewhere.
        past: Box<Past>,
    },
    /// Tell it what was seen of the world.
    Observe {
        /// Which.
        id: EntityId,
        /// When it was made: another one of the same name has other leaves.
        made_at: Timestamp,
        /// What was seen.
        sights: Vec<Sight>,
    },
    /// Have it rest until it is resumed.
    Pause {
        /// Which.
        id: EntityId,
        /// Who asks.
        by: UserId,
        /// Why, for people.
        note: Option<Box<str>>,
    },
    /// Have it go on: what files changed meanwhile is no edge.
    Resume {
        /// Which.
        id: EntityId,
        /// What there is to see.
        sights: Vec<Sight>,
    },
    /// Take it away.
    Remove {
        /// Which.
        id: EntityId,
    },
}

impl TriggerCommand {
    pub(in crate::entity) fn entity(&self) -> EntityId {
        match self {
            TriggerCommand::Create { id, .. }
            | TriggerCommand::Observe { id, .. }
            | TriggerCommand::Pause { id, .. }
            | TriggerCommand::Resume { id, .. }
            | TriggerCommand::Remove { id } => *id,
        }
    }

    pub(in crate::entity) fn name(&self) -> &'static str {
        match self {
            TriggerCommand::Create { .. } => "create_trigger",
            TriggerCommand::Observe { .. } => "observe_trigger",
            TriggerCommand::Pause { .. } => "pause_trigger",
            TriggerCommand::Resume { .. } => "resume_trigger",
            TriggerCommand::Remove { .. } => "remove_trigger",
        }
    }

    pub(in crate::entity) fn is_new_work(&self) -> bool {
        matches!(self, TriggerCommand::Create { .. })
    }

    pub(in crate::entity) fn text_bytes(&self) -> usize {
        match self {
            TriggerCommand::Create { spec, sights, .. } => {
                let of_condition = spec.condition.as_ref().map_or(0, |condition| {
                    let leaves = condition.leaves();
                    let bytes =
                        |leaf: &&super::Condition| leaf.path().or(leaf.task()).map_or(64, str::len);
                    leaves.iter().map(bytes).sum()
                });
                spec.prompt.len() + of_condition + sights.len() * 64
            }
            TriggerCommand::Observe { sights, .. } | TriggerCommand::Resume { sights, .. } => {
                sights.len() * 64
            }
            TriggerCommand::Pause { note, .. } => note.as_ref().map_or(0, |note| note.len()),
            TriggerCommand::Remove { .. } => 0,
        }
    }
}

impl From<TriggerCommand> for Command {
    fn from(command: TriggerCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Trigger(command)))
    }
}

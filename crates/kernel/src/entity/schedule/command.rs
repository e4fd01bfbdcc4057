//! What can be asked of a schedule. Whether the caller may ask is the contract's business.

use super::ScheduleSpec;
use crate::command::Command;
use crate::entity::{EntityCommand, EntityId};
use crate::fingerprint::Digest;
use crate::firing;
use crate::limits::SCHEDULE_PAYLOAD_BYTES_MAX;
use crate::name::{JobType, TenantId, UserId};
use crate::time::Timestamp;

/// What can be asked of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleCommand {
    /// Make a new one.
    Create {
        /// Its id.
        id: EntityId,
        /// The tenant.
        tenant: TenantId,
        /// Whose it is.
        owner: UserId,
        /// What it is to do.
        spec: Box<ScheduleSpec>,
    },
    /// Make the one of a template, or change it if the template has changed. Nothing happens if it
    /// is there as it should be, or was stopped.
    Ensure {
        /// Its id: [`super::named`] of the tenant, `template` and its name.
        id: EntityId,
        /// The tenant.
        tenant: TenantId,
        /// The template's name.
        name: Box<str>,
        /// Digest of the template.
        entry: Digest,
        /// What it is to do.
        spec: Box<ScheduleSpec>,
    },
    /// Have it do something else from now on.
    Update {
        /// Which.
        id: EntityId,
        /// What it is to do: all of it.
        spec: Box<ScheduleSpec>,
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
    /// Have it go on with what is due from now on.
    Resume {
        /// Which.
        id: EntityId,
    },
    /// End it for good; it can still be read.
    Stop {
        /// Which.
        id: EntityId,
    },
    /// Take it away. One that was made from a template is stopped instead, so that the template
    /// does not bring it back.
    Remove {
        /// Which.
        id: EntityId,
    },
    /// Make a job now, whatever its rhythm.
    Trigger {
        /// Which.
        id: EntityId,
        /// The instant it is asked for: a second time with the same one finds the first job.
        at: Timestamp,
    },
    /// Make the job of a firing in the past that has none.
    Backfill {
        /// Which.
        id: EntityId,
        /// Which firing.
        at: Timestamp,
    },
}

impl ScheduleCommand {
    pub(in crate::entity) fn entity(&self) -> EntityId {
        match self {
            ScheduleCommand::Create { id, .. }
            | ScheduleCommand::Ensure { id, .. }
            | ScheduleCommand::Update { id, .. }
            | ScheduleCommand::Pause { id, .. }
            | ScheduleCommand::Resume { id }
            | ScheduleCommand::Stop { id }
            | ScheduleCommand::Remove { id }
            | ScheduleCommand::Trigger { id, .. }
            | ScheduleCommand::Backfill { id, .. } => *id,
        }
    }

    pub(in crate::entity) fn name(&self) -> &'static str {
        match self {
            ScheduleCommand::Create { .. } => "create_schedule",
            ScheduleCommand::Ensure { .. } => "ensure_schedule",
            ScheduleCommand::Update { .. } => "update_schedule",
            ScheduleCommand::Pause { .. } => "pause_schedule",
            ScheduleCommand::Resume { .. } => "resume_schedule",
            ScheduleCommand::Stop { .. } => "stop_schedule",
            ScheduleCommand::Remove { .. } => "remove_schedule",
            ScheduleCommand::Trigger { .. } => "trigger_schedule",
            ScheduleCommand::Backfill { .. } => "backfill_schedule",
        }
    }

    /// The key of the job it may submit.
    pub(in crate::entity) fn key(&self) -> Option<Digest> {
        match self {
            ScheduleCommand::Trigger { id, at } | ScheduleCommand::Backfill { id, at } => {
                Some(firing::key(*id, *at))
            }
            ScheduleCommand::Create { .. }
            | ScheduleCommand::Ensure { .. }
            | ScheduleCommand::Update { .. }
            | ScheduleCommand::Pause { .. }
            | ScheduleCommand::Resume { .. }
            | ScheduleCommand::Stop { .. }
            | ScheduleCommand::Remove { .. } => None,
        }
    }

    pub(in crate::entity) fn is_new_work(&self) -> bool {
        // A template that is there already is no new work, and a server without room must start.
        self.key().is_some() || matches!(self, ScheduleCommand::Create { .. })
    }

    pub(in crate::entity) fn text_bytes(&self) -> usize {
        match self {
            ScheduleCommand::Create { spec, .. }
            | ScheduleCommand::Ensure { spec, .. }
            | ScheduleCommand::Update { spec, .. } => {
                let labels = spec.labels.iter().map(|(name, value)| name.len() + value.len());
                spec.payload.len() + labels.sum::<usize>()
            }
            ScheduleCommand::Pause { note, .. } => note.as_ref().map_or(0, |note| note.len()),
            // Each makes a job with all that the schedule carries.
            ScheduleCommand::Trigger { .. } | ScheduleCommand::Backfill { .. } => {
                SCHEDULE_PAYLOAD_BYTES_MAX
            }
            ScheduleCommand::Resume { .. }
            | ScheduleCommand::Stop { .. }
            | ScheduleCommand::Remove { .. } => 0,
        }
    }

    /// The type it names.
    pub(in crate::entity) fn job_type(&self) -> Option<&JobType> {
        match self {
            ScheduleCommand::Create { spec, .. }
            | ScheduleCommand::Ensure { spec, .. }
            | ScheduleCommand::Update { spec, .. } => Some(&spec.job_type),
            ScheduleCommand::Pause { .. }
            | ScheduleCommand::Resume { .. }
            | ScheduleCommand::Stop { .. }
            | ScheduleCommand::Remove { .. }
            | ScheduleCommand::Trigger { .. }
            | ScheduleCommand::Backfill { .. } => None,
        }
    }
}

impl From<ScheduleCommand> for Command {
    fn from(command: ScheduleCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Schedule(command)))
    }
}

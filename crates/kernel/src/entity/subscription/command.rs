//! What can be asked of a subscription. Whether the caller may ask is the contract's business.

use super::{Gap, SigningSecret, SubscriptionSpec};
use crate::command::Command;
use crate::entity::{EntityCommand, EntityId};
use crate::id::JobId;
use crate::name::{TenantId, UserId};

/// What can be asked of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriptionCommand {
    /// Make a new one.
    Create {
        /// Its id.
        id: EntityId,
        /// The tenant.
        tenant: TenantId,
        /// Whose it is.
        owner: UserId,
        /// What it is to do.
        spec: Box<SubscriptionSpec>,
        /// What its requests are to be signed with.
        secret: Option<SigningSecret>,
        /// Events after this position are passed on.
        position: u64,
    },
    /// Have it rest until it is resumed. Events wait meanwhile, for as long as they are kept.
    Pause {
        /// Which.
        id: EntityId,
        /// Who asks; nobody if the receiver said that it is gone.
        by: Option<UserId>,
        /// Why, for people.
        note: Option<Box<str>>,
    },
    /// Have it go on where it was, at once.
    Resume {
        /// Which.
        id: EntityId,
    },
    /// Sign with another secret from now on; the present one signs, too, for so long.
    Rotate {
        /// Which.
        id: EntityId,
        /// The new secret.
        secret: SigningSecret,
        /// Milliseconds for which the present one still counts.
        overlap_ms: u64,
    },
    /// Take it away.
    Remove {
        /// Which.
        id: EntityId,
    },
    /// Be the one who sends, or go on being so; refused while somebody else is.
    Take {
        /// Which.
        id: EntityId,
        /// Who asks.
        holder: u128,
        /// For how long, in milliseconds.
        for_ms: u64,
        /// Whether whoever held it before is known to be gone: a store of one server.
        is_alone: bool,
    },
    /// Note what became of the events since the last note. Only who holds it may.
    Note {
        /// Which.
        id: EntityId,
        /// Who asks.
        holder: u128,
        /// For how long the hold goes on, in milliseconds; zero lets go of it.
        for_ms: u64,
        /// Everything up to here is settled.
        position: u64,
        /// Events that the receiver took.
        delivered: u64,
        /// A try that failed after that, in words.
        trouble: Option<Box<str>>,
        /// Events before that which were no longer kept.
        gap: Option<Gap>,
    },
    /// A consumer has been told of what lies between two positions. Refused if it does not stand at
    /// the first: somebody else was told meanwhile.
    Advance {
        /// Which.
        id: EntityId,
        /// Where it stood.
        from: u64,
        /// Where it stands from now on.
        position: u64,
        /// Events that it was told of now.
        delivered: u64,
        /// Jobs of whose submission it was told by now.
        passed: Vec<JobId>,
        /// Events before that which were no longer kept.
        gap: Option<Gap>,
    },
    /// A consumer is told of one submission before its turn.
    TellAhead {
        /// Which.
        id: EntityId,
        /// The submission of this job.
        job: JobId,
    },
}

impl SubscriptionCommand {
    pub(in crate::entity) fn entity(&self) -> EntityId {
        match self {
            SubscriptionCommand::Create { id, .. }
            | SubscriptionCommand::Pause { id, .. }
            | SubscriptionCommand::Resume { id }
            | SubscriptionCommand::Rotate { id, .. }
            | SubscriptionCommand::Remove { id }
            | SubscriptionCommand::Take { id, .. }
            | SubscriptionCommand::Note { id, .. }
            | SubscriptionCommand::Advance { id, .. }
            | SubscriptionCommand::TellAhead { id, .. } => *id,
        }
    }

    pub(in crate::entity) fn name(&self) -> &'static str {
        match self {
            SubscriptionCommand::Create { .. } => "create_subscription",
            SubscriptionCommand::Pause { .. } => "pause_subscription",
            SubscriptionCommand::Resume { .. } => "resume_subscription",
            SubscriptionCommand::Rotate { .. } => "rotate_subscription_secret",
            SubscriptionCommand::Remove { .. } => "delete_subscription",
            SubscriptionCommand::Take { .. } => "take_subscription",
            SubscriptionCommand::Note { .. } => "note_subscription",
            SubscriptionCommand::Advance { .. } => "advance_subscription",
            SubscriptionCommand::TellAhead { .. } => "publish_event",
        }
    }

    pub(in crate::entity) fn is_new_work(&self) -> bool {
        match self {
            SubscriptionCommand::Create { .. } => true,
            SubscriptionCommand::Pause { .. }
            | SubscriptionCommand::Resume { .. }
            | SubscriptionCommand::Rotate { .. }
            | SubscriptionCommand::Remove { .. }
            | SubscriptionCommand::Take { .. }
            | SubscriptionCommand::Note { .. }
            | SubscriptionCommand::Advance { .. }
            | SubscriptionCommand::TellAhead { .. } => false,
        }
    }
}

impl From<SubscriptionCommand> for Command {
    fn from(command: SubscriptionCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Subscription(command)))
    }
}

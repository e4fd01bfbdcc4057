//! Governed objects: what is kept of a thing that jobs are done to. How risky it is and how far it
//! is understood decides which of those jobs are handed out (`decide/governed.rs`); what a job that
//! was done makes of it is a table (`object/table.rs`).
//!
//! A job that may not be handed out yet is parked: it waits without an end, and its object knows
//! it. Whatever changes for the object lets its parked jobs go in the same commit; what still may
//! not go is parked again when its turn comes.

mod decide;
mod table;

pub(crate) use decide::{acted, of, parked, verified};
pub(super) use decide::{decide, ring};
pub use table::{Outcome, outcome};

use super::{EntityCommand, EntityId};
use crate::command::Command;
use crate::governance::{Action, Governance, ObjectType, RiskTier, words};
use crate::id::JobId;
use crate::name::{JobType, TenantId, UserId};
use crate::time::Timestamp;

words! {
    /// How far an object is understood.
    Epistemic {
        /// Well enough.
        Certain = "certain",
        /// Not well enough.
        Uncertain = "uncertain",
    }
}

words! {
    /// Why an object is uncertain.
    UnknownType {
        /// Several explanations are left.
        Multipath = "multipath",
        /// It lies outside of what can be judged here.
        OutOfScope = "out_of_scope",
        /// It cannot be known: looking again does not help.
        OnticUnknowable = "ontic_unknowable",
    }
}

words! {
    /// Where an object stands. Memories and experiences have different words; see `table.rs`.
    Status {
        /// New.
        Candidate = "candidate",
        /// Set apart.
        Quarantine = "quarantine",
        /// There is evidence.
        Verified = "verified",
        /// In use.
        Active = "active",
        /// Not looked at for long.
        Stale = "stale",
        /// The same, and it is not clear whether it still holds.
        StaleUncertain = "stale_uncertain",
        /// Found to be planted.
        Poisoned = "poisoned",
        /// Planted, and out.
        RejectedPoisoned = "rejected_poisoned",
        /// A person should look.
        NeedsReview = "needs_review",
        /// Found to be wrong.
        Invalidated = "invalidated",
        /// Put away.
        Archived = "archived",
    }
}

/// What speaks for an object that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signals {
    /// Somebody says that it should come back.
    pub reinstate_signal: bool,
    /// How often it was confirmed in use.
    pub reinforcement_count: u32,
    /// New evidence.
    pub new_evidence_count: u32,
    /// When it was last confirmed.
    pub last_reinforced_at: Option<Timestamp>,
    /// Since when it is stale.
    pub stale_since: Option<Timestamp>,
    /// How sure one is of it, in thousandths.
    pub confidence_millis: Option<u16>,
}

impl Signals {
    /// Whether anything speaks for it.
    pub fn speak_for_it(&self) -> bool {
        let was_reinforced = match (self.last_reinforced_at, self.stale_since) {
            (Some(reinforced), Some(stale)) => reinforced >= stale,
            (Some(_) | None, None) | (None, Some(_)) => false,
        };
        self.reinstate_signal
            || self.reinforcement_count > 0
            || self.new_evidence_count > 0
            || was_reinforced
    }
}

/// A governed object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What kind of object.
    pub object_type: ObjectType,
    /// Its name, chosen by whoever knows it.
    pub object_id: Box<str>,
    /// How much harm a wrong move can do.
    pub risk_tier: RiskTier,
    /// How far it is understood.
    pub epistemic: Epistemic,
    /// Why not further.
    pub unknown_type: Option<UnknownType>,
    /// How often it is verified by itself while it is uncertain; as configured if it does not say.
    pub auto_verify_budget: Option<u32>,
    /// How much of that is used up.
    pub verifies_used: u32,
    /// How often a verification of it was handed out since it is uncertain.
    pub verify_tries: u32,
    /// How long the uncertainty may last, as whoever set it wrote it. Kept, never interpreted.
    pub uncertainty_ttl: Option<Box<str>>,
    /// Where it stands.
    pub status: Option<Status>,
    /// What speaks for it.
    pub signals: Signals,
    /// When something has to be done to it.
    pub next_action_at: Option<Timestamp>,
    /// What is submitted by itself then.
    pub next_action: Option<Action>,
    /// When its alarm stands: for the next action, or to see whether the gates are open again.
    pub alarm_at: Option<Timestamp>,
    /// The last entry that a worker named for what it did.
    pub audit_event_id: Option<Box<str>>,
    /// Jobs that wait for the object to change, or for a gate.
    pub parked: Vec<JobId>,
}

impl Object {
    /// An object that nothing is known of but its name.
    pub fn plain(object_type: ObjectType, object_id: &str) -> Self {
        Object {
            object_type,
            object_id: object_id.into(),
            risk_tier: RiskTier::Low,
            epistemic: Epistemic::Certain,
            unknown_type: None,
            auto_verify_budget: None,
            verifies_used: 0,
            verify_tries: 0,
            uncertainty_ttl: None,
            status: None,
            signals: Signals::default(),
            next_action_at: None,
            next_action: None,
            alarm_at: None,
            audit_event_id: None,
            parked: Vec::new(),
        }
    }

    /// Whether jobs of it wait for it to change.
    pub const fn state(&self) -> &'static str {
        if self.parked.is_empty() { "free" } else { "held" }
    }

    /// How often it may be verified by itself.
    pub fn budget(&self, governance: Governance) -> u32 {
        self.auto_verify_budget.unwrap_or(governance.auto_verify_budget)
    }

    /// The type of the job that it submits by itself.
    pub(super) fn job_type(&self) -> Option<JobType> {
        let duty = crate::governance::Duty {
            object_type: self.object_type,
            action: self.next_action?,
            risk_tier: self.risk_tier,
        };
        Some(duty.job_type())
    }
}

/// What is to be known of an object from now on; what is left out stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectWish {
    /// How much harm a wrong move can do.
    pub risk_tier: Option<RiskTier>,
    /// How far it is understood. An object that is certain has no unknown type.
    pub epistemic: Option<Epistemic>,
    /// Why not further.
    pub unknown_type: Option<UnknownType>,
    /// How often it is verified by itself while it is uncertain. Saying it starts the count anew.
    pub auto_verify_budget: Option<u32>,
    /// How long the uncertainty may last.
    pub uncertainty_ttl: Option<Box<str>>,
    /// Where it stands.
    pub status: Option<Status>,
    /// What speaks for it.
    pub signals: Option<Signals>,
    /// When something has to be done to it.
    pub next_action_at: Option<Timestamp>,
    /// What is submitted by itself then; `Some(None)` for nothing.
    pub next_action: Option<Option<Action>>,
}

/// What can be asked of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectCommand {
    /// Make it, or say what is to be known of it.
    Put {
        /// Which: [`crate::governance::object_id`] of the next three.
        id: EntityId,
        /// The tenant.
        tenant: TenantId,
        /// Who asks.
        by: UserId,
        /// What kind of object, and its name.
        name: (ObjectType, Box<str>),
        /// At which version it was read; zero if it was not there.
        version: u32,
        /// What is to be known.
        wish: Box<ObjectWish>,
        /// Its parked jobs, as they were read.
        jobs: Vec<JobId>,
    },
    /// Let its parked jobs go: a gate was opened.
    LetGo {
        /// Which.
        id: EntityId,
        /// Its parked jobs, as they were read.
        jobs: Vec<JobId>,
    },
}

impl ObjectCommand {
    pub(super) fn entity(&self) -> EntityId {
        match self {
            ObjectCommand::Put { id, .. } | ObjectCommand::LetGo { id, .. } => *id,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            ObjectCommand::Put { .. } => "put_object",
            ObjectCommand::LetGo { .. } => "let_go_object",
        }
    }

    pub(super) fn watched(&self) -> &[JobId] {
        match self {
            ObjectCommand::Put { jobs, .. } | ObjectCommand::LetGo { jobs, .. } => jobs,
        }
    }
}

impl From<ObjectCommand> for Command {
    fn from(command: ObjectCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Object(command)))
    }
}

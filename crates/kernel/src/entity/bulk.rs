//! Bulk operations: the same thing done to everything that a filter admits. Here is what one is;
//! `bulk/decide.rs` has what people ask of it and what time does, `bulk/step.rs` what is done to
//! one item or job, `bulk/check.rs` what may be asked for.
//!
//! A step does it to one thing and writes down that it did, in one decision; the operation goes
//! through ids from the latest down and remembers where it is. So whatever dies, it goes on behind
//! the last thing that was done, and no thing is done to twice. What became of each is kept in the
//! operation until that is a page, which then is an entity of its own ([`BulkPage`]).
//!
//! Who lists what the filter admits, and when, is the engine's (`engine/src/bulk.rs`).

mod check;
mod decide;
mod step;

pub(super) use decide::{decide, ring};
pub(super) use step::ring_page;

use super::alert::Milli;
use super::{EntityCommand, EntityId, Kind};
use crate::access::Principal;
use crate::command::Command;
use crate::fingerprint::digest;
use crate::governance::words;
use crate::id::{DlqId, JobId, TokenId};
use crate::job::StateName;
use crate::limits::{BULK_KEEP_MS, BULK_WAIT_MS};
use crate::name::{JobType, QueueName, TenantId, UserId};
use crate::time::Timestamp;

words! {
    /// What is done.
    BulkAction {
        /// Dead letters run again as new jobs.
        Requeue = "requeue",
        /// Dead letters are asked to be dropped; each takes a second person.
        Discard = "discard",
        /// Jobs are cancelled.
        Cancel = "cancel",
        /// Jobs that wait do not start.
        Pause = "pause",
        /// Those that were paused may.
        Resume = "resume",
    }
}

words! {
    /// Where an operation stands.
    BulkStatus {
        /// A second person has to agree.
        AwaitingApproval = "awaiting_approval",
        /// It goes on.
        Running = "running",
        /// It waits for how its first jobs end.
        Canary = "canary",
        /// It was ended before it was through.
        Stopped = "stopped",
        /// It is through.
        Done = "done",
    }
}

/// What it is done to: everything that is all of this. At least one field besides the state has to
/// be there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkFilter {
    /// Jobs in this state; dead letters are always open.
    pub state: Option<StateName>,
    /// Of this type.
    pub job_type: Option<JobType>,
    /// In this queue.
    pub queue: Option<QueueName>,
    /// With this trace.
    pub trace_id: Option<Box<str>>,
    /// Submitted by this user.
    pub user: Option<UserId>,
    /// With all of these labels.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Whose last failed attempt said this.
    pub error_code: Option<Box<str>>,
    /// Dead letters with this failure.
    pub signature: Option<Box<str>>,
    /// Made then or later.
    pub since: Option<Timestamp>,
    /// Made earlier.
    pub until: Option<Timestamp>,
}

/// What somebody wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkSpec {
    /// What.
    pub action: BulkAction,
    /// To what.
    pub filter: BulkFilter,
    /// Why.
    pub reason: Box<str>,
    /// Whether to begin with a few, and see.
    pub canary: Option<Canary>,
}

/// A few go first; the others only if few enough of those fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canary {
    /// How many go first.
    pub first: u32,
    /// The share of them that may fail.
    pub max_failure_ratio: Milli,
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulk {
    /// What is wanted.
    pub spec: BulkSpec,
    /// With which token the owner asked.
    pub asked_with: TokenId,
    /// When. What came later is left alone.
    pub asked_at: Timestamp,
    /// How many things the filter admitted then.
    pub matched: u64,
    /// Where it stands.
    pub status: BulkStatus,
    /// The second person.
    pub approved: Option<Signed>,
    /// Who ended it, or nobody, and why.
    pub stopped: Option<Stopped>,
    /// The last thing that was done to: the next ones have lesser ids.
    pub cursor: Option<u128>,
    /// To how many things it was done.
    pub done: u64,
    /// How many did not allow it.
    pub failed: u64,
    /// What became of the last ones, less than a page.
    pub outcomes: Vec<Outcome>,
    /// How many pages of outcomes there are besides.
    pub pages: u32,
    /// The first jobs, while it waits for how they end.
    pub canaries: Vec<JobId>,
    /// Whether enough of the first jobs ended well.
    pub is_judged: bool,
    /// When it was through or was ended.
    pub ended_at: Option<Timestamp>,
}

/// Somebody agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Who.
    pub by: UserId,
    /// When.
    pub at: Timestamp,
}

/// Why an operation ended before it was through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Who ended it; nobody, if it ended itself.
    pub by: Option<UserId>,
    /// Why, for people.
    pub why: Box<str>,
}

/// What became of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The item or job.
    pub target: u128,
    /// The job it runs again as.
    pub made: Option<JobId>,
    /// Why nothing was done: a stable code.
    pub code: Option<Box<str>>,
}

/// What became of some things, in the order in which they were done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkPage {
    /// Until when it is kept.
    pub keep_until: Timestamp,
    /// What became of each.
    pub outcomes: Vec<Outcome>,
}

/// What something is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A dead letter.
    Item(DlqId),
    /// A job.
    Job(JobId),
}

impl Target {
    /// Its place among those that the filter admits.
    pub const fn bits(self) -> u128 {
        match self {
            Target::Item(item) => item.0,
            Target::Job(job) => job.0,
        }
    }
}

impl Bulk {
    /// When nobody has agreed in time, or when it is past keeping.
    pub fn alarm_at(&self) -> Option<Timestamp> {
        match self.status {
            BulkStatus::AwaitingApproval => Some(self.asked_at.plus_millis(BULK_WAIT_MS)),
            BulkStatus::Running | BulkStatus::Canary => None,
            BulkStatus::Stopped | BulkStatus::Done => {
                self.ended_at.map(|at| at.plus_millis(BULK_KEEP_MS))
            }
        }
    }

    /// Whether it may still go on.
    pub const fn is_live(&self) -> bool {
        self.ended_at.is_none()
    }

    /// How many things it may still be done to.
    pub const fn left(&self) -> u64 {
        self.matched.saturating_sub(self.done + self.failed)
    }

    /// The things of the filter that were there when it was asked for.
    pub fn until(&self) -> Timestamp {
        self.spec.filter.until.map_or(self.asked_at, |until| until.min(self.asked_at))
    }
}

/// The id of a page of outcomes; the first is number 0.
pub fn page_id(bulk: EntityId, number: u32) -> EntityId {
    let parts = digest(&[b"bulk page", &bulk.bits.to_be_bytes(), &number.to_be_bytes()]);
    EntityId { kind: Kind::BulkPage, bits: u128::from_be_bytes(parts.0) }
}

/// What can be asked of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkCommand {
    /// Begin one.
    Create {
        /// Its id, which is new.
        id: EntityId,
        /// Whose things.
        tenant: TenantId,
        /// Who asks.
        by: Box<Principal>,
        /// What for.
        spec: Box<BulkSpec>,
        /// How many things the filter admits.
        matched: u64,
        /// More than so many take a second person.
        approval_above: u64,
    },
    /// Agree to it, as a second person.
    Approve {
        /// Which one.
        id: EntityId,
        /// Who agrees.
        by: Box<Principal>,
        /// The version that was read.
        version: u32,
    },
    /// End it.
    Stop {
        /// Which one.
        id: EntityId,
        /// Who.
        by: UserId,
        /// Why.
        why: Option<Box<str>>,
    },
    /// Do it to the next thing.
    Step {
        /// Which one.
        id: EntityId,
        /// What, as its operation has it.
        action: BulkAction,
        /// To what.
        target: Target,
    },
    /// Look at how its first jobs ended.
    Judge {
        /// Which one.
        id: EntityId,
        /// Those jobs.
        jobs: Vec<JobId>,
    },
    /// There is nothing behind this: it is through.
    Finish {
        /// Which one.
        id: EntityId,
        /// The last thing that was done to.
        behind: Option<u128>,
    },
}

impl BulkCommand {
    pub(super) fn entity(&self) -> EntityId {
        match self {
            BulkCommand::Create { id, .. }
            | BulkCommand::Approve { id, .. }
            | BulkCommand::Stop { id, .. }
            | BulkCommand::Step { id, .. }
            | BulkCommand::Judge { id, .. }
            | BulkCommand::Finish { id, .. } => *id,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            BulkCommand::Create { .. } => "create_bulk",
            BulkCommand::Approve { .. } => "approve_bulk",
            BulkCommand::Stop { .. } => "stop_bulk",
            BulkCommand::Step { .. } => "step_bulk",
            BulkCommand::Judge { .. } => "judge_bulk",
            BulkCommand::Finish { .. } => "finish_bulk",
        }
    }

    fn step(&self) -> Option<(BulkAction, Target)> {
        if let BulkCommand::Step { action, target, .. } = self {
            Some((*action, *target))
        } else {
            None
        }
    }

    pub(super) fn item(&self) -> Option<DlqId> {
        let (_, target) = self.step()?;
        if let Target::Item(item) = target { Some(item) } else { None }
    }

    pub(super) fn job(&self) -> Option<JobId> {
        let (_, target) = self.step()?;
        if let Target::Job(job) = target { Some(job) } else { None }
    }

    pub(super) fn watched(&self) -> &[JobId] {
        if let BulkCommand::Judge { jobs, .. } = self { jobs } else { &[] }
    }

    pub(super) fn is_new_work(&self) -> bool {
        self.step().is_some_and(|(action, _)| action == BulkAction::Requeue)
    }

    pub(super) fn needs_people(&self) -> bool {
        match self {
            BulkCommand::Create { .. } | BulkCommand::Approve { .. } => true,
            BulkCommand::Step { action, .. } => *action == BulkAction::Discard,
            BulkCommand::Stop { .. } | BulkCommand::Judge { .. } | BulkCommand::Finish { .. } => {
                false
            }
        }
    }

    pub(super) fn text_bytes(&self) -> usize {
        match self {
            BulkCommand::Create { spec, .. } => spec.reason.len(),
            BulkCommand::Stop { why, .. } => why.as_ref().map_or(0, |why| why.len()),
            BulkCommand::Approve { .. }
            | BulkCommand::Step { .. }
            | BulkCommand::Judge { .. }
            | BulkCommand::Finish { .. } => 0,
        }
    }
}

impl From<BulkCommand> for Command {
    fn from(command: BulkCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Bulk(command)))
    }
}

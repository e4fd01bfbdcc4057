//! What happened. Events are facts in the past tense; `evolve.rs` applies those of a job, and
//! nothing else changes one. The memory store writes them to its journal, PostgreSQL makes rows of
//! what they change.

use crate::access::Token;
use crate::dlq::{DlqItem, DlqState};
use crate::entity::question::QUESTION_EXPIRED;
use crate::entity::{Entity, EntityId};
use crate::fingerprint::Digest;
use crate::governance::{Gate, words};
use crate::id::{DlqId, JobId, TokenId};
use crate::job::{AcceptedReport, Actor, Effect, Failure, Job, Lease, Payload, ProgressNote};
use crate::registry::{QueueSpec, TypeSpec};
use crate::time::Timestamp;
use crate::view::agent::RUN_KILLED;

/// One thing that became true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A job was accepted: the whole job as it is at its first event.
    JobSubmitted(Box<Job>),
    /// A job moved to another state.
    JobMoved(JobEvent),
    /// A lease was renewed. Not a move: it has no sequence number and no place in the history.
    LeaseRenewed {
        /// Which job.
        job: JobId,
        /// Which lease.
        fence: u32,
        /// Its new end.
        expires_at: Timestamp,
        /// How far the work is.
        progress_pct: Option<u8>,
        /// What its worker says beside.
        note: Option<Box<ProgressNote>>,
        /// The end of the attempt, if jumps of the clock moved it, and up to when they are counted.
        settled: Option<(Timestamp, Timestamp)>,
    },
    /// A side effect was committed.
    EffectCommitted {
        /// Which job.
        job: JobId,
        /// The effect.
        effect: Effect,
    },
    /// A dead-letter item was written.
    ItemOpened(Box<DlqItem>),
    /// A dead-letter item changed.
    ItemChanged {
        /// Which item.
        item: DlqId,
        /// Its new version.
        version: u32,
        /// When.
        at: Timestamp,
        /// Where it stands now.
        state: Box<DlqState>,
    },
    /// An entity was made or changed: all of it, as it is now.
    EntitySet(Box<Entity>),
    /// An entity was removed.
    EntityRemoved {
        /// Which entity.
        entity: EntityId,
        /// One more than its last version.
        version: u32,
    },
    /// A type was registered or replaced.
    TypeSet(Box<TypeSpec>),
    /// A queue was configured, paused or resumed.
    QueueSet(QueueSpec),
    /// A token was issued.
    TokenIssued(Box<Token>),
    /// A token was revoked.
    TokenRevoked {
        /// Which token.
        token: TokenId,
        /// When.
        at: Timestamp,
    },
}

/// A move of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEvent {
    /// Which job.
    pub job: JobId,
    /// 2, 3, 4… without gaps; 1 is the submission.
    pub seq: u32,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: Actor,
    /// What.
    pub change: Change,
}

/// How a job moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// To `running`, under this lease.
    Claimed(Box<Lease>),
    /// To `succeeded`.
    Succeeded {
        /// What the worker answered.
        result: Option<Payload>,
        /// The report, so that its repeat is recognised.
        report: Option<Box<AcceptedReport>>,
    },
    /// To `retrying`, one try used up.
    RetryScheduled {
        /// What went wrong.
        failure: Failure,
        /// Not before this.
        due_at: Timestamp,
        /// The report, unless the server itself ended the attempt.
        report: Option<Box<AcceptedReport>>,
    },
    /// To `retrying`, no try used up.
    Released {
        /// Why, for people.
        reason: Option<Box<str>>,
        /// The report.
        report: Box<AcceptedReport>,
        /// Not before this; at once if `None`.
        due_at: Option<Timestamp>,
        /// What holds it, if it was not given back but taken.
        hold: Option<Hold>,
    },
    /// To `dlq_pending`.
    DeadLettered {
        /// What went wrong.
        failure: Failure,
        /// Whether it was retryable but no try was left.
        is_exhausted: bool,
        /// The report, unless the server itself ended the attempt.
        report: Option<Box<AcceptedReport>>,
        /// What the worker had to show all the same.
        result: Option<Payload>,
    },
    /// To `dlq_recorded`: the item is written in the same commit.
    DlqRecorded,
    /// To `failed`.
    Failed,
    /// Not to another state: a waiting job may start at once, by hand or because nothing holds it
    /// any more.
    Hastened,
    /// Not to another state: the jobs that it waited for are done.
    Unblocked {
        /// Not before this.
        run_at: Timestamp,
    },
    /// To `cancelled`.
    Cancelled {
        /// One of [`CANCEL_CODES`].
        code: &'static str,
        /// Why, for people.
        reason: Option<Box<str>>,
    },
}

/// What holds a job that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub code: HoldCode,
    /// Not before this.
    pub until: Timestamp,
}

words! {
    /// Why a job is held.
    HoldCode {
        /// A gate before its high-risk object is closed.
        GateClosed = "GATE_CLOSED",
        /// Its high-risk object is uncertain.
        ObjectUncertain = "OBJECT_UNCERTAIN",
        /// Its uncertain object was verified as often as it may be by itself.
        AutoVerifyBudget = "AUTO_VERIFY_BUDGET",
        /// Its worker put it off.
        Snoozed = "SNOOZED",
        /// Somebody has it wait.
        Paused = "PAUSED",
    }
}

impl HoldCode {
    /// The same for people.
    pub fn text(self, gate: Option<Gate>) -> String {
        match self {
            HoldCode::GateClosed => {
                format!("the gate {} is closed", gate.map_or("", Gate::as_str))
            }
            HoldCode::ObjectUncertain => {
                "the object is uncertain and of high risk: only its verification may go".to_owned()
            }
            HoldCode::AutoVerifyBudget => {
                "the object was verified by itself as often as it may be".to_owned()
            }
            HoldCode::Snoozed => "its worker put it off".to_owned(),
            HoldCode::Paused => "somebody has it wait".to_owned(),
        }
    }
}

/// Code of a verification that will not be handed out any more.
pub const UNKNOWABLE_TRIES_EXHAUSTED: &str = "UNKNOWABLE_TRIES_EXHAUSTED";
/// Code of a cancellation by request.
pub const JOB_CANCELLED: &str = "JOB_CANCELLED";
/// Code of a cancellation because the job was not started in time.
pub const TASK_EXPIRED: &str = "TASK_EXPIRED";
/// Code of a job that waited too long for a worker.
pub const QUEUE_TIMEOUT: &str = "QUEUE_TIMEOUT";
/// Code of a job that was not done by its deadline, over all tries.
pub const TOTAL_TIMEOUT: &str = "TOTAL_TIMEOUT";
/// Code of a job that its workers put off too often.
pub const SNOOZES_EXHAUSTED: &str = "SNOOZES_EXHAUSTED";
/// Code of a cancellation because a job that had to end well did not.
pub const DEPENDENCY_FAILED: &str = "DEPENDENCY_FAILED";
/// Code of a job that waits no longer for others.
pub const DEPENDENCIES_MET: &str = "DEPENDENCIES_MET";
/// Code of an attempt that ran past its start-to-close timeout.
pub const TASK_TIMEOUT: &str = "TASK_TIMEOUT";
/// Code of an attempt whose worker stopped renewing its lease.
pub const TASK_LEASE_LOST: &str = "TASK_LEASE_LOST";
/// Code of a retryable failure with no try left.
pub const TASK_RETRY_EXHAUSTED: &str = "TASK_RETRY_EXHAUSTED";
/// Code of a failure whose worker gave none.
pub const TASK_EXECUTION_FAILED: &str = "TASK_EXECUTION_FAILED";
/// Code of an attempt that its worker gave back unused.
pub const RELEASED: &str = "RELEASED";
/// Code of a failure that was asked for by hand.
pub const INTERNAL_TRANSITION: &str = "INTERNAL_TRANSITION";

/// The codes under which a job is cancelled. Their places are stored, from 1 on: append only.
pub const CANCEL_CODES: [&str; 5] =
    [JOB_CANCELLED, TASK_EXPIRED, QUEUE_TIMEOUT, TOTAL_TIMEOUT, DEPENDENCY_FAILED];

/// Every code of ours that a history may give as a reason; workers add their own.
pub const REASON_CODES: &[&str] = &[
    JOB_CANCELLED,
    TASK_EXPIRED,
    TASK_TIMEOUT,
    TASK_LEASE_LOST,
    TASK_RETRY_EXHAUSTED,
    TASK_EXECUTION_FAILED,
    RELEASED,
    INTERNAL_TRANSITION,
    RUN_KILLED,
    QUESTION_EXPIRED,
    HoldCode::GateClosed.as_str(),
    HoldCode::ObjectUncertain.as_str(),
    HoldCode::AutoVerifyBudget.as_str(),
    HoldCode::Snoozed.as_str(),
    HoldCode::Paused.as_str(),
    UNKNOWABLE_TRIES_EXHAUSTED,
    QUEUE_TIMEOUT,
    TOTAL_TIMEOUT,
    SNOOZES_EXHAUSTED,
    DEPENDENCY_FAILED,
    DEPENDENCIES_MET,
];

/// Who holds an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHolder {
    /// The job submitted under it.
    pub job: JobId,
    /// What must agree on a repeat.
    pub fingerprint: Option<Digest>,
    /// When the key is free again; `None` while the job lives.
    pub free_at: Option<Timestamp>,
}

impl KeyHolder {
    /// Whether the key is still taken at `now`.
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.free_at.is_none_or(|free_at| now < free_at)
    }
}

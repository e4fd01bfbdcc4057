//! Why not: the domain says no. A rejection is a value, expected and matchable; nothing changed.

use crate::entity::Kind;
use crate::governance::Gate;
use crate::job::StateName;
use crate::view::tasks;
use std::fmt;

macro_rules! rejections {
    ($($(#[$doc:meta])* $variant:ident $({ $($field:ident : $ty:ty),* })? => $code:literal,
        $class:ident, $text:expr;)*) => {
        /// Why a command was refused.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Rejection {
            $($(#[$doc])* $variant $({ $(#[allow(missing_docs, reason = "named by the variant")] $field: $ty),* })?,)*
        }

        impl Rejection {
            /// Every code a rejection can have, in declaration order.
            pub const CODES: &'static [&'static str] = &[$($code),*];

            /// The stable code, the same in every contract that does not name its own.
            pub fn code(&self) -> &'static str {
                match self { $(Rejection::$variant { .. } => $code,)* }
            }

            /// What kind of refusal it is.
            pub fn class(&self) -> Class {
                match self { $(Rejection::$variant { .. } => Class::$class,)* }
            }
        }

        impl fmt::Display for Rejection {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Rejection::$variant $({ $($field),* })? => $text(f $($(, $field)*)?),)*
                }
            }
        }
    };
}

/// What kind of refusal a rejection is; contracts choose their status codes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The request itself is wrong.
    Validation,
    /// The thing is unknown, or not the caller's to know.
    Unknown,
    /// The thing is not in a state that allows this.
    Conflict,
    /// A lease token is stale or foreign.
    Lease,
    /// A second person is missing.
    Approval,
    /// The caller's tenant has as much as it may; others still get theirs.
    Share,
    /// There is no room for anybody.
    Room,
    /// The thing is there, but what was kept of it is damaged.
    Damage,
}

impl Rejection {
    /// Whether whoever is told this tried what two people, or an open gate, are needed for. Such
    /// attempts are told in the audit trail.
    pub fn is_of_governance(&self) -> bool {
        matches!(
            self,
            Rejection::DiscardConflict { .. }
                | Rejection::RequeueConflict { .. }
                | Rejection::VersionChanged { .. }
                | Rejection::GateClosed { .. }
        ) || self.class() == Class::Approval
    }
}

type F<'a, 'b> = &'a mut fmt::Formatter<'b>;

rejections! {
    /// A field has a value that is not allowed.
    FieldInvalid { field: &'static str, reason: &'static str } => "REQ_VALIDATION_FAILED", Validation,
        |f: F<'_, '_>, field: &&str, reason: &&str| write!(f, "{field} {reason}");
    /// The type is not registered and registration is required.
    TypeUnknown { name: String } => "TYPE_UNKNOWN", Validation,
        |f: F<'_, '_>, name: &String| write!(f, "job type {name:?} is not registered");
    /// The job does not exist.
    JobUnknown => "JOB_NOT_FOUND", Unknown,
        |f: F<'_, '_>| f.write_str("no such job");
    /// The job is there, but what was kept of it cannot be read.
    JobUnreadable => "JOB_UNREADABLE", Damage,
        |f: F<'_, '_>| f.write_str("what was kept of this job is damaged and cannot be read");
    /// The dead-letter item does not exist.
    ItemUnknown => "DLQ_ITEM_NOT_FOUND", Unknown,
        |f: F<'_, '_>| f.write_str("no such dead-letter item");
    /// The token does not exist.
    TokenUnknown => "TOKEN_NOT_FOUND", Unknown,
        |f: F<'_, '_>| f.write_str("no such token");
    /// The entity does not exist.
    EntityUnknown { kind: Kind } => "ENTITY_NOT_FOUND", Unknown,
        |f: F<'_, '_>, kind: &Kind| write!(f, "no such {}", kind.as_str());
    /// There is an entity of that id already.
    EntityExists { kind: Kind } => "ENTITY_EXISTS", Conflict,
        |f: F<'_, '_>, kind: &Kind| write!(f, "there is such a {} already", kind.as_str());
    /// The schedule fires for a plan of the task contract.
    ScheduleOfTask => "SCHEDULE_OF_TASK", Conflict,
        |f: F<'_, '_>| f.write_str("this schedule belongs to a task: cancel the task instead");
    /// The schedule is stopped or has ended.
    ScheduleConflict { state: &'static str } => "SCHEDULE_CONFLICT", Conflict,
        |f: F<'_, '_>, state: &&str| write!(f, "a schedule that is {state} does not allow this");
    /// The question has been answered, or is not waited for any more.
    QuestionConflict { state: &'static str } => "QUESTION_CONFLICT", Conflict,
        |f: F<'_, '_>, state: &&str| write!(f, "a question that is {state} cannot be answered");
    /// What was shown to have a job go on is not, or no longer, what it waits for.
    ResumeInvalid => "WF_INTERRUPT_RESUME_INVALID", Conflict,
        |f: F<'_, '_>| f.write_str("this resume token is not, or no longer, valid");
    /// The bulk operation is not in a state that allows this.
    BulkConflict { state: &'static str } => "BULK_CONFLICT", Conflict,
        |f: F<'_, '_>, state: &&str| write!(f, "an operation that is {state} does not allow this");
    /// The filter of a bulk operation admits more than one may be about.
    BulkTooLarge => "BULK_TOO_LARGE", Conflict,
        |f: F<'_, '_>| f.write_str("the filter admits more than 100000 things: narrow it");
    /// The alert is over.
    AlertConflict { state: &'static str } => "ALERT_CONFLICT", Conflict,
        |f: F<'_, '_>, state: &&str| write!(f, "an alert that is {state} does not allow this");
    /// What the subscription passes events on to does not allow this.
    SubscriptionConflict { target: &'static str } => "SUBSCRIPTION_CONFLICT", Conflict,
        |f: F<'_, '_>, target: &&str| write!(f, "a subscription of target {target} does not allow this");
    /// The entity is not what it was when it was read.
    EntityChanged { kind: Kind } => "ENTITY_CHANGED", Conflict,
        |f: F<'_, '_>, kind: &Kind| write!(f, "the {} has changed since it was read", kind.as_str());
    /// The job is started and ended by its contract alone.
    JobGoverned => "JOB_GOVERNED", Conflict,
        |f: F<'_, '_>| f.write_str("this job is governed: report on it through /scheduler");
    /// A gate before a high-risk object is closed.
    GateClosed { gate: Gate } => "GATE_CLOSED", Conflict,
        |f: F<'_, '_>, gate: &Gate| write!(f, "the gate {} is closed: the job waits again", gate.as_str());
    /// The audit trail of the tenant has taken as much today as it may.
    AuditFull => "AUDIT_FULL", Share,
        |f: F<'_, '_>| f.write_str("the audit trail of this tenant takes no more changes today");
    /// What has a high risk needs the name of the decision behind it.
    DecisionMissing => "DECISION_TRACE_REQUIRED", Validation,
        |f: F<'_, '_>| f.write_str("an entry of high risk needs a decision_trace_id");
    /// The firing has had its job, which is not remembered any more.
    FiringDone => "FIRING_DONE", Conflict,
        |f: F<'_, '_>| f.write_str("this firing has had its job, or is too long past to tell");
    /// The same key was used for something else.
    IdempotencyConflict => "IDEMPOTENCY_CONFLICT", Conflict,
        |f: F<'_, '_>| f.write_str("this idempotency key was used with another type or payload");
    /// The lifecycle has no such move.
    IllegalMove { from: StateName, to: StateName } => "WF_STATE_TRANSITION_INVALID", Conflict,
        |f: F<'_, '_>, from: &StateName, to: &StateName| write!(f, "a job cannot move from {from} to {to}");
    /// The task contract has no such move.
    IllegalTaskMove { from: tasks::State, to: tasks::State } => "TASK_INVALID_TRANSITION", Conflict,
        |f: F<'_, '_>, from: &tasks::State, to: &tasks::State| write!(f, "a task cannot move from {from} to {to}");
    /// The name that the caller chose belongs to one job, and the key to another.
    KeysDisagree => "TASK_DUPLICATE", Conflict,
        |f: F<'_, '_>| f.write_str("this id belongs to one job and this idempotency key to another");
    /// The lease is stale, foreign or over.
    LeaseLost => "LEASE_LOST", Lease,
        |f: F<'_, '_>| f.write_str("this lease token is not, or no longer, valid for this job");
    /// The attempt was already reported, with another outcome.
    ReportConflict => "REPORT_CONFLICT", Conflict,
        |f: F<'_, '_>| f.write_str("this attempt was already reported with another outcome");
    /// A job that has ended cannot be cancelled.
    CancelConflict { state: StateName } => "JOB_CANCEL_CONFLICT", Conflict,
        |f: F<'_, '_>, state: &StateName| write!(f, "a job that is {state} cannot be cancelled");
    /// The job cannot be paused, or is not.
    PauseConflict { state: StateName } => "JOB_PAUSE_CONFLICT", Conflict,
        |f: F<'_, '_>, state: &StateName| write!(f, "a job that is {state} cannot be paused, or is not paused");
    /// The job is not due, or not in need of what was asked. Never shown to a caller.
    NotDue => "NOT_DUE", Conflict,
        |f: F<'_, '_>| f.write_str("nothing to do for this job now");
    /// The item was already requeued or discarded, or a discard is under way.
    RequeueConflict { state: &'static str } => "DLQ_REQUEUE_CONFLICT", Conflict,
        |f: F<'_, '_>, state: &&str| write!(f, "an item that is {state} cannot be requeued");
    /// The item is not in a state that allows this step of a discard.
    DiscardConflict { state: &'static str } => "DLQ_DISCARD_CONFLICT", Conflict,
        |f: F<'_, '_>, state: &&str| write!(f, "an item that is {state} does not allow this step");
    /// A discard needs a reason and two different people.
    ApprovalRequired { reason: &'static str } => "APPROVAL_REQUIRED", Approval,
        |f: F<'_, '_>, reason: &&str| f.write_str(reason);
    /// The second person is the first one.
    SamePerson => "APPROVAL_SAME_PERSON", Approval,
        |f: F<'_, '_>| f.write_str("the person who asked for this cannot approve it");
    /// One of the two people made the other's token.
    NotIndependent => "APPROVAL_NOT_INDEPENDENT", Approval,
        |f: F<'_, '_>| f.write_str("one of the two people issued the other's token, directly or through others");
    /// The approver's token did not exist when the discard was first asked for.
    TokenTooNew => "APPROVAL_TOKEN_TOO_NEW", Approval,
        |f: F<'_, '_>| f.write_str("the approver's token was issued after this was first asked for");
    /// The request is too old.
    RequestExpired => "APPROVAL_EXPIRED", Approval,
        |f: F<'_, '_>| f.write_str("this was asked for too long ago to be approved: ask again");
    /// Nobody could approve.
    NoSecondPerson => "APPROVAL_NO_SECOND_PERSON", Approval,
        |f: F<'_, '_>| f.write_str("there is no second person who could approve this");
    /// The item is not what the approver read.
    VersionChanged { now: u32 } => "DLQ_VERSION_CONFLICT", Conflict,
        |f: F<'_, '_>, now: &u32| write!(f, "the item has changed since it was read: it is at version {now}");
    /// The jobs of the tenant take up as much room as they may.
    TenantBacklogFull => "TENANT_BACKLOG_FULL", Share,
        |f: F<'_, '_>| f.write_str("the jobs of this tenant that have not ended take up as much room as they may");
    /// The jobs of all tenants take up as much room as they may.
    BacklogFull => "BACKLOG_FULL", Room,
        |f: F<'_, '_>| f.write_str("jobs that have not ended take up as much room as they may: new work is refused");
    /// The job has as many effects as it may have, or as many bytes of them.
    EffectsFull => "EFFECTS_FULL", Conflict,
        |f: F<'_, '_>| f.write_str("this job has committed as many effects, or as much in them, as it may");
}

impl std::error::Error for Rejection {}

//! Everything that can be asked of the kernel. A command carries what the caller chose; what the
//! world knows comes in through [`crate::Facts`].

use crate::access::{Principal, Token};
use crate::entity::schedule::ScheduleSpec;
use crate::entity::{EntityCommand, EntityId, Kind};
use crate::fingerprint::Digest;
use crate::firing;
use crate::id::{DlqId, JobId, TokenId};
use crate::job::{Bounds, Failure, Idempotency, LeaseToken, Payload, ProgressNote, StateName};
use crate::name::{JobType, QueueName, TenantId, UserId, WorkerId};
use crate::registry::{QueueSpec, TypeSpec};
use crate::time::Timestamp;
use crate::view::{jobs, tasks};

pub use crate::flow::TypeChange;

/// A request to change something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Accept a job.
    Submit(Box<Submit>),
    /// Hand a waiting job to a worker.
    Claim(Claim),
    /// Hand a waiting job on a governed object to a worker.
    ClaimGoverned(Box<GovernedClaim>),
    /// Report that a governed job was done.
    Ack(Box<Ack>),
    /// Renew the lease of a governed job.
    Renew(Box<Renew>),
    /// Report that an attempt succeeded.
    Complete(Complete),
    /// Report that an attempt failed.
    Fail(Fail),
    /// Give an attempt back unused.
    Release(Release),
    /// Renew a lease.
    Heartbeat(Heartbeat),
    /// Commit a side effect once.
    CommitEffect(CommitEffect),
    /// End a job by request.
    Cancel {
        /// Which job.
        job: JobId,
        /// Who asks.
        by: UserId,
        /// Why, for people.
        reason: Option<Box<str>>,
    },
    /// Enforce time on a job, and finish a DLQ move that stopped half way.
    Reap {
        /// Which job.
        job: JobId,
    },
    /// Make sure a live lease lasts until `until`: after a restart or a clock jump.
    ExtendLease {
        /// Which job.
        job: JobId,
        /// At least until then.
        until: Timestamp,
    },
    /// Move a job by hand; internal role only.
    Transition {
        /// Which job.
        job: JobId,
        /// Where to.
        to: StateName,
        /// Who asks.
        by: UserId,
    },
    /// Move a task by hand, by the table of the task contract; internal role only.
    MoveTask {
        /// Which job.
        job: JobId,
        /// Where to, as the contract shows it.
        to: tasks::State,
        /// Who asks.
        by: UserId,
    },
    /// Run one attempt by hand; internal role only.
    RunInternally(RunInternally),
    /// Move a job by hand as the job orchestration contract sees it; worker or internal role only.
    MoveShown {
        /// Which job.
        job: JobId,
        /// Where to: `running`, `succeeded` or `failed`. The others are a cancel and a requeue.
        to: jobs::State,
        /// Who asks.
        by: UserId,
    },
    /// Run a dead-letter item again as a new job.
    RequeueItem {
        /// Which item.
        item: DlqId,
        /// Who asks.
        by: UserId,
        /// The request's idempotency key.
        key: Option<Box<str>>,
    },
    /// Ask for a dead-letter item to be dropped.
    RequestDiscard {
        /// Which item.
        item: DlqId,
        /// Who asks.
        by: Box<Principal>,
        /// Why.
        reason: Box<str>,
    },
    /// Agree to drop it, as another person.
    ApproveDiscard {
        /// Which item.
        item: DlqId,
        /// Who agrees.
        by: Box<Principal>,
        /// The version of the item, and so the reason, that was read.
        version: u32,
    },
    /// Refuse to drop it; the item is open again.
    RejectDiscard {
        /// Which item.
        item: DlqId,
        /// Who refuses.
        by: UserId,
    },
    /// Drop it in one call naming two reviewers; internal role only.
    DiscardReviewed {
        /// Which item.
        item: DlqId,
        /// Who asks.
        by: Box<Principal>,
        /// Why.
        reason: Box<str>,
        /// The first reviewer.
        reviewer: Box<str>,
        /// The second reviewer.
        reviewer_2: Box<str>,
    },
    /// Drop it alone, when it cannot wait; admins only, and the item says so for ever.
    BreakGlass {
        /// Which item.
        item: DlqId,
        /// Who does it.
        by: Box<Principal>,
        /// Why.
        reason: Box<str>,
    },
    /// Make, change or remove an entity.
    Entity(Box<EntityCommand>),
    /// Do what is due for an entity.
    Ring {
        /// Which entity.
        entity: EntityId,
        /// For when its alarm was set.
        at: Timestamp,
        /// Jobs of it to look at, if it wants that: see [`crate::Receipt::Wanting`].
        jobs: Vec<JobId>,
    },
    /// Tell an entity of jobs it fired that have ended. A hint: it may get lost, come twice, or be
    /// wrong.
    Settle {
        /// Which entity.
        entity: EntityId,
        /// Which jobs.
        jobs: Vec<JobId>,
    },
    /// All of these or none; no two of them touch the same thing: see [`crate::together`].
    Together(Vec<Command>),
    /// Register or replace a type.
    SetType(Box<TypeSpec>),
    /// Pause or resume a type, or reset its circuit.
    ChangeType {
        /// Which type.
        name: JobType,
        /// What to do.
        change: TypeChange,
    },
    /// Set how a queue behaves.
    SetQueue(QueueSpec),
    /// Store a new token.
    IssueToken(Box<Token>),
    /// Let a token end at an instant, unless it ends before.
    ExpireToken {
        /// Which token.
        token: TokenId,
        /// When it stops working.
        at: Timestamp,
    },
    /// End a token at once.
    RevokeToken {
        /// Which token.
        token: TokenId,
    },
}

/// The wish for a job. Fields left `None` come from the type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    /// The tenant.
    pub tenant: TenantId,
    /// Who submits.
    pub user: UserId,
    /// The kind of work.
    pub job_type: JobType,
    /// What the worker gets.
    pub payload: Payload,
    /// Not before this; at once if `None`.
    pub run_at: Option<Timestamp>,
    /// Not before this long from now; at most one of `run_at` and `delay_ms`.
    pub delay_ms: Option<u64>,
    /// Higher is sooner.
    pub priority: Option<u8>,
    /// The queue.
    pub queue: Option<QueueName>,
    /// Start-to-close timeout.
    pub timeout_ms: Option<u32>,
    /// Extra tries.
    pub max_retries: Option<u16>,
    /// The key under which a repeat is recognised.
    pub idempotency: Option<Box<Idempotency>>,
    /// The name that the caller chose for the job: another one of that name is this one.
    pub alias: Option<Box<Idempotency>>,
    /// The job stands for a plan: it is never due, and a schedule makes tasks in its name.
    pub plan: Option<Box<Plan>>,
    /// The caller's trace.
    pub trace: Option<Box<str>>,
    /// The caller's `traceparent`, as [`crate::traceparent::carried`] gives it.
    pub traceparent: Option<Box<str>>,
    /// The job this one belongs to.
    pub parent: Option<JobId>,
    /// What it is about.
    pub subject: Option<Box<str>>,
    /// Free labels.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Cancelled if unstarted by then.
    pub expires_at: Option<Timestamp>,
    /// What it asks for in time and order.
    pub bounds: Bounds,
    /// Which jobs of its own batch it waits for besides.
    pub follows: Option<Follows>,
    /// Whether it may name jobs of other users of its tenant.
    pub may_name_others: bool,
    /// How the job ended, if that was elsewhere and before: it is only to be kept.
    pub ended: Option<Box<Ended>>,
    /// What the concurrency limit counts it under, if the caller says.
    pub concurrency_key: Option<Box<str>>,
}

/// Which jobs of its own batch a job waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follows {
    /// Those in these places, from 0 on; each comes before it.
    Some(Vec<u32>),
    /// All that come before it.
    All,
}

/// How a job ended before it came here. Nobody executes it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Well {
        /// With this to show.
        result: Option<Payload>,
    },
    /// Badly.
    Badly {
        /// What went wrong.
        failure: Failure,
        /// What there was to show all the same.
        result: Option<Payload>,
    },
}

/// What is made beside a job that stands for a plan, in the same commit. The schedule fires until
/// the job is cancelled; its jobs go by the job's chosen name and their instants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The id of the schedule: a fresh one.
    pub schedule: EntityId,
    /// What it is to do.
    pub spec: Box<ScheduleSpec>,
}

impl Submit {
    /// A wish that leaves everything to the type.
    pub fn plain(tenant: TenantId, user: UserId, job_type: JobType) -> Self {
        Submit {
            tenant,
            user,
            job_type,
            payload: "{}".into(),
            run_at: None,
            delay_ms: None,
            priority: None,
            queue: None,
            timeout_ms: None,
            max_retries: None,
            idempotency: None,
            alias: None,
            plan: None,
            trace: None,
            traceparent: None,
            parent: None,
            subject: None,
            labels: Vec::new(),
            expires_at: None,
            bounds: Bounds::default(),
            follows: None,
            may_name_others: false,
            ended: None,
            concurrency_key: None,
        }
    }
}

/// Hand a waiting job to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Which job.
    pub job: JobId,
    /// Who gets it.
    pub worker: WorkerId,
    /// For how long.
    pub lease_ms: u32,
}

/// Hand a governed job to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GovernedClaim {
    /// Which job, to whom, for how long.
    pub claim: Claim,
    /// Whose token asks.
    pub holder: UserId,
    /// By whose clock.
    pub clock: DueClock,
}

/// By whose clock a governed job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueClock {
    /// The server's.
    Server,
    /// The server's, and not later than this.
    Narrowed(Timestamp),
    /// The caller's, where the configuration allows that.
    Callers(Timestamp),
}

impl DueClock {
    /// What is due by this clock when the server's shows `now`.
    pub fn due_by(self, now: Timestamp) -> Timestamp {
        match self {
            DueClock::Server => now,
            DueClock::Narrowed(at) => at.min(now),
            DueClock::Callers(at) => at,
        }
    }
}

/// A governed job was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    /// Which job, under which lease, with what result.
    pub report: Complete,
    /// Its object.
    pub object: EntityId,
    /// When the next action is due, if not as the table says.
    pub next_action_at: Option<Timestamp>,
    /// What the worker calls the entry that tells of it.
    pub audit_event_id: Option<Box<str>>,
    /// Whether the object is written even if it is not there: not if there are too many.
    pub keeps_object: bool,
}

/// Renew the lease of a governed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renew {
    /// Which job, under which lease, for how long.
    pub beat: Heartbeat,
    /// Its object.
    pub object: EntityId,
}

/// An attempt succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complete {
    /// Which job.
    pub job: JobId,
    /// Under which lease.
    pub token: LeaseToken,
    /// What the worker answers.
    pub result: Option<Payload>,
}

/// An attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fail {
    /// Which job.
    pub job: JobId,
    /// Under which lease.
    pub token: LeaseToken,
    /// What went wrong.
    pub failure: Failure,
    /// The worker's own wish for the next delay.
    pub retry_delay_ms: Option<u64>,
    /// What there is to show all the same.
    pub result: Option<Payload>,
    /// No failure: the worker puts the job off for this long, and no try is used up.
    pub snooze_ms: Option<u64>,
}

/// An attempt is given back unused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Which job.
    pub job: JobId,
    /// Under which lease.
    pub token: LeaseToken,
    /// Why, for people.
    pub reason: Option<Box<str>>,
}

/// Renew a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Which job.
    pub job: JobId,
    /// Under which lease.
    pub token: LeaseToken,
    /// For how long from now.
    pub lease_ms: u32,
    /// How far the work is.
    pub progress_pct: Option<u8>,
    /// What the worker says beside.
    pub note: Option<Box<ProgressNote>>,
}

/// Commit a side effect once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitEffect {
    /// Which job.
    pub job: JobId,
    /// Under which lease.
    pub token: LeaseToken,
    /// Its name within the job.
    pub name: Box<str>,
    /// The value to keep.
    pub value: Payload,
}

/// Run one attempt by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInternally {
    /// Which job.
    pub job: JobId,
    /// Who asks.
    pub by: UserId,
    /// How the attempt ends.
    pub ending: Ending,
}

/// How an attempt that is run by hand ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Success,
    /// In the dead-letter queue at once.
    DeadLetter(Failure),
    /// By the retry rules.
    Failure(Failure),
    /// As whoever did the work says who never had a lease. Only a job that waits can end so: what a
    /// worker holds is that worker's to report.
    Told(Ended),
}

impl Command {
    /// What is to be decided: the parts of several commands that belong together, else itself.
    pub fn parts(&self) -> &[Command] {
        #[expect(clippy::wildcard_enum_match_arm, reason = "every other command is one")]
        match self {
            Command::Together(parts) => parts,
            one => std::slice::from_ref(one),
        }
    }

    /// The job this command is about, if it is about one that exists already.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Command::Claim(Claim { job, .. })
            | Command::Complete(Complete { job, .. })
            | Command::Fail(Fail { job, .. })
            | Command::Release(Release { job, .. })
            | Command::Heartbeat(Heartbeat { job, .. })
            | Command::CommitEffect(CommitEffect { job, .. })
            | Command::Cancel { job, .. }
            | Command::Reap { job }
            | Command::ExtendLease { job, .. }
            | Command::Transition { job, .. }
            | Command::MoveTask { job, .. }
            | Command::RunInternally(RunInternally { job, .. })
            | Command::MoveShown { job, .. } => Some(*job),
            Command::ClaimGoverned(wish) => Some(wish.claim.job),
            Command::Ack(ack) => Some(ack.report.job),
            Command::Renew(renew) => Some(renew.beat.job),
            Command::Submit(_)
            | Command::RequeueItem { .. }
            | Command::RequestDiscard { .. }
            | Command::ApproveDiscard { .. }
            | Command::RejectDiscard { .. }
            | Command::DiscardReviewed { .. }
            | Command::BreakGlass { .. }
            | Command::SetType(_)
            | Command::ChangeType { .. }
            | Command::SetQueue(_)
            | Command::IssueToken(_)
            | Command::ExpireToken { .. }
            | Command::RevokeToken { .. }
            | Command::Together(_) => None,
            // A wait has the number of the job that waits.
            Command::Ring { entity, .. } | Command::Settle { entity, .. } => {
                (entity.kind == Kind::Wait).then_some(JobId(entity.bits))
            }
            Command::Entity(command) => command.job(),
        }
    }

    /// The effect this command is about: the job, and its name.
    pub fn effect(&self) -> Option<(JobId, &str)> {
        match self {
            Command::CommitEffect(CommitEffect { job, name, .. }) => Some((*job, name)),
            Command::Submit(_)
            | Command::Claim(_)
            | Command::ClaimGoverned(_)
            | Command::Ack(_)
            | Command::Renew(_)
            | Command::Complete(_)
            | Command::Fail(_)
            | Command::Release(_)
            | Command::Heartbeat(_)
            | Command::Cancel { .. }
            | Command::Reap { .. }
            | Command::ExtendLease { .. }
            | Command::Transition { .. }
            | Command::MoveTask { .. }
            | Command::RunInternally(_)
            | Command::MoveShown { .. }
            | Command::RequeueItem { .. }
            | Command::RequestDiscard { .. }
            | Command::ApproveDiscard { .. }
            | Command::RejectDiscard { .. }
            | Command::DiscardReviewed { .. }
            | Command::BreakGlass { .. }
            | Command::Entity(_)
            | Command::Ring { .. }
            | Command::Settle { .. }
            | Command::SetType(_)
            | Command::ChangeType { .. }
            | Command::SetQueue(_)
            | Command::IssueToken(_)
            | Command::ExpireToken { .. }
            | Command::RevokeToken { .. }
            | Command::Together(_) => None,
        }
    }

    /// The dead-letter item this command is about.
    pub fn item(&self) -> Option<DlqId> {
        match self {
            Command::RequeueItem { item, .. }
            | Command::RequestDiscard { item, .. }
            | Command::ApproveDiscard { item, .. }
            | Command::RejectDiscard { item, .. }
            | Command::DiscardReviewed { item, .. }
            | Command::BreakGlass { item, .. } => Some(*item),
            Command::Submit(_)
            | Command::Claim(_)
            | Command::ClaimGoverned(_)
            | Command::Ack(_)
            | Command::Renew(_)
            | Command::Complete(_)
            | Command::Fail(_)
            | Command::Release(_)
            | Command::Heartbeat(_)
            | Command::CommitEffect(_)
            | Command::Cancel { .. }
            | Command::Reap { .. }
            | Command::ExtendLease { .. }
            | Command::Transition { .. }
            | Command::MoveTask { .. }
            | Command::RunInternally(_)
            | Command::MoveShown { .. }
            | Command::Ring { .. }
            | Command::Settle { .. }
            | Command::SetType(_)
            | Command::ChangeType { .. }
            | Command::SetQueue(_)
            | Command::IssueToken(_)
            | Command::ExpireToken { .. }
            | Command::RevokeToken { .. }
            | Command::Together(_) => None,
            Command::Entity(command) => command.item(),
        }
    }

    /// The entity this command is about.
    pub fn entity(&self) -> Option<EntityId> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "entities have these commands")]
        match self {
            Command::Entity(command) => Some(command.entity()),
            Command::Ring { entity, .. } | Command::Settle { entity, .. } => Some(*entity),
            Command::Submit(wish) => wish.plan.as_ref().map(|plan| plan.schedule),
            Command::Ack(ack) => Some(ack.object),
            Command::Renew(renew) => Some(renew.object),
            _ => None,
        }
    }

    /// The idempotency key of the job that this command may submit.
    pub fn key(&self) -> Option<Digest> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "three commands submit under a key")]
        match self {
            Command::Submit(wish) => wish.idempotency.as_ref().map(|key| key.hash),
            Command::Ring { entity, at, .. } => Some(firing::key(*entity, *at)),
            Command::Entity(command) => command.key(),
            _ => None,
        }
    }

    /// Jobs it looks at besides.
    pub fn watched(&self) -> &[JobId] {
        #[expect(clippy::wildcard_enum_match_arm, reason = "entities watch jobs")]
        match self {
            Command::Ring { jobs, .. } | Command::Settle { jobs, .. } => jobs,
            Command::Entity(command) => command.watched(),
            Command::Submit(wish) => wish.bounds.after.as_ref().map_or(&[], |after| &after.jobs),
            _ => &[],
        }
    }

    /// The name that the caller chose for the job that this command may submit.
    pub fn alias(&self) -> Option<Digest> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "one command chooses a name")]
        match self {
            Command::Submit(wish) => wish.alias.as_ref().map(|alias| alias.hash),
            _ => None,
        }
    }

    /// Whether the decision looks at who issued whose token.
    pub fn needs_people(&self) -> bool {
        #[expect(clippy::wildcard_enum_match_arm, reason = "few decisions take two people")]
        match self {
            Command::RequestDiscard { .. }
            | Command::ApproveDiscard { .. }
            | Command::DiscardReviewed { .. } => true,
            Command::Entity(command) => command.needs_people(),
            _ => false,
        }
    }

    /// A short name for logs, metrics and the lifecycle grid.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Submit(_) => "submit",
            Command::Claim(_) => "claim",
            Command::ClaimGoverned(_) => "claim_governed",
            Command::Ack(_) => "ack",
            Command::Renew(_) => "renew",
            Command::Complete(_) => "complete",
            Command::Fail(_) => "fail",
            Command::Release(_) => "release",
            Command::Heartbeat(_) => "heartbeat",
            Command::CommitEffect(_) => "commit_effect",
            Command::Cancel { .. } => "cancel",
            Command::Reap { .. } => "reap",
            Command::ExtendLease { .. } => "extend_lease",
            Command::Transition { .. } => "transition",
            Command::MoveTask { .. } => "move_task",
            Command::RunInternally(_) => "run_internally",
            Command::MoveShown { .. } => "move_shown",
            Command::RequeueItem { .. } => "requeue_item",
            Command::RequestDiscard { .. } => "request_discard",
            Command::ApproveDiscard { .. } => "approve_discard",
            Command::RejectDiscard { .. } => "reject_discard",
            Command::DiscardReviewed { .. } => "discard_reviewed",
            Command::BreakGlass { .. } => "break_glass",
            Command::Entity(command) => command.name(),
            Command::Ring { .. } => "ring",
            Command::Settle { .. } => "settle",
            Command::SetType(_) => "set_type",
            Command::ChangeType { .. } => "change_type",
            Command::SetQueue(_) => "set_queue",
            Command::IssueToken(_) => "issue_token",
            Command::ExpireToken { .. } => "expire_token",
            Command::RevokeToken { .. } => "revoke_token",
            Command::Together(_) => "together",
        }
    }
}

//! What reads ask for and what they get.

use mainspring_kernel::evolve::Transition;
use mainspring_kernel::{Job, JobId, JobType, QueueName, StateName, TenantId, Timestamp, UserId};

/// Whose things a read may show. The first filter of every list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    All,
    /// One tenant.
    Tenant(TenantId),
    /// One user of one tenant.
    User(TenantId, UserId),
}

impl Scope {
    /// The one tenant it shows things of, if it is one.
    pub fn tenant(&self) -> Option<&TenantId> {
        match self {
            Scope::All => None,
            Scope::Tenant(only) | Scope::User(only, _) => Some(only),
        }
    }

    /// Whether what `user` of `tenant` owns is in scope.
    pub fn covers(&self, tenant: &TenantId, user: &UserId) -> bool {
        match self {
            Scope::All => true,
            Scope::Tenant(only) => only == tenant,
            Scope::User(only, one) => only == tenant && one == user,
        }
    }
}

/// Which jobs to list.
#[derive(Debug, Clone)]
pub struct JobFilter {
    /// Whose.
    pub scope: Scope,
    /// In this state.
    pub state: Option<StateName>,
    /// Of this type.
    pub job_type: Option<JobType>,
    /// In this queue.
    pub queue: Option<QueueName>,
    /// With this trace.
    pub trace_id: Option<String>,
}

impl JobFilter {
    /// Whether `job` is asked for.
    pub fn admits(&self, job: &Job) -> bool {
        self.scope.covers(&job.tenant, &job.user)
            && self.state.is_none_or(|state| job.state.name() == state)
            && self.job_type.as_ref().is_none_or(|wanted| *wanted == job.job_type)
            && self.queue.as_ref().is_none_or(|wanted| *wanted == job.queue)
            && self.trace_id.as_ref().is_none_or(|wanted| *wanted == job.trace_id())
    }
}

/// Which dead-letter items to list.
#[derive(Debug, Clone)]
pub struct ItemFilter {
    /// Whose.
    pub scope: Scope,
    /// In this state, by its name.
    pub state: Option<String>,
    /// Of this type.
    pub job_type: Option<JobType>,
}

/// A part of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The entries.
    pub items: Vec<T>,
    /// Where the next part starts: pass it as `before`. A filtered page may be short, even empty,
    /// and still have a next part, because the work of one call is bounded.
    pub next: Option<JobId>,
}

/// A job and its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The job.
    pub job: Job,
    /// Every move from the submission on.
    pub history: Vec<Transition>,
}

/// What stands between a waiting job and a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Whether its queue is paused.
    pub is_queue_paused: bool,
    /// The concurrency limit that applies and how much of it is in use.
    pub limit: Option<(u32, u32)>,
    /// Ready jobs of the same kind that go before it, counted up to a bound.
    pub ahead: usize,
}

/// Numbers of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCount {
    /// Its name.
    pub name: QueueName,
    /// Waiting and due.
    pub ready: u64,
    /// Waiting and not due.
    pub pending: u64,
    /// Held by workers.
    pub running: u64,
}

/// Numbers for metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Live jobs by state, and finished ones since the store was made; indexed like
    /// [`StateName::ALL`].
    pub by_state: [u64; 8],
    /// Waiting jobs that are due.
    pub due: u64,
    /// Since when the job that waits longest has been due, to the second.
    pub oldest_due: Option<Timestamp>,
    /// Retries scheduled since the store was made.
    pub retries: u64,
    /// Jobs accepted since the store was made.
    pub submitted: u64,
    /// Attempts started since the store was made.
    pub claims: u64,
    /// Jobs that were retried at least once, since the store was made.
    pub jobs_retried: u64,
    /// Dead-letter items that wait for a decision.
    pub items_open: u64,
    /// By queue, by name.
    pub queues: Vec<QueueCount>,
}

/// A move in the order of commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedMove {
    /// Its place among all moves; grows by one, never reused.
    pub position: u64,
    /// Which job.
    pub job: JobId,
    /// Whose.
    pub tenant: TenantId,
    /// Whose.
    pub user: UserId,
    /// Of which type.
    pub job_type: JobType,
    /// In which trace.
    pub trace_id: Box<str>,
    /// The move.
    pub transition: Transition,
}

/// A stretch of moves.
#[derive(Debug, Clone)]
pub struct MovesPage {
    /// The moves, in order.
    pub moves: Vec<LoggedMove>,
    /// Whether moves between the asked position and the first one here are no longer kept.
    pub has_gap: bool,
    /// The position of the newest durable move.
    pub newest: u64,
}

/// What was found when the store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Live jobs restored.
    pub jobs: u64,
    /// Of these, running ones.
    pub running: u64,
    /// Journal frames replayed.
    pub frames: u64,
    /// Bytes of a torn tail that were cut.
    pub torn_bytes: u64,
    /// How long it took.
    pub took_ms: u64,
}

/// How a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `memory` or `postgres`.
    pub kind: &'static str,
    /// Why it cannot serve, if it cannot.
    pub broken: Option<String>,
    /// Whether new work is refused for want of space.
    pub is_low_on_space: bool,
    /// What was found at opening.
    pub recovery: Recovery,
}

//! What reads ask for and what they get.

use mainspring_kernel::evolve::Transition;
use mainspring_kernel::flow::{self, Pause};
use mainspring_kernel::{Job, JobId, JobType, QueueName, TenantId, Timestamp, UserId, WorkerId};

/// A part of a list.
#[derive(Debug, Clone)]
pub struct Page<T, Id = JobId> {
    /// The entries.
    pub items: Vec<T>,
    /// Where the next part starts: pass it as `before`. The id of the last entry here, if there are
    /// more; a page is full unless it is the last one.
    pub next: Option<Id>,
}

impl<T, Id> Page<T, Id> {
    /// The page of `limit` entries that begins `found`, which has one more if there are more.
    pub fn cut(mut found: Vec<T>, limit: usize, id: impl Fn(&T) -> Id) -> Self {
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(id);
        Page { items: found, next }
    }
}

/// A job and its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWithHistory {
    /// The job.
    pub job: Job,
    /// Every move from the submission on.
    pub history: Vec<Transition>,
}

/// What stands between a waiting job and a worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// Whether its queue is paused.
    pub is_queue_paused: bool,
    /// The concurrency limit that applies and how much of it is in use.
    pub limit: Option<(u32, u32)>,
    /// Running jobs that count against it, if it is in use up to the last place; some of them.
    pub holders: Vec<JobId>,
    /// Who paused its type.
    pub type_paused: Option<Pause>,
    /// The bucket or circuit that holds it.
    pub held: Option<flow::Held>,
    /// Ready jobs of the same kind that go before it, counted up to a bound: retries if it is one.
    pub ahead: usize,
    /// Whether it is a retry, and jobs of its queue are ready that are none: those go first, but
    /// for one of [`mainspring_kernel::limits::RETRY_EVERY`], unless the order of the queue is a
    /// promise.
    pub is_fresh_first: bool,
}

/// Holders of a limit that are named, at most.
pub const HOLDERS_MAX: usize = 10;

/// What jobs that have not ended come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// How many there are.
    pub jobs: u64,
    /// What they take up, by [`mainspring_kernel::backlog::held_bytes`].
    pub bytes: u64,
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
    /// Since when the one that waits longest has been due, to the second.
    pub oldest_due: Option<Timestamp>,
}

/// Numbers of one type: of its jobs that have not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeCount {
    /// Its name.
    pub name: JobType,
    /// Waiting for their first try.
    pub queued: u64,
    /// Held by workers.
    pub running: u64,
    /// Waiting for another try.
    pub retrying: u64,
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
    /// By type, by name; of types that have jobs that have not ended.
    pub types: Vec<TypeCount>,
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
    /// In which queue.
    pub queue: QueueName,
    /// In which trace.
    pub trace_id: Box<str>,
    /// When the job was accepted.
    pub created_at: Timestamp,
    /// Not before this. Who waits until then is shown as waiting by some contracts, so their moves
    /// can be told from this and `created_at` without reading the job.
    pub run_at: Timestamp,
    /// The move.
    pub transition: Transition,
}

impl LoggedMove {
    /// A move of `job`, which stands at `position`.
    pub fn of(position: u64, job: &Job, transition: Transition) -> Self {
        LoggedMove {
            position,
            job: job.id,
            tenant: job.tenant.clone(),
            user: job.user.clone(),
            job_type: job.job_type.clone(),
            queue: job.queue.clone(),
            trace_id: job.trace_id().into(),
            created_at: job.created_at,
            run_at: job.run_at,
            transition,
        }
    }
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

/// A move without what is known of its job: its position, the job, and how it moved. A submission
/// may have no step: the job itself tells it.
pub type PlacedStep = (u64, JobId, Option<Transition>);

/// A stretch of moves without what is known of their jobs.
#[derive(Debug, Clone)]
pub struct StepsPage {
    /// The moves, in order.
    pub steps: Vec<PlacedStep>,
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
    /// Entities restored; a store that keeps them elsewhere than in RAM restores none.
    pub entities: u64,
    /// Journal frames replayed, behind the snapshot.
    pub frames: u64,
    /// Their bytes.
    pub journal_bytes: u64,
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
    /// Blocks of finished jobs found damaged since the start. They are left out of lists, and what
    /// they hold is refused.
    pub damaged_blocks: u64,
    /// What was found at opening.
    pub recovery: Recovery,
}

/// Moves that a server refused one after the other, as it tells the other servers of them: of one
/// tenant, asked for at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalNote {
    /// Whose.
    pub tenant: TenantId,
    /// Where they were asked for.
    pub place: Box<str>,
    /// How many in a row; none if a move was made there since.
    pub count: u64,
    /// When the first of them was refused.
    pub since: Timestamp,
    /// When the last of them was.
    pub last_at: Timestamp,
    /// When a move was last made there, as far as that ended a row of somebody.
    pub taken_at: Option<Timestamp>,
}

/// A worker that a server has heard from, as it tells the other servers of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerNote {
    /// Its name.
    pub id: WorkerId,
    /// The tenant it works for, or all.
    pub tenant: Option<TenantId>,
    /// The types it asks for, or any.
    pub types: Option<Vec<JobType>>,
    /// The queues it asks for, or any.
    pub queues: Option<Vec<QueueName>>,
    /// When it was first heard of.
    pub first_seen: Timestamp,
    /// When it was last heard of.
    pub last_seen: Timestamp,
    /// Jobs granted to it since.
    pub granted: u64,
}

//! What a run leaves behind for the checker: what clients asked and were answered, what workers
//! did, what went wrong on purpose, and what the server says at the end. Plain data; the line
//! format for harnesses in other processes is in `history/lines.rs`.
//!
//! Times called `at` are microseconds of the harness's own monotonic clock; all others are the
//! server's.

pub mod lines;

use mainspring_kernel::StateName;

/// A whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Client and worker calls, in the order of their beginning.
    pub operations: Vec<Operation>,
    /// What workers did, written outside the server.
    pub ledger: Vec<Work>,
    /// Faults and restarts.
    pub faults: Vec<Injected>,
    /// Event streams as they arrived.
    pub stream: Vec<Streamed>,
    /// Whether the stream was followed from the first move to the last.
    pub is_stream_whole: bool,
    /// Whether time is simulated, so that nothing but the rules decides the order and the pace.
    pub is_simulated: bool,
    /// Retry delays and concurrency limits of the types, which do not change during a run.
    pub types: Vec<TypeRules>,
    /// The server's final answer.
    pub dump: Dump,
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// When it was sent.
    pub invoked_at: u64,
    /// When its answer arrived; `None` if none did.
    pub ended_at: Option<u64>,
    /// What was asked.
    pub call: Call,
    /// What came back.
    pub outcome: Outcome,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Done.
    Ok(Answer),
    /// Certainly not done, with the code.
    Fail(String),
    /// Nobody knows.
    Info,
    /// The caller hung up before an answer came, and the server could see that. It may have
    /// happened, but what it was given nobody got.
    Gone,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "fields are named by what they hold")]
pub enum Call {
    /// Accept a job.
    Submit {
        /// The tenant.
        tenant: String,
        /// The idempotency key.
        key: Option<String>,
        /// How long the key stays taken after its job ended; `None`: never free again.
        window_secs: Option<u32>,
        /// The type.
        job_type: String,
        /// The payload; unique per wish, so that jobs can be told apart.
        payload: String,
        /// How long after the submission it may run at the earliest.
        delay_ms: u64,
    },
    /// A worker's report that an attempt succeeded.
    Complete { job: String, token: String, result: String },
    /// A worker's report that an attempt failed.
    Fail { job: String, token: String, code: String, retryable: bool, delay_ms: Option<u64> },
    /// A worker gives an attempt back.
    Release { job: String, token: String },
    /// A worker renews its lease.
    Heartbeat { job: String, token: String, lease_ms: u64 },
    /// A worker commits a side effect.
    Effect { job: String, token: String, name: String, value: String },
    /// A worker asks for jobs.
    Pull { worker: String, lease_ms: u64, scope: PullScope },
    /// End a job.
    Cancel { job: String },
    /// Look at a job.
    Read { job: String },
    /// Run a dead-letter item again.
    Requeue { item: String, key: String },
    /// Ask for a discard.
    RequestDiscard { item: String, by: String, reason: String },
    /// Agree to one.
    ApproveDiscard { item: String, by: String },
    /// Refuse one.
    RejectDiscard { item: String, by: String },
    /// Pause or resume a queue.
    Pause { queue: String, is_paused: bool },
    /// List all jobs of a tenant.
    ListJobs { tenant: String },
    /// List all dead-letter items of all tenants.
    ListItems,
    /// Somebody of `tenant` asks about or does `what` to a job, perhaps of others, perhaps none.
    Knock { tenant: String, token: String, job: String, what: String },
    /// End an access token.
    Revoke { token: String },
}

/// What a pull is confined to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullScope {
    /// One tenant, or all.
    pub tenant: Option<String>,
    /// These queues, or any.
    pub queues: Option<Vec<String>>,
    /// These types, or any.
    pub types: Option<Vec<String>>,
}

impl PullScope {
    /// Whether jobs of any tenant, type and queue are asked for.
    pub fn is_open(&self) -> bool {
        *self == PullScope::default()
    }
}

/// What an accepted call was answered.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "fields are named by what they hold")]
pub enum Answer {
    /// A job was accepted, or found under its key.
    Submitted { job: String, is_hit: bool, created_at: i64 },
    /// The state of the job.
    State { state: StateName },
    /// The lease lasts until then.
    Lease { until: i64 },
    /// The heartbeat of a job that was cancelled.
    Cancelled,
    /// The effect, and whether this call was the first to commit it.
    Effect { value: String, is_first: bool },
    /// The jobs that were handed out.
    Grants(Vec<Grant>),
    /// A job as it was at one moment.
    Seen(Seen),
    /// The ids of everything that was listed.
    Listed(Vec<String>),
    /// The new job.
    Requeued { job: String },
    /// Done.
    Done,
}

/// A job as somebody saw it: all of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The state.
    pub state: StateName,
    /// The number of the last event.
    pub seq: u32,
    /// The time of the last change.
    pub updated_at: i64,
    /// Retries so far, if that was told.
    pub retry_count: Option<u32>,
    /// When the next try is due, if it waits for one and that was told.
    pub due_at: Option<i64>,
    /// Whether its dead-letter item was there right after, if somebody looked.
    pub has_item: Option<bool>,
}

/// A job handed to a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// Which job.
    pub job: String,
    /// The attempt, counted from one.
    pub attempt: u32,
    /// The lease token, `fence.secret`.
    pub token: String,
    /// When the server granted it.
    pub granted_at: i64,
    /// Until when at least.
    pub lease_until: i64,
    /// The payload.
    pub payload: String,
    /// The queue it came from.
    pub queue: String,
}

/// A line of a worker's own ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// When.
    pub at: u64,
    /// Which worker.
    pub worker: String,
    /// Which job.
    pub job: String,
    /// Under which lease.
    pub token: String,
    /// The end of the work, or its start.
    pub is_end: bool,
}

/// Something that went wrong on purpose, or its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Injected {
    /// When.
    pub at: u64,
    /// `crash`, `restart`, `disk_failed`, `clock_forward`, …
    pub kind: String,
}

/// A move as a subscriber got it.
#[derive(Debug, Clone, PartialEq)]
pub struct Streamed {
    /// Its place among all moves.
    pub position: u64,
    /// Which job.
    pub job: String,
    /// The number of the event.
    pub seq: u32,
    /// The state after.
    pub to: StateName,
    /// The subscriber was told that moves before this one are gone.
    pub is_reset: bool,
}

/// The rules of one type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeRules {
    /// Its name.
    pub name: String,
    /// Delay before the first retry.
    pub base_ms: u64,
    /// Longest delay.
    pub max_ms: u64,
    /// Most live leases.
    pub limit: Option<u32>,
    /// Whether the limit counts per tenant.
    pub is_per_tenant: bool,
    /// Billionths of a job that may be handed out in a second, and how many at once.
    pub rate: Option<(u64, u32)>,
    /// The field of the payload that the limit counts by.
    pub key: Option<String>,
    /// For how long nothing is handed out after two failures in a row, in microseconds.
    pub circuit: Option<i64>,
}

impl TypeRules {
    /// Whether a job of it goes to whoever asks, as soon as it is its turn.
    pub fn is_free(&self) -> bool {
        self.limit.is_none() && self.rate.is_none() && self.circuit.is_none()
    }
}

/// Everything the server says at the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dump {
    /// Every job.
    pub jobs: Vec<JobDump>,
    /// Every dead-letter item.
    pub items: Vec<ItemDump>,
    /// Jobs by state, indexed like [`StateName::ALL`].
    pub by_state: Option<[u64; 8]>,
    /// Whether the run ended with a quiet phase in which everything had to finish.
    pub is_settled: bool,
    /// What had ended before this server time may be gone.
    pub kept_since: Option<i64>,
    /// How often entities say that they fired.
    pub firings: Vec<FiringDump>,
    /// Entities with an alarm that did not ring any more.
    pub silent: Vec<String>,
    /// The audit trail of each tenant, where it was read.
    pub trails: Vec<TrailDump>,
}

/// The audit trail of one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrailDump {
    /// The tenant.
    pub tenant: String,
    /// Whether the server finds its chain whole.
    pub is_valid: bool,
    /// Its lines, the first one first.
    pub lines: Vec<AuditDump>,
}

/// One line of an audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditDump {
    /// 1, 2, 3…
    pub seq: u64,
    /// What was done.
    pub action: String,
    /// To what.
    pub object: String,
    /// By whom.
    pub actor: String,
    /// Whether the attempt was refused.
    pub is_denied: bool,
}

/// How often an entity says that it fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiringDump {
    /// Which entity.
    pub entity: String,
    /// How often.
    pub count: u64,
    /// For how many instants it was to fire, where that is known.
    pub due: u64,
    /// Of how many of them it tells what became of them.
    pub told: u64,
}

/// A job at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct JobDump {
    /// Its id.
    pub id: String,
    /// The tenant.
    pub tenant: String,
    /// The type.
    pub job_type: String,
    /// The payload.
    pub payload: String,
    /// The queue.
    pub queue: String,
    /// The priority.
    pub priority: u32,
    /// The idempotency key.
    pub key: Option<String>,
    /// The item it was requeued from.
    pub source_item: Option<String>,
    /// The state.
    pub state: StateName,
    /// Retries so far.
    pub retry_count: u32,
    /// Retries allowed.
    pub max_retries: u32,
    /// Start-to-close timeout.
    pub timeout_ms: u64,
    /// When it was accepted.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// Not before this.
    pub run_at: i64,
    /// Start of the latest attempt.
    pub started_at: Option<i64>,
    /// When it ended.
    pub finished_at: Option<i64>,
    /// Names and values of committed effects.
    pub effects: Vec<(String, String)>,
    /// Its history.
    pub events: Vec<EventDump>,
}

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDump {
    /// 1, 2, 3…
    pub seq: u32,
    /// The state before.
    pub from: Option<StateName>,
    /// The state after.
    pub to: StateName,
    /// When.
    pub at: i64,
    /// The attempt it belongs to.
    pub attempt: u32,
    /// Why.
    pub code: Option<String>,
    /// Who.
    pub actor: String,
}

/// A dead-letter item at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemDump {
    /// Its id.
    pub id: String,
    /// The job it is about.
    pub job: String,
    /// `open`, `requeued`, `discard_requested` or `discarded`.
    pub state: String,
    /// The job it was requeued as.
    pub requeued_as: Option<String>,
    /// Who asked for a discard.
    pub proposed_by: Option<String>,
    /// Who agreed.
    pub approved_by: Option<String>,
}

/// The counter of a lease token.
pub fn fence(token: &str) -> u32 {
    token.split('.').next().and_then(|fence| fence.parse().ok()).unwrap_or(0)
}

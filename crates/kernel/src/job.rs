//! A job: what was asked, where it stands, and what has happened to it so far.
//!
//! Small on purpose: ten million of them must fit in six gigabytes, so rare fields share one box.

mod course;
mod lease;

pub use course::{After, AfterCondition, Bounds, Course, GaveUp, ProgressNote};
pub use lease::{Lease, LeaseToken, Settled};

use crate::entity::EntityId;
use crate::event::KeyHolder;
use crate::fingerprint::Digest;
use crate::flow::LimitKeys;
use crate::id::{DlqId, JobId};
use crate::limits::DLQ_UNFINISHED_MS;
use crate::name::{JobType, QueueName, TenantId, UserId, WorkerId};
use crate::time::Timestamp;
use std::fmt;
use std::sync::Arc;

/// JSON text, opaque to Mainspring and kept byte for byte.
pub type Payload = Arc<str>;

/// The eight states without their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateName {
    /// Accepted and waiting; *pending* until `run_at`, *ready* after.
    Queued,
    /// Held by one worker under a lease.
    Running,
    /// Waiting for its next try.
    Retrying,
    /// On the way to the dead-letter queue, item not written yet.
    DlqPending,
    /// The dead-letter item is written.
    DlqRecorded,
    /// Ended well.
    Succeeded,
    /// Ended badly; always by way of the dead-letter queue.
    Failed,
    /// Ended by request or by expiry.
    Cancelled,
}

impl StateName {
    /// Every state, in lifecycle order.
    pub const ALL: [StateName; 8] = [
        StateName::Queued,
        StateName::Running,
        StateName::Retrying,
        StateName::DlqPending,
        StateName::DlqRecorded,
        StateName::Succeeded,
        StateName::Failed,
        StateName::Cancelled,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            StateName::Queued => "queued",
            StateName::Running => "running",
            StateName::Retrying => "retrying",
            StateName::DlqPending => "dlq_pending",
            StateName::DlqRecorded => "dlq_recorded",
            StateName::Succeeded => "succeeded",
            StateName::Failed => "failed",
            StateName::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn parse(text: &str) -> Option<StateName> {
        StateName::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether nothing follows this state.
    pub const fn is_terminal(self) -> bool {
        match self {
            StateName::Succeeded | StateName::Failed | StateName::Cancelled => true,
            StateName::Queued
            | StateName::Running
            | StateName::Retrying
            | StateName::DlqPending
            | StateName::DlqRecorded => false,
        }
    }

    /// The transition table: whether a job may move from this state to `to`.
    pub const fn may_become(self, to: StateName) -> bool {
        use StateName::{
            Cancelled, DlqPending, DlqRecorded, Failed, Queued, Retrying, Running, Succeeded,
        };
        matches!(
            (self, to),
            (Queued, Running | Cancelled)
                | (Running, Succeeded | Retrying | DlqPending | Cancelled)
                | (Retrying, Running | DlqPending | Cancelled)
                | (DlqPending, DlqRecorded)
                | (DlqRecorded, Failed)
        )
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a job stands, with what belongs to that state only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Waiting for its first try.
    Queued,
    /// Held by one worker.
    Running(Box<Lease>),
    /// Waiting for its next try.
    Retrying {
        /// Not before this.
        due_at: Timestamp,
    },
    /// On the way to the dead-letter queue.
    DlqPending,
    /// The dead-letter item is written.
    DlqRecorded,
    /// Ended well.
    Succeeded {
        /// When.
        finished_at: Timestamp,
        /// What the worker answered.
        result: Option<Payload>,
    },
    /// Ended badly.
    Failed {
        /// When.
        finished_at: Timestamp,
    },
    /// Ended by request or by expiry.
    Cancelled {
        /// When.
        finished_at: Timestamp,
    },
}

impl State {
    /// The state without its data.
    pub const fn name(&self) -> StateName {
        match self {
            State::Queued => StateName::Queued,
            State::Running(_) => StateName::Running,
            State::Retrying { .. } => StateName::Retrying,
            State::DlqPending => StateName::DlqPending,
            State::DlqRecorded => StateName::DlqRecorded,
            State::Succeeded { .. } => StateName::Succeeded,
            State::Failed { .. } => StateName::Failed,
            State::Cancelled { .. } => StateName::Cancelled,
        }
    }
}

/// What went wrong in an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A stable code, the worker's own or one of ours (`TASK_TIMEOUT`).
    pub code: Arc<str>,
    /// For people.
    pub message: Box<str>,
    /// Whether trying again can help.
    pub retryable: bool,
}

/// Why a job ended in the dead-letter queue, or what its last failed attempt said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    /// The last failure.
    pub failure: Failure,
    /// When.
    pub at: Timestamp,
    /// Whether the failure was retryable but no try was left.
    pub is_exhausted: bool,
    /// What the worker had to show all the same. Kept of the last failure only, with which a job
    /// ends.
    pub result: Option<Payload>,
}

/// The idempotency key a job was submitted under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// Digest of tenant, scope and key: what uniqueness is enforced on.
    pub hash: Digest,
    /// The scope as given or derived.
    pub scope: Box<str>,
    /// The key as given.
    pub key: Box<str>,
    /// Digest of the fields that must agree on a repeat; `None` compares nothing.
    pub fingerprint: Option<Digest>,
    /// Seconds the key stays taken after the job ended; `None` is for ever.
    pub window_secs: Option<u32>,
}

impl Idempotency {
    /// What is known of the key while `job` lives.
    pub fn held_by(&self, job: JobId) -> KeyHolder {
        KeyHolder { job, fingerprint: self.fingerprint, free_at: None }
    }

    /// What is known of the key once `job` has ended; nothing if it is somebody else's by then.
    pub fn freed_by(
        &self,
        holder: Option<KeyHolder>,
        job: JobId,
        ended_at: Timestamp,
    ) -> Option<KeyHolder> {
        let is_own = holder.is_none_or(|holder| holder.job == job);
        is_own.then(|| KeyHolder { free_at: Some(self.free_at(ended_at)), ..self.held_by(job) })
    }

    /// When the key is free after its job has ended; a key that is never free still has an end.
    pub fn free_at(&self, ended_at: Timestamp) -> Timestamp {
        match self.window_secs {
            Some(secs) => ended_at.plus_millis(u64::from(secs) * 1000),
            None => Timestamp::MAX,
        }
    }
}

/// A report that was accepted, kept so that its repeat can be answered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedReport {
    /// The lease it came under.
    pub token: LeaseToken,
    /// Digest of what it said.
    pub digest: Digest,
}

/// A side effect that is never committed twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Its name within the job.
    pub name: Box<str>,
    /// The value the first commit stored.
    pub value: Payload,
    /// When.
    pub committed_at: Timestamp,
}

impl Effect {
    /// The room it takes.
    pub fn totals(&self) -> EffectTotals {
        let bytes = self.name.len() + self.value.len();
        EffectTotals { count: 1, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
    }
}

/// How many effects, and how many bytes of names and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EffectTotals {
    /// How many.
    pub count: u32,
    /// Bytes of their names and values.
    pub bytes: u32,
}

impl EffectTotals {
    /// With more of them.
    #[must_use]
    pub fn plus(self, more: EffectTotals) -> Self {
        EffectTotals {
            count: self.count.saturating_add(more.count),
            bytes: self.bytes.saturating_add(more.bytes),
        }
    }

    /// With fewer of them.
    #[must_use]
    pub fn minus(self, fewer: EffectTotals) -> Self {
        EffectTotals {
            count: self.count.saturating_sub(fewer.count),
            bytes: self.bytes.saturating_sub(fewer.bytes),
        }
    }
}

/// Fields that most jobs do not use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extras {
    /// The job this one belongs to.
    pub parent: Option<JobId>,
    /// The dead-letter item this job was requeued from.
    pub source_dlq: Option<DlqId>,
    /// What the job is about, in the caller's words.
    pub subject: Option<Box<str>>,
    /// Free labels, in the order given.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Cancelled if still unstarted by then.
    pub expires_at: Option<Timestamp>,
    /// Committed side effects that are at hand, in the order of their commits.
    pub effects: Vec<Effect>,
    /// Those that the store keeps beside the job and did not bring along. A decision about an
    /// effect finds it at hand, if there is one of that name.
    pub effects_elsewhere: EffectTotals,
    /// Last progress a worker reported, in percent.
    pub progress_pct: Option<u8>,
    /// The name that the caller chose for the job, if its contract lets callers choose: a second
    /// key, held as long as the job is kept.
    pub alias: Option<Box<Idempotency>>,
    /// The schedule that makes tasks in the name of this job, which is never due itself: see
    /// [`crate::command::Plan`].
    pub plan: Option<EntityId>,
    /// The step of another system's trace that submitted it; see [`crate::traceparent`].
    pub traceparent: Option<Box<str>>,
    /// What its submission asks for in time and order.
    pub bounds: Option<Box<Bounds>>,
    /// How it went so far.
    pub course: Option<Box<Course>>,
    /// The keys that limits count it by.
    pub limit_keys: Option<Box<LimitKeys>>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name for good.
    pub id: JobId,
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// The user who submitted it.
    pub user: UserId,
    /// The kind of work.
    pub job_type: JobType,
    /// The queue it waits in.
    pub queue: QueueName,
    /// What the worker gets.
    pub payload: Payload,
    /// Higher is sooner.
    pub priority: u8,
    /// Extra tries allowed.
    pub max_retries: u16,
    /// Retries scheduled so far.
    pub retry_count: u16,
    /// Start-to-close timeout of one attempt.
    pub timeout_ms: u32,
    /// Number of the last event.
    pub seq: u32,
    /// Fence of the last lease.
    pub fence: u32,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Not before this.
    pub run_at: Timestamp,
    /// Start of the latest attempt.
    pub started_at: Option<Timestamp>,
    /// The trace it belongs to, if the caller named one.
    pub trace: Option<Box<str>>,
    /// The key it was submitted under.
    pub idempotency: Option<Box<Idempotency>>,
    /// The last failed attempt.
    pub last_failure: Option<Box<LastFailure>>,
    /// The last accepted report.
    pub last_report: Option<Box<AcceptedReport>>,
    /// Rare fields.
    pub extras: Option<Box<Extras>>,
    /// Where it stands.
    pub state: State,
}

impl Job {
    /// The trace id: the caller's, or one derived from the job id.
    pub fn trace_id(&self) -> String {
        match &self.trace {
            Some(trace) => trace.to_string(),
            None => self.id.trace_id(),
        }
    }

    /// Which attempt this is, counted from one.
    pub fn attempt(&self) -> u32 {
        u32::from(self.retry_count) + 1
    }

    /// The key under which one attempt's side effects are recognised: `job_id + retry_count`.
    pub fn execution_key(&self) -> String {
        format!("{}:{}", self.id, self.retry_count)
    }

    /// The name of the last hand-over to a worker: the execution key of that attempt and the fence
    /// of its lease. `None` before the first.
    pub fn dispatch_id(&self) -> Option<String> {
        let started_at = self.started_at.filter(|_| self.fence > 0)?;
        // A retry counts from the moment its predecessor failed; a burial counts none.
        let is_buried = match self.state.name() {
            StateName::DlqPending | StateName::DlqRecorded | StateName::Failed => true,
            StateName::Queued
            | StateName::Running
            | StateName::Retrying
            | StateName::Succeeded
            | StateName::Cancelled => false,
        };
        let has_failed = self.last_failure.as_ref().is_some_and(|failed| failed.at >= started_at);
        let counted_on = u16::from(has_failed && !is_buried);
        let retry_count = self.retry_count.saturating_sub(counted_on);
        Some(format!("{}:{retry_count}:{}", self.id, self.fence))
    }

    /// When the job may next be handed out, if it waits.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Queued => Some(self.run_at),
            State::Retrying { due_at } => Some(due_at),
            State::Running(_)
            | State::DlqPending
            | State::DlqRecorded
            | State::Succeeded { .. }
            | State::Failed { .. }
            | State::Cancelled { .. } => None,
        }
    }

    /// When the reaper has to look at the job, if ever.
    pub fn alarm_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Queued | State::Retrying { .. } => self.gives_up_at().map(|(at, _)| at),
            State::Running(lease) => Some(lease.ends_at()),
            State::DlqPending | State::DlqRecorded => {
                Some(self.updated_at.plus_millis(DLQ_UNFINISHED_MS))
            }
            State::Succeeded { .. } | State::Failed { .. } | State::Cancelled { .. } => None,
        }
    }

    /// The live lease, if the job runs.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Running(lease) => Some(lease),
            State::Queued
            | State::Retrying { .. }
            | State::DlqPending
            | State::DlqRecorded
            | State::Succeeded { .. }
            | State::Failed { .. }
            | State::Cancelled { .. } => None,
        }
    }

    /// When the job ended.
    pub fn finished_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Succeeded { finished_at, .. }
            | State::Failed { finished_at }
            | State::Cancelled { finished_at } => Some(finished_at),
            State::Queued
            | State::Running(_)
            | State::Retrying { .. }
            | State::DlqPending
            | State::DlqRecorded => None,
        }
    }

    /// What there is to show: of a job that ended well, or with a failure that came with something.
    pub fn result(&self) -> Option<&Payload> {
        match &self.state {
            State::Succeeded { result, .. } => result.as_ref(),
            State::Failed { .. } => self.last_failure.as_ref()?.result.as_ref(),
            State::Queued
            | State::Running(_)
            | State::Retrying { .. }
            | State::DlqPending
            | State::DlqRecorded
            | State::Cancelled { .. } => None,
        }
    }

    /// When an unstarted job is given up.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.extras.as_ref().and_then(|extras| extras.expires_at)
    }

    /// Whether it was cancelled because nobody started it in time: only one that never started can
    /// have been.
    pub fn has_expired(&self) -> bool {
        let is_over = |end| self.finished_at().is_some_and(|finished_at| finished_at >= end);
        self.state.name() == StateName::Cancelled
            && self.started_at.is_none()
            && self.course().is_none_or(|course| course.ended_by.is_none())
            && self.expires_at().is_some_and(is_over)
    }

    /// The step of another system's trace that submitted it.
    pub fn traceparent(&self) -> Option<&str> {
        self.extras.as_ref()?.traceparent.as_deref()
    }

    /// Whether it waits for another try after one that failed. What was only given back is none.
    pub fn is_retry(&self) -> bool {
        self.retry_count > 0 && matches!(self.state, State::Retrying { .. })
    }

    /// The keys that limits count it by.
    pub fn limit_keys(&self) -> Option<&LimitKeys> {
        self.extras.as_ref()?.limit_keys.as_deref()
    }

    /// The name that the caller chose for the job.
    pub fn alias(&self) -> Option<&Idempotency> {
        self.extras.as_ref()?.alias.as_deref()
    }

    /// The schedule that makes tasks in its name, if the job stands for a plan.
    pub fn plan(&self) -> Option<EntityId> {
        self.extras.as_ref()?.plan
    }

    /// Every key the job holds: the one it was submitted under, and the name its caller chose.
    pub fn keys(&self) -> impl Iterator<Item = &Idempotency> {
        self.idempotency.as_deref().into_iter().chain(self.alias())
    }

    /// A committed effect by name.
    pub fn effect(&self, name: &str) -> Option<&Effect> {
        self.extras.as_ref()?.effects.iter().find(|effect| &*effect.name == name)
    }

    /// All committed effects, at hand and elsewhere.
    pub fn effect_totals(&self) -> EffectTotals {
        let Some(extras) = &self.extras else { return EffectTotals::default() };
        let at_hand = extras.effects.iter().map(Effect::totals);
        at_hand.fold(extras.effects_elsewhere, EffectTotals::plus)
    }

    /// Drops everything that is known of its effects.
    pub fn forget_effects(&mut self) {
        if let Some(extras) = &mut self.extras {
            extras.effects = Vec::new();
            extras.effects_elsewhere = EffectTotals::default();
            if **extras == Extras::default() {
                self.extras = None;
            }
        }
    }

    /// The rare fields, made on first use.
    pub fn extras_mut(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }
}

/// Who caused a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A person or service, by its token.
    User(UserId),
    /// The holder of a lease.
    Worker(WorkerId),
    /// The part of the engine that enforces time and finishes what stopped half way.
    Reaper,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::User(user) => write!(f, "user:{user}"),
            Actor::Worker(worker) => write!(f, "worker:{worker}"),
            Actor::Reaper => f.write_str("system:reaper"),
        }
    }
}

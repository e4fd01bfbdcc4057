//! What comes in and goes out, field by field as the contract's document has it. No logic.

use crate::governed::GovernedObject;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The wish for a job. Times are RFC 3339.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SchedulerEnqueue {
    /// `memory`, `experience` or `cognition`.
    pub(super) object_type: String,
    /// The name of the object.
    pub(super) object_id: String,
    /// `verify`, `revalidate`, `decay`, `archive` or `reinstate-check`.
    pub(super) action: String,
    /// Not before this; not in the past.
    pub(super) run_at: String,
    /// `low`, `medium` or `high`; `medium` if left out.
    pub(super) priority: Option<String>,
    /// How many executions it may have; 3 if left out.
    pub(super) max_attempts: Option<u64>,
    /// The same key is the same job, for ever; `object_id:action:run_at` if left out.
    pub(super) idempotency_key: Option<String>,
    /// An id that follows the job through all systems.
    pub(super) correlation_id: Option<String>,
}

/// What became of the wish for a job.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerEnqueued {
    /// Whether there was such a job already.
    pub(super) deduplicated: bool,
    /// The job.
    pub(super) job_id: String,
    /// Where it stands.
    pub(super) status: &'static str,
    /// The key of a new job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idempotency_key: Option<String>,
}

/// A worker's request for jobs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SchedulerPull {
    /// The time as the worker sees it: hands out less, never more, unless the server allows it.
    pub(super) now: Option<String>,
    /// At most this many; 100 if left out.
    pub(super) limit: Option<u64>,
    /// Who asks.
    pub(super) worker_id: String,
    /// For how long each job is leased, in seconds; 120 if left out.
    pub(super) lease_sec: Option<u64>,
    /// Only these actions.
    pub(super) actions: Option<Vec<String>>,
    /// Only objects of these types.
    pub(super) object_types: Option<Vec<String>>,
    /// Only jobs whose objects were of these risk tiers when they were enqueued.
    pub(super) risk_tiers: Option<Vec<String>>,
}

/// The jobs that a worker got.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerPulled {
    /// The jobs, the first due first.
    pub(super) jobs: Vec<SchedulerGranted>,
}

/// A job that was handed out.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerGranted {
    /// The job.
    #[serde(flatten)]
    pub(super) job: SchedulerJob,
    /// Proves whose job it is.
    pub(super) lease_token: String,
    /// Names the decision to hand it out.
    pub(super) decision_trace_id: String,
}

/// A job was done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SchedulerAck {
    /// What came of it, as the worker says it.
    #[schema(value_type = Option<Value>, required = false)]
    pub(super) result: Option<Box<RawValue>>,
    /// What the worker calls the entry that tells of it.
    pub(super) audit_event_id: Option<String>,
    /// When the object's next action is due; as the table has it if left out.
    pub(super) next_action_at: Option<String>,
    /// Who did it.
    pub(super) worker_id: Option<String>,
    /// Proves whose job it is; needed by others than whoever pulled it.
    pub(super) lease_token: Option<String>,
}

/// A job could not be done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SchedulerFail {
    /// What went wrong.
    pub(super) error: String,
    /// Seconds from when it was due until it is tried again; 300 if left out.
    pub(super) retry_delay_sec: Option<u64>,
    /// Who tried.
    pub(super) worker_id: Option<String>,
    /// Proves whose job it is; needed by others than whoever pulled it.
    pub(super) lease_token: Option<String>,
}

/// A job takes longer.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SchedulerRenew {
    /// Who has it.
    pub(super) worker_id: Option<String>,
    /// Proves whose job it is; needed by others than whoever pulled it.
    pub(super) lease_token: Option<String>,
    /// For how long from now, in seconds; 120 if left out.
    pub(super) extend_sec: Option<u64>,
}

/// A job as it stands.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerJob {
    /// Its id.
    pub(super) job_id: String,
    /// What kind of object it is about.
    pub(super) object_type: &'static str,
    /// Which one.
    pub(super) object_id: String,
    /// What is to be done to it.
    pub(super) action: &'static str,
    /// When it is, or was, due.
    pub(super) run_at: String,
    /// Which of two jobs due at the same time goes first.
    pub(super) priority: &'static str,
    /// Failures so far.
    pub(super) attempt: u32,
    /// How many failures make a dead letter.
    pub(super) max_attempts: u32,
    /// The key it was enqueued under.
    pub(super) idempotency_key: Option<String>,
    /// Where it stands.
    pub(super) status: &'static str,
    /// What the last failed attempt said.
    pub(super) last_error: Option<String>,
    /// The risk tier of its object when it was enqueued.
    pub(super) risk_tier: &'static str,
    /// Who has it.
    pub(super) worker_id: Option<String>,
    /// Until when.
    pub(super) lease_expires_at: Option<String>,
    /// The id that follows it through all systems.
    pub(super) correlation_id: Option<String>,
    /// When it was accepted.
    pub(super) created_at: String,
    /// When it last changed.
    pub(super) updated_at: String,
    /// What the worker said when it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub(super) result: Option<Box<RawValue>>,
}

/// A job that was done.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerAcked {
    /// The job.
    pub(super) job_id: String,
    /// `succeeded`.
    pub(super) status: &'static str,
    /// The entry that tells of it, as the worker named it.
    pub(super) audit_event_id: Option<String>,
    /// When the object's next action is due.
    pub(super) next_action_at: Option<String>,
    /// The object as it stands now.
    pub(super) object: Option<GovernedObject>,
}

/// A job that could not be done.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerFailed {
    /// The job.
    pub(super) job_id: String,
    /// `queued`, or `dead_letter` if it has failed as often as it may.
    pub(super) status: &'static str,
    /// Failures so far.
    pub(super) attempt: u32,
    /// How many failures make a dead letter.
    pub(super) max_attempts: u32,
    /// When it is due again.
    pub(super) run_at: String,
}

/// A job that takes longer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerRenewed {
    /// The job.
    pub(super) job_id: String,
    /// `running`.
    pub(super) status: &'static str,
    /// Until when it is leased now.
    pub(super) lease_expires_at: String,
    /// For how long that is, in seconds.
    pub(super) extended_by_sec: u64,
}

/// How the jobs of a tenant stand. Numbers stop at 10,000.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerStats {
    /// Jobs by status.
    pub(super) counts: SchedulerCounts,
    /// When the first of the waiting jobs was or is due, of the latest 1,000.
    pub(super) oldest_queued_run_at: Option<String>,
    /// Jobs that workers have.
    pub(super) leased_running_count: usize,
    /// Of the latest 1,000 of these, those whose lease has just run out.
    pub(super) expired_running_count: usize,
    /// Moves of the latest 1,000 jobs, each of which is told by the audits.
    pub(super) audit_event_count: usize,
}

/// Jobs by status.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct SchedulerCounts {
    /// Waiting.
    pub(super) queued: usize,
    /// With a worker.
    pub(super) running: usize,
    /// Done.
    pub(super) succeeded: usize,
    /// Cancelled.
    pub(super) failed: usize,
    /// Failed too often.
    pub(super) dead_letter: usize,
}

/// What happened, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerAudits {
    /// The entries.
    pub(super) items: Vec<SchedulerAudit>,
}

/// One move of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerAudit {
    /// Names the entry for good.
    pub(super) id: String,
    /// `scheduler_job`.
    pub(super) event_type: &'static str,
    /// Who.
    pub(super) actor: SchedulerActor,
    /// What kind of object the job is about.
    pub(super) object_type: &'static str,
    /// Which one.
    pub(super) object_id: String,
    /// The job.
    pub(super) job_id: String,
    /// Where the job stood; nothing for a new one.
    pub(super) before: Option<&'static str>,
    /// Where it stands.
    pub(super) after: &'static str,
    /// Why.
    pub(super) reason: Option<String>,
    /// What proves it: the job, and what the worker named.
    pub(super) evidence_refs: Vec<String>,
    /// When.
    pub(super) timestamp: String,
    /// The risk tier of the object when the job was enqueued.
    pub(super) risk_tier: &'static str,
    /// The id that follows the job through all systems.
    pub(super) correlation_id: Option<String>,
    /// The decision by which the job was handed out, if it ever was.
    pub(super) decision_trace_id: Option<String>,
}

/// Who did something.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerActor {
    /// `system`, `user` or `worker`.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// Which one.
    pub(super) id: String,
}

/// A refusal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerFailure {
    /// What went wrong.
    pub(super) error: SchedulerError,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SchedulerError {
    /// A stable code.
    pub(super) code: &'static str,
    /// For people.
    pub(super) message: String,
    /// Whether the same request may succeed later.
    pub(super) retryable: bool,
    /// The field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
}

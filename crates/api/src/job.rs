//! Jobs: submitting, reading, explaining, cancelling.

use crate::{ErrorCode, Json, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The wish for a job. What is left out comes from its type.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Submit {
    /// The kind of work, an entry of the type registry.
    pub job_type: String,
    /// What the worker gets: any JSON value, at most 1 MiB, kept byte for byte.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub payload: Json,
    /// Not before this; at once if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Time>,
    /// Not before this long from now; not together with `run_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Higher is sooner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The queue to wait in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How long one attempt may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Extra tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u16>,
    /// The same key again returns the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The space in which the key is unique; the submitting user's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_scope: Option<String>,
    /// The trace the job belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The step of another system's trace that submits it (W3C Trace Context), instead of the
    /// header of that name. One that is malformed is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The job this one belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What the job is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Cancelled if not started by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The job is over by then, over all tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Time>,
    /// The longest that the job may wait for a worker once it is due, at each try; thirty days at
    /// most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_timeout_ms: Option<u32>,
    /// Jobs that have to end first, at most 100. In a batch, `#0` is its first job, `#1` its
    /// second; only earlier ones can be named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// What has to become of them: `success`, and the job is cancelled if one of them does not end
    /// well; or `end`. `success` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_condition: Option<String>,
    /// What the concurrency limit of its type counts it under, instead of what the type says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
}

impl Submit {
    /// A job of `job_type` with `payload`, everything else as its type says.
    pub fn new(job_type: impl Into<String>, payload: Json) -> Self {
        Submit {
            job_type: job_type.into(),
            payload,
            run_at: None,
            delay_ms: None,
            priority: None,
            queue: None,
            timeout_ms: None,
            max_retries: None,
            idempotency_key: None,
            idempotency_scope: None,
            trace_id: None,
            traceparent: None,
            parent_id: None,
            labels: BTreeMap::new(),
            subject: None,
            expires_at: None,
            deadline_at: None,
            queue_timeout_ms: None,
            after: Vec::new(),
            after_condition: None,
            concurrency_key: None,
        }
    }
}

/// Up to 10,000 jobs in one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmitBatch {
    /// The jobs.
    pub jobs: Vec<Submit>,
    /// A job that waits for all of them; it comes last in the answer. With it, or if one job names
    /// another, all are taken or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Submit>,
}

/// What became of a batch, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmittedBatch {
    /// One per job.
    pub items: Vec<SubmittedItem>,
}

/// What became of one job of a batch: the first three fields, or `error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmittedItem {
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Whether it existed already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hit: Option<bool>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
}

/// A job.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Job {
    /// Its name for good.
    pub job_id: String,
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// Who submitted it.
    pub user_id: String,
    /// The kind of work.
    pub job_type: String,
    /// The queue it waits in.
    pub queue: String,
    /// `queued`, `running`, `retrying`, `dlq_pending`, `dlq_recorded`, `succeeded`, `failed` or
    /// `cancelled`.
    pub status: String,
    /// Higher is sooner.
    pub priority: u8,
    /// Retries scheduled so far.
    pub retry_count: u16,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Extra tries allowed.
    pub max_retries: u16,
    /// How long one attempt may run.
    pub timeout_ms: u32,
    /// The key it was submitted under.
    pub idempotency_key: Option<String>,
    /// The space in which the key is unique.
    pub idempotency_scope: Option<String>,
    /// The trace it belongs to.
    pub trace_id: String,
    /// The step of another system's trace that submitted it (W3C Trace Context).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The code of the last failure, or why it was cancelled.
    pub error_code: Option<String>,
    /// The last failure.
    pub last_error: Option<LastError>,
    /// What the worker gets.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub payload: Json,
    /// The payload as JSON text.
    pub payload_json: String,
    /// What the worker answered.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub result: Option<Json>,
    /// Not before this.
    pub run_at: Time,
    /// When it was accepted.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// When the latest attempt started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// When the next try is due.
    pub next_retry_at: Option<Time>,
    /// Cancelled if not started by then.
    pub expires_at: Option<Time>,
    /// The job is over by then, over all tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Time>,
    /// The longest that it may wait for a worker, at each try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_timeout_ms: Option<u32>,
    /// The jobs that it was to wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// How many jobs of its batch it was to wait for besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_batch: Option<u32>,
    /// What had to become of them: `success` or `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_condition: Option<String>,
    /// Who runs it now.
    pub lease: Option<Lease>,
    /// The job this one belongs to.
    pub parent_id: Option<String>,
    /// The DLQ item it was requeued from.
    pub source_dlq_id: Option<String>,
    /// The DLQ item it became.
    pub dlq_id: Option<String>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// What the job is about.
    pub subject: Option<String>,
    /// How far the work is, in percent.
    pub progress_pct: Option<u8>,
    /// What its worker last said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_message: Option<String>,
    /// How often its workers have put it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snooze_count: Option<u16>,
    /// Only in the answer to a submission: whether the job existed already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hit: Option<bool>,
}

/// The last failure of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LastError {
    /// A stable code.
    pub code: String,
    /// For people.
    pub message: String,
    /// `validation`, `business_rule`, `transient`, `permanent` or `security_sensitive`.
    #[serde(default)]
    pub class: String,
    /// Whether trying again could help.
    pub retryable: bool,
    /// When.
    pub at: Time,
    /// Whether it was retryable but no try was left.
    pub exhausted: bool,
}

/// Who runs a job now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lease {
    /// The worker, as it calls itself.
    pub worker_id: String,
    /// When the lease ends unless renewed.
    pub expires_at: Time,
    /// When the attempt is over whatever the worker does.
    pub deadline_at: Time,
}

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobEvent {
    /// 1, 2, 3 and so on.
    pub seq: u32,
    /// Names the event for good.
    pub event_id: String,
    /// The state before; none for the submission.
    pub from_state: Option<String>,
    /// The state after.
    pub to_state: String,
    /// When.
    pub occurred_at: Time,
    /// Which attempt it belongs to, from 1.
    pub attempt: u32,
    /// Why: a stable code.
    pub reason_code: Option<String>,
    /// Why, for people.
    pub reason_message: Option<String>,
    /// Who: `user:...`, `worker:...` or `system:...`.
    pub actor: String,
    /// The trace of the job.
    pub trace_id: String,
}

/// A job's whole history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct History {
    /// Every move, oldest first.
    pub items: Vec<JobEvent>,
}

/// Why a job is not running yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// Which job.
    pub job_id: String,
    /// Where it stands.
    pub status: String,
    /// One sentence.
    pub summary: String,
    /// Everything that holds it back, the most telling first.
    pub reasons: Vec<ErrorCode>,
    /// When it may run at the earliest.
    pub earliest_at: Option<Time>,
    /// When it may be expected to start; nothing if it does not wait.
    pub estimated_start: Option<EstimatedStart>,
}

/// When a waiting job may be expected to start. An estimate, not a promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EstimatedStart {
    /// When; nothing if nobody knows.
    pub at: Option<Time>,
    /// What it rests on: `due`, `refill`, `circuit`, `next_pull`, `pace` or `unknown`.
    pub basis: String,
    /// The same for people.
    pub message: String,
}

/// A request to end a job. The body may be left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cancel {
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

//! What workers say and hear: pull, complete, fail, release, heartbeat, effects.

use crate::{ErrorCode, Json, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A worker's request for jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Pull {
    /// How the worker calls itself.
    pub worker_id: String,
    /// Only these types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// Only these queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<String>>,
    /// At most this many, 1 to 10,000; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// How long to wait for the first one, at most 60,000; not at all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// For how long each is leased; 60,000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u32>,
}

/// The jobs a pull got.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Pulled {
    /// The jobs, each with its lease.
    pub jobs: Vec<PulledJob>,
}

/// A job as its worker gets it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PulledJob {
    /// The job.
    pub job_id: String,
    /// The kind of work.
    pub job_type: String,
    /// What to work on.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub payload: Json,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Retries scheduled so far.
    pub retry_count: u16,
    /// Proof that the holder may report on this attempt.
    pub lease_token: String,
    /// When the lease ends unless renewed.
    pub lease_expires_at: Time,
    /// When the attempt is over whatever the worker does.
    pub deadline_at: Time,
    /// Names this attempt in other systems.
    pub execution_key: String,
    /// The trace of the job.
    pub trace_id: String,
    /// The step of another system's trace that submitted it (W3C Trace Context).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// What an earlier try left with its heartbeats, the last of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub checkpoint: Option<Json>,
}

/// A worker is about to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Leave {
    /// How the worker calls itself.
    pub worker_id: String,
}

/// The worker's waiting pulls are answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Left {
    /// The worker.
    pub worker_id: String,
}

/// Reports of success.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Complete {
    /// One per attempt.
    pub items: Vec<CompleteItem>,
    /// Fetch more jobs in the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
}

/// One attempt succeeded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompleteItem {
    /// The job.
    pub job_id: String,
    /// Its lease token.
    pub lease_token: String,
    /// What came of it: any JSON value, at most 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub result: Option<Json>,
}

/// Reports of failure.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Fail {
    /// One per attempt.
    pub items: Vec<FailItem>,
    /// Fetch more jobs in the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
}

/// One attempt failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailItem {
    /// The job.
    pub job_id: String,
    /// Its lease token.
    pub lease_token: String,
    /// A stable code; letters, digits and `_.:-` are kept, anything else becomes `_`, and what is
    /// over 100 bytes is cut. `TASK_EXECUTION_FAILED` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether trying again can help; true if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The worker's own wish for the next delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_delay_ms: Option<u64>,
    /// No failure: the job is put off for this long, at most thirty days, and no try is used up. A
    /// job can be put off a thousand times. Not together with `retry_delay_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snooze_ms: Option<u64>,
    /// What there is to show all the same: any JSON value, at most 1 MiB. Kept if the job ends with
    /// this failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub result: Option<Json>,
}

/// Attempts given back unused.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Release {
    /// One per attempt.
    pub items: Vec<ReleaseItem>,
    /// Fetch more jobs in the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
}

/// One attempt given back unused.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseItem {
    /// The job.
    pub job_id: String,
    /// Its lease token.
    pub lease_token: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of the reports, in order, and the jobs of the pull that came with them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reported {
    /// One per report.
    pub items: Vec<ReportedItem>,
    /// The jobs of the pull, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<PulledJob>>,
}

/// What became of one report: `status`, or `error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportedItem {
    /// The job, as the report named it.
    pub job_id: String,
    /// Where it stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Why the report was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
}

/// A worker's sign of life for all its attempts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Heartbeat {
    /// How the worker calls itself.
    pub worker_id: String,
    /// For how long each lease is renewed; 60,000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u32>,
    /// One per attempt.
    pub items: Vec<HeartbeatItem>,
}

/// The sign of life of one attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatItem {
    /// The job.
    pub job_id: String,
    /// Its lease token.
    pub lease_token: String,
    /// How far the work is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// How far the work is: a number, or more.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Progress {
    /// In percent, 0 to 100.
    Percent(f64),
    /// With what else there is to say.
    Told(ProgressTold),
}

/// What a worker says of its progress. What is left out stays as it was.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressTold {
    /// In percent, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// For people; what is over 500 bytes is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What to leave for the next try: any JSON value, at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub checkpoint: Option<serde_json::Value>,
}

/// Which leases live on, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Beaten {
    /// One per attempt.
    pub items: Vec<BeatenItem>,
}

/// The lease of one attempt: its new end, or `lost`, or `cancelled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BeatenItem {
    /// The job, as the heartbeat named it.
    pub job_id: String,
    /// When the lease ends now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<Time>,
    /// The lease is no longer this worker's: stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// The job was cancelled: stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

/// A side effect to commit once. The lease token may also come in the `x-lease-token` header.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommitEffect {
    /// The lease token of the running attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_token: Option<String>,
    /// The value to keep: any JSON value, at most 64 KiB.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub value: Json,
}

/// A committed side effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Effect {
    /// The job.
    pub job_id: String,
    /// Its name within the job.
    pub name: String,
    /// The value of the first commit.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub value: Json,
    /// Whether this call was that first commit; false when it was only read.
    pub is_first: bool,
}

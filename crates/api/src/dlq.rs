//! The dead letter queue.

use crate::{Json, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A job that failed for good, and what was done about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DlqItem {
    /// Its name.
    pub dlq_id: String,
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// The job.
    pub job_id: String,
    /// The kind of work.
    pub job_type: String,
    /// `permanent`, or `transient` if it was retryable but no try was left.
    pub error_class: String,
    /// The code of the last failure.
    pub error_code: String,
    /// The last failure, for people.
    pub error_message: String,
    /// Names the failure, whichever job had it.
    #[serde(default)]
    pub signature: String,
    /// The payload; only when one item is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value, required = false))]
    pub payload_snapshot: Option<Json>,
    /// The job as it failed; only when one item is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_snapshot: Option<DlqContext>,
    /// `open`, `requeued`, `discard_requested` or `discarded`.
    pub status: String,
    /// Why it should be discarded.
    pub reason: Option<String>,
    /// Who asked for the discard or the requeue.
    pub requested_by: Option<String>,
    /// Who agreed to the discard.
    pub approved_by: Option<String>,
    /// Set if one person dropped it alone: who, why and when. Never goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub break_glass: Option<BrokenGlass>,
    /// The job it runs again as.
    pub requeued_job_id: Option<String>,
    /// When it was written.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// Grows with every change.
    pub version: u32,
}

/// Dead letters with the same failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DlqGroup {
    /// Names the failure: list the items with it.
    pub signature: String,
    /// The code of the failure.
    pub error_code: String,
    /// Its message without what differs from one job to the next.
    pub pattern: String,
    /// The message of the latest, as it is.
    pub sample_message: String,
    /// How many there are; up to 10,000 are counted.
    pub count: u64,
    /// When the first of them failed.
    pub first_at: Time,
    /// When the last of them failed.
    pub last_at: Time,
    /// Whether the first of them failed at or after the instant that was asked about.
    pub new_since: Option<bool>,
    /// Of which types they are; up to ten are named.
    pub job_types: Vec<String>,
}

/// Dead letters by their failure, those with most first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DlqGroups {
    /// A part of the groups.
    pub items: Vec<DlqGroup>,
    /// Where the next part starts.
    pub next_cursor: Option<String>,
    /// How many groups there are among those that were looked at.
    pub total: u64,
    /// How many dead letters were looked at: the latest.
    pub looked_at: u64,
    /// Whether those are all.
    pub complete: bool,
}

/// The mark of a discard that one person made alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BrokenGlass {
    /// Who did it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Time,
}

/// A failed job's circumstances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DlqContext {
    /// Who submitted the job.
    pub user_id: String,
    /// The worker that had the last attempt, if a worker had it.
    pub worker_id: Option<String>,
    /// What that attempt was dispatched as.
    pub execution_key: String,
    /// Retries scheduled.
    pub retry_count: u16,
    /// The last attempt, from 1.
    pub attempt: u32,
    /// Extra tries allowed.
    pub max_retries: u16,
    /// The trace of the job.
    pub trace_id: String,
    /// The queue it waited in.
    pub queue: String,
    /// Its priority.
    pub priority: u8,
    /// Its timeout.
    pub timeout_ms: u32,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it was about.
    pub subject: Option<String>,
    /// The job it belonged to.
    pub parent_id: Option<String>,
    /// When it was accepted.
    pub submitted_at: Time,
    /// When its last attempt started.
    pub started_at: Option<Time>,
    /// When it failed for good.
    pub failed_at: Option<Time>,
}

/// A request to drop an item. Two reviewers at once are accepted from the internal role only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Discard {
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// The first reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer_id: Option<String>,
    /// The second reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer_id_2: Option<String>,
}

/// Agreement to a discard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Approve {
    /// The version of the item that was read. If it has changed since, nothing is approved.
    pub version: u32,
}

/// A discard by one person alone, in an emergency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BreakGlass {
    /// Why it cannot wait for a second person.
    #[serde(default)]
    pub reason: String,
}

/// Where an item stands after a step of a discard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DlqStanding {
    /// The item.
    pub dlq_id: String,
    /// Where it stands.
    pub status: String,
}

/// The new job of a requeued item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Requeued {
    /// The item.
    pub dlq_id: String,
    /// The new job.
    pub job_id: String,
    /// Always `queued`.
    pub status: String,
}

//! Bulk operations: the same thing done to everything that a filter admits.

use crate::Time;
use serde::{Deserialize, Serialize};

/// What is to be done, to what and why.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateBulk {
    /// `requeue` or `discard` dead letter items, or `cancel` jobs.
    pub action: String,
    /// To what: everything that is all of this.
    pub filter: BulkFilter,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// Only tell how many and which; nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Begin with a few, and go on only if few enough of those fail; for `requeue` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<BulkCanary>,
}

/// A filter with the names of the lists. At least one field besides `status` has to be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkFilter {
    /// Only jobs in this state: `queued`, `running` or `retrying`, and needed to cancel. Of dead
    /// letter items it is always `open`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only those of this type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub job_type: Option<String>,
    /// Only those in this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Only those of this trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Only those submitted by this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Only those with these labels, each as `name=value`; up to four.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Vec<String>>,
    /// Only those whose last failed attempt said this code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Only dead letter items with this failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Only those created then or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_after: Option<Time>,
    /// Only those created earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Time>,
}

/// A few go first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkCanary {
    /// How many.
    pub first: u32,
    /// The share of them that may fail, from 0 to 1.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
    pub max_failure_ratio: f64,
}

/// A bulk operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Bulk {
    /// Its name.
    pub bulk_id: String,
    /// What is done.
    pub action: String,
    /// To what.
    pub filter: BulkFilter,
    /// Why.
    pub reason: String,
    /// `awaiting_approval`, `running`, `canary`, `stopped` or `done`.
    pub status: String,
    /// Whose things.
    pub tenant_id: String,
    /// Who asked.
    pub requested_by: String,
    /// When.
    pub requested_at: Time,
    /// The second person.
    pub approved_by: Option<String>,
    /// When the second person agreed.
    pub approved_at: Option<Time>,
    /// Whether a few went first.
    pub canary: Option<BulkCanary>,
    /// How many things the filter admitted when it was asked for.
    pub matched: u64,
    /// To how many it was done.
    pub done: u64,
    /// How many did not allow it.
    pub failed: u64,
    /// Who ended it before it was through; null if nobody did.
    pub stopped_by: Option<String>,
    /// Why it ended before it was through.
    pub stopped_reason: Option<String>,
    /// When it was through or was ended.
    pub ended_at: Option<Time>,
    /// Grows with every change.
    pub version: u32,
}

/// What a bulk operation would be about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkPreview {
    /// Always `preview`.
    pub status: String,
    /// What would be done.
    pub action: String,
    /// How many things the filter admits now; of more than 100,000 it is 100,001.
    pub matched: u64,
    /// Whether a second person has to agree.
    pub needs_approval: bool,
    /// A few of them, the latest.
    pub samples: Vec<BulkSample>,
}

/// One of the things that a bulk operation would be about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkSample {
    /// The dead letter item or job.
    pub id: String,
    /// Its type.
    pub job_type: String,
    /// Where it stands.
    pub status: String,
    /// What its last failed attempt said.
    pub error_message: Option<String>,
}

/// What became of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkOutcome {
    /// The dead letter item or job.
    pub id: String,
    /// `done` or `failed`.
    pub outcome: String,
    /// The job it runs again as.
    pub job_id: Option<String>,
    /// Why nothing was done: a stable code.
    pub error_code: Option<String>,
}

/// Agreement to a bulk operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApproveBulk {
    /// The version that was read. If it has changed since, nothing is approved.
    pub version: u32,
}

/// The end of a bulk operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StopBulk {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

//! Moves by hand, for replay and rehearsal; the routes exist only where they are switched on.

use crate::Time;
use serde::{Deserialize, Serialize};

/// What came of an attempt that was run by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ran {
    /// The job.
    pub job_id: String,
    /// Where it stands.
    pub final_status: String,
    /// Retries scheduled so far.
    pub retry_count: u16,
    /// The DLQ item, if it came to that.
    pub dlq_id: Option<String>,
    /// How long until the next try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// When the next try is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
}

/// A move asked for by hand.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Transition {
    /// Where to.
    pub new_status: String,
}

/// Where a job stands after a move by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Moved {
    /// The job.
    pub job_id: String,
    /// Where it stands.
    pub status: String,
    /// Retries scheduled so far.
    pub retry_count: u16,
}

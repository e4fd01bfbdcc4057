//! The stream of moves: the `data` of each server-sent event. Its `id` is the position.

use crate::Time;
use serde::{Deserialize, Serialize};

/// A job moved; the data of a `job_moved` event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobMoved {
    /// Its place among all moves.
    pub position: u64,
    /// The job.
    pub job_id: String,
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// Who submitted it.
    pub user_id: String,
    /// The kind of work.
    pub job_type: String,
    /// Its number in the job's history.
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
    /// Who.
    pub actor: String,
    /// The trace of the job.
    pub trace_id: String,
}

/// Moves are missing between the asked position and here; the data of a `reset` event. Read what
/// you follow again, then go on from `position`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reset {
    /// Where the stream goes on.
    pub position: u64,
}

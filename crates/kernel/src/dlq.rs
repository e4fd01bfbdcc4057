//! The dead-letter queue: items that wait for a person, and the two-person rule for dropping one.

use crate::id::{DlqId, JobId};
use crate::job::Job;
use crate::name::UserId;
use crate::time::Timestamp;

/// A job that failed for good, kept with everything needed to judge it or run it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DlqItem {
    /// Its name; shares its bits with the job.
    pub id: DlqId,
    /// The job as it was when it failed: payload, counters, last error, trace.
    pub job: Box<Job>,
    /// When the item was written.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Grows by one with every change; replays skip what they know by it.
    pub version: u32,
    /// Where it stands.
    pub state: DlqState,
}

/// Where a dead-letter item stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DlqState {
    /// Waits for a decision.
    Open,
    /// Ran again as a new job.
    Requeued {
        /// The new job.
        job: JobId,
        /// Who asked.
        by: UserId,
        /// The idempotency key of the request, if any: its repeat is answered again.
        key: Option<Box<str>>,
    },
    /// One person wants it dropped.
    DiscardRequested(Proposal),
    /// Dropped by two people.
    Discarded {
        /// The first person's request.
        proposal: Proposal,
        /// The second person.
        approved_by: UserId,
    },
}

/// A request to drop an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Who asked.
    pub by: UserId,
    /// Why.
    pub reason: Box<str>,
    /// When.
    pub at: Timestamp,
}

impl DlqState {
    /// The name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            DlqState::Open => "open",
            DlqState::Requeued { .. } => "requeued",
            DlqState::DiscardRequested(_) => "discard_requested",
            DlqState::Discarded { .. } => "discarded",
        }
    }
}

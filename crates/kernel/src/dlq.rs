//! The dead-letter queue: items that wait for a person, and the two-person rule for dropping one.

use crate::id::{DlqId, JobId, TokenId};
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
    /// When somebody first asked to drop it. A request that was rejected and made again does not
    /// let in people who were made in between.
    pub first_asked_at: Option<Timestamp>,
}

impl DlqItem {
    /// Applies a change.
    pub fn change(&mut self, version: u32, at: Timestamp, state: DlqState) {
        // The state before counts, too: items of older versions did not keep this.
        for asked in [&self.state, &state] {
            if let DlqState::DiscardRequested(proposal) = asked {
                self.first_asked_at.get_or_insert(proposal.at);
            }
        }
        self.version = version;
        self.updated_at = at;
        self.state = state;
    }
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
    /// Dropped by one person alone, for reasons that could not wait. Stays visible for ever.
    GlassBroken(Proposal),
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
    /// With which token, if that was kept.
    pub token: Option<TokenId>,
}

impl DlqState {
    /// Every name on the wire.
    pub const NAMES: [&'static str; 4] = ["open", "requeued", "discard_requested", "discarded"];

    /// Those that wait for a person's decision.
    pub const WAITING_NAMES: [&'static str; 2] = ["open", "discard_requested"];

    /// Whether it waits for a person's decision.
    pub fn is_waiting(&self) -> bool {
        DlqState::WAITING_NAMES.contains(&self.as_str())
    }

    /// The name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            DlqState::Open => "open",
            DlqState::Requeued { .. } => "requeued",
            DlqState::DiscardRequested(_) => "discard_requested",
            DlqState::Discarded { .. } | DlqState::GlassBroken(_) => "discarded",
        }
    }
}

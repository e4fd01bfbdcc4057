//! What became of the latest firings of a schedule. Neighbours with the same fate and no job of
//! their own share an entry, so that a week without a server is one line.

use crate::id::JobId;
use crate::limits::SCHEDULE_HISTORY_MAX;
use crate::time::Timestamp;

/// What became of a firing, or of several in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The firing, or the first of them.
    pub at: Timestamp,
    /// The last of them.
    pub until: Timestamp,
    /// How many.
    pub count: u64,
    /// What became of it.
    pub kind: OutcomeKind,
    /// Why, if there is more to say; one of [`reason`], or `refused: ` and a code.
    pub reason: Option<Box<str>>,
    /// The job, if there is one and only one.
    pub job: Option<JobId>,
    /// How much later than it should it came.
    pub late_ms: u64,
}

/// What became of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeKind {
    /// It has a job.
    Fired,
    /// It has a job that came late.
    Late,
    /// It has none.
    Skipped,
    /// It has none: a later one makes up for it.
    Coalesced,
    /// Its job was filled in by hand.
    Backfilled,
}

impl OutcomeKind {
    /// All of them.
    pub const ALL: [OutcomeKind; 5] = [
        OutcomeKind::Fired,
        OutcomeKind::Late,
        OutcomeKind::Skipped,
        OutcomeKind::Coalesced,
        OutcomeKind::Backfilled,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            OutcomeKind::Fired => "fired",
            OutcomeKind::Late => "late",
            OutcomeKind::Skipped => "skipped",
            OutcomeKind::Coalesced => "coalesced",
            OutcomeKind::Backfilled => "backfilled",
        }
    }

    /// Whether it had a job.
    const fn has_job(self) -> bool {
        match self {
            OutcomeKind::Fired | OutcomeKind::Late | OutcomeKind::Backfilled => true,
            OutcomeKind::Skipped | OutcomeKind::Coalesced => false,
        }
    }
}

/// Why, in a word.
pub mod reason {
    /// A job of an earlier firing had not ended.
    pub const OVERLAP: &str = "overlap";
    /// The day is left out.
    pub const EXCLUDED: &str = "excluded";
    /// It was missed, and what is missed is skipped.
    pub const MISFIRE: &str = "misfire";
    /// It was missed, with more others than are made up for.
    pub const MISFIRE_LIMIT: &str = "misfire_limit";
    /// It waited for a job to end.
    pub const QUEUED: &str = "queued";
    /// A job of an earlier firing was cancelled for it.
    pub const CANCELLED_RUNNING: &str = "cancelled_running";
    /// It was due, or waited for a job to end, when the schedule was paused, stopped or changed.
    pub const DROPPED: &str = "dropped";
    /// Somebody asked for it.
    pub const TRIGGERED: &str = "triggered";
}

/// Adds what became of a firing; the oldest entry goes when there are too many.
pub(super) fn push(history: &mut Vec<Outcome>, outcome: Outcome) {
    let is_like = |last: &Outcome| {
        last.kind == outcome.kind
            && last.reason == outcome.reason
            && (!outcome.kind.has_job() || outcome.kind == OutcomeKind::Backfilled)
            && last.until < outcome.at
    };
    match history.last_mut().filter(|last| is_like(last)) {
        Some(last) => {
            last.until = outcome.until;
            last.count = last.count.saturating_add(outcome.count);
            last.job = None;
        }
        None => {
            if history.len() >= SCHEDULE_HISTORY_MAX {
                history.drain(..=history.len() - SCHEDULE_HISTORY_MAX);
            }
            history.push(outcome);
        }
    }
}

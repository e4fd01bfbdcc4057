//! Numbers that only grow: what has happened since a store was made.

use crate::evolve::Transition;
use crate::job::{Job, StateName};

/// Totals since a store was made, or what a batch adds to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Jobs accepted.
    pub submitted: u64,
    /// Leases granted.
    pub claims: u64,
    /// Tries after a failed one.
    pub retries: u64,
    /// Jobs that needed such a try at least once.
    pub jobs_retried: u64,
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that failed for good.
    pub failed: u64,
    /// Jobs that were cancelled.
    pub cancelled: u64,
}

impl Totals {
    /// Counts a move of `job`, which has already made it.
    pub fn count(&mut self, step: &Transition, job: &Job) {
        match step.to {
            StateName::Running => self.claims += 1,
            // A graceful release leaves the retry count as it was.
            StateName::Retrying if job.attempt() > step.attempt => {
                self.retries += 1;
                self.jobs_retried += u64::from(job.retry_count == 1);
            }
            StateName::Succeeded => self.succeeded += 1,
            StateName::Failed => self.failed += 1,
            StateName::Cancelled => self.cancelled += 1,
            StateName::Queued
            | StateName::Retrying
            | StateName::DlqPending
            | StateName::DlqRecorded => {}
        }
    }

    /// In the order in which they are stored.
    pub fn to_array(self) -> [u64; 7] {
        let Totals { submitted, claims, retries, jobs_retried, succeeded, failed, cancelled } =
            self;
        [submitted, claims, retries, jobs_retried, succeeded, failed, cancelled]
    }

    /// What was stored.
    pub fn from_array(stored: [u64; 7]) -> Self {
        let [submitted, claims, retries, jobs_retried, succeeded, failed, cancelled] = stored;
        Totals { submitted, claims, retries, jobs_retried, succeeded, failed, cancelled }
    }
}

//! Counters that survive restarts: what happened since the store was made.

use mainspring_kernel::evolve::Transition;
use mainspring_kernel::{Job, StateName};

/// Totals since the store was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    pub(crate) submitted: u64,
    pub(crate) claims: u64,
    pub(crate) retries: u64,
    pub(crate) jobs_retried: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
}

impl Totals {
    /// Counts a move of `job`, which has already made it.
    pub(crate) fn count(&mut self, step: &Transition, job: &Job) {
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
    pub(crate) fn to_array(self) -> [u64; 7] {
        let Totals { submitted, claims, retries, jobs_retried, succeeded, failed, cancelled } =
            self;
        [submitted, claims, retries, jobs_retried, succeeded, failed, cancelled]
    }

    pub(crate) fn from_array(stored: [u64; 7]) -> Self {
        let [submitted, claims, retries, jobs_retried, succeeded, failed, cancelled] = stored;
        Totals { submitted, claims, retries, jobs_retried, succeeded, failed, cancelled }
    }
}

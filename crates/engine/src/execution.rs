//! What this process has seen of the execution of jobs since it started: how many were handed out
//! and how they ended. Only what is durable is counted; other servers of the same store count
//! theirs.

use crate::pickup::Pickup;
use mainspring_kernel::event::Change;
use mainspring_kernel::{JobEvent, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of jobs handed out and ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Execution {
    /// Attempts started.
    pub dispatched: u64,
    /// Jobs that ended well.
    pub succeeded: u64,
    /// Jobs that ended badly.
    pub failed: u64,
    /// When the last attempt started.
    pub last_dispatched_at: Option<Timestamp>,
    /// When the last job ended, well or badly.
    pub last_finished_at: Option<Timestamp>,
    /// Why the last job that ended badly did.
    pub last_error_code: Option<Arc<str>>,
    /// How long jobs waited for their first attempt.
    pub pickup: Pickup,
}

impl Execution {
    /// Counts a move.
    pub(crate) fn note(&mut self, event: &JobEvent) {
        match &event.change {
            Change::Claimed(_) => {
                self.dispatched += 1;
                self.last_dispatched_at = Some(event.at);
            }
            Change::Succeeded { .. } => {
                self.succeeded += 1;
                self.last_finished_at = Some(event.at);
            }
            Change::DeadLettered { failure, .. } => {
                self.last_error_code = Some(failure.code.clone());
            }
            Change::Failed => {
                self.failed += 1;
                self.last_finished_at = Some(event.at);
            }
            Change::RetryScheduled { .. }
            | Change::Released { .. }
            | Change::Hastened
            | Change::Unblocked { .. }
            | Change::DlqRecorded
            | Change::Cancelled { .. } => {}
        }
    }

    /// Counts what `later` has counted.
    fn add(&mut self, later: &Execution) {
        self.dispatched += later.dispatched;
        self.succeeded += later.succeeded;
        self.failed += later.failed;
        self.last_dispatched_at = self.last_dispatched_at.max(later.last_dispatched_at);
        self.last_finished_at = self.last_finished_at.max(later.last_finished_at);
        self.pickup.add(&later.pickup);
        if later.last_error_code.is_some() {
            self.last_error_code.clone_from(&later.last_error_code);
        }
    }

    fn is_empty(&self) -> bool {
        self.dispatched + self.succeeded + self.failed == 0
            && self.last_error_code.is_none()
            && self.pickup.is_empty()
    }
}

/// The sum of what was counted.
#[derive(Debug, Default)]
pub(crate) struct Executed(Mutex<Execution>);

impl Executed {
    /// Counts what a commit did, once it is one.
    pub(crate) fn add(&self, some: &Execution) {
        if !some.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).add(some);
        }
    }

    /// All of it.
    pub(crate) fn sum(&self) -> Execution {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::job::Actor;
    use mainspring_kernel::{Failure, JobId};

    fn event(at: i64, change: Change) -> JobEvent {
        JobEvent { job: JobId(1), seq: 2, at: Timestamp(at), actor: Actor::Reaper, change }
    }

    #[test]
    fn a_burial_is_one_failure_and_says_why() {
        let (sum, mut some) = (Executed::default(), Execution::default());
        let failure = Failure { code: "NO_PAPER".into(), message: "".into(), retryable: false };
        let (report, result) = (None, None);
        for change in [
            Change::DeadLettered { failure, is_exhausted: false, report, result },
            Change::DlqRecorded,
            Change::Failed,
        ] {
            some.note(&event(7, change));
        }
        sum.add(&some);
        let mut later = Execution::default();
        later.note(&event(9, Change::Succeeded { result: None, report: None }));
        sum.add(&later);
        let told = sum.sum();
        assert_eq!((told.dispatched, told.succeeded, told.failed), (0, 1, 1));
        assert_eq!(told.last_finished_at, Some(Timestamp(9)));
        assert_eq!(told.last_error_code.as_deref(), Some("NO_PAPER"));
    }
}

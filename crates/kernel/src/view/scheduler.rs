//! The view of contract 004 (`scheduler`): a job waits for its time, runs, and ends; one that
//! failed too often is a dead letter.

use super::{Moves, states};
use crate::evolve::Transition;
use crate::job::{Job, StateName};

states! {
    /// The states of a due-driven job.
    State {
        /// Waiting, for the first time or again.
        Queued = "queued",
        /// Held by a worker.
        Running = "running",
        /// Ended well.
        Succeeded = "succeeded",
        /// Ended by request or by expiry.
        Failed = "failed",
        /// Failed for good, waiting for a person.
        DeadLetter = "dead_letter",
    }
}

impl State {
    /// Whether nothing follows this state.
    pub const fn is_terminal(self) -> bool {
        matches!(self, State::Succeeded | State::Failed | State::DeadLetter)
    }

    /// Whether the contract allows this move.
    pub const fn may_become(self, to: State) -> bool {
        use State::{DeadLetter, Failed, Queued, Running, Succeeded};
        matches!(
            (self, to),
            (Queued, Running | Failed) | (Running, Succeeded | Queued | DeadLetter | Failed)
        )
    }
}

/// The state shown.
pub const fn state(job: &Job) -> State {
    shown(job.state.name())
}

/// The state shown for a job that is in `state`.
pub const fn shown(state: StateName) -> State {
    match state {
        StateName::Queued | StateName::Retrying => State::Queued,
        StateName::Running => State::Running,
        StateName::Succeeded => State::Succeeded,
        StateName::DlqPending | StateName::DlqRecorded | StateName::Failed => State::DeadLetter,
        StateName::Cancelled => State::Failed,
    }
}

/// What one native move shows. A dead letter written for a waiting job shows as a last run.
pub fn moves(transition: &Transition) -> Moves<State> {
    let Some(from) = transition.from else { return Moves::NONE };
    let (from, to) = (shown(from), shown(transition.to));
    let via = if to == State::DeadLetter && from == State::Queued { State::Running } else { to };
    Moves::along(from, via, to)
}

/// The counter shown: failures so far, the last one included once the job is a dead letter.
pub fn attempt(job: &Job) -> u32 {
    match state(job) {
        State::DeadLetter => u32::from(job.retry_count) + 1,
        State::Queued | State::Running | State::Succeeded | State::Failed => {
            u32::from(job.retry_count)
        }
    }
}

/// How many failures make a dead letter.
pub fn max_attempts(job: &Job) -> u32 {
    u32::from(job.max_retries) + 1
}

/// The retries that `max_attempts` executions allow; a job always has one execution.
pub fn max_retries(max_attempts: u16) -> u16 {
    max_attempts.saturating_sub(1)
}

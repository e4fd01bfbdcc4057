//! The view of contract 001 (`jobs`): five states, no counter. Retries are the business
//! of the scheduler, so a job that waits for its next try is still running.

use super::{Moves, states};
use crate::evolve::Transition;
use crate::job::{Job, StateName};

states! {
    /// The states of an orchestrated job.
    State {
        /// Accepted, not started yet.
        Queued = "queued",
        /// Started, and not at its end.
        Running = "running",
        /// Ended well.
        Succeeded = "succeeded",
        /// Ended badly.
        Failed = "failed",
        /// Ended by request or by expiry.
        Cancelled = "cancelled",
    }
}

impl State {
    /// Whether nothing follows this state. A retry of a failed job is a new job.
    pub const fn is_terminal(self) -> bool {
        matches!(self, State::Succeeded | State::Failed | State::Cancelled)
    }

    /// Whether the contract allows this move.
    pub const fn may_become(self, to: State) -> bool {
        use State::{Cancelled, Failed, Queued, Running, Succeeded};
        matches!(
            (self, to),
            (Queued, Running | Cancelled) | (Running, Succeeded | Failed | Cancelled)
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
        StateName::Queued => State::Queued,
        StateName::Running | StateName::Retrying => State::Running,
        StateName::Succeeded => State::Succeeded,
        StateName::DlqPending | StateName::DlqRecorded | StateName::Failed => State::Failed,
        StateName::Cancelled => State::Cancelled,
    }
}

/// What one native move shows. A retry, from failure to new start, shows nothing.
pub fn moves(transition: &Transition) -> Moves<State> {
    let Some(from) = transition.from else { return Moves::NONE };
    let to = shown(transition.to);
    Moves::along(shown(from), to, to)
}

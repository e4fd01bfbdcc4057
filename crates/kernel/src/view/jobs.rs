//! The view of contract 001 (`jobs`): five states, no counter. Retries are the business
//! of the scheduler, so a job that waits for its next try is still running.

use super::{Moves, states};
use crate::event::{DEPENDENCY_FAILED, QUEUE_TIMEOUT, TASK_EXECUTION_FAILED, TASK_EXPIRED};
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

    /// The state of ours that bears this name.
    pub const fn native(self) -> StateName {
        match self {
            State::Queued => StateName::Queued,
            State::Running => StateName::Running,
            State::Succeeded => StateName::Succeeded,
            State::Failed => StateName::Failed,
            State::Cancelled => StateName::Cancelled,
        }
    }

    /// The states of ours that are shown as this one.
    pub fn shows(self) -> impl Iterator<Item = StateName> {
        StateName::ALL.into_iter().filter(move |state| shown(*state) == self)
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

/// What the contract says of a failed attempt whose worker gave no code.
pub const EXECUTION_FAILED: &str = "EXECUTION_FAILED";
/// What it says of a job that waits for others of its type to end.
pub const CONCURRENCY_LIMIT_EXCEEDED: &str = "CONCURRENCY_LIMIT_EXCEEDED";

/// Why a job has no good end, by code and for people: of one that failed, the last real reason; of
/// one that nobody started in time, that. Neither a cancel nor a try that is not the last is an
/// error of the job.
pub fn error(job: &Job) -> Option<(&str, &str)> {
    match shown(job.state.name()) {
        State::Failed => job.last_failure.as_ref().map(|failed| {
            let failure = &failed.failure;
            let code = match &*failure.code {
                TASK_EXECUTION_FAILED => EXECUTION_FAILED,
                code => code,
            };
            (code, &*failure.message)
        }),
        State::Cancelled if job.has_expired() => {
            Some((TASK_EXPIRED, "the job was not started before it expired"))
        }
        State::Cancelled => job.course()?.ended_by.map(|code| (code, ended_text(code))),
        State::Queued | State::Running | State::Succeeded => None,
    }
}

fn ended_text(code: &str) -> &'static str {
    match code {
        DEPENDENCY_FAILED => "a job that had to end well first did not",
        QUEUE_TIMEOUT => "the job waited too long for a worker",
        _ => "the job was not done by its deadline",
    }
}

/// What one native move shows. A retry, from failure to new start, shows nothing.
pub fn moves(transition: &Transition) -> Moves<State> {
    let Some(from) = transition.from else { return Moves::NONE };
    let to = shown(transition.to);
    Moves::along(shown(from), to, to)
}

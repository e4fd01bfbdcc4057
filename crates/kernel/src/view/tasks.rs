//! The view of contract 000 (`tasks`): six states, and an attempt counted from one.
//!
//! A waiting task is `pending` until its time has come and `ready` after. No event marks that
//! instant, so the move is shown together with the next one that needs it.

use super::{Moves, states};
use crate::event::TASK_RETRY_EXHAUSTED;
use crate::evolve::Transition;
use crate::job::{Job, StateName};
use crate::time::Timestamp;

states! {
    /// The states of a task.
    State {
        /// Its time has not come.
        Pending = "pending",
        /// May be started, for the first time or again.
        Ready = "ready",
        /// Being executed.
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
    /// Whether nothing follows this state.
    pub const fn is_terminal(self) -> bool {
        matches!(self, State::Succeeded | State::Failed | State::Cancelled)
    }

    /// Whether the contract allows this move.
    pub const fn may_become(self, to: State) -> bool {
        use State::{Cancelled, Failed, Pending, Ready, Running, Succeeded};
        matches!(
            (self, to),
            (Pending, Ready | Cancelled)
                | (Ready, Running | Cancelled)
                | (Running, Succeeded | Failed | Ready | Cancelled)
        )
    }
}

/// The state shown at `now`. Whatever a clock says that was set back: a task that was ready stays
/// so, and a waiting one to which something happened was hastened.
pub fn state(job: &Job, now: Timestamp) -> State {
    let state = job.state.name();
    if state == StateName::Queued && job.seq > 1 {
        return State::Ready;
    }
    shown(state, job.run_at, now.max(job.updated_at))
}

/// The state shown for a job that is in `state` and may not start before `run_at`.
pub fn shown(state: StateName, run_at: Timestamp, now: Timestamp) -> State {
    match state {
        StateName::Queued if run_at > now => State::Pending,
        StateName::Queued | StateName::Retrying => State::Ready,
        StateName::Running => State::Running,
        StateName::Succeeded => State::Succeeded,
        StateName::DlqPending | StateName::DlqRecorded | StateName::Failed => State::Failed,
        StateName::Cancelled => State::Cancelled,
    }
}

/// The state last shown before `transition`, going by the events alone: a task that was submitted
/// ahead of its time was last shown as pending.
pub fn last_shown(job: &Job, transition: &Transition) -> State {
    last_shown_of(job.created_at, job.run_at, transition)
}

/// The same of a job that was submitted at `created_at` and may not start before `run_at`.
pub fn last_shown_of(created_at: Timestamp, run_at: Timestamp, transition: &Transition) -> State {
    match transition.from {
        // Only what waited for its time is hastened.
        Some(StateName::Queued) if transition.to == StateName::Queued => State::Pending,
        // Only a hastening comes between the submission of a task and what ends its wait.
        Some(StateName::Queued) if transition.seq > 2 => State::Ready,
        Some(from) => shown(from, run_at, created_at),
        None => State::Pending,
    }
}

/// What one native move of a task shows after it was last shown as `last`.
///
/// Every task begins as pending; one whose time has come shows the move to ready with its
/// submission, any other with its claim. A dead letter written for a waiting task shows as a
/// last, failed run, since the contract knows no other way to `failed`.
pub fn moves(last: State, transition: &Transition, run_at: Timestamp) -> Moves<State> {
    let to = match transition.from {
        // A task that is hastened is ready, whatever its time was before.
        Some(StateName::Queued) if transition.to == StateName::Queued => State::Ready,
        Some(_) | None => shown(transition.to, run_at, transition.at),
    };
    let via = match (last, to) {
        (State::Pending, State::Running) => State::Ready,
        (State::Ready, State::Failed) => State::Running,
        _ => to,
    };
    Moves::along(last, via, to)
}

/// The counter shown: which execution this is or will be, counted from one.
pub fn attempt(job: &Job) -> u32 {
    job.attempt()
}

/// How many executions the task may have.
pub fn max_attempts(job: &Job) -> u32 {
    u32::from(job.max_retries) + 1
}

/// The code of the last failed execution: its own, unless it was the last of too many.
pub fn last_error_code(job: &Job) -> Option<&str> {
    let last_failure = job.last_failure.as_ref()?;
    Some(if last_failure.is_exhausted { TASK_RETRY_EXHAUSTED } else { &last_failure.failure.code })
}

//! The view of the runs contract: a run is in the queue, running, or a result.

use super::{Moves, states};
use crate::entity::question::QUESTION_EXPIRED;
use crate::event::{
    JOB_CANCELLED, QUEUE_TIMEOUT, TASK_EXPIRED, TASK_LEASE_LOST, TASK_TIMEOUT, TOTAL_TIMEOUT,
};
use crate::evolve::Transition;
use crate::job::{Job, StateName};

/// Where records of a directory are found that can be taken over, as the wire names them.
pub const IMPORT_PLACES: [&str; 7] = [
    "queue",
    "running",
    "results",
    "planner_queue",
    "planner_running",
    "planner_results",
    "task_status",
];

states! {
    /// Where a run is; the last two are the status of its result.
    State {
        /// Waiting, for the first time or again.
        Queue = "queue",
        /// Being executed.
        Running = "running",
        /// A result: done.
        Done = "done",
        /// A result: failed.
        Failed = "failed",
    }
}

states! {
    /// Why a result is failed.
    FailureReason {
        /// The run took too long.
        Timeout = "timeout",
        /// The run itself failed.
        Error = "error",
        /// Something ended the run from outside: a cancellation, an expiry, a lost worker.
        Killed = "killed",
    }
}

impl State {
    /// Whether this is a result.
    pub const fn is_terminal(self) -> bool {
        matches!(self, State::Done | State::Failed)
    }

    /// Whether the contract allows this move. A run in the queue fails only by being killed there.
    pub const fn may_become(self, to: State) -> bool {
        use State::{Done, Failed, Queue, Running};
        matches!((self, to), (Queue, Running | Failed) | (Running, Done | Failed | Queue))
    }
}

/// The state shown.
pub const fn state(job: &Job) -> State {
    shown(job.state.name())
}

/// The state shown for a job that is in `state`.
pub const fn shown(state: StateName) -> State {
    match state {
        StateName::Queued | StateName::Retrying => State::Queue,
        StateName::Running => State::Running,
        StateName::Succeeded => State::Done,
        StateName::DlqPending
        | StateName::DlqRecorded
        | StateName::Failed
        | StateName::Cancelled => State::Failed,
    }
}

/// What one native move shows. A dead letter written for a waiting run shows as a last, failed
/// execution; only a kill takes a run from the queue straight to a result.
pub fn moves(transition: &Transition) -> Moves<State> {
    let Some(from) = transition.from else { return Moves::NONE };
    let (from, to) = (shown(from), shown(transition.to));
    let is_buried = transition.to == StateName::DlqPending;
    Moves::along(from, if is_buried { State::Running } else { to }, to)
}

/// The counter shown: 0 until the run first starts, then the number of its execution, which grows
/// before the run goes back to the queue. A run given back unused keeps its number.
pub fn attempts(job: &Job) -> u32 {
    match job.started_at {
        Some(_) => job.attempt(),
        None => 0,
    }
}

/// Why the result is failed, if it is.
pub fn failure_reason(job: &Job) -> Option<FailureReason> {
    match job.state.name() {
        StateName::Cancelled => Some(FailureReason::Killed),
        StateName::DlqPending | StateName::DlqRecorded | StateName::Failed => {
            let code = job.last_failure.as_ref().map(|last_failure| &*last_failure.failure.code);
            Some(code.map_or(FailureReason::Error, reason_of))
        }
        StateName::Queued | StateName::Running | StateName::Retrying | StateName::Succeeded => None,
    }
}

/// Code of an attempt at a run that was ended from outside, as its worker says.
pub const RUN_KILLED: &str = "RUN_KILLED";

/// The reason that a failure's code stands for.
pub fn reason_of(code: &str) -> FailureReason {
    match code {
        TASK_TIMEOUT | QUESTION_EXPIRED | TOTAL_TIMEOUT | QUEUE_TIMEOUT => FailureReason::Timeout,
        TASK_LEASE_LOST | TASK_EXPIRED | JOB_CANCELLED | RUN_KILLED => FailureReason::Killed,
        _ => FailureReason::Error,
    }
}

//! The view of the native surface and of the jobs-and-DLQ contract: everything as stored.

use super::Moves;
use crate::evolve::Transition;
use crate::job::{Job, StateName};

/// The state shown is the state stored; `cancelled` is the one state no flow of the jobs-and-DLQ
/// contract leads to.
pub type State = StateName;

/// The state shown.
pub const fn state(job: &Job) -> State {
    job.state.name()
}

/// The counter shown: retries scheduled so far.
pub const fn retry_count(job: &Job) -> u16 {
    job.retry_count
}

/// Whether this view knows the move.
pub const fn may_become(from: State, to: State) -> bool {
    from.may_become(to)
}

/// What one native move shows: itself. The submission has nothing before it and is no move.
pub fn moves(transition: &Transition) -> Moves<State> {
    match transition.from {
        Some(from) => Moves::along(from, transition.to, transition.to),
        None => Moves::NONE,
    }
}

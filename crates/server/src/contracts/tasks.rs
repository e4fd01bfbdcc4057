//! The task contract, at `/tasks`: tasks that their callers name, in the words of the document that
//! describes them. A task is a job of the built-in type `task`; its id is the job's second key.
//!
//! `routes.rs` is the table, `handle.rs` the handlers, `events.rs` what is told of moves; `wire.rs`
//! has the shapes, `translate.rs` reads wishes and `view.rs` shows jobs, both purely; `errors.rs`
//! says no. The states and their moves are the kernel's (`view/tasks.rs` there).

mod errors;
mod events;
mod handle;
mod routes;
mod translate;
mod view;
mod wire;

use super::Contract;
use crate::openapi::shape;

/// The task contract.
pub(super) static CONTRACT: Contract = Contract {
    name: "tasks",
    prefix: "/tasks",
    routes: routes::table,
    word: errors::word,
    failure: shape::<wire::TaskFailure>,
    codes: errors::CODES,
};

/// What sets the ids of tasks apart from other names that callers choose.
const NAMESPACE: &str = "task";

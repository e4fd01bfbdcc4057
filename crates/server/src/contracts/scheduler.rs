//! The contract of the due-driven scheduler, at `/scheduler`: jobs on governed objects, handed out
//! when they are due and their objects allow it, in the words of the document that describes them.
//!
//! `routes.rs` is the table; `jobs.rs` takes and shows jobs, `work.rs` is for workers, `objects.rs`
//! for objects and gates; `wire.rs` has the shapes, `translate.rs` reads wishes and `view.rs` shows
//! jobs, both purely; `errors.rs` says no. What may be handed out is the kernel's to say
//! (`decide/governed.rs` there).

mod errors;
mod jobs;
mod objects;
mod routes;
mod translate;
mod view;
mod wire;
mod work;

use super::Contract;
use crate::openapi::shape;

/// The contract of the due-driven scheduler.
pub(super) static CONTRACT: Contract = Contract {
    name: "scheduler",
    prefix: "/scheduler",
    routes: routes::table,
    word: errors::word,
    failure: shape::<wire::SchedulerFailure>,
    codes: errors::CODES,
};

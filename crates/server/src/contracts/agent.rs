//! The agent contract, at `/agent`: runs, plans, what became of them, and triggers, in the words of
//! the document that describes them. A run is a job of the built-in type `agent_run`, a plan one of
//! `agent_plan`; how their fields are kept is the kernel's to say (`kernel/src/agent.rs`).
//!
//! `routes.rs` is the table. `runs.rs`, `pull.rs`, `plans.rs`, `status.rs` and `files.rs` have the
//! handlers; `find.rs` leads from names to jobs and lists them; `wire.rs` has the shapes,
//! `translate.rs` reads wishes and `view.rs` shows jobs, both purely; `errors.rs` says no.

mod errors;
mod files;
mod find;
pub(crate) mod plans;
mod pull;
mod routes;
mod runs;
mod status;
mod translate;
mod triggers;
mod view;
mod wire;

use super::Contract;
use crate::openapi::shape;

/// The agent contract.
pub(super) static CONTRACT: Contract = Contract {
    name: "agent",
    prefix: "/agent",
    routes: routes::table,
    word: errors::word,
    failure: shape::<wire::AgentFailure>,
    codes: errors::CODES,
};

//! The job orchestration contract, under `/jobs`: camelCase, five states, an envelope without
//! `meta`, and 200 for everything that went well. `routes.rs` is the table; `job.rs`, `schedule.rs`
//! and `system.rs` hold the handlers, `wire.rs` what comes in and goes out, `view.rs` writes jobs,
//! `translate.rs` is pure, `errors.rs` has this contract's codes and status.

mod errors;
mod job;
mod routes;
mod schedule;
mod system;
mod translate;
mod view;
mod wire;

use super::Contract;
use crate::openapi::shape;

/// The job orchestration contract.
pub(super) static CONTRACT: Contract = Contract {
    name: "jobs",
    prefix: "/jobs",
    routes: routes::table,
    word: errors::word,
    failure: shape::<wire::OrchestrationFailure>,
    codes: errors::CODES,
};

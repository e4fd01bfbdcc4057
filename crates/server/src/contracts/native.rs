//! The native contract, under `/api/v1`. `routes.rs` is the table: every route with who may use
//! it. One file per noun holds the handlers, which choose the status of what went well; `wire.rs`
//! reads the requests of the hot paths without copying, `filters.rs` those of lists, `view.rs`
//! writes jobs, `translate.rs` is pure. `errors.rs` chooses the status of a request that is
//! refused; an item of a batch that is refused has a code in the answer, and no status.

mod alerts;
mod audit;
pub(crate) mod bulk;
pub(crate) mod dlq;
mod errors;
mod events;
pub(crate) mod filters;
mod internal;
pub(crate) mod jobs;
mod objects;
mod queues;
mod routes;
mod runtime;
mod schedules;
mod subscriptions;
mod tenants;
mod tokens;
mod translate;
mod triggers;
mod types;
mod view;
mod wire;
mod work;
mod workers;

use super::Contract;
use crate::config::Config;
use crate::openapi::shape;
use crate::route::Route;

/// The native contract.
pub(super) static CONTRACT: Contract = Contract {
    name: "native",
    prefix: "/api/v1",
    routes: routes::table,
    word: errors::word,
    failure: shape::<mainspring_api::envelope::Failure>,
    codes: &[],
};

/// Its routes: the dashboard asks by them, too.
pub(crate) fn routes(config: &Config) -> Vec<Route> {
    routes::table(config)
}

//! The native contract, under `/api/v1`. `routes.rs` is the table: every route with who may use
//! it. One file per noun holds the handlers; `wire.rs` reads requests without copying, `view.rs`
//! writes jobs, `translate.rs` is pure, `errors.rs` is the only place with status codes.

pub(crate) mod errors;
pub(crate) mod routes;

mod dlq;
mod events;
mod filters;
mod internal;
mod jobs;
mod outside;
mod queues;
mod runtime;
mod tokens;
mod translate;
mod types;
mod view;
mod wire;
mod work;
mod workers;

//! The HTTP server: one engine, spoken to through contracts.
//!
//! A request goes down once and up once: `serve.rs` accepts the connection, `app.rs` finds the
//! route, checks who asks and reads the body, a handler below `contracts/` translates it into
//! commands and the receipts into an answer. Rules are the kernel's; nothing is decided here.
//! What is refused on the way is a `Refusal`, which the contract of the path puts into its words.
//! There is no framework in between: hyper parses, one table routes.

pub mod config;
pub mod limits;
pub mod serve;
pub mod templates;
pub mod tls;

pub mod app;
pub mod auth;

mod anchor;
mod answer;
mod ask;
mod audit;
mod contracts;
mod cursor;
mod dashboard;
mod docs_page;
mod envelope;
mod follow;
mod governed;
mod instant;
mod json;
mod metrics;
mod openapi;
mod outside;
mod paced;
mod refusal;
mod route;
mod rung;
mod schedules;
mod seal;
mod seats;
mod shares;
mod triggers;
mod write;

pub use answer::Body;
pub use app::App;
pub use auth::bootstrap_admin;
pub use config::{Config, Executing};
pub use contracts::{codes as error_codes, names as contract_names};
pub use dashboard::once::{Once, sign_in_once};
pub use openapi::document as openapi_document;
pub use serve::serve;
pub use shares::Bounds;
pub use tls::Tls;

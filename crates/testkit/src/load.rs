//! The load of a black-box run: clients, workers and operators of several tenants that talk to a
//! real server over HTTP, go on through its crashes, and write down every call with what became of
//! it, so that the checker can judge the run.
//!
//! Read `load/fleet.rs` first; `load/api.rs` is what everybody says, `load/dump.rs` the final look.

pub mod api;
pub mod client;
pub mod dump;
pub mod fleet;
mod follower;
mod intruder;
pub mod operator;
pub mod record;
pub mod shim;
pub mod wire;
pub mod wish;
pub mod worker;

pub use api::Api;
pub use fleet::{Fleet, Temper, config};
pub use record::{Recorder, Stopwatch};
pub use shim::Shim;

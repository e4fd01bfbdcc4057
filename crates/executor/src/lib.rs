//! The server as a worker of its own: jobs whose type says so are executed by a handler in the same
//! process, by a command, or by whoever listens at a URL.
//!
//! All three are handlers of the one worker loop (`mainspring-worker`), employed by the engine in
//! the same process. So submission, dispatch and report take the way they take for every worker;
//! nothing here moves a job by itself, and no contract knows of it.
//!
//! Read `executors.rs` first: which loop takes which types, and how they start and drain. Then one
//! file per mode: `inprocess.rs`, `process.rs` with `supervise.rs`, `webhook.rs`. What the server
//! tells others by itself is `bus.rs`.

pub mod bus;
pub mod executors;
pub mod inprocess;
pub mod limits;
pub mod process;
pub mod supervise;
pub mod webhook;

mod failing;
mod plan;

pub use bus::{Bus, BusConfig, NatsServer, Otlp};
pub use executors::{Config, Executors};
pub use inprocess::Handlers;
pub use mainspring_worker as worker;

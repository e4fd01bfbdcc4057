//! The engine acts: it gathers requests into batches, lets the kernel decide, has the store
//! remember, hands work to workers, and enforces time. Everything that changes state goes through
//! `commit.rs`. Read `engine.rs` first, then `commit.rs`.

pub mod clock;
pub mod config;
pub mod engine;
pub mod entropy;
pub mod explain;
pub mod limits;
pub mod pull;
pub mod workers;

mod alarms;
mod aside;
mod batch;
mod colleagues;
mod commit;
mod dispatcher;
mod leaving;
mod request;
pub mod schedules;
mod timers;
mod waiters;

pub use clock::{Clock, Course, SharedClock, Sources, SystemClock};
pub use config::Config;
pub use engine::{Engine, Reply, RuntimeStatus, Submitted};
pub use entropy::{Entropy, SystemEntropy};
pub use explain::{Explanation, WhyWaiting};
pub use mainspring_store as store;
pub use mainspring_store::Error;
pub use pull::{Grant, Pull};
pub use schedules::{Backfilled, Ensured};
pub use workers::WorkerSeen;

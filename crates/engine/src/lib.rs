//! The engine acts: it gathers requests into batches, lets the kernel decide, has the store
//! remember, hands work to workers, and enforces time. Everything that changes state goes through
//! `commit.rs`. Read `engine.rs` first, then `commit.rs`.

pub mod clock;
pub mod config;
pub mod employer;
pub mod engine;
pub mod entropy;
pub mod execution;
pub mod explain;
pub mod limits;
pub mod pickup;
pub mod pull;
pub mod workers;

mod alarms;
pub mod alerts;
mod aside;
mod batch;
mod bulk;
mod census;
mod checkpoints;
mod colleagues;
mod commit;
mod deliveries;
mod dependents;
mod dispatcher;
mod elsewhere;
mod governed;
mod groups;
mod leaving;
mod listening;
mod meters;
mod oldest;
mod registers;
mod request;
pub mod schedules;
mod timers;
pub mod triggers;
mod waiters;

pub use alerts::AlertConfig;
pub use bulk::Admitted;
pub use clock::{Clock, Course, SharedClock, Sources, SystemClock};
pub use config::Config;
pub use deliveries::Reserve;
pub use employer::Inside;
pub use engine::{Engine, Reply, Restored, RuntimeStatus, Submitted};
pub use entropy::{Entropy, SystemEntropy};
pub use execution::Execution;
pub use explain::{Explanation, WhyWaiting};
pub use groups::Grouped;
pub use listening::Listening;
pub use mainspring_store as store;
pub use mainspring_store::Error;
pub use meters::{Happening, JobKind, Metered, Meterings};
pub use oldest::Most;
pub use pickup::Pickup;
pub use pull::{GovernedPull, Grant, Pull};
pub use schedules::{Backfilled, Ensured};
pub use triggers::{TriggerConfig, Unseeable};
pub use workers::WorkerSeen;

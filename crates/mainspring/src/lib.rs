//! Durable jobs inside your own process: kept in a directory, in PostgreSQL or, for tests, nowhere.
//!
//! This is the engine of the Mainspring server without the server: the same rules, the same stores,
//! the same worker loop, no HTTP. Jobs that were accepted survive `kill -9`; a job that fails is
//! tried again; one that cannot succeed ends in the dead letter queue. A directory belongs to one
//! process at a time. A database may be shared by any number of processes and servers.
//!
//! ```
//! use mainspring::{Mainspring, Task};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Greet {
//!     name: String,
//! }
//!
//! impl Task for Greet {
//!     const TYPE: &'static str = "greet";
//!     type Output = String;
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mainspring::Error> {
//! let spring = Mainspring::in_memory().await?; // or open("./data"), or connect("postgres://...")
//! let worker = spring
//!     .worker()
//!     .on(|greet: Greet, _| async move { Ok(format!("hello {}", greet.name)) })
//!     .start();
//! let job = spring.submit(&Greet { name: "Ada".into() }).key("greet-ada").await?;
//! assert_eq!(job.wait().await?, "hello Ada");
//! worker.stop().await?;
//! spring.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Read `spring.rs` first: opening, submitting, closing. `worker.rs` runs handlers, `job.rs`
//! follows one job, `schedule.rs` has jobs made again and again, `testing.rs` moves the clock.

pub mod error;
pub mod job;
pub mod options;
pub mod schedule;
pub mod spring;
pub mod submit;
pub mod task;
pub mod testing;
pub mod worker;

pub use error::Error;
pub use job::Job;
pub use mainspring_engine::{Engine, Explanation};
pub use mainspring_kernel::{JobId, StateName, TypeSpec};
pub use mainspring_worker::{Context, Failure, StopReason, Summary};
pub use options::Options;
pub use schedule::Schedule;
pub use spring::Mainspring;
pub use submit::Submission;
pub use task::Task;
pub use worker::{Running, WorkerBuilder};

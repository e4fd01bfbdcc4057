//! The Rust client and worker of Mainspring, over plain HTTP.
//!
//! A [`Client`] submits and reads jobs; a [`Worker`] runs them. Both say what the wire says: the
//! request and answer types are those of the `mainspring-api` crate, re-exported as [`api`]. The
//! worker is the loop of the `mainspring-worker` crate, employed over HTTP.
//!
//! ```no_run
//! use mainspring_sdk::{Client, Submit, Worker};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::from_env()?;
//! let job = client.submit(&Submit::job("greet", &json!({"name": "Ada"}))?).await?;
//! println!("{} is {:?}", job.job_id(), job.status());
//!
//! Worker::builder(client)
//!     .on("greet", |ctx| async move {
//!         let payload: serde_json::Value = ctx.payload()?;
//!         Ok(json!({"said": format!("hello {}", payload["name"])}))
//!     })
//!     .run_until(async { tokio::signal::ctrl_c().await.unwrap_or(()) })
//!     .await?;
//! # Ok(())
//! # }
//! ```

pub mod client;
pub mod employer;
pub mod error;
pub mod handler;
pub mod submit;
pub mod worker;

pub use client::{Client, Submitted};
pub use employer::OverHttp;
pub use error::{Error, Refusal};
pub use handler::{Context, Failure, Job, StopReason};
pub use mainspring_api as api;
pub use submit::Submit;
pub use worker::{Summary, Worker, WorkerBuilder};

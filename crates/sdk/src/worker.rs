//! The worker: the loop of `mainspring-worker`, employed by a server over HTTP (`employer.rs`).
//! Here are only the words in which it is described.

#[cfg(test)]
mod tests;

pub use mainspring_worker::Summary;

use crate::client::Client;
use crate::employer::OverHttp;
use crate::error::Error;
use crate::handler::{Context, Failure};
use serde::Serialize;
use std::future::Future;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A worker, ready to run.
pub struct Worker {
    worker: mainspring_worker::Worker,
}

/// Builds a [`Worker`].
///
/// ```no_run
/// use mainspring_sdk::{Client, Failure, Worker};
/// use std::time::Duration;
///
/// # async fn example() -> Result<(), mainspring_sdk::Error> {
/// let worker = Worker::builder(Client::from_env()?)
///     .id("mailer-1")
///     .concurrency(8)
///     .lease(Duration::from_secs(30))
///     .on("send_mail", |ctx| async move {
///         let to: String = ctx.payload()?;
///         if to.is_empty() {
///             return Err(Failure::permanent("NO_ADDRESS", "nobody to write to"));
///         }
///         Ok(format!("sent to {to}"))
///     });
/// let summary = worker.run_until(std::future::pending()).await?;
/// println!("{} done", summary.completed);
/// # Ok(())
/// # }
/// ```
pub struct WorkerBuilder {
    client: Client,
    builder: mainspring_worker::WorkerBuilder,
}

impl Worker {
    /// A worker that uses `client` for everything.
    pub fn builder(client: Client) -> WorkerBuilder {
        let builder = mainspring_worker::Worker::builder(OverHttp::new(client.clone()));
        WorkerBuilder { client, builder }
    }

    /// Runs until `stop` is cancelled and everything is reported or given back.
    ///
    /// # Errors
    /// If the server refuses to hand out jobs to this worker for good: a bad token, a bad name.
    pub async fn run(self, stop: CancellationToken) -> Result<Summary, Error> {
        Ok(self.worker.run(stop).await?)
    }
}

impl WorkerBuilder {
    fn map(
        mut self,
        change: impl FnOnce(mainspring_worker::WorkerBuilder) -> mainspring_worker::WorkerBuilder,
    ) -> Self {
        self.builder = change(self.builder);
        self
    }

    /// How the worker calls itself; host and process by default.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        self.map(|builder| builder.id(id))
    }

    /// Runs `handler` for jobs of `job_type`. What it answers becomes the job's result.
    ///
    /// A handler that blocks its thread keeps its place among those that run side by side until it
    /// returns, even if its job has long been given up.
    #[must_use]
    pub fn on<F, Fut, T>(self, job_type: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Serialize,
    {
        let client = self.client.clone();
        self.map(|builder| {
            builder
                .on(job_type, move |attempt| handler(Context { attempt, client: client.clone() }))
        })
    }

    /// Only jobs of these queues.
    #[must_use]
    pub fn queues(self, queues: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.map(|builder| builder.queues(queues))
    }

    /// How many jobs run side by side; at least one.
    #[must_use]
    pub fn concurrency(self, jobs: usize) -> Self {
        self.map(|builder| builder.concurrency(jobs))
    }

    /// How long a job stays ours without a heartbeat. Heartbeats go out three times as often. The
    /// first lease of a job is at most five seconds long: the first heartbeat makes it whole. So a
    /// job whose grant got lost on the way is back in seconds.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        self.map(|builder| builder.lease(lease))
    }

    /// How long one long poll waits for work.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        self.map(|builder| builder.wait(wait))
    }

    /// How long running jobs may go on after the worker was told to stop.
    #[must_use]
    pub fn drain_grace(self, grace: Duration) -> Self {
        self.map(|builder| builder.drain_grace(grace))
    }

    /// How long a handler that was told to stop has before it is dropped.
    #[must_use]
    pub fn stop_grace(self, grace: Duration) -> Self {
        self.map(|builder| builder.stop_grace(grace))
    }

    /// The worker as described.
    pub fn build(self) -> Worker {
        Worker { worker: self.builder.build() }
    }

    /// Runs the worker until `stop` is ready and everything is reported or given back.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<Summary, Error> {
        Ok(self.builder.run_until(stop).await?)
    }
}

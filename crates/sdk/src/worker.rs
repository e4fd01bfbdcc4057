//! The worker: pulls jobs, runs handlers side by side, reports, renews leases, and goes quietly.
//!
//! `worker/run.rs` is the loop that owns all state, `worker/report.rs` what is said to the server,
//! `worker/attend.rs` one attempt from start to end.

mod attend;
mod report;
mod run;
#[cfg(test)]
mod tests;

use crate::client::Client;
use crate::error::Error;
use crate::handler::{BoxHandler, Context, Failure};
use mainspring_api::work::Pull;
use serde::Serialize;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A worker, ready to run.
pub struct Worker {
    pub(crate) setup: Arc<Setup>,
}

/// What a worker is told once.
pub(crate) struct Setup {
    pub(crate) client: Client,
    pub(crate) worker_id: String,
    pub(crate) handlers: BTreeMap<String, BoxHandler>,
    pub(crate) queues: Option<Vec<String>>,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) wait: Duration,
    pub(crate) drain_grace: Duration,
    pub(crate) stop_grace: Duration,
}

/// Longest lease of a job that its worker has not shown to have.
pub(crate) const FIRST_LEASE: Duration = Duration::from_secs(5);

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
    setup: Setup,
}

/// What a worker did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Attempts reported as successes.
    pub completed: u64,
    /// Attempts reported as failures.
    pub failed: u64,
    /// Attempts given back unused.
    pub released: u64,
    /// Attempts whose lease was lost or whose job was cancelled.
    pub lost: u64,
    /// Reports the server did not take.
    pub refused: u64,
}

impl Worker {
    /// A worker that uses `client` for everything.
    pub fn builder(client: Client) -> WorkerBuilder {
        let setup = Setup {
            client,
            worker_id: worker_id(),
            handlers: BTreeMap::new(),
            queues: None,
            concurrency: 4,
            lease: Duration::from_secs(15),
            wait: Duration::from_secs(20),
            drain_grace: Duration::from_secs(25),
            stop_grace: Duration::from_secs(5),
        };
        WorkerBuilder { setup }
    }

    /// Runs until `stop` is cancelled and everything is reported or given back.
    ///
    /// # Errors
    /// If the server refuses to hand out jobs to this worker for good: a bad token, a bad name.
    pub async fn run(self, stop: CancellationToken) -> Result<Summary, Error> {
        run::Run::new(self.setup).until(stop).await
    }
}

impl WorkerBuilder {
    /// How the worker calls itself; host and process by default.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.setup.worker_id = id.into();
        self
    }

    /// Runs `handler` for jobs of `job_type`. What it answers becomes the job's result.
    #[must_use]
    pub fn on<F, Fut, T>(mut self, job_type: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Serialize,
    {
        let handler = Arc::new(handler);
        let boxed: BoxHandler = Arc::new(move |ctx| {
            let handler = handler.clone();
            Box::pin(async move {
                let value = handler(ctx).await?;
                report::result_of(&value)
            })
        });
        self.setup.handlers.insert(job_type.into(), boxed);
        self
    }

    /// Only jobs of these queues.
    #[must_use]
    pub fn queues(mut self, queues: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let queues: Vec<String> = queues.into_iter().map(Into::into).collect();
        self.setup.queues = (!queues.is_empty()).then_some(queues);
        self
    }

    /// How many jobs run side by side; at least one.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.setup.concurrency = jobs.clamp(1, 10_000);
        self
    }

    /// How long a job stays ours without a heartbeat. Heartbeats go out three times as often. The
    /// first lease of a job is at most five seconds long: the first heartbeat makes it whole. So a
    /// job whose grant got lost on the way is back in seconds.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.setup.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// How long one long poll waits for work.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.setup.wait = wait.min(Duration::from_secs(60));
        self
    }

    /// How long running jobs may go on after the worker was told to stop.
    #[must_use]
    pub fn drain_grace(mut self, grace: Duration) -> Self {
        self.setup.drain_grace = grace;
        self
    }

    /// How long a handler that was told to stop has before it is dropped.
    #[must_use]
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.setup.stop_grace = grace;
        self
    }

    /// The worker as described.
    pub fn build(self) -> Worker {
        Worker { setup: Arc::new(self.setup) }
    }

    /// Runs the worker until `stop` is ready and everything is reported or given back.
    ///
    /// # Errors
    /// As [`Worker::run`].
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<Summary, Error> {
        let token = CancellationToken::new();
        let mut running = Box::pin(self.build().run(token.clone()));
        tokio::select! {
            ended = &mut running => return ended,
            () = stop => token.cancel(),
        }
        running.await
    }
}

impl Setup {
    pub(crate) fn lease_ms(&self) -> u32 {
        u32::try_from(self.lease.as_millis()).unwrap_or(u32::MAX)
    }

    pub(crate) fn pull(&self, limit: usize, wait: Duration) -> Pull {
        Pull {
            worker_id: self.worker_id.clone(),
            types: Some(self.handlers.keys().cloned().collect()),
            queues: self.queues.clone(),
            limit: Some(u32::try_from(limit).unwrap_or(u32::MAX)),
            wait_ms: Some(u64::try_from(wait.as_millis()).unwrap_or(0)),
            lease_ms: Some(u32::try_from(self.first_lease().as_millis()).unwrap_or(u32::MAX)),
        }
    }

    /// The lease a pull asks for: short, until the worker has shown that it got the job.
    pub(crate) fn first_lease(&self) -> Duration {
        self.lease.min(FIRST_LEASE)
    }
}

fn worker_id() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "worker" } else { host };
    format!("{host}-{}", std::process::id())
}

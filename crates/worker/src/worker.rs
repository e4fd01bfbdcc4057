//! A worker as it is described: for whom, which handlers, within which bounds. The loop that runs
//! it is in `run.rs`.

use crate::context::{BoxHandler, Context};
use crate::employer::{Employer, Wish};
use crate::error::Error;
use crate::failure::Failure;
use crate::limits::{CONCURRENCY_MAX, FIRST_LEASE_MAX, GRACE_MAX, LEASE_MAX, LEASE_MIN, WAIT_MAX};
use crate::roster::{self, Fixed, Roster};
use crate::run;
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
    pub(crate) employer: Arc<dyn Employer>,
    pub(crate) worker_id: Arc<str>,
    pub(crate) roster: Arc<dyn Roster>,
    queues: Option<Arc<[String]>>,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) wait: Duration,
    pub(crate) drain_grace: Duration,
    pub(crate) stop_grace: Duration,
}

/// Builds a [`Worker`].
///
/// ```no_run
/// use mainspring_worker::{Employer, Failure, Worker};
/// use std::time::Duration;
///
/// # async fn example(employer: impl Employer) -> Result<(), mainspring_worker::Error> {
/// let worker = Worker::builder(employer)
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
    handlers: BTreeMap<String, BoxHandler>,
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
    /// Attempts that somebody else goes on with.
    pub handed_over: u64,
    /// Attempts whose lease was lost or whose job was cancelled.
    pub lost: u64,
    /// Reports the employer did not take, or was not heard to take.
    pub refused: u64,
}

impl Worker {
    /// A worker of `employer`.
    pub fn builder(employer: impl Employer) -> WorkerBuilder {
        let setup = Setup {
            employer: Arc::new(employer),
            worker_id: worker_id().into(),
            roster: Arc::new(Fixed::default()),
            queues: None,
            concurrency: 4,
            lease: Duration::from_secs(15),
            wait: Duration::from_secs(20),
            drain_grace: Duration::from_secs(25),
            stop_grace: Duration::from_secs(5),
        };
        WorkerBuilder { setup, handlers: BTreeMap::new() }
    }

    /// Runs until `stop` is cancelled and everything is reported, given back or given up: what the
    /// employer does not take within the graces and one lease is left to its lease.
    ///
    /// # Errors
    /// If the employer refuses to hand out jobs to this worker for good: a bad token, a bad name.
    pub async fn run(self, stop: CancellationToken) -> Result<Summary, Error> {
        run::Run::new(self.setup).until(stop).await
    }
}

impl WorkerBuilder {
    /// How the worker calls itself; host and process by default.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        let id: String = id.into();
        self.setup.worker_id = id.into();
        self
    }

    /// Runs `handler` for jobs of `job_type`. What it answers becomes the job's result.
    ///
    /// A handler that blocks its thread keeps its place among those that run side by side until it
    /// returns, even if its job has long been given up.
    #[must_use]
    pub fn on<F, Fut, T>(mut self, job_type: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Serialize,
    {
        self.handlers.insert(job_type.into(), roster::handler(handler));
        self
    }

    /// Takes the types and handlers of a roster, which may change, instead of those named so far.
    #[must_use]
    pub fn roster(mut self, roster: Arc<dyn Roster>) -> Self {
        self.handlers.clear();
        self.setup.roster = roster;
        self
    }

    /// Only jobs of these queues.
    #[must_use]
    pub fn queues(mut self, queues: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let queues: Arc<[String]> = queues.into_iter().map(Into::into).collect();
        self.setup.queues = (!queues.is_empty()).then_some(queues);
        self
    }

    /// How many jobs run side by side; at least one.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.setup.concurrency = jobs.clamp(1, CONCURRENCY_MAX);
        self
    }

    /// How long a job stays ours without a heartbeat. Heartbeats go out three times as often. The
    /// first lease of a job is at most five seconds long: the first heartbeat makes it whole. So a
    /// job whose grant got lost on the way is back in seconds.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.setup.lease = lease.clamp(LEASE_MIN, LEASE_MAX);
        self
    }

    /// How long one long poll waits for work.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.setup.wait = wait.min(WAIT_MAX);
        self
    }

    /// How long running jobs may go on after the worker was told to stop.
    #[must_use]
    pub fn drain_grace(mut self, grace: Duration) -> Self {
        self.setup.drain_grace = grace.min(GRACE_MAX);
        self
    }

    /// How long a handler that was told to stop has before it is dropped.
    #[must_use]
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.setup.stop_grace = grace.min(GRACE_MAX);
        self
    }

    /// The worker as described.
    pub fn build(mut self) -> Worker {
        if !self.handlers.is_empty() {
            self.setup.roster = Arc::new(Fixed::of(self.handlers));
        }
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
    pub(crate) fn wish(&self, limit: usize, wait: Duration) -> Wish {
        Wish {
            worker_id: self.worker_id.clone(),
            types: self.roster.types(),
            queues: self.queues.clone(),
            limit,
            wait,
            lease: self.first_lease(),
        }
    }

    /// The lease a pull asks for: short, until the worker has shown that it got the job.
    pub(crate) fn first_lease(&self) -> Duration {
        self.lease.min(FIRST_LEASE_MAX)
    }
}

fn worker_id() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "worker" } else { host };
    format!("{host}-{}", std::process::id())
}

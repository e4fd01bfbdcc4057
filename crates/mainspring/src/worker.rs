//! Handlers that run in this process.

use crate::error::Error;
use crate::spring::Mainspring;
use crate::task::Task;
use mainspring_engine::Inside;
use mainspring_worker::{Context, Failure, Summary, Worker};
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A worker that is being told what it can do.
#[must_use = "nothing runs until it is started"]
pub struct WorkerBuilder {
    builder: mainspring_worker::WorkerBuilder,
}

impl WorkerBuilder {
    pub(crate) fn new(spring: &Mainspring) -> Self {
        let employer = Inside::new(spring.engine().clone()).of_tenant(spring.tenant().clone());
        WorkerBuilder { builder: Worker::builder(employer) }
    }

    /// Runs `handler` for jobs of one type. What it answers becomes the job's result; an error
    /// becomes a failure that is tried again, unless it is [`Failure::permanent`].
    ///
    /// The [`Context`] beside the task knows the job, takes progress, says when to stop, and has
    /// [`Context::step`] for what must not happen twice.
    ///
    /// ```
    /// # use mainspring::{Context, Failure, Mainspring, Task};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Charge { cents: u32 }
    /// # impl Task for Charge { const TYPE: &'static str = "charge"; type Output = String; }
    /// # async fn bank(key: &str, cents: u32) -> Result<String, std::io::Error> { Ok(key.into()) }
    /// async fn charge(task: Charge, ctx: Context) -> Result<String, Failure> {
    ///     if task.cents == 0 {
    ///         return Err(Failure::permanent("NOTHING_TO_CHARGE", "zero cents"));
    ///     }
    ///     let key = ctx.job().job_id.clone();
    ///     ctx.step("charge", || async { Ok(bank(&key, task.cents).await?) }).await
    /// }
    ///
    /// # fn example(spring: &Mainspring) {
    /// let worker = spring.worker().concurrency(8).on(charge).start();
    /// # }
    /// ```
    pub fn on<T, F, Fut>(self, handler: F) -> Self
    where
        T: Task,
        F: Fn(T, Context) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        let typed = move |context: Context| {
            let handler = handler.clone();
            async move {
                let task = context.payload::<T>()?;
                handler(task, context).await
            }
        };
        WorkerBuilder { builder: self.builder.on(T::TYPE, typed) }
    }

    /// How the worker calls itself; host and process where nobody says otherwise.
    pub fn id(self, id: impl Into<String>) -> Self {
        WorkerBuilder { builder: self.builder.id(id) }
    }

    /// How many jobs run side by side; four where nobody says otherwise.
    pub fn concurrency(self, jobs: usize) -> Self {
        WorkerBuilder { builder: self.builder.concurrency(jobs) }
    }

    /// Only jobs of these queues.
    pub fn queues(self, queues: impl IntoIterator<Item = impl Into<String>>) -> Self {
        WorkerBuilder { builder: self.builder.queues(queues) }
    }

    /// How long a job stays with this worker should its process die; others have it after that.
    pub fn lease(self, lease: Duration) -> Self {
        WorkerBuilder { builder: self.builder.lease(lease) }
    }

    /// How long running jobs may go on after [`Running::stop`].
    pub fn drain_grace(self, grace: Duration) -> Self {
        WorkerBuilder { builder: self.builder.drain_grace(grace) }
    }

    /// How long a handler that was told to stop has before it is dropped.
    pub fn stop_grace(self, grace: Duration) -> Self {
        WorkerBuilder { builder: self.builder.stop_grace(grace) }
    }

    /// Starts it on the present tokio runtime.
    pub fn start(self) -> Running {
        let stop = CancellationToken::new();
        let task = tokio::spawn(self.builder.build().run(stop.clone()));
        Running { task, stop: stop.drop_guard() }
    }
}

/// A worker that runs. It is told to stop when this is dropped; [`Running::stop`] waits for it.
pub struct Running {
    task: JoinHandle<Result<Summary, mainspring_worker::Error>>,
    stop: DropGuard,
}

impl Running {
    /// Takes no more jobs, lets those that run come to their end within the grace, gives back the
    /// rest without using up a try, and says what was done.
    ///
    /// # Errors
    /// If the worker had ended by itself.
    pub async fn stop(self) -> Result<Summary, Error> {
        self.stop.disarm().cancel();
        ended(self.task).await
    }

    /// Its end without being told to, which comes only with an error or a closed engine.
    ///
    /// # Errors
    /// Why it ended.
    pub async fn ended(self) -> Result<Summary, Error> {
        let Running { task, stop } = self;
        let ended = ended(task).await;
        drop(stop);
        ended
    }
}

async fn ended(
    task: JoinHandle<Result<Summary, mainspring_worker::Error>>,
) -> Result<Summary, Error> {
    match task.await {
        Ok(summary) => Ok(summary?),
        // The loop catches the panics of handlers; one of its own goes on where it is waited for.
        Err(died) if died.is_panic() => std::panic::resume_unwind(died.into_panic()),
        Err(_) => Err(Error::Closed),
    }
}

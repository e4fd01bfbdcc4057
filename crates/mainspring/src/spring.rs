//! The handle: opened once, cloned freely, closed at the end.

use crate::error::Error;
use crate::job::Job;
use crate::options::Options;
use crate::submit::Submission;
use crate::task::Task;
use crate::worker::WorkerBuilder;
use mainspring_engine::Engine;
use mainspring_kernel::{Command, JobId, JobType, TenantId, TypeSpec, UserId};
use std::path::Path;

/// Jobs, kept and worked on. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Mainspring {
    engine: Engine,
    tenant: TenantId,
    user: UserId,
}

impl Mainspring {
    pub(crate) fn new(engine: Engine, tenant: TenantId, user: UserId) -> Self {
        Mainspring { engine, tenant, user }
    }

    /// Opens or makes a store in a directory, with the usual settings.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub async fn open(directory: impl AsRef<Path>) -> Result<Self, Error> {
        Options::default().open(directory).await
    }

    /// Connects to a database, with the usual settings.
    ///
    /// # Errors
    /// As [`Options::connect`].
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Options::default().connect(url).await
    }

    /// Keeps everything in memory, with the usual settings.
    ///
    /// # Errors
    /// As [`Options::in_memory`].
    pub async fn in_memory() -> Result<Self, Error> {
        Options::default().in_memory().await
    }

    /// Settings to be changed before opening.
    pub fn options() -> Options {
        Options::default()
    }

    /// A job to be submitted: add what there is to say, then await it. What is awaited has
    /// happened: the job is on disk.
    ///
    /// ```
    /// # use mainspring::{Mainspring, Task};
    /// # use std::time::Duration;
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Remind(u32);
    /// # impl Task for Remind { const TYPE: &'static str = "remind"; type Output = (); }
    /// # async fn example(spring: Mainspring) -> Result<(), mainspring::Error> {
    /// let job = spring
    ///     .submit(&Remind(42))
    ///     .key("remind-42")
    ///     .delay(Duration::from_secs(3600))
    ///     .max_retries(5)
    ///     .await?;
    /// println!("{} is {}", job.id(), job.state().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit<'a, T: Task>(&'a self, task: &'a T) -> Submission<'a, T> {
        Submission::new(self, task)
    }

    /// Submits many jobs at once, in order, with the defaults of their type.
    ///
    /// # Errors
    /// If one of them is refused: those before it were taken. If the store failed.
    pub async fn submit_all<T: Task>(&self, tasks: &[T]) -> Result<Vec<Job<T>>, Error> {
        let wishes = tasks.iter().map(|task| self.submit(task).wish());
        let (outcomes, failed) = self.engine.submit_many(wishes.collect::<Result<_, _>>()?).await?;
        let mut jobs = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            jobs.push(Job::new(self.clone(), crate::submit::job_of(&outcome?)?, false));
        }
        failed.map_or(Ok(jobs), |error| Err(error.into()))
    }

    /// A job that was submitted before, by its id.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it is no job of this tenant, or of another type.
    pub async fn job<T: Task>(&self, id: JobId) -> Result<Job<T>, Error> {
        let found = self.engine.job(id).await?.ok_or(Error::Unknown)?.job;
        if found.tenant != self.tenant || found.job_type.as_str() != T::TYPE {
            return Err(Error::Unknown);
        }
        Ok(Job::new(self.clone(), id, false))
    }

    /// Says how jobs of a type are treated: tries, timeouts, limits. It holds for jobs submitted
    /// from now on, and is kept.
    ///
    /// ```
    /// # use mainspring::{Mainspring, Task, TypeSpec};
    /// # async fn example<T: Task>(spring: Mainspring) -> Result<(), mainspring::Error> {
    /// spring.define::<T>(|spec| TypeSpec { max_retries: 8, timeout_ms: 60_000, ..spec }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the rules say no, or the store failed.
    pub async fn define<T: Task>(
        &self,
        change: impl FnOnce(TypeSpec) -> TypeSpec,
    ) -> Result<(), Error> {
        let spec = change(TypeSpec::plain(JobType::new(T::TYPE)?));
        self.engine.execute_one(Command::SetType(Box::new(spec))).await??;
        Ok(())
    }

    /// A worker in this process, to be told what it can do.
    pub fn worker(&self) -> WorkerBuilder {
        WorkerBuilder::new(self)
    }

    /// Everything else the engine can do.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    pub(crate) fn user(&self) -> &UserId {
        &self.user
    }

    /// Closes the store, for all clones. Stop workers first: what they hold would otherwise be
    /// taken up by the next start.
    ///
    /// # Errors
    /// If the last of it cannot be written.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.engine.shutdown().await?)
    }
}

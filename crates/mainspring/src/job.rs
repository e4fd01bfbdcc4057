//! One job, followed by whoever submitted it.

use crate::error::Error;
use crate::spring::Mainspring;
use crate::task::Task;
use mainspring_engine::Explanation;
use mainspring_kernel::{Command, JobId, State, StateName};
use std::marker::PhantomData;
use std::time::Duration;

/// How long one look waits for a job's end before the next: nothing is polled meanwhile.
const LOOK: Duration = Duration::from_secs(3600);

/// A job that was accepted.
pub struct Job<T> {
    spring: Mainspring,
    id: JobId,
    is_hit: bool,
    task: PhantomData<fn() -> T>,
}

impl<T: Task> Job<T> {
    pub(crate) fn new(spring: Mainspring, id: JobId, is_hit: bool) -> Self {
        Job { spring, id, is_hit, task: PhantomData }
    }

    /// Its id, the same everywhere.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Whether it was there already, under the same key.
    pub fn was_there(&self) -> bool {
        self.is_hit
    }

    /// Waits until it has ended, however long that takes, and gives back what its handler answered.
    /// Put a timeout around it if you cannot wait; the job does not mind.
    ///
    /// # Errors
    /// [`Error::Failed`] if it is in the dead letter queue, [`Error::Cancelled`] if it was
    /// cancelled, [`Error::Closed`] if the engine was closed first.
    pub async fn wait(&self) -> Result<T::Output, Error> {
        let engine = self.spring.engine();
        loop {
            let found = engine.job_ended(self.id, LOOK).await?.ok_or(Error::Unknown)?.job;
            match &found.state {
                State::Succeeded { result, .. } => {
                    // A handler that answers nothing leaves no result, which reads as null.
                    return serde_json::from_str(result.as_deref().unwrap_or("null"))
                        .map_err(|cause| Error::Json { what: "the result", cause });
                }
                State::Failed { .. } => {
                    let failure = found.last_failure.as_ref().map(|last| &last.failure);
                    return Err(Error::Failed {
                        code: failure.map_or_else(String::new, |it| it.code.to_string()),
                        message: failure.map_or_else(String::new, |it| it.message.to_string()),
                    });
                }
                State::Cancelled { .. } => return Err(Error::Cancelled),
                State::Queued
                | State::Running(_)
                | State::Retrying { .. }
                | State::DlqPending
                | State::DlqRecorded => {}
            }
            if engine.stopping().is_cancelled() {
                return Err(Error::Closed);
            }
        }
    }

    /// Where it stands.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it is no longer kept; if the store failed.
    pub async fn state(&self) -> Result<StateName, Error> {
        let found = self.spring.engine().job(self.id).await?.ok_or(Error::Unknown)?;
        Ok(found.job.state.name())
    }

    /// Ends it. A handler that runs is told so with its next heartbeat.
    ///
    /// # Errors
    /// If it has ended already, or the store failed.
    pub async fn cancel(&self, reason: &str) -> Result<(), Error> {
        let by = self.spring.user().clone();
        let reason = (!reason.is_empty()).then(|| reason.into());
        let cancel = Command::Cancel { job: self.id, by, reason };
        self.spring.engine().execute_one(cancel).await??;
        Ok(())
    }

    /// Why it is not running yet, or what it is doing.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it is no longer kept; if the store failed.
    pub async fn explain(&self) -> Result<Explanation, Error> {
        self.spring.engine().explain(self.id).await?.ok_or(Error::Unknown)
    }
}

impl<T> Clone for Job<T> {
    fn clone(&self) -> Self {
        let (spring, task) = (self.spring.clone(), PhantomData);
        Job { spring, id: self.id, is_hit: self.is_hit, task }
    }
}

impl<T> std::fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("id", &self.id).finish_non_exhaustive()
    }
}

//! What workers leave for the next try.

use crate::engine::Engine;
use crate::pull::Grant;
use crate::request::given_back;
use mainspring_kernel::{Command, JobId, Payload};
use mainspring_store::Error;

impl Engine {
    /// What a worker left for the next try of a job.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn checkpoint(&self, id: JobId) -> Result<Option<Payload>, Error> {
        self.shared.store.checkpoint(id).await
    }

    /// Brings what workers left for these tries along. It cannot have changed since they were
    /// handed out: only who holds the lease could, and has not heard of it yet.
    ///
    /// # Errors
    /// If the store failed: then the jobs are given back.
    pub async fn bring_checkpoints(&self, grants: &mut [Grant]) -> Result<(), Error> {
        let is_elsewhere = |grant: &&mut Grant| {
            grant.job.course().is_some_and(|course| course.is_checkpoint_elsewhere)
        };
        let mut failed = None;
        for grant in grants.iter_mut().filter(is_elsewhere) {
            match self.shared.store.checkpoint(grant.job.id).await {
                Ok(value) => grant.job.course_mut().checkpoint = value,
                Err(error) => failed = Some(error),
            }
        }
        let Some(error) = failed else { return Ok(()) };
        // Without it the next try would start over.
        let back: Vec<Command> = grants.iter().filter_map(given_back).collect();
        let _ = self.execute(back).await;
        Err(error)
    }
}

//! Jobs that have ended and are not in an archive file yet: the newest in one map, and batches that
//! the keeper is writing out. They stay readable here until their file is listed.

use mainspring_kernel::{Job, JobId};
use mainspring_store::JobWithHistory;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A batch on its way to the archive.
pub(crate) type Batch = Arc<BTreeMap<JobId, JobWithHistory>>;

/// Ended jobs in RAM.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    newest: BTreeMap<JobId, JobWithHistory>,
    bytes: usize,
    sealed: Vec<Batch>,
}

/// What a job weighs beyond its payload, roughly.
const JOB_BYTES: usize = 600;

impl Finished {
    pub(crate) fn push(&mut self, ended: JobWithHistory) {
        self.bytes += JOB_BYTES + ended.job.payload.len();
        self.newest.insert(ended.job.id, ended);
    }

    pub(crate) fn get(&self, id: JobId) -> Option<&JobWithHistory> {
        self.newest.get(&id).or_else(|| self.sealed.iter().rev().find_map(|batch| batch.get(&id)))
    }

    /// Roughly how much RAM the unsealed ones take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Closes the newest map as a batch; all batches not archived yet, oldest first.
    pub(crate) fn seal(&mut self) -> Vec<Batch> {
        if !self.newest.is_empty() {
            self.sealed.push(Arc::new(std::mem::take(&mut self.newest)));
            self.bytes = 0;
        }
        self.sealed.clone()
    }

    /// A batch is in the archive now.
    pub(crate) fn archived(&mut self, batch: &Batch) {
        self.sealed.retain(|other| !Arc::ptr_eq(other, batch));
    }

    /// Ended jobs with ids in a range.
    pub(crate) fn between(&self, range: RangeInclusive<JobId>) -> impl Iterator<Item = &Job> {
        let maps = std::iter::once(&self.newest).chain(self.sealed.iter().map(|batch| &**batch));
        maps.flat_map(move |map| map.range(range.clone())).map(|(_, ended)| &ended.job)
    }

    /// Every ended job here.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Job> {
        self.between(JobId(0)..=JobId(u128::MAX))
    }
}

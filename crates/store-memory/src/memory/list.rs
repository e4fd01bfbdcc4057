//! Lists over RAM and the archive as one. A list goes down in rounds: RAM is looked at under its
//! lock for a while, then the archive over the same stretch of ids, until the page is full. RAM
//! comes first in each round: what leaves it meanwhile is in the archive before.

use super::{MemoryStore, failed, thawed};
use crate::archive::{Found, Key, Record, Run, Seek};
use crate::state::Walked;
use mainspring_kernel::{DlqId, DlqItem, Job, JobId};
use mainspring_store::{Error, ItemFilter, JobFilter, Page};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A job that was found: as it is, or where it lies.
enum Place {
    Here(Box<Job>),
    There(Key, Arc<Run>),
}

impl MemoryStore {
    pub(super) async fn job_page(
        &self,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Page<Job>, Error> {
        let mut found: Vec<Job> = Vec::new();
        let mut end = filter.end(before);
        while found.len() <= limit {
            let wanted = limit + 1 - found.len();
            let take = |job: &Job| (job.id, Place::Here(Box::new(job.clone())));
            let (round, stopped_at) = self.round(filter, end, wanted, take).await?;
            // What cannot be read is left out, and the page filled up from below.
            let last = round.last().map(|(id, _)| *id).filter(|_| round.len() >= wanted);
            for (_, place) in round {
                found.push(match place {
                    Place::Here(job) => *job,
                    Place::There(key, run) => match fetched(&key, &run)? {
                        Some(job) if filter.admits(&job) => job,
                        _ => continue,
                    },
                });
            }
            match last.or(stopped_at) {
                Some(at) => end = Some(at),
                None => break,
            }
        }
        Ok(Page::cut(found, limit, |job| job.id))
    }

    pub(super) async fn job_count(&self, filter: &JobFilter, most: usize) -> Result<usize, Error> {
        let mut found: HashSet<JobId> = HashSet::new();
        let mut end = filter.end(None);
        while found.len() < most {
            let take = |job: &Job| (job.id, ());
            let (round, stopped_at) = self.round(filter, end, most - found.len(), take).await?;
            found.extend(round.into_iter().map(|(id, ())| id));
            match stopped_at {
                Some(at) => end = Some(at),
                None => break,
            }
        }
        Ok(found.len().min(most))
    }

    /// Jobs below `end`, newest first, at most `limit`; from where to go on if not all were looked
    /// at and fewer were found.
    async fn round<T: FromArchive>(
        &self,
        filter: &JobFilter,
        end: Option<JobId>,
        limit: usize,
        take: impl Fn(&Job) -> (JobId, T),
    ) -> Result<(Vec<(JobId, T)>, Option<JobId>), Error> {
        let walk = |state: &crate::state::State| state.walk(filter, end, limit, take);
        let Walked { mut found, stopped_at, steps } = self.settled(walk).await?;
        if T::IS_ANY && found.len() >= limit {
            return Ok((found, None));
        }
        let floor = stopped_at.unwrap_or(JobId(0)).max(filter.ids().0);
        let there = self.archived(filter, (end, floor), limit, T::IS_ANY)?;
        self.memory.looked_at.fetch_add((steps + there.reads) as u64, Ordering::Relaxed);
        let there = there
            .keys
            .into_iter()
            .map(|(key, run)| (JobId(u128::from_be_bytes(key)), T::archived(key, run)));
        found.extend(there);
        // Stable: one that is still in RAM counts as it is there.
        found.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        found.dedup_by_key(|(id, _)| *id);
        found.truncate(limit);
        Ok((found, stopped_at))
    }

    /// Archived jobs below `end` and not below `floor`.
    fn archived(
        &self,
        filter: &JobFilter,
        (end, floor): (Option<JobId>, JobId),
        limit: usize,
        is_any: bool,
    ) -> Result<Found, Error> {
        let last = end.map_or(Some(u128::MAX), |end| end.0.checked_sub(1));
        let Some(last) = last.filter(|last| *last >= floor.0) else { return Ok(Found::default()) };
        if filter.state.is_some_and(|state| !state.is_terminal()) {
            return Ok(Found::default());
        }
        let archive = self.memory.archive();
        if archive.runs().is_empty() {
            return Ok(Found::default());
        }
        let terms: Vec<u64> = filter.terms().iter().map(|term| term.number()).collect();
        // Without terms everything between the ids is wanted.
        let admits = |record: &Record| {
            terms.is_empty() || thawed(&record.value).is_ok_and(|it| filter.admits(&it.job))
        };
        let (from, to) = (last.to_be_bytes(), floor.0.to_be_bytes());
        let is_by_new_term = filter.parent.is_some();
        let seek = Seek { terms: &terms, is_by_new_term, from, to, limit, is_any, admits: &admits };
        let mut found = archive.seek(&seek).map_err(|error| failed(&error))?;
        // The one that is in the trace by its id alone.
        if let Some(own) = filter.traced_job().filter(|own| (floor.0..=last).contains(&own.0)) {
            let key = own.0.to_be_bytes();
            let seek = Seek { terms: &[], from: key, to: key, limit: 1, ..seek };
            let alone = archive.seek(&seek).map_err(|error| failed(&error))?;
            found.reads += alone.reads;
            found.keys.extend(alone.keys);
        }
        Ok(found)
    }

    pub(super) async fn item_page(
        &self,
        filter: &ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> Result<Page<DlqItem>, Error> {
        let (found, steps): (Vec<DlqItem>, usize) = self
            .settled(|state| {
                let (found, steps) = state.items.find(filter, before, limit + 1);
                (found.into_iter().cloned().collect(), steps)
            })
            .await?;
        self.memory.looked_at.fetch_add(steps as u64, Ordering::Relaxed);
        Ok(Page::cut(found, limit, |item| item.id.job()))
    }

    pub(super) async fn item_count(
        &self,
        filter: &ItemFilter,
        most: usize,
    ) -> Result<usize, Error> {
        self.settled(|state| state.items.find(filter, None, most).0.len()).await
    }
}

/// What a list wants of a job that is in the archive.
trait FromArchive {
    /// Whether any will do, not the newest alone.
    const IS_ANY: bool;
    fn archived(key: Key, run: Arc<Run>) -> Self;
}

impl FromArchive for Place {
    const IS_ANY: bool = false;
    fn archived(key: Key, run: Arc<Run>) -> Self {
        Place::There(key, run)
    }
}

impl FromArchive for () {
    const IS_ANY: bool = true;
    fn archived(_: Key, _: Arc<Run>) -> Self {}
}

/// The job itself; none if it lies in a damaged block, which is counted and told.
fn fetched(key: &Key, run: &Run) -> Result<Option<Job>, Error> {
    let record = match run.get(key) {
        Err(error) if error.is_damage() => return Ok(None),
        read => read.map_err(|error| failed(&error))?,
    };
    record.map(|record| Ok(thawed(&record.value)?.job)).transpose()
}

#[cfg(test)]
mod tests;

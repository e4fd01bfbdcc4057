//! Lists in the other direction. Stores list the newest first, and find where a part of a list ends
//! by counting; so a page from the old end is found by halving the time until few enough lie in it,
//! and read from its new end. What is all there is costs one count; otherwise some forty.

use crate::engine::Engine;
use crate::limits::OLDEST_STEP;
use mainspring_kernel::{Job, JobId, Timestamp};
use mainspring_store::{Error, JobFilter, Page};
use std::collections::VecDeque;

/// Milliseconds that no id reaches.
const END_OF_IDS: i64 = 1 << 47;

/// How much of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Jobs.
    pub jobs: usize,
    /// Bytes of their payloads and results; the first job is shown whatever its size.
    pub bytes: usize,
}

impl Engine {
    /// Jobs that one of `filters` admits, the oldest first, from behind `after` on.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn jobs_oldest_first(
        &self,
        filters: &[JobFilter],
        after: Option<JobId>,
        most: Most,
    ) -> Result<Page<Job>, Error> {
        let mut found: Vec<Job> = Vec::new();
        // Where the first of the parts ends that have more: nobody has looked beyond it in all.
        let mut ends_at: Option<JobId> = None;
        for filter in filters {
            let part = self.part(filter, after, most).await?;
            ends_at = ends_at.into_iter().chain(part.next).min();
            found.extend(part.items);
        }
        found.sort_by_key(|job| job.id);
        // One that moved meanwhile may be in two parts.
        found.dedup_by_key(|job| job.id);
        let whole = found.len();
        let (mut bytes, mut fitting) = (0, 0);
        for job in found.iter().take(most.jobs) {
            bytes += weight(job);
            let is_beyond = ends_at.is_some_and(|end| job.id > end);
            if is_beyond || (bytes > most.bytes && fitting > 0) {
                break;
            }
            fitting += 1;
        }
        found.truncate(fitting);
        let has_more = found.len() < whole || ends_at.is_some();
        let next = found.last().filter(|_| has_more).map(|job| job.id);
        Ok(Page { items: found, next })
    }

    async fn part(
        &self,
        filter: &JobFilter,
        after: Option<JobId>,
        most: Most,
    ) -> Result<Page<Job>, Error> {
        let mut from = after.map_or(0, millis).max(filter.since.map_or(0, Timestamp::as_millis));
        let mut found: Vec<Job> = Vec::new();
        loop {
            let missing = most.jobs + 1 - found.len();
            let to = self.stretch(filter, from, missing).await?;
            let held: usize = found.iter().map(weight).sum();
            let room = Most { jobs: missing, bytes: most.bytes.saturating_sub(held) };
            let within = between(filter, from, to.unwrap_or(END_OF_IDS));
            let (some, is_cut) = self.oldest_of(&within, after, room).await?;
            found.extend(some);
            if is_cut || found.len() > most.jobs || to.is_none() {
                let has_more = is_cut || found.len() > most.jobs;
                found.truncate(most.jobs);
                let next = found.last().filter(|_| has_more).map(|job| job.id);
                return Ok(Page { items: found, next });
            }
            from = to.unwrap_or(END_OF_IDS);
        }
    }

    /// Up to when, from a millisecond on, at most `most` jobs lie, at least one millisecond on;
    /// `None` if there are no more at all.
    async fn stretch(
        &self,
        filter: &JobFilter,
        from: i64,
        most: usize,
    ) -> Result<Option<i64>, Error> {
        let (mut few, mut many) = (from, END_OF_IDS);
        let count = |to: i64| {
            let within = between(filter, from, to);
            async move { self.count_jobs(&within, most + 1).await }
        };
        if count(many).await? <= most {
            return Ok(None);
        }
        let now = self.now().as_millis().saturating_add(1);
        if few < now && now < many {
            match count(now).await? <= most {
                true => few = now,
                false => many = now,
            }
        }
        while few + 1 < many {
            let middle = few + (many - few) / 2;
            match count(middle).await? <= most {
                true => few = middle,
                false => many = middle,
            }
        }
        Ok(Some(few.max(from + 1)))
    }

    /// The oldest of the jobs of `filter` behind `after`, in order, and whether there are more.
    async fn oldest_of(
        &self,
        filter: &JobFilter,
        after: Option<JobId>,
        most: Most,
    ) -> Result<(Vec<Job>, bool), Error> {
        let mut kept: VecDeque<Job> = VecDeque::new();
        let (mut bytes, mut is_cut, mut before) = (0, false, None);
        loop {
            let page = self.jobs(filter, before, OLDEST_STEP).await?;
            let is_new = |job: &Job| after.is_none_or(|after| job.id > after);
            let is_over = page.next.is_none() || !page.items.iter().all(is_new);
            for job in page.items.into_iter().filter(is_new) {
                bytes += weight(&job);
                kept.push_back(job);
                while kept.len() > most.jobs || (bytes > most.bytes && kept.len() > 1) {
                    bytes -= kept.pop_front().as_ref().map_or(0, weight);
                    is_cut = true;
                }
            }
            if is_over {
                return Ok((kept.into_iter().rev().collect(), is_cut));
            }
            before = page.next;
        }
    }
}

/// The jobs of `filter` that were made from one millisecond on, until another.
fn between(filter: &JobFilter, from: i64, to: i64) -> JobFilter {
    let instant = |millis: i64| Some(Timestamp::from_millis(millis));
    JobFilter { since: instant(from), until: instant(to), ..filter.clone() }
}

/// The millisecond in which a job was made, by its id.
fn millis(id: JobId) -> i64 {
    i64::try_from(id.0 >> 80).unwrap_or(END_OF_IDS)
}

/// What a job adds to a list.
fn weight(job: &Job) -> usize {
    job.payload.len() + job.result().map_or(0, |result| result.len())
}

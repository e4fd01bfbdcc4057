//! Answers from RAM about one job or all of them; lists are in `list.rs`.

use super::State;
use super::index::{Depth, Spot};
use mainspring_kernel::dispatch::has_room;
use mainspring_kernel::{Job, JobId, JobType, QueueSpec, StateName, Timestamp, TypeSpec};
use mainspring_store::{Counts, HOLDERS_MAX, QueueCount, Standing, TypeCount, Wake};

/// Jobs counted ahead of one that waits.
const AHEAD_MAX: usize = 1_000;

impl State {
    pub(crate) fn type_list(&self) -> Vec<TypeSpec> {
        let mut types: Vec<TypeSpec> = self.index.types.values().cloned().collect();
        types.sort_by(|a, b| a.name.cmp(&b.name));
        types
    }

    pub(crate) fn queue_list(&self) -> Vec<QueueSpec> {
        let cards = self.index.queues.values().filter(|card| card.is_configured);
        let mut queues: Vec<QueueSpec> = cards.map(|card| card.spec.clone()).collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        queues
    }

    /// Running jobs that count against the limit of `job`, if it is in use up to the last place;
    /// some of them.
    fn holders(&self, job: &Job) -> Vec<JobId> {
        let is_full = self.index.limit(job).is_some_and(|(most, used)| !has_room(used, most));
        let Some(key) = self.index.limit_key(job).filter(|_| is_full) else { return Vec::new() };
        let entries = self.index.with_alarm().filter_map(|slot| self.slab.get(slot));
        let running = entries.map(|entry| &entry.job).filter(|job| job.lease().is_some());
        let counted = running.filter(|job| self.index.limit_key(job).as_ref() == Some(&key));
        counted.take(HOLDERS_MAX).map(|job| job.id).collect()
    }

    pub(crate) fn standing(&self, id: JobId, now: Timestamp) -> Option<Standing> {
        let slot = self.slab.slot_of(id)?;
        let entry = self.slab.get(slot)?;
        let card = self.index.queues.get(&entry.job.queue);
        let spec = self.index.types.get(&entry.job.job_type);
        let ahead = match entry.spot {
            Spot::Ready(place) => self.index.ahead(place, slot, &entry.job, AHEAD_MAX),
            Spot::Waiting | Spot::Nowhere => 0,
        };
        Some(Standing {
            is_queue_paused: card.is_some_and(|card| card.spec.is_paused),
            limit: self.index.limit(&entry.job),
            holders: self.holders(&entry.job),
            type_paused: spec.and_then(|spec| spec.flow.paused.clone()),
            held: self.index.held(&entry.job, now),
            ahead,
            is_fresh_first: self.index.is_fresh_first(&entry.job),
        })
    }

    pub(crate) fn counts(&self) -> Counts {
        let totals = &self.totals;
        let mut by_state = self.index.by_state;
        by_state[StateName::Succeeded as usize] = totals.succeeded;
        by_state[StateName::Failed as usize] = totals.failed;
        by_state[StateName::Cancelled as usize] = totals.cancelled;
        let mut queues: Vec<QueueCount> = self
            .index
            .queues
            .iter()
            .map(|(name, card)| QueueCount {
                name: name.clone(),
                ready: card.ready,
                pending: card.waiting,
                running: card.running,
                oldest_due: card.oldest_due(),
            })
            .collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        let has_jobs = |(_, depth): &(&JobType, &Depth)| **depth != Depth::default();
        let mut types: Vec<TypeCount> = self
            .index
            .by_type
            .iter()
            .filter(has_jobs)
            .map(|(name, Depth { queued, running, retrying })| TypeCount {
                name: name.clone(),
                queued: *queued,
                running: *running,
                retrying: *retrying,
            })
            .collect();
        types.sort_by(|a, b| a.name.cmp(&b.name));
        Counts {
            by_state,
            due: self.index.ready() as u64,
            oldest_due: queues.iter().filter_map(|queue| queue.oldest_due).min(),
            retries: totals.retries,
            submitted: totals.submitted,
            claims: totals.claims,
            jobs_retried: totals.jobs_retried,
            items_open: self.items.open_count() as u64,
            queues,
            types,
        }
    }

    pub(crate) fn overdue(&self, now: Timestamp, limit: usize) -> Vec<JobId> {
        let slots = self.index.rung(now, limit);
        slots.filter_map(|slot| self.slab.get(slot)).map(|entry| entry.job.id).collect()
    }

    pub(crate) fn running(&self) -> Vec<JobId> {
        let entries = self.index.with_alarm().filter_map(|slot| self.slab.get(slot));
        entries.filter(|entry| entry.job.lease().is_some()).map(|entry| entry.job.id).collect()
    }

    /// Notices what has become due and says when to look again.
    pub(crate) fn wake(&mut self, now: Timestamp) -> Wake {
        self.index.begin(&mut self.slab, now);
        self.index.forget_queues(now);
        let has_opened = self.index.has_opened(now);
        Wake {
            is_work_due: std::mem::take(&mut self.index.has_promoted) | has_opened,
            next: self
                .index
                .next_instant(now)
                .into_iter()
                .chain(self.entities.next_alarm(now))
                .min(),
        }
    }
}

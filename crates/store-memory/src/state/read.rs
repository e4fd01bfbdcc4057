//! Answers from RAM. Lists are bounded in work as well as in length, so that no read holds the
//! writer up for long.

use super::State;
use super::index::Spot;
use mainspring_kernel::{DlqId, DlqItem, Job, JobId, QueueSpec, StateName, Timestamp, TypeSpec};
use mainspring_store::{Counts, ItemFilter, JobFilter, Page, QueueCount, Standing, Wake};

/// Jobs one list call may look at.
pub(crate) const LOOKED_AT_MAX: usize = 10_000;
/// Jobs counted ahead of one that waits.
const AHEAD_MAX: usize = 1_000;

impl State {
    /// Matching jobs in RAM older than `before`, newest first, and the last id looked at if the
    /// bound was reached before the list was full.
    pub(crate) fn jobs(
        &self,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> (Vec<Job>, Option<JobId>) {
        let mut found: Vec<Job> = Vec::new();
        let mut stopped_at = None;
        let wants_live = filter.state.is_none_or(|state| !state.is_terminal());
        let wants_ended = filter.state.is_none_or(StateName::is_terminal);
        if wants_live {
            for (looked_at, entry) in self.slab.newest(before).enumerate() {
                if found.len() >= limit {
                    break;
                }
                if looked_at >= LOOKED_AT_MAX {
                    stopped_at = Some(entry.job.id);
                    break;
                }
                if filter.admits(&entry.job) {
                    found.push(entry.job.clone());
                }
            }
        }
        if wants_ended {
            let ended = self.finished.newest_first(before, LOOKED_AT_MAX);
            let ended = ended.into_iter().map(|snapshot| &snapshot.job);
            found.extend(ended.filter(|job| filter.admits(job)).take(limit).cloned());
        }
        (found, stopped_at)
    }

    pub(crate) fn item_page(
        &self,
        filter: &ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> Page<DlqItem> {
        let before = before.unwrap_or(DlqId(u128::MAX));
        let mut page = Page { items: Vec::new(), next: None };
        for (looked_at, (id, item)) in self.items.range(..before).rev().enumerate() {
            if page.items.len() >= limit || looked_at >= LOOKED_AT_MAX {
                // `before` is exclusive: continue above the one that was not looked at.
                page.next = Some(JobId(id.0.saturating_add(1)));
                break;
            }
            let is_wanted = filter.scope.covers(&item.job.tenant, &item.job.user)
                && filter.state.as_deref().is_none_or(|state| item.state.as_str() == state)
                && filter.job_type.as_ref().is_none_or(|wanted| *wanted == item.job.job_type);
            if is_wanted {
                page.items.push(item.clone());
            }
        }
        page
    }

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

    pub(crate) fn standing(&self, id: JobId) -> Option<Standing> {
        let slot = self.slab.slot_of(id)?;
        let entry = self.slab.get(slot)?;
        let card = self.index.queues.get(&entry.job.queue);
        let ahead = match entry.spot {
            Spot::Ready(place) => self.index.ahead(place, slot, &entry.job, AHEAD_MAX),
            Spot::Waiting | Spot::Nowhere => 0,
        };
        Some(Standing {
            is_queue_paused: card.is_some_and(|card| card.spec.is_paused),
            limit: self.index.limit(&entry.job),
            ahead,
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
            })
            .collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        Counts {
            by_state,
            due: self.index.ready() as u64,
            oldest_due: self.index.oldest_due(),
            retries: totals.retries,
            submitted: totals.submitted,
            claims: totals.claims,
            jobs_retried: totals.jobs_retried,
            items_open: self.items_open(),
            queues,
        }
    }

    fn items_open(&self) -> u64 {
        let is_open = |item: &&DlqItem| matches!(item.state.as_str(), "open" | "discard_requested");
        self.items.values().filter(is_open).count() as u64
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
        self.index.promote(&mut self.slab, now);
        self.index.forget_queues(now);
        Wake {
            is_work_due: std::mem::take(&mut self.index.has_promoted),
            next: self.index.next_instant(now),
        }
    }
}

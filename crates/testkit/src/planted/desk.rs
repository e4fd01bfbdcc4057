//! What a batch works on: the real desk, perhaps with a mistake, perhaps only as a trial.

use super::Plant;
use super::spoilt::spoilt;
use super::trial::Trial;
use mainspring_kernel::dispatch::{LaneKey, Wanted};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Event, Job, JobId, JobType, QueueName, QueueSpec, StateName,
    TenantId, Timestamp, Token, TokenId, TypeSpec,
};
use mainspring_store::{Desk, Held};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct PlantedDesk<'a> {
    pub(super) inner: &'a mut dyn Desk,
    pub(super) plant: Plant,
    pub(super) opened_at: Timestamp,
    /// If there is one, nothing reaches the real desk.
    pub(super) trial: Option<Trial>,
    /// Jobs as they once were, for a server that decides on those.
    pub(super) stale: BTreeMap<JobId, Job>,
    /// Jobs that were submitted or moved.
    pub(super) moved: &'a mut BTreeSet<JobId>,
    /// How many batches were begun.
    pub(super) nth: u64,
}

impl PlantedDesk<'_> {
    /// Whether an event was decided on the job as it is.
    fn is_fresh(&self, event: &Event) -> bool {
        match event {
            Event::JobMoved(event) => {
                self.inner.job(event.job).is_some_and(|job| job.seq + 1 == event.seq)
            }
            Event::ItemOpened(item) => self.inner.item(item.id).is_none(),
            _ => true,
        }
    }

    /// A job that is due, not handed out already, and as it is wanted.
    fn waiting(
        &self,
        ready: &[JobId],
        is_wanted: impl Fn(&Job) -> bool,
        now: Timestamp,
    ) -> Option<JobId> {
        let is_it = |job: &&Job| {
            let is_due = job.due_at().is_some_and(|due_at| due_at <= now);
            is_due && !ready.contains(&job.id) && is_wanted(job)
        };
        let known = self.moved.iter().filter_map(|id| self.inner.job(*id));
        known.filter(is_it).map(|job| job.id).next()
    }

    /// What the real desk hands out, with the mistake made.
    fn spoil_ready(
        &self,
        ready: &mut Vec<JobId>,
        wanted: &Wanted<'_>,
        limit: usize,
        now: Timestamp,
    ) {
        match self.plant {
            Plant::TwoProbes if ready.len() < limit => {
                let is_fused = |job: &Job| job.job_type.as_str() == "fuse";
                let mut known = self.moved.iter().filter_map(|id| self.inner.job(*id));
                let is_one_tried = known.any(|job| is_fused(job) && job.lease().is_some());
                let is_wanted = |job: &Job| {
                    let is_open = job.queue.as_str() == "default";
                    is_fused(job) && is_open && wanted.lane(&LaneKey::of(job, None))
                };
                let other = self.waiting(ready, is_wanted, now).filter(|_| is_one_tried);
                ready.extend(other);
            }
            Plant::RetriesFirst => {
                for at in 0..ready.len() {
                    let Some(fresh) = self.inner.job(ready[at]).filter(|job| !job.is_retry())
                    else {
                        continue;
                    };
                    let is_like = |job: &Job| {
                        job.is_retry()
                            && (&job.tenant, &job.queue, &job.job_type)
                                == (&fresh.tenant, &fresh.queue, &fresh.job_type)
                    };
                    if let Some(retry) = self.waiting(ready, is_like, now) {
                        ready[at] = retry;
                    }
                }
            }
            _ => {}
        }
    }
}

impl Desk for PlantedDesk<'_> {
    fn job(&self, id: JobId) -> Option<&Job> {
        let tried = self.trial.as_ref().and_then(|trial| trial.jobs.get(&id));
        let stale = self.stale.get(&id);
        tried.or(stale).or_else(|| self.inner.job(id))
    }

    fn is_unreadable(&self, id: JobId) -> bool {
        self.inner.is_unreadable(id)
    }

    fn item(&self, id: DlqId) -> Option<&DlqItem> {
        let tried = self.trial.as_ref().and_then(|trial| trial.items.get(&id));
        tried.or_else(|| self.inner.item(id))
    }

    fn entity(&self, id: EntityId) -> Option<&Entity> {
        match self.trial.as_ref().and_then(|trial| trial.entities.get(&id)) {
            Some(tried) => tried.as_ref(),
            None => self.inner.entity(id),
        }
    }

    fn job_type(&self, name: &JobType) -> Option<&TypeSpec> {
        self.inner.job_type(name)
    }

    fn queue(&self, name: &QueueName) -> Option<&QueueSpec> {
        self.inner.queue(name)
    }

    fn key_holder(&self, key: Digest) -> Option<KeyHolder> {
        let tried = self.trial.as_ref().and_then(|trial| trial.keys.get(&key).copied());
        let mut holder = tried.or_else(|| self.inner.key_holder(key))?;
        let made_at = (holder.job.0 >> 80) as i64;
        let is_old = made_at < self.opened_at.as_millis();
        let is_forgotten = match self.plant {
            Plant::ForgetKeys => is_old,
            Plant::ForgetKeyOfCancelled => {
                let job = self.inner.job(holder.job);
                is_old && job.is_some_and(|job| job.state.name() == StateName::Cancelled)
            }
            Plant::FreeKeyEarly => {
                holder.free_at = holder.free_at.map(|at| Timestamp(at.0 - 2_000_000));
                false
            }
            Plant::KeepKeyForever => {
                holder.free_at = None;
                false
            }
            _ => false,
        };
        (!is_forgotten).then_some(holder)
    }

    fn held(&self, tenant: &TenantId) -> (Held, u64) {
        self.inner.held(tenant)
    }

    fn token(&self, id: TokenId) -> Option<&Token> {
        self.inner.token(id)
    }

    fn tokens(&self) -> Vec<&Token> {
        self.inner.tokens()
    }

    fn take_ready(&mut self, wanted: &Wanted<'_>, limit: usize, now: Timestamp) -> Vec<JobId> {
        let mut ready = match self.plant {
            Plant::SkipBest => self.inner.take_ready(wanted, limit + 1, now),
            _ => self.inner.take_ready(wanted, limit, now),
        };
        if self.plant == Plant::SkipBest && self.nth.is_multiple_of(7) && ready.len() > 1 {
            ready.remove(0);
        }
        ready.truncate(limit);
        self.spoil_ready(&mut ready, wanted, limit, now);
        match &mut self.trial {
            Some(trial) => trial.take_ready(ready, wanted, limit, now),
            None => ready,
        }
    }

    fn opens_at(&self) -> Option<Timestamp> {
        self.inner.opens_at()
    }

    fn apply(&mut self, events: Vec<Event>) {
        let mut events = spoilt(self.plant, events);
        if self.plant == Plant::StaleDecision && events.iter().any(|event| !self.is_fresh(event)) {
            events.clear();
        }
        for event in &events {
            match event {
                Event::JobMoved(event) => {
                    self.stale.remove(&event.job);
                    self.moved.insert(event.job);
                }
                Event::JobSubmitted(job) => {
                    self.moved.insert(job.id);
                }
                _ => {}
            }
        }
        match &mut self.trial {
            Some(trial) => trial.apply(&*self.inner, events),
            None if events.is_empty() => {}
            None => self.inner.apply(events),
        }
    }
}

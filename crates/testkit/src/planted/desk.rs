//! What a batch works on: the real desk, perhaps with a mistake, perhaps only as a trial.

use super::Plant;
use super::spoilt::spoilt;
use super::trial::Trial;
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Event, Job, JobId, JobType, QueueName, QueueSpec, StateName,
    TenantId, Timestamp, Token, TokenId, TypeSpec,
};
use mainspring_store::{Desk, Held};
use std::collections::BTreeMap;

pub(super) struct PlantedDesk<'a> {
    pub(super) inner: &'a mut dyn Desk,
    pub(super) plant: Plant,
    pub(super) opened_at: Timestamp,
    /// If there is one, nothing reaches the real desk.
    pub(super) trial: Option<Trial>,
    /// Jobs as they once were, for a server that decides on those.
    pub(super) stale: BTreeMap<JobId, Job>,
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
            if let Event::JobMoved(event) = event {
                self.stale.remove(&event.job);
            }
        }
        match &mut self.trial {
            Some(trial) => trial.apply(&*self.inner, events),
            None if events.is_empty() => {}
            None => self.inner.apply(events),
        }
    }
}

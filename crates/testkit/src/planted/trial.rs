//! A batch that is decided and then comes to nothing: what it brings about is seen by the rest of
//! the batch and by nobody else. Stores that lose a race, or whose commit fails, leave the engine
//! with exactly this.

use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Event, Job, JobId, State, Timestamp, evolve,
};
use mainspring_store::Desk;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What would be true.
#[derive(Debug, Default)]
pub(super) struct Trial {
    pub(super) jobs: BTreeMap<JobId, Job>,
    pub(super) items: BTreeMap<DlqId, DlqItem>,
    pub(super) keys: BTreeMap<Digest, KeyHolder>,
    /// Those that were changed, or removed.
    pub(super) entities: BTreeMap<EntityId, Option<Entity>>,
}

impl Trial {
    /// Of what the real desk offers, what is still there; then the jobs made in this batch.
    pub(super) fn take_ready(
        &mut self,
        offered: Vec<JobId>,
        wanted: &Wanted<'_>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<JobId> {
        let is_due = |job: &Job| job.due_at().is_some_and(|due_at| due_at <= now);
        let is_wanted = |job: &Job| {
            wanted.tenant.is_none_or(|tenant| *tenant == job.tenant)
                && wanted.types.is_none_or(|types| types.contains(&job.job_type))
                && wanted.queues.is_none_or(|queues| queues.contains(&job.queue))
        };
        let mut ready: Vec<JobId> =
            offered.into_iter().filter(|id| self.jobs.get(id).is_none_or(is_due)).collect();
        let made = self.jobs.values().filter(|job| is_due(job) && is_wanted(job));
        for job in made {
            if ready.len() < limit && !ready.contains(&job.id) {
                ready.push(job.id);
            }
        }
        ready
    }

    pub(super) fn apply(&mut self, desk: &dyn Desk, events: Vec<Event>) {
        for event in events {
            self.apply_one(desk, event);
        }
    }

    fn job(&mut self, desk: &dyn Desk, id: JobId) -> Option<&mut Job> {
        match self.jobs.entry(id) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(place) => Some(place.insert(desk.job(id)?.clone())),
        }
    }

    fn apply_one(&mut self, desk: &dyn Desk, event: Event) {
        match event {
            Event::JobSubmitted(job) => {
                for key in job.keys() {
                    let fingerprint = key.fingerprint;
                    let holder = KeyHolder { job: job.id, fingerprint, free_at: None };
                    self.keys.insert(key.hash, holder);
                }
                self.jobs.insert(job.id, *job);
            }
            Event::JobMoved(event) => {
                if let Some(job) = self.job(desk, event.job) {
                    evolve(job, &event).expect("decided moves apply");
                }
            }
            Event::LeaseRenewed { job, expires_at, .. } => {
                if let Some(State::Running(lease)) = self.job(desk, job).map(|job| &mut job.state) {
                    lease.expires_at = expires_at;
                }
            }
            Event::EffectCommitted { job, effect } => {
                if let Some(job) = self.job(desk, job) {
                    job.extras_mut().effects.push(effect);
                }
            }
            Event::ItemOpened(item) => {
                self.items.insert(item.id, *item);
            }
            Event::ItemChanged { item: id, version, at, state } => {
                if let Some(mut item) = self.items.remove(&id).or_else(|| desk.item(id).cloned()) {
                    (item.version, item.updated_at, item.state) = (version, at, *state);
                    self.items.insert(id, item);
                }
            }
            Event::EntitySet(entity) => {
                self.entities.insert(entity.id, Some(*entity));
            }
            Event::EntityRemoved { entity, .. } => {
                self.entities.insert(entity, None);
            }
            // Registries: no later decision of the same batch looks at what changed in them.
            _ => {}
        }
    }
}

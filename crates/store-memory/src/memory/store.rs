//! The `Store` trait on top of the state, the journal and the archive.

use super::{MemoryStore, desk, journal_failed, stream};
use crate::state::State;
use futures_util::future::BoxFuture;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meter;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Job, JobId, QueueSpec, TenantId, Timestamp, Token, TokenId,
    TypeSpec,
};
use mainspring_store::{
    Counts, EntityFilter, Error, Health, Held, ItemFilter, JobFilter, JobWithHistory, MovesPage,
    Needs, Page, Recovery, Scope, Spent, Standing, StepsPage, Store, Ticket, Wake, Work,
};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl MemoryStore {
    /// Reads under the lock, and answers when what was read is durable.
    pub(super) async fn settled<T>(&self, read: impl FnOnce(&State) -> T) -> Result<T, Error> {
        let (answer, frame) = {
            let state = self.memory.read();
            (read(&state), self.memory.settled.staged())
        };
        self.memory.settled.reached(frame).await?;
        Ok(answer)
    }
}

impl Store for MemoryStore {
    fn commit<'a>(
        &'a self,
        needs: Needs,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<Ticket, Error>> {
        let outcome = if self.is_broken() {
            Err(Error::Stopped)
        } else {
            desk::commit(&self.memory, &needs, work)
        };
        Box::pin(std::future::ready(outcome))
    }

    fn job(&self, id: JobId) -> BoxFuture<'_, Result<Option<JobWithHistory>, Error>> {
        Box::pin(async move {
            match self.settled(|state| state.job_with_history(id)).await? {
                Some(found) => Ok(Some(found)),
                None => self.memory.archived(id),
            }
        })
    }

    fn holder_of_key(&self, key: Digest) -> BoxFuture<'_, Result<Option<KeyHolder>, Error>> {
        Box::pin(self.settled(move |state| state.keys.get(key)))
    }

    fn job_within<'a>(
        &'a self,
        id: JobId,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Option<JobWithHistory>, Error>> {
        Box::pin(async move {
            match self.settled(|state| state.job_within(id, scope)).await? {
                Some(found) => Ok(Some(found)),
                // Looked for in the archive whether or not it is a stranger's that is in RAM.
                None => self.memory.archived_within(id, scope),
            }
        })
    }

    fn ended<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        Box::pin(async move {
            let found = self.settled(|state| {
                let has_ended = |id: &JobId| Some(state.job(*id)?.state.name().is_terminal());
                jobs.iter().map(|id| (*id, has_ended(id))).collect::<Vec<_>>()
            });
            let mut ended = Vec::new();
            for (id, has_ended) in found.await? {
                // Only jobs that have ended leave for the archive.
                if has_ended.map_or_else(|| Ok(self.memory.archived(id)?.is_some()), Ok)? {
                    ended.push(id);
                }
            }
            Ok(ended)
        })
    }

    fn jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Job>, Error>> {
        Box::pin(self.job_page(filter, before, limit))
    }

    fn count_jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.job_count(filter, most))
    }

    fn item(&self, id: DlqId) -> BoxFuture<'_, Result<Option<DlqItem>, Error>> {
        Box::pin(self.settled(move |state| state.items.get(&id).cloned()))
    }

    fn item_within<'a>(
        &'a self,
        id: DlqId,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Option<DlqItem>, Error>> {
        Box::pin(self.settled(move |state| {
            let found = state.items.get(&id);
            found.filter(|item| scope.covers(&item.job.tenant, &item.job.user)).cloned()
        }))
    }

    fn items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<DlqItem>, Error>> {
        Box::pin(self.item_page(filter, before, limit))
    }

    fn count_items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.item_count(filter, most))
    }

    fn entity(&self, id: EntityId) -> BoxFuture<'_, Result<Option<Entity>, Error>> {
        Box::pin(self.settled(move |state| state.entities.get(id).cloned()))
    }

    fn entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        before: Option<EntityId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Entity, EntityId>, Error>> {
        Box::pin(self.settled(move |state| {
            let found = state.entities.find(filter, before).take(limit + 1).cloned();
            Page::cut(found.collect(), limit, |entity| entity.id)
        }))
    }

    fn count_entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.settled(move |state| state.entities.find(filter, None).take(most).count()))
    }

    fn types(&self) -> BoxFuture<'_, Result<Vec<TypeSpec>, Error>> {
        Box::pin(self.settled(State::type_list))
    }

    fn meter(&self, key: Digest) -> BoxFuture<'_, Result<Option<Meter>, Error>> {
        Box::pin(self.settled(move |state| state.index.meters.get(key)))
    }

    fn queues(&self) -> BoxFuture<'_, Result<Vec<QueueSpec>, Error>> {
        Box::pin(self.settled(State::queue_list))
    }

    fn tokens(&self) -> BoxFuture<'_, Result<Vec<Token>, Error>> {
        Box::pin(self.settled(|state| state.tokens.values().cloned().collect()))
    }

    fn token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Token>, Error>> {
        // Not worth a wait: a token is presented only by somebody who got it, which was after
        // the sync, and a revocation counts from the moment it is decided.
        let token = self.memory.read().tokens.get(&id).cloned();
        Box::pin(std::future::ready(Ok(token)))
    }

    fn standing(
        &self,
        id: JobId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Standing>, Error>> {
        Box::pin(self.settled(move |state| state.standing(id, now)))
    }

    fn held_by<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Held, Error>> {
        Box::pin(self.settled(move |state| state.slab.held_by(tenant)))
    }

    fn counts(&self, now: Timestamp) -> BoxFuture<'_, Result<Counts, Error>> {
        self.memory.write().begin(now);
        Box::pin(self.settled(State::counts))
    }

    fn moves_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<MovesPage, Error>> {
        Box::pin(std::future::ready(Ok(stream::moves_after(&self.memory, position, limit))))
    }

    fn steps_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<StepsPage, Error>> {
        Box::pin(std::future::ready(Ok(stream::steps_after(&self.memory, position, limit))))
    }

    fn overdue(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        Box::pin(std::future::ready(Ok(self.memory.read().overdue(now, limit))))
    }

    fn alarms(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(EntityId, Timestamp)>, Error>> {
        let due = self.memory.read().entities.due(now).take(limit).collect();
        Box::pin(std::future::ready(Ok(due)))
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        Box::pin(std::future::ready(Ok(self.memory.read().running())))
    }

    fn wake(&self, now: Timestamp) -> BoxFuture<'_, Result<Wake, Error>> {
        Box::pin(std::future::ready(Ok(self.memory.write().wake(now))))
    }

    fn maintain(&self, now: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        self.keeper.nudge(now);
        Box::pin(std::future::ready(Ok(())))
    }

    fn is_low_on_space(&self) -> bool {
        self.memory.journal.as_ref().is_some_and(crate::journal::GroupCommit::is_low_on_space)
    }

    fn health(&self) -> Health {
        let broken = match self.memory.config.fatal.reason() {
            Some(reason) => Some(format!("{reason}; restart to recover")),
            None => self
                .memory
                .is_closed
                .load(Ordering::Acquire)
                .then(|| "the store is closed".to_owned()),
        };
        Health {
            kind: "memory",
            broken,
            is_low_on_space: self.is_low_on_space(),
            damaged_blocks: self.memory.archive().damaged_blocks(),
            recovery: Recovery {
                took_ms: self.memory.opening_ms.load(Ordering::Relaxed),
                ..self.memory.recovery.clone()
            },
        }
    }

    fn can_settle(&self) -> bool {
        self.memory.config.has_threads && self.memory.journal.is_some()
    }

    fn settle(&self) {
        if let Some(journal) = &self.memory.journal {
            journal.flush_here();
        }
    }

    fn spent(&self) -> Spent {
        match &self.memory.journal {
            Some(journal) => Spent { syncs: journal.sync_times(), ..Spent::default() },
            None => Spent::default(),
        }
    }

    fn close(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.memory.is_closed.store(true, Ordering::Release);
        self.keeper.stop();
        let outcome = match &self.memory.journal {
            Some(journal) => journal.shutdown().map(|_| ()).map_err(|error| journal_failed(&error)),
            None => Ok(()),
        };
        self.memory.settled.give_up();
        self.memory.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(std::future::ready(outcome))
    }
}

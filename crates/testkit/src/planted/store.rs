//! A store that makes one mistake. Everything else is passed on to the real store.

use super::Plant;
use futures_util::future::{BoxFuture, FutureExt};
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::event::{Change, KeyHolder};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::job::Actor;
use mainspring_kernel::{
    DlqId, DlqItem, Event, Failure, Job, JobEvent, JobId, JobType, QueueSpec, Timestamp, Token,
    TokenId, TypeSpec,
};
use mainspring_store::{
    Counts, Desk, Error, Health, ItemFilter, JobFilter, MovesPage, Needs, Page, Snapshot, Standing,
    Store, Ticket, Wake, Work,
};
use mainspring_store_memory::MemoryStore;
use std::sync::Arc;
use tokio::sync::Notify;

/// The memory store, perhaps with a mistake. Rings when there is something to sync.
pub struct PlantedStore {
    /// The real store.
    pub inner: Arc<MemoryStore>,
    /// Rung after every commit.
    pub dirty: Arc<Notify>,
    plant: Plant,
    /// Jobs made before this store was opened have smaller ids.
    opened_at: Timestamp,
}

impl PlantedStore {
    /// Wraps `inner`, which was opened at `opened_at`.
    pub fn new(inner: Arc<MemoryStore>, plant: Plant, opened_at: Timestamp) -> Self {
        PlantedStore { inner, dirty: Arc::new(Notify::new()), plant, opened_at }
    }
}

struct PlantedDesk<'a> {
    inner: &'a mut dyn Desk,
    plant: Plant,
    opened_at: Timestamp,
}

impl Desk for PlantedDesk<'_> {
    fn job(&self, id: JobId) -> Option<&Job> {
        self.inner.job(id)
    }

    fn is_unreadable(&self, id: JobId) -> bool {
        self.inner.is_unreadable(id)
    }

    fn item(&self, id: DlqId) -> Option<&DlqItem> {
        self.inner.item(id)
    }

    fn job_type(&self, name: &JobType) -> Option<&TypeSpec> {
        self.inner.job_type(name)
    }

    fn key_holder(&self, key: Digest) -> Option<KeyHolder> {
        let holder = self.inner.key_holder(key)?;
        let made_at = (holder.job.0 >> 80) as i64;
        let is_old = made_at < self.opened_at.as_millis();
        (self.plant != Plant::ForgetKeys || !is_old).then_some(holder)
    }

    fn token(&self, id: TokenId) -> Option<&Token> {
        self.inner.token(id)
    }

    fn take_ready(&mut self, wanted: &Wanted<'_>, limit: usize, now: Timestamp) -> Vec<JobId> {
        self.inner.take_ready(wanted, limit, now)
    }

    fn apply(&mut self, events: Vec<Event>) {
        let events = spoilt(self.plant, events);
        if !events.is_empty() {
            self.inner.apply(events);
        }
    }
}

/// The events of one decision, with the mistake made.
fn spoilt(plant: Plant, events: Vec<Event>) -> Vec<Event> {
    match plant {
        Plant::RetryForever | Plant::RetryFinal => retried(plant, events),
        Plant::DropItem => {
            let is_kept = |event: &Event| !matches!(event, Event::ItemOpened(_));
            events.into_iter().filter(is_kept).collect()
        }
        Plant::LoseRenewal => {
            let is_kept = |event: &Event| !matches!(event, Event::LeaseRenewed { .. });
            events.into_iter().filter(is_kept).collect()
        }
        Plant::CountRelease | Plant::FlatFence | Plant::ChangePayload | Plant::NoBackoff => {
            events.into_iter().map(|event| changed(plant, event)).collect()
        }
        _ => events,
    }
}

fn changed(plant: Plant, event: Event) -> Event {
    match (plant, event) {
        (Plant::ChangePayload, Event::JobSubmitted(mut job)) => {
            job.payload = job.payload.to_uppercase().into();
            Event::JobSubmitted(job)
        }
        (plant, Event::JobMoved(event)) => {
            let at = event.at;
            let change = match (plant, event.change) {
                (Plant::FlatFence, Change::Claimed(mut lease)) => {
                    lease.fence = 1;
                    Change::Claimed(lease)
                }
                (Plant::CountRelease, Change::Released { report, .. }) => {
                    let failure =
                        Failure { code: "RELEASED".into(), message: "".into(), retryable: true };
                    Change::RetryScheduled { failure, due_at: at, report: Some(report) }
                }
                (Plant::NoBackoff, Change::RetryScheduled { failure, report, .. }) => {
                    Change::RetryScheduled { failure, due_at: at, report }
                }
                (_, change) => change,
            };
            Event::JobMoved(JobEvent { change, ..event })
        }
        (_, event) => event,
    }
}

/// A burial becomes another try.
fn retried(plant: Plant, events: Vec<Event>) -> Vec<Event> {
    let Some(Event::JobMoved(first)) = events.first() else { return events };
    let Change::DeadLettered { failure, is_exhausted, report } = &first.change else {
        return events;
    };
    let is_by_hand = matches!(first.actor, Actor::User(_));
    if is_by_hand || *is_exhausted != (plant == Plant::RetryForever) {
        return events;
    }
    let due_at = first.at.plus_millis(1_000);
    let (failure, report) = (failure.clone(), report.clone());
    let change = Change::RetryScheduled { failure, due_at, report };
    vec![Event::JobMoved(JobEvent { change, ..first.clone() })]
}

impl Store for PlantedStore {
    fn commit<'a>(
        &'a self,
        needs: Needs,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<Ticket, Error>> {
        let (plant, opened_at) = (self.plant, self.opened_at);
        Box::pin(async move {
            let mut planted =
                |desk: &mut dyn Desk| work(&mut PlantedDesk { inner: desk, plant, opened_at });
            let ticket = self.inner.commit(needs, &mut planted).await;
            self.dirty.notify_one();
            if plant == Plant::AcknowledgeEarly {
                return ticket.map(|_| Ticket::kept());
            }
            ticket
        })
    }

    fn job(&self, id: JobId) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        let plant = self.plant;
        self.inner
            .job(id)
            .map(move |found| {
                let mut found = found?;
                if let (Plant::ShuffleEvents, Some(found)) = (plant, &mut found)
                    && found.history.len() > 2
                {
                    found.history.swap(1, 2);
                }
                Ok(found)
            })
            .boxed()
    }

    fn jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Job>, Error>> {
        self.inner.jobs(filter, before, limit)
    }

    fn count_jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.inner.count_jobs(filter, most)
    }

    fn item(&self, id: DlqId) -> BoxFuture<'_, Result<Option<DlqItem>, Error>> {
        self.inner.item(id)
    }

    fn items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<DlqItem>, Error>> {
        self.inner.items(filter, before, limit)
    }

    fn count_items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.inner.count_items(filter, most)
    }

    fn types(&self) -> BoxFuture<'_, Result<Vec<TypeSpec>, Error>> {
        self.inner.types()
    }

    fn queues(&self) -> BoxFuture<'_, Result<Vec<QueueSpec>, Error>> {
        self.inner.queues()
    }

    fn tokens(&self) -> BoxFuture<'_, Result<Vec<Token>, Error>> {
        self.inner.tokens()
    }

    fn token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Token>, Error>> {
        self.inner.token(id)
    }

    fn standing(
        &self,
        id: JobId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Standing>, Error>> {
        self.inner.standing(id, now)
    }

    fn counts(&self, now: Timestamp) -> BoxFuture<'_, Result<Counts, Error>> {
        let plant = self.plant;
        let counts = self.inner.counts(now);
        counts
            .map(move |counts| {
                let mut counts = counts?;
                counts.by_state[5] += u64::from(plant == Plant::WrongCount);
                Ok(counts)
            })
            .boxed()
    }

    fn moves_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<MovesPage, Error>> {
        let back = u64::from(self.plant == Plant::RepeatMove && position.is_multiple_of(5));
        self.inner.moves_after(position.saturating_sub(back), limit)
    }

    fn overdue(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        let limit = if self.plant == Plant::NoReaper { 0 } else { limit };
        self.inner.overdue(now, limit)
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        self.inner.running()
    }

    fn wake(&self, now: Timestamp) -> BoxFuture<'_, Result<Wake, Error>> {
        self.inner.wake(now)
    }

    fn maintain(&self, now: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.maintain(now)
    }

    fn is_low_on_space(&self) -> bool {
        self.inner.is_low_on_space()
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.close()
    }
}

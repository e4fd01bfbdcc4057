//! A store that makes one mistake, or has bad luck on purpose. Everything else is passed on to the
//! real store.

use super::desk::PlantedDesk;
use super::link::Link;
use super::trial::Trial;
use super::{Plant, lot};
use futures_util::future::{BoxFuture, FutureExt, ready};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meter;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Job, JobId, QueueSpec, TenantId, Timestamp, Token, TokenId,
    TypeSpec,
};
use mainspring_store::{
    Counts, Desk, EntityFilter, Error, Health, Held, ItemFilter, JobFilter, JobWithHistory,
    MovesPage, Needs, News, Page, Scope, Standing, Store, Ticket, Wake, Work,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// What becomes of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Luck {
    /// What should.
    Good,
    /// Others were faster: it is decided a second time.
    Again,
    /// Decided, and then others hold what it needs: nothing is written.
    Busy,
    /// Decided, and then the store fails: nothing is written, and the caller cannot know.
    Failed,
    /// Written, and then the store seems to fail.
    Unknown,
}

/// Whoever says what becomes of each commit.
pub trait Fate: Send + Sync {
    /// Of the next one.
    fn next(&self) -> Luck;
}

/// Nothing ever goes wrong.
#[derive(Debug)]
pub struct Kind;

impl Fate for Kind {
    fn next(&self) -> Luck {
        Luck::Good
    }
}

/// A store, perhaps with a mistake. Rings when there is something to sync.
pub struct PlantedStore {
    /// The real store.
    pub inner: Arc<dyn Store>,
    /// Rung after every commit.
    pub dirty: Arc<Notify>,
    fate: Arc<dyn Fate>,
    /// The way to a store that others use, too.
    link: Option<Arc<Link>>,
    plant: Plant,
    /// Jobs made before this store was opened have smaller ids.
    opened_at: Timestamp,
    /// Jobs that were handed out by commits that then failed.
    pub phantoms: Arc<Mutex<Vec<Job>>>,
    /// Jobs as they were when this server last saw them.
    seen: Mutex<BTreeMap<JobId, Job>>,
    first_reads: Mutex<BTreeMap<JobId, JobWithHistory>>,
    /// Jobs that were submitted or moved.
    moved: Mutex<BTreeSet<JobId>>,
    commits: AtomicU64,
    reads: AtomicU64,
}

impl PlantedStore {
    /// Wraps `inner`, which was opened at `opened_at`.
    pub fn new(
        inner: Arc<dyn Store>,
        fate: Arc<dyn Fate>,
        plant: Plant,
        opened_at: Timestamp,
    ) -> Self {
        let dirty = Arc::new(Notify::new());
        PlantedStore {
            inner,
            dirty,
            fate,
            link: None,
            plant,
            opened_at,
            phantoms: Arc::default(),
            seen: Mutex::default(),
            first_reads: Mutex::default(),
            moved: Mutex::default(),
            commits: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
    }

    /// The same, reached by `link`.
    #[must_use]
    pub fn through(mut self, link: Arc<Link>) -> Self {
        self.link = Some(link);
        self
    }

    fn check_link(&self) -> Result<(), Error> {
        match &self.link {
            Some(link) if link.is_cut() => Err(Error::Stopped),
            _ => Ok(()),
        }
    }

    /// Decides a batch for real, or only as a trial.
    async fn decide(
        &self,
        needs: Needs,
        work: &mut Work<'_>,
        is_trial: bool,
    ) -> Result<Ticket, Error> {
        let (plant, opened_at) = (self.plant, self.opened_at);
        let nth = self.commits.fetch_add(1, Ordering::Relaxed);
        let named = needs.jobs.clone();
        let mut planted = |desk: &mut dyn Desk| {
            let trial = is_trial.then(Trial::default);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let stale = match plant {
                Plant::StaleDecision if !is_trial => std::mem::take(&mut *seen),
                _ => BTreeMap::new(),
            };
            let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
            let moved = &mut *moved;
            let mut planted =
                PlantedDesk { inner: desk, plant, opened_at, trial, stale, moved, nth };
            work(&mut planted);
            if let Some(trial) = planted.trial.filter(|_| plant == Plant::PhantomGrant) {
                let claimed = trial.jobs.into_values().filter(|job| job.lease().is_some());
                let mut phantoms = self.phantoms.lock().unwrap_or_else(PoisonError::into_inner);
                phantoms.extend(claimed);
            }
            if plant == Plant::StaleDecision {
                seen.extend(named.iter().filter_map(|id| Some((*id, desk.job(*id)?.clone()))));
            }
        };
        self.inner.commit(needs, &mut planted).await
    }
}

impl Store for PlantedStore {
    fn commit<'a>(
        &'a self,
        needs: Needs,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<Ticket, Error>> {
        Box::pin(async move {
            if let Some(link) = &self.link {
                link.travel().await?;
            }
            let luck = self.fate.next();
            if matches!(luck, Luck::Again | Luck::Busy | Luck::Failed) {
                self.decide(needs.clone(), work, true).await?;
            }
            match luck {
                Luck::Good | Luck::Again | Luck::Unknown => {}
                Luck::Busy => return Err(Error::Busy),
                Luck::Failed => return Err(Error::Failed("nothing was written".into())),
            }
            let ticket = self.decide(needs, work, false).await;
            self.dirty.notify_one();
            if let Some(link) = &self.link {
                link.hint();
                link.travel().await?;
            }
            if luck == Luck::Unknown {
                ticket?;
                return Err(Error::Failed("nobody knows what was written".into()));
            }
            let is_early = match self.plant {
                Plant::AcknowledgeEarly => true,
                Plant::AcknowledgeSometimes => {
                    self.commits.load(Ordering::Relaxed).is_multiple_of(50)
                }
                _ => false,
            };
            if is_early {
                return ticket.map(|_| Ticket::kept());
            }
            ticket
        })
    }

    fn holder_of_key(&self, key: Digest) -> BoxFuture<'_, Result<Option<KeyHolder>, Error>> {
        self.inner.holder_of_key(key)
    }

    fn job(&self, id: JobId) -> BoxFuture<'_, Result<Option<JobWithHistory>, Error>> {
        let plant = self.plant;
        self.inner
            .job(id)
            .map(move |found| {
                let mut found = found?;
                let is_ended =
                    found.as_ref().is_some_and(|found| found.job.state.name().is_terminal());
                match (plant, &mut found) {
                    (Plant::ShuffleEvents, Some(found)) if found.history.len() > 2 => {
                        found.history.swap(1, 2);
                    }
                    (Plant::HideArchived, _) if is_ended && lot(id, 9_000) == 0 => found = None,
                    (Plant::CutHistory, Some(found)) if is_ended && lot(id, 9_000) == 0 => {
                        found.history.pop();
                    }
                    (Plant::ReadOld, Some(found)) => {
                        let mut first =
                            self.first_reads.lock().unwrap_or_else(PoisonError::into_inner);
                        let first = first.entry(id).or_insert_with(|| found.clone());
                        let nth = self.reads.fetch_add(1, Ordering::Relaxed);
                        if nth % 12 == 11 {
                            found.clone_from(first);
                        }
                    }
                    _ => {}
                }
                Ok(found)
            })
            .boxed()
    }

    fn ended<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        self.inner.ended(jobs)
    }

    fn jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Job>, Error>> {
        if self.plant == Plant::ListLeak {
            let filter = JobFilter { scope: Scope::All, ..filter.clone() };
            return Box::pin(async move { self.inner.jobs(&filter, before, limit).await });
        }
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
        let plant = self.plant;
        let page = self.inner.items(filter, before, limit);
        page.map(move |page| {
            let mut page = page?;
            if plant == Plant::ForgetItem {
                let is_open = |item: &DlqItem| matches!(item.state.as_str(), "open");
                page.items.retain(|item| is_open(item) || lot(item.job.id, 500) != 0);
            }
            Ok(page)
        })
        .boxed()
    }

    fn count_items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.inner.count_items(filter, most)
    }

    fn entity(&self, id: EntityId) -> BoxFuture<'_, Result<Option<Entity>, Error>> {
        self.inner.entity(id)
    }

    fn entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        before: Option<EntityId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Entity, EntityId>, Error>> {
        self.inner.entities(filter, before, limit)
    }

    fn count_entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.inner.count_entities(filter, most)
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

    fn meter(&self, key: Digest) -> BoxFuture<'_, Result<Option<Meter>, Error>> {
        self.inner.meter(key)
    }

    fn standing(
        &self,
        id: JobId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Standing>, Error>> {
        self.inner.standing(id, now)
    }

    fn held_by<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Held, Error>> {
        self.inner.held_by(tenant)
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
        let plant = self.plant;
        let back = u64::from(plant == Plant::RepeatMove && position.is_multiple_of(5));
        let page = self.inner.moves_after(position.saturating_sub(back), limit);
        page.map(move |page| {
            let mut page = page?;
            if plant == Plant::SkipMove {
                page.moves.retain(|moved| moved.position % 120 != 119);
            }
            Ok(page)
        })
        .boxed()
    }

    fn overdue(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        if let Err(error) = self.check_link() {
            return Box::pin(ready(Err(error)));
        }
        let limit = if self.plant == Plant::NoReaper { 0 } else { limit };
        let late = if self.plant == Plant::ReapLate { 6_000_000 } else { 0 };
        self.inner.overdue(Timestamp(now.0 - late), limit)
    }

    fn alarms(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(EntityId, Timestamp)>, Error>> {
        if let Err(error) = self.check_link() {
            return Box::pin(ready(Err(error)));
        }
        // Whoever thinks that it was rung does not look for it again.
        let skew = if self.plant == Plant::ForgetAlarm { 20_000_000 } else { 0 };
        self.inner
            .alarms(now, limit)
            .map(move |due| {
                let mut due = due?;
                due.retain(|(_, at)| skew == 0 || at.0 / skew % 2 == 0);
                Ok(due)
            })
            .boxed()
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        self.inner.running()
    }

    fn wake(&self, now: Timestamp) -> BoxFuture<'_, Result<Wake, Error>> {
        let is_shared = self.link.is_some();
        Box::pin(async move {
            self.check_link()?;
            let mut wake = self.inner.wake(now).await?;
            // What one server has noticed the others have not.
            wake.is_work_due |= is_shared && self.inner.counts(now).await?.due > 0;
            Ok(wake)
        })
    }

    fn watch(&self, news: Arc<dyn News>) {
        if let Some(link) = &self.link {
            link.watch(news);
        }
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

//! The model store, with faults on demand: a commit that is decided twice, refused or lost after it
//! was decided, keys and jobs that somebody outside holds, and a count of what is read.

use futures_util::future::BoxFuture;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meter;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Job, JobId, QueueSpec, Timestamp, Token, TokenId, TypeSpec,
};
use mainspring_store::conformance::ModelStore;
use mainspring_store::{
    Counts, EntityFilter, Error, Health, ItemFilter, JobFilter, JobWithHistory, MovesPage, Needs,
    News, Page, Promise, Standing, Store, Ticket, Wake, Work,
};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// What happens to a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is decided twice and then counts.
    Twice,
    /// It is decided and then fails; nothing is kept.
    Fails,
    /// It counts, but the caller is told that it failed.
    Lost,
    /// It is visible, but never becomes durable.
    NeverDurable,
    /// It is visible, and durable when the test says so.
    Later,
}

/// How long somebody who does not hurry waits for what is held.
pub(crate) const WAITS: Duration = Duration::from_millis(50);
/// And somebody who does.
pub(crate) const WAITS_HASTILY: Duration = Duration::from_millis(5);

/// The model store with faults.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) model: ModelStore,
    /// What happens to the next commits that have commands.
    pub(crate) fates: Mutex<VecDeque<Fate>>,
    pub(crate) held_keys: Mutex<HashSet<Digest>>,
    pub(crate) held_jobs: Mutex<HashSet<JobId>>,
    /// Commits that name these are acknowledged and forgotten.
    pub(crate) forgotten: Mutex<HashSet<JobId>>,
    /// How many were.
    pub(crate) forgets: AtomicUsize,
    /// Whether something is held that every pull needs.
    pub(crate) holds_pulls: AtomicBool,
    /// Whether it can say which jobs are held.
    pub(crate) tells_held: AtomicBool,
    /// Tickets to be kept by the test.
    pub(crate) later: Mutex<Vec<Promise>>,
    /// Whether commits can be left to be settled by their caller.
    pub(crate) can_settle: AtomicBool,
    /// Tickets of commits that were.
    pub(crate) unsettled: Mutex<Vec<Promise>>,
    /// How many commits were settled, each time that the engine did it.
    pub(crate) settled: Mutex<Vec<usize>>,
    /// Whether settling does nothing: the disk takes its time.
    pub(crate) is_disk_slow: AtomicBool,
    /// Holds up settling for as long as a test holds it.
    pub(crate) disk: Mutex<()>,
    pub(crate) commits: AtomicUsize,
    /// Submissions of one caller that it takes at once; all of them if it is zero.
    pub(crate) takes_at_once: AtomicUsize,
    /// Commits that were refused because something was held.
    pub(crate) busy: AtomicUsize,
    pub(crate) job_reads: AtomicUsize,
    pub(crate) ended_reads: AtomicUsize,
    pub(crate) moves_reads: AtomicUsize,
    /// Looks for what is due.
    pub(crate) looks: AtomicUsize,
    /// Called in the middle of the next read of moves, after it has looked.
    pub(crate) in_read: Mutex<Option<BoxFuture<'static, ()>>>,
    pub(crate) news: OnceLock<Arc<dyn News>>,
    began: OnceLock<Instant>,
}

impl Scripted {
    /// When its time began: a second engine on it goes on from the same.
    pub(crate) fn began(&self) -> Instant {
        *self.began.get_or_init(Instant::now)
    }

    pub(crate) fn next(&self, fates: &[Fate]) {
        self.fates.lock().unwrap().extend(fates);
    }

    pub(crate) fn keep_promises(&self) {
        for promise in self.later.lock().unwrap().drain(..) {
            promise.keep(Ok(()));
        }
    }

    fn needs_held(&self, needs: &Needs) -> bool {
        let (keys, jobs) = (self.held_keys.lock().unwrap(), self.held_jobs.lock().unwrap());
        let holds_pulls = self.holds_pulls.load(Ordering::Relaxed);
        (holds_pulls && !needs.pulls.is_empty())
            || needs.keys.iter().any(|key| keys.contains(key))
            || needs.jobs.iter().any(|job| jobs.contains(job))
    }

    async fn try_commit(&self, needs: Needs, work: &mut Work<'_>) -> Result<Ticket, Error> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if self.needs_held(&needs) {
            let _ = self.model.copy().commit(needs.clone(), work).await;
            self.busy.fetch_add(1, Ordering::Relaxed);
            let wait = if needs.is_hasty { WAITS_HASTILY } else { WAITS };
            tokio::time::sleep(wait).await; // paced: a lock is waited for, in virtual time
            return Err(Error::Busy);
        }
        let is_forgotten = {
            let forgotten = self.forgotten.lock().unwrap();
            needs.jobs.iter().any(|job| forgotten.contains(job))
        };
        if is_forgotten {
            // A reaper that never rests is told from one that does: it would hold up all time.
            let nth = self.forgets.fetch_add(1, Ordering::Relaxed);
            assert!(nth < 1_000, "a loop without an end");
            return self.model.copy().commit(needs, work).await;
        }
        if needs.is_settled_by_caller {
            let _ = self.model.commit(needs, work).await?;
            let (promise, ticket) = Ticket::new();
            self.unsettled.lock().unwrap().push(promise);
            return Ok(ticket);
        }
        let fate = match needs.has_commands {
            true => self.fates.lock().unwrap().pop_front(),
            false => None,
        };
        match fate {
            None => self.model.commit(needs, work).await,
            Some(Fate::Twice) => {
                let _ = self.model.copy().commit(needs.clone(), work).await;
                self.model.commit(needs, work).await
            }
            Some(Fate::Fails) => {
                let _ = self.model.copy().commit(needs, work).await;
                Err(Error::Failed("it was cut off".into()))
            }
            Some(Fate::Lost) => {
                let _ = self.model.commit(needs, work).await;
                Err(Error::Failed("outcome unknown".into()))
            }
            Some(Fate::NeverDurable) => {
                let _ = self.model.copy().commit(needs, work).await;
                let (promise, ticket) = Ticket::new();
                promise.keep(Err(Error::Stopped));
                Ok(ticket)
            }
            Some(Fate::Later) => {
                let _ = self.model.commit(needs, work).await;
                let (promise, ticket) = Ticket::new();
                self.later.lock().unwrap().push(promise);
                Ok(ticket)
            }
        }
    }
}

impl Store for Scripted {
    fn commit<'a>(
        &'a self,
        needs: Needs,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<Ticket, Error>> {
        Box::pin(self.try_commit(needs, work))
    }

    fn job(&self, id: JobId) -> BoxFuture<'_, Result<Option<JobWithHistory>, Error>> {
        self.job_reads.fetch_add(1, Ordering::Relaxed);
        self.model.job(id)
    }

    fn holder_of_key(&self, key: Digest) -> BoxFuture<'_, Result<Option<KeyHolder>, Error>> {
        self.model.holder_of_key(key)
    }

    fn ended<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        self.ended_reads.fetch_add(1, Ordering::Relaxed);
        self.model.ended(jobs)
    }

    fn held<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        let held = self.held_jobs.lock().unwrap();
        let is_told = self.tells_held.load(Ordering::Relaxed);
        let found = jobs.iter().filter(|job| is_told && held.contains(job)).copied().collect();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Job>, Error>> {
        self.model.jobs(filter, before, limit)
    }

    fn count_jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.model.count_jobs(filter, most)
    }

    fn count_items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.model.count_items(filter, most)
    }

    fn item(&self, id: DlqId) -> BoxFuture<'_, Result<Option<DlqItem>, Error>> {
        self.model.item(id)
    }

    fn items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<DlqItem>, Error>> {
        self.model.items(filter, before, limit)
    }

    fn entity(&self, id: EntityId) -> BoxFuture<'_, Result<Option<Entity>, Error>> {
        self.model.entity(id)
    }

    fn entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        before: Option<EntityId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Entity, EntityId>, Error>> {
        self.model.entities(filter, before, limit)
    }

    fn count_entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        self.model.count_entities(filter, most)
    }

    fn alarms(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(EntityId, Timestamp)>, Error>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.model.alarms(now, limit)
    }

    fn types(&self) -> BoxFuture<'_, Result<Vec<TypeSpec>, Error>> {
        self.model.types()
    }

    fn queues(&self) -> BoxFuture<'_, Result<Vec<QueueSpec>, Error>> {
        self.model.queues()
    }

    fn tokens(&self) -> BoxFuture<'_, Result<Vec<Token>, Error>> {
        self.model.tokens()
    }

    fn token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Token>, Error>> {
        self.model.token(id)
    }

    fn meter(&self, key: Digest) -> BoxFuture<'_, Result<Option<Meter>, Error>> {
        self.model.meter(key)
    }

    fn standing(
        &self,
        id: JobId,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Standing>, Error>> {
        self.model.standing(id, now)
    }

    fn held_by<'a>(
        &'a self,
        tenant: &'a mainspring_kernel::TenantId,
    ) -> BoxFuture<'a, Result<mainspring_store::Held, Error>> {
        self.model.held_by(tenant)
    }

    fn counts(&self, now: Timestamp) -> BoxFuture<'_, Result<Counts, Error>> {
        self.model.counts(now)
    }

    fn moves_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<MovesPage, Error>> {
        self.moves_reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let page = self.model.moves_after(position, limit).await;
            let meanwhile = self.in_read.lock().unwrap().take();
            if let Some(meanwhile) = meanwhile {
                meanwhile.await;
            }
            page
        })
    }

    fn overdue(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        self.model.overdue(now, limit)
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        self.model.running()
    }

    fn wake(&self, now: Timestamp) -> BoxFuture<'_, Result<Wake, Error>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.model.wake(now)
    }

    fn maintain(&self, now: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        self.model.maintain(now)
    }

    fn can_settle(&self) -> bool {
        self.can_settle.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        let _disk = self.disk.lock().unwrap();
        if self.is_disk_slow.load(Ordering::Relaxed) {
            return;
        }
        let unsettled = std::mem::take(&mut *self.unsettled.lock().unwrap());
        self.settled.lock().unwrap().push(unsettled.len());
        unsettled.into_iter().for_each(|promise| promise.keep(Ok(())));
    }

    fn is_low_on_space(&self) -> bool {
        self.model.is_low_on_space()
    }

    fn health(&self) -> Health {
        self.model.health()
    }

    fn watch(&self, news: Arc<dyn News>) {
        let _ = self.news.set(news);
    }

    fn takes_at_once(&self) -> usize {
        match self.takes_at_once.load(Ordering::Relaxed) {
            0 => usize::MAX,
            some => some,
        }
    }

    fn close(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.model.close()
    }
}

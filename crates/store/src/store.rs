//! The `Store` trait: one way to write, a few ways to read. A store loads and remembers; it never
//! decides. What it must do is written down as tests in `conformance/`.

use crate::filter::{EntityFilter, ItemFilter, JobFilter, Scope};
use crate::histogram::Spent;
use crate::read::{
    Counts, Health, Held, JobWithHistory, LoggedMove, MovesPage, Page, Standing, StepsPage,
    WorkerNote,
};
use crate::ticket::Ticket;
use futures_util::future::BoxFuture;
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::entity::wait::Wait;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meter;
use mainspring_kernel::job::{Effect, Payload};
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Event, Job, JobId, JobType, QueueName, QueueSpec, TenantId,
    Timestamp, Token, TokenId, TypeSpec,
};
use std::sync::Arc;
use std::time::Duration;

/// The world failed the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store was shut down, or stopped itself after an earlier failure.
    #[error("the store has stopped")]
    Stopped,
    /// There is no room for new work; reports on running work are still taken.
    #[error("the disk is almost full: new work is refused until there is room")]
    NoRoom,
    /// Something outside holds what the batch needs, or other processes kept changing it. Nothing
    /// was written. A smaller batch may get through, so that one item never fails its neighbours.
    #[error("others hold what this needs; try again")]
    Busy,
    /// The store will never take something in the batch: a value it cannot keep. Nothing was
    /// written. A smaller batch may get through, so that only the culprit is refused.
    #[error("the store refuses this: {0}")]
    Refused(Arc<str>),
    /// The store answers, but fails at what it is asked: a defect of it or of ours, which says
    /// nothing about the job. Nothing was written. A smaller batch may get through.
    #[error("{0}")]
    Broken(Arc<str>),
    /// The store cannot be reached at present. It tells the log itself, once at the beginning of
    /// an outage and once at its end.
    #[error("{0}")]
    Away(Arc<str>),
    /// What was asked for is there, but what was kept of it cannot be read; the text says where.
    /// Nothing was written, nothing else is concerned, and asking again does not help.
    #[error("{0}")]
    Unreadable(Arc<str>),
    /// Writing or reading failed; the text names file, operation and cause.
    #[error("{0}")]
    Failed(Arc<str>),
}

impl Error {
    /// Whether nothing was written and a smaller batch may get through.
    pub fn is_divisible(&self) -> bool {
        match self {
            Error::Busy | Error::Refused(_) | Error::Broken(_) | Error::Unreadable(_) => true,
            Error::Stopped | Error::NoRoom | Error::Away(_) | Error::Failed(_) => false,
        }
    }
}

/// What a batch has to look at, named before it runs so that a store can load it at once.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Jobs, live or finished.
    pub jobs: Vec<JobId>,
    /// Effects of jobs, by name: what [`Desk::job`] shows has them at hand, if there are such.
    pub effects: Vec<(JobId, Box<str>)>,
    /// Dead-letter items.
    pub items: Vec<DlqId>,
    /// Entities.
    pub entities: Vec<EntityId>,
    /// Idempotency keys.
    pub keys: Vec<Digest>,
    /// Whether anything but pulls is decided: a refusal must rest on what is true, too.
    pub has_commands: bool,
    /// The pulls that will call [`Desk::take_ready`], in order.
    pub pulls: Vec<PullNeeds>,
    /// The instant of the commit.
    pub now: Timestamp,
    /// What pulls may take is due by then, where that is later than `now`: by the clock of a caller
    /// that may choose.
    pub due_by: Option<Timestamp>,
    /// Whether to fail as busy rather than to wait for anybody who holds something: others wait.
    pub is_hasty: bool,
    /// Whether whoever commits calls [`Store::settle`] right after, so that nobody else need be
    /// woken to make the commit durable.
    pub is_settled_by_caller: bool,
}

/// What one pull will ask for. Cheap to clone: a pull that waits is named in every batch.
#[derive(Debug, Clone)]
pub struct PullNeeds {
    /// One tenant, or all of them in turn.
    pub tenant: Option<TenantId>,
    /// Only these types, or any.
    pub types: Option<Arc<[JobType]>>,
    /// Only these queues, or any.
    pub queues: Option<Arc<[QueueName]>>,
    /// At most this many jobs.
    pub limit: usize,
}

impl PullNeeds {
    /// Up to `limit` jobs of any kind.
    pub fn any(limit: usize) -> Self {
        PullNeeds { tenant: None, types: None, queues: None, limit }
    }

    /// The same as the book of ready jobs takes it.
    pub fn wanted(&self) -> Wanted<'_> {
        Wanted {
            tenant: self.tenant.as_ref(),
            types: self.types.as_deref(),
            queues: self.queues.as_deref(),
        }
    }
}

/// Whoever wants to hear what other processes did to a store that several share. Only hints: they
/// may come for nothing, and what they tell is found by looking again, too.
pub trait News: Send + Sync + 'static {
    /// There may be ready jobs.
    fn work(&self);
    /// Jobs may have moved.
    fn moved(&self);
    /// Something may be due sooner than was told.
    fn timers(&self);
    /// Types, queues or tokens may have changed.
    fn registry(&self);
    /// The workers heard from lately, for the other processes; the last heard first.
    fn workers(&self) -> Vec<WorkerNote> {
        Vec::new()
    }
}

/// What a look at the timers found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// Whether waiting jobs have become due since the last look.
    pub is_work_due: bool,
    /// The next instant, after the one asked about, at which a job becomes due or overdue or the
    /// alarm of an entity stands.
    pub next: Option<Timestamp>,
}

/// What a batch works on. It stays as it is while the batch decides: the memory store holds its
/// state locked, PostgreSQL refuses the write if anything it rests on has changed since.
pub trait Desk {
    /// A job, live or finished.
    fn job(&self, id: JobId) -> Option<&Job>;
    /// Whether a job is there but its bytes are damaged: then nobody can say what it was, only that
    /// it was.
    fn is_unreadable(&self, _id: JobId) -> bool {
        false
    }
    /// A dead-letter item.
    fn item(&self, id: DlqId) -> Option<&DlqItem>;
    /// An entity.
    fn entity(&self, id: EntityId) -> Option<&Entity>;
    /// A registered type.
    fn job_type(&self, name: &JobType) -> Option<&TypeSpec>;
    /// A queue that was configured.
    fn queue(&self, name: &QueueName) -> Option<&QueueSpec>;
    /// Who holds an idempotency key.
    fn key_holder(&self, key: Digest) -> Option<KeyHolder>;
    /// A token.
    fn token(&self, id: TokenId) -> Option<&Token>;
    /// Every token, by id.
    fn tokens(&self) -> Vec<&Token>;
    /// What jobs that have not ended come to, this batch's included: those of `tenant`, and the
    /// bytes of all.
    /// A store that several servers share may know it of a moment ago, apart from its own commits.
    fn held(&self, tenant: &TenantId) -> (Held, u64);
    /// Takes up to `limit` jobs that are due at `now`, in dispatch order and within every limit.
    /// One that the batch then does not claim is ready again when the batch ends.
    fn take_ready(&mut self, wanted: &Wanted<'_>, limit: usize, now: Timestamp) -> Vec<JobId>;
    /// When the first of the buckets and circuits lets go that kept pulls of this batch from taking
    /// jobs, if that is a matter of time.
    fn opens_at(&self) -> Option<Timestamp> {
        None
    }
    /// Makes the events of one decision true, all of them, for the rest of the batch to see.
    fn apply(&mut self, events: Vec<Event>);
}

/// A batch: called with the desk, perhaps more than once if the store has to start over.
pub type Work<'a> = dyn FnMut(&mut dyn Desk) + Send + 'a;

/// A place that remembers.
pub trait Store: Send + Sync + 'static {
    /// Runs `work` on a desk and makes what it applied durable. The future ends when the effects
    /// are visible to the next batch; the ticket is kept when all of them are durable. A crash
    /// before that keeps or loses each decision whole: PostgreSQL the batch as one, the memory
    /// store a large one in parts.
    fn commit<'a>(
        &'a self,
        needs: Needs,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<Ticket, Error>>;

    /// One job with its history, perhaps without its effects. Like every read, it answers only what
    /// is durable.
    fn job(&self, id: JobId) -> BoxFuture<'_, Result<Option<JobWithHistory>, Error>>;
    /// Who holds a key, or was given that name by its caller: perhaps a job that is no longer kept.
    fn holder_of_key(&self, key: Digest) -> BoxFuture<'_, Result<Option<KeyHolder>, Error>>;
    /// One job with its history, if it is in scope. Whoever may not see a job must not learn from
    /// the time it takes that there is one: a store looks at the owner before it reads the rest.
    fn job_within<'a>(
        &'a self,
        id: JobId,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Option<JobWithHistory>, Error>> {
        Box::pin(async move {
            let found = self.job(id).await?;
            Ok(found.filter(|found| scope.covers(&found.job.tenant, &found.job.user)))
        })
    }
    /// Which of these jobs have ended; for callers that wait for it, many at once.
    fn ended<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        Box::pin(async move {
            let mut ended = Vec::new();
            for job in jobs {
                let found = self.job(*job).await?;
                if found.is_some_and(|found| found.job.state.name().is_terminal()) {
                    ended.push(*job);
                }
            }
            Ok(ended)
        })
    }
    /// Which of these jobs somebody outside holds at the moment, as far as that can be told without
    /// waiting. A commit that names them would be busy.
    fn held<'a>(&'a self, _jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    /// One committed effect of a job.
    fn effect<'a>(
        &'a self,
        id: JobId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Effect>, Error>> {
        Box::pin(async move {
            let found = self.job(id).await?;
            Ok(found.and_then(|found| found.job.effect(name).cloned()))
        })
    }
    /// Every committed effect of a job, in the order of their commits.
    fn effects(&self, id: JobId) -> BoxFuture<'_, Result<Vec<Effect>, Error>> {
        Box::pin(async move {
            let extras = self.job(id).await?.and_then(|found| found.job.extras);
            Ok(extras.map(|extras| extras.effects).unwrap_or_default())
        })
    }
    /// What a worker left for the next try of a job that has not ended.
    fn checkpoint(&self, id: JobId) -> BoxFuture<'_, Result<Option<Payload>, Error>> {
        Box::pin(async move {
            let extras = self.job(id).await?.and_then(|found| found.job.extras);
            Ok(extras.and_then(|extras| extras.course).and_then(|course| course.checkpoint))
        })
    }
    /// The waits that name any of these jobs, or a batch that it may belong to, each with that job.
    /// Some of them, if there are more than `limit`.
    fn waits_on<'a>(
        &'a self,
        jobs: &'a [JobId],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(EntityId, JobId)>, Error>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for job in jobs {
                for field in [("job", *job), ("batch", Wait::batch_of(*job))] {
                    let field = Some((field.0.to_owned(), field.1.to_string()));
                    let all = EntityFilter::of(Kind::Wait, Scope::All);
                    let filter = EntityFilter { field, ..all };
                    let waits = self.entities(&filter, None, limit - found.len()).await?;
                    found.extend(waits.items.iter().map(|wait| (wait.id, *job)));
                    if found.len() >= limit {
                        return Ok(found);
                    }
                }
            }
            Ok(found)
        })
    }
    /// Jobs, newest first, older than `before`. The page is full unless it is the last one, and
    /// what it costs does not grow with the jobs that the filter does not admit.
    fn jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Job>, Error>>;
    /// How many jobs a filter admits, counted up to `most`.
    fn count_jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>>;
    /// One dead-letter item.
    fn item(&self, id: DlqId) -> BoxFuture<'_, Result<Option<DlqItem>, Error>>;
    /// One dead-letter item, if it is in scope; for the same reason.
    fn item_within<'a>(
        &'a self,
        id: DlqId,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Option<DlqItem>, Error>> {
        Box::pin(async move {
            let found = self.item(id).await?;
            Ok(found.filter(|item| scope.covers(&item.job.tenant, &item.job.user)))
        })
    }
    /// Dead-letter items, newest first, older than `before`.
    fn items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<DlqItem>, Error>>;
    /// How many dead-letter items a filter admits, counted up to `most`.
    fn count_items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>>;
    /// One entity.
    fn entity(&self, id: EntityId) -> BoxFuture<'_, Result<Option<Entity>, Error>>;
    /// Entities of a kind, the greatest id first, below `before`. The page is full unless it is the
    /// last one, and costs what it shows.
    fn entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        before: Option<EntityId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Entity, EntityId>, Error>>;
    /// How many entities a filter admits, counted up to `most`.
    fn count_entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>>;
    /// Every registered type, by name.
    fn types(&self) -> BoxFuture<'_, Result<Vec<TypeSpec>, Error>>;
    /// A bucket or a circuit; one that is idle may be missing.
    fn meter(&self, key: Digest) -> BoxFuture<'_, Result<Option<Meter>, Error>>;
    /// Every queue that was configured, by name.
    fn queues(&self) -> BoxFuture<'_, Result<Vec<QueueSpec>, Error>>;
    /// Every token, by id.
    fn tokens(&self) -> BoxFuture<'_, Result<Vec<Token>, Error>>;
    /// One token. On the path of every request, so it must be cheap.
    fn token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Token>, Error>>;
    /// What stands between a waiting job and a worker.
    fn standing(&self, id: JobId, now: Timestamp)
    -> BoxFuture<'_, Result<Option<Standing>, Error>>;
    /// What the jobs of one tenant come to that have not ended.
    fn held_by<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Held, Error>>;
    /// Counts for metrics and the runtime page.
    fn counts(&self, now: Timestamp) -> BoxFuture<'_, Result<Counts, Error>>;
    /// Durable moves of all jobs after `position`, in commit order.
    fn moves_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<MovesPage, Error>>;
    /// The same without what is known of the jobs, for whoever reads all of them: about `limit`
    /// moves, and what a move looks like does not depend on whether its job is still kept.
    fn steps_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<StepsPage, Error>> {
        Box::pin(async move {
            let MovesPage { moves, has_gap, newest } = self.moves_after(position, limit).await?;
            let step = |it: LoggedMove| (it.position, it.job, Some(it.transition));
            Ok(StepsPage { steps: moves.into_iter().map(step).collect(), has_gap, newest })
        })
    }

    /// Jobs whose lease, timeout, expiry or unfinished DLQ move wants the reaper at `now`.
    fn overdue(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<JobId>, Error>>;
    /// Entities whose alarm stands at `now` or earlier, with that alarm, the earliest first.
    fn alarms(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(EntityId, Timestamp)>, Error>>;
    /// Every job that runs, for extending leases after a restart.
    fn running(&self) -> BoxFuture<'_, Result<Vec<JobId>, Error>>;
    /// Notices what has become due by `now` and says when to look again.
    fn wake(&self, now: Timestamp) -> BoxFuture<'_, Result<Wake, Error>>;
    /// Drops what retention no longer keeps and does other upkeep. Cheap when there is nothing.
    fn maintain(&self, now: Timestamp) -> BoxFuture<'_, Result<(), Error>>;
    /// Whether room is running out: new work has to be refused, reports are still taken.
    fn is_low_on_space(&self) -> bool;
    /// How the store is.
    fn health(&self) -> Health;
    /// What it has spent time on since the process started.
    fn spent(&self) -> Spent {
        Spent::default()
    }
    /// Tells `news` from now on what other processes do. A store of one process has nothing to
    /// tell.
    fn watch(&self, _news: Arc<dyn News>) {}
    /// The workers that other processes have heard from lately. A store of one process knows none.
    fn workers_elsewhere(&self) -> BoxFuture<'_, Result<Vec<WorkerNote>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    /// How long a batch may be held back for more requests to join it. Worth it where a commit
    /// takes long and the next one cannot be prepared meanwhile.
    fn gathers_for(&self) -> Duration {
        Duration::ZERO
    }
    /// Submissions of one caller that are worth one commit: more of them keep others waiting for
    /// longer than they save.
    fn takes_at_once(&self) -> usize {
        usize::MAX
    }
    /// Whether [`Store::settle`] does anything.
    fn can_settle(&self) -> bool {
        false
    }
    /// Makes durable what was committed to be settled by its caller, on this thread, which waits
    /// for the disk. Tickets are kept meanwhile, in order.
    fn settle(&self) {}
    /// Flushes and lets go of everything.
    fn close(&self) -> BoxFuture<'_, Result<(), Error>>;
}

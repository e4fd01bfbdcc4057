//! The handle everybody holds: contracts, the command line, the library. It sends requests to the
//! commit loop and passes reads on to the store.

use crate::alerts::{self, Reports};
use crate::bulk;
use crate::census::{self, Census};
use crate::clock::{Clock, Course};
use crate::colleagues;
use crate::commit;
use crate::config::Config;
use crate::deliveries::{self, Deliveries};
use crate::dependents::{self, Dependents};
use crate::elsewhere::Elsewhere;
use crate::entropy::{Entropy, Ids};
use crate::execution::{Executed, Execution};
use crate::explain::{self, Explanation};
use crate::leaving::Leaving;
use crate::limits::{QUEUE_MAX, RESTORED_COUNTED_MAX};
use crate::meters::{Meterings, Meters};
use crate::pull::{Grant, Pull};
use crate::request::Request;
use crate::timers;
use crate::triggers::{self, Hints};
use crate::waiters::{self, Waiters};
use crate::workers::{WorkerSeen, Workers};
use mainspring_kernel::command::Submit;
use mainspring_kernel::entity::{Kind, schedule};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::governance::is_reserved;
use mainspring_kernel::job::Effect;
use mainspring_kernel::{
    Command, Job, JobId, Receipt, Rejection, StateName, TenantId, Timestamp, TokenId, WorkerId,
};
use mainspring_store::{
    Counts, EntityFilter, Error, Health, Held, JobFilter, JobWithHistory, MovesPage, Page, Scope,
    Spent, Standing, Store,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What became of each command of a request, in order.
pub type Outcomes = Vec<Result<Receipt, Rejection>>;

/// The answer to a request.
#[derive(Debug, Default)]
pub struct Reply {
    /// One per command.
    pub outcomes: Outcomes,
    /// The jobs a pull got.
    pub grants: Vec<Grant>,
    /// Whether jobs were held that it would have got: there may be others behind them.
    pub has_held: bool,
    /// The job as it was submitted or found, for a request of one submission.
    pub job: Option<Box<Job>>,
}

/// A submission that was accepted.
#[derive(Debug)]
pub struct Submitted {
    /// The job: as submitted, or as found under its idempotency key.
    pub job: Box<Job>,
    /// Whether it was found.
    pub is_hit: bool,
}

/// Numbers of this process, since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeStatus {
    /// When the engine started.
    pub started_at: Timestamp,
    /// Commits.
    pub commits: u64,
    /// Commands decided.
    pub commands: u64,
    /// Illegal transitions refused.
    pub illegal_moves: u64,
    /// Stale lease tokens refused.
    pub stale_leases: u64,
    /// Idempotency hits answered.
    pub idempotent_hits: u64,
    /// Pulls that wait.
    pub parked_pulls: u64,
    /// How often the clock was set, and how far it is from the wall.
    pub clock: Course,
}

/// What there was to go on with when the engine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// Jobs that workers held, counted up to a million.
    pub running_jobs: u64,
    /// Schedules that fire, counted up to a million.
    pub schedules: u64,
    /// When that was.
    pub at: Timestamp,
}

/// The engine. Cheap to clone; all clones are one engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// What the handle, the commit loop and the timers share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) config: Config,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) workers: Workers,
    leaving: Leaving,
    pub(crate) tally: Tally,
    pub(crate) meters: Meters,
    /// How many entities of each kind there were at the last count.
    pub(crate) census: Census,
    /// Rung after every commit that moved a job, here or elsewhere.
    pub(crate) moved: watch::Sender<u64>,
    /// Rung when tokens may have changed, here or elsewhere.
    pub(crate) tokens_changed: watch::Sender<u64>,
    /// Rung when types may have changed, here or elsewhere.
    pub(crate) types_changed: watch::Sender<u64>,
    /// Rung when alerts have changed here.
    pub(crate) alerts_changed: watch::Sender<u64>,
    /// Rung when subscriptions have changed here.
    pub(crate) bus_changed: watch::Sender<u64>,
    /// Rung when jobs may have moved elsewhere.
    pub(crate) moved_elsewhere: Notify,
    pub(crate) waiters: Waiters,
    /// What requests are told.
    pub(crate) deliveries: Deliveries,
    /// What triggers should know.
    pub(crate) hints: Hints,
    /// Who waits for jobs to end.
    pub(crate) dependents: Dependents,
    /// Rung when a bulk operation has something to do.
    pub(crate) bulks_changed: Notify,
    /// What people should perhaps look at.
    pub(crate) reports: Reports,
    /// Rung when a waiting job has become due, so that pulls that wait are served.
    pub(crate) work_is_due: Notify,
    pub(crate) ids: Ids,
    /// Rung when the next due instant may have changed.
    pub(crate) timer_changed: Notify,
    pub(crate) stop: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    started_at: Timestamp,
    restored: Restored,
}

/// Counters since the process started.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) commits: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) illegal_moves: AtomicU64,
    pub(crate) stale_leases: AtomicU64,
    pub(crate) idempotent_hits: AtomicU64,
    pub(crate) parked_pulls: AtomicU64,
    pub(crate) executed: Executed,
}

/// A token that is waited on is looked at again after this long, should no word of it come.
const TOKEN_LOOK_EVERY: Duration = Duration::from_secs(1);

impl Engine {
    /// Starts the commit loop and the timers on the present tokio runtime.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        config: Config,
    ) -> Result<Engine, Error> {
        let (requests, inbox) = mpsc::channel(QUEUE_MAX);
        let started_at = clock.now();
        let restored = restored(&*store, started_at).await?;
        let reports = Reports::new(&config.alerts);
        let shared = Arc::new(Shared {
            reports,
            store,
            clock,
            entropy,
            config,
            requests,
            workers: Workers::default(),
            leaving: Leaving::default(),
            tally: Tally::default(),
            meters: Meters::new(),
            census: Census::default(),
            moved: watch::Sender::new(0),
            tokens_changed: watch::Sender::new(0),
            types_changed: watch::Sender::new(0),
            alerts_changed: watch::Sender::new(0),
            bus_changed: watch::Sender::new(0),
            moved_elsewhere: Notify::new(),
            waiters: Waiters::default(),
            deliveries: Deliveries::default(),
            hints: Hints::default(),
            timer_changed: Notify::new(),
            work_is_due: Notify::new(),
            bulks_changed: Notify::new(),
            dependents: Dependents::default(),
            ids: Ids::default(),
            stop: CancellationToken::new(),
            tasks: Mutex::default(),
            started_at,
            restored,
        });
        shared.store.watch(Arc::new(Elsewhere(Arc::downgrade(&shared))));
        shared.keep("the deliveries", deliveries::run(shared.clone()));
        shared.keep("the commit loop", commit::run(shared.clone(), inbox));
        let engine = Engine { shared };
        let grace_until = started_at + engine.shared.config.restart_grace;
        let reaper = timers::Reaper::new(&engine.shared, grace_until).await?;
        engine.shared.keep("the timers", timers::run(engine.shared.clone(), reaper));
        engine.shared.keep("the waiters", waiters::look_elsewhere(engine.shared.clone()));
        engine.shared.keep("the triggers", triggers::run(engine.shared.clone()));
        engine.shared.keep("the dependents", dependents::run(engine.shared.clone()));
        engine.shared.keep("the clerk", bulk::run(engine.shared.clone()));
        engine.shared.keep("the sentry", alerts::run(engine.shared.clone()));
        engine.shared.keep("the census", census::run(engine.shared.clone()));
        Ok(engine)
    }

    /// The present instant.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// 128 unguessable bits.
    pub fn fresh_bits(&self) -> u128 {
        self.shared.entropy.bits()
    }

    /// The bits of an id for something new: later ones are larger.
    pub fn fresh_id(&self) -> u128 {
        self.shared.ids.next(self.now(), self.fresh_bits())
    }

    /// Has the kernel decide `commands`, in order, in one commit.
    ///
    /// # Errors
    /// If the store failed: then the outcome is unknown to the caller, as after a lost answer.
    pub async fn execute(&self, commands: Vec<Command>) -> Result<Outcomes, Error> {
        Ok(self.request(commands, None).await?.outcomes)
    }

    /// Submits many jobs that have nothing to do with each other, each answered by itself. While
    /// workers wait, for whom time counts, others come between where one commit for all would keep
    /// them waiting. Answers what became of the first ones, in order, and what kept the rest from
    /// being taken, if anything did.
    ///
    /// # Errors
    /// If the store failed before any was taken.
    pub async fn submit_many(
        &self,
        wishes: Vec<Submit>,
    ) -> Result<(Outcomes, Option<Error>), Error> {
        let mut outcomes = Outcomes::with_capacity(wishes.len());
        let mut wishes = wishes.into_iter().map(|wish| Command::Submit(Box::new(wish)));
        loop {
            let is_anybody_waiting = self.shared.tally.parked_pulls.load(Ordering::Relaxed) > 0;
            let most = match is_anybody_waiting {
                true => self.shared.store.takes_at_once(),
                false => usize::MAX,
            };
            let part: Vec<Command> = wishes.by_ref().take(most).collect();
            if part.is_empty() {
                return Ok((outcomes, None));
            }
            match self.execute(part).await {
                Ok(some) => outcomes.extend(some),
                Err(error) if outcomes.is_empty() => return Err(error),
                Err(error) => return Ok((outcomes, Some(error))),
            }
        }
    }

    /// As [`Engine::execute`] for a single command.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn execute_one(&self, command: Command) -> Result<Result<Receipt, Rejection>, Error> {
        let mut outcomes = self.execute(vec![command]).await?;
        outcomes.pop().ok_or(Error::Stopped)
    }

    /// Submits one job and answers with the job as submitted, or as found.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn submit(&self, wish: Submit) -> Result<Result<Submitted, Rejection>, Error> {
        let mut reply = self.request(vec![Command::Submit(Box::new(wish))], None).await?;
        let job = reply.job;
        Ok(match (reply.outcomes.pop(), job) {
            (Some(Err(rejection)), _) => Err(rejection),
            (Some(Ok(Receipt::Submitted { .. })), Some(job)) => {
                Ok(Submitted { job, is_hit: false })
            }
            (Some(Ok(_)), Some(job)) => Ok(Submitted { job, is_hit: true }),
            (Some(Ok(_)), None) => Err(Rejection::JobUnknown),
            (None, _) => return Err(Error::Stopped),
        })
    }

    /// Reports of a worker, then perhaps a pull: one request, one commit.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn work(&self, commands: Vec<Command>, pull: Option<Pull>) -> Result<Reply, Error> {
        match pull {
            // Alone it may wait, and must end when its worker leaves.
            Some(pull) if commands.is_empty() => self.pull_alone(pull).await,
            pull => self.request(commands, pull).await,
        }
    }

    /// Hands out jobs, waiting for the first one if the pull says so.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn pull(&self, pull: Pull) -> Result<Vec<Grant>, Error> {
        Ok(self.pull_alone(pull).await?.grants)
    }

    async fn pull_alone(&self, pull: Pull) -> Result<Reply, Error> {
        let stay = self.shared.leaving.stay((pull.tenant.clone(), pull.worker.clone()));
        let (request, mut reply) = Request::new(Vec::new(), Some(pull), &self.shared.requests);
        self.shared.requests.send(request).await.map_err(|_| Error::Stopped)?;
        let parcel = tokio::select! {
            biased;
            reply = &mut reply => reply.map_err(|_| Error::Stopped)??,
            () = stay.is_over() => {
                // What was granted by now is told; what comes later is given back.
                reply.close();
                match reply.try_recv() {
                    Ok(parcel) => parcel?,
                    Err(_) => return Ok(Reply::default()),
                }
            }
        };
        Ok(parcel.unpack())
    }

    /// Ends the waiting pulls of a worker that is about to stop.
    pub fn leave(&self, tenant: Option<TenantId>, worker: WorkerId) {
        self.shared.leaving.leave(&(tenant, worker));
    }

    async fn request(&self, commands: Vec<Command>, pull: Option<Pull>) -> Result<Reply, Error> {
        let (request, reply) = Request::new(commands, pull, &self.shared.requests);
        self.shared.requests.send(request).await.map_err(|_| Error::Stopped)?;
        Ok(reply.await.map_err(|_| Error::Stopped)??.unpack())
    }

    /// One job with its history.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn job(&self, id: JobId) -> Result<Option<JobWithHistory>, Error> {
        self.shared.store.job(id).await
    }

    /// The job that holds a key, or whose caller chose that name for it, with its history, if it is
    /// in `scope` and still kept.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn job_of_key(
        &self,
        key: Digest,
        scope: &Scope,
    ) -> Result<Option<JobWithHistory>, Error> {
        match self.shared.store.holder_of_key(key).await? {
            Some(holder) if holder.holds_at(self.now()) => {
                self.shared.store.job_within(holder.job, scope).await
            }
            Some(_) | None => Ok(None),
        }
    }

    /// One job with its history, if it is in `scope`.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn job_within(
        &self,
        id: JobId,
        scope: &Scope,
    ) -> Result<Option<JobWithHistory>, Error> {
        self.shared.store.job_within(id, scope).await
    }

    /// One committed effect of a job.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn effect(&self, id: JobId, name: &str) -> Result<Option<Effect>, Error> {
        self.shared.store.effect(id, name).await
    }

    /// One job with its history, once it has ended or `wait` is over.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn job_ended(
        &self,
        id: JobId,
        wait: Duration,
    ) -> Result<Option<JobWithHistory>, Error> {
        let mut place = self.shared.waiters.jobs.wait(id);
        let deadline = Instant::now() + wait;
        loop {
            let found = self.shared.store.job(id).await?;
            let has_ended = found.as_ref().is_none_or(|found| found.job.state.name().is_terminal());
            if has_ended || self.shared.stop.is_cancelled() || deadline <= Instant::now() {
                return Ok(found);
            }
            tokio::select! {
                biased;
                () = place.is_rung() => {}
                () = self.shared.stop.cancelled() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// Jobs, newest first.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn jobs(
        &self,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Page<Job>, Error> {
        self.shared.store.jobs(filter, before, limit).await
    }

    /// How many jobs a filter admits, counted up to `most`.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn count_jobs(&self, filter: &JobFilter, most: usize) -> Result<usize, Error> {
        self.shared.store.count_jobs(filter, most).await
    }

    /// Ends when a token stops working: revoked on any server, or expired. Whoever waits on behalf
    /// of a token waits on this, too.
    pub async fn token_ended(&self, id: TokenId) {
        let mut changed = self.shared.tokens_changed.subscribe();
        loop {
            changed.mark_unchanged();
            let mut look_in = TOKEN_LOOK_EVERY;
            // A store that cannot be read says nothing about the token.
            if let Ok(found) = self.token(id).await {
                let now = self.now();
                let Some(token) = found.filter(|token| token.is_live(now)) else { return };
                let expires_in = token.expires_at.map(|end| end.since(now));
                look_in = expires_in.map_or(look_in, |end| end.min(look_in));
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(look_in) => {}
            }
        }
    }

    /// Why a job is not running yet, or what it is doing.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn explain(&self, id: JobId) -> Result<Option<Explanation>, Error> {
        explain::explain(&self.shared, id).await
    }

    /// What the jobs of one tenant come to that have not ended.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn held_by(&self, tenant: &TenantId) -> Result<Held, Error> {
        self.shared.store.held_by(tenant).await
    }

    /// What jobs that have not ended may take up: of one tenant, and in all.
    pub fn backlog_max(&self) -> (u64, u64) {
        (self.shared.config.backlog_bytes_per_tenant, self.shared.config.backlog_bytes_max)
    }

    /// Counts for metrics.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn counts(&self) -> Result<Counts, Error> {
        let mut counts = self.shared.store.counts(self.now()).await?;
        counts.queues.retain(|queue| !is_reserved(&queue.name));
        Ok(counts)
    }

    /// Durable moves of all jobs after `position`, waiting up to `wait` for the first one.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn moves_after(
        &self,
        position: u64,
        limit: usize,
        wait: Duration,
    ) -> Result<MovesPage, Error> {
        self.moves_for(None, position, limit, wait).await
    }

    /// As [`Engine::moves_after`] for somebody who is only concerned by moves of one tenant's jobs.
    /// Others are answered, too, so that they can be passed over, but not at once.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn moves_for(
        &self,
        tenant: Option<&TenantId>,
        position: u64,
        limit: usize,
        wait: Duration,
    ) -> Result<MovesPage, Error> {
        let mut listening = self.listen(tenant);
        let deadline = Instant::now() + wait;
        loop {
            listening.looks();
            let page = self.shared.store.moves_after(position, limit).await?;
            let is_over = self.shared.stop.is_cancelled() || deadline <= Instant::now();
            if !page.moves.is_empty() || page.has_gap || is_over {
                return Ok(page);
            }
            tokio::select! {
                biased;
                () = listening.news() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// Workers heard of lately.
    pub fn workers(&self) -> Vec<WorkerSeen> {
        self.shared.workers.list(self.now(), self.shared.config.worker_memory)
    }

    /// Workers heard of lately by any server of this store, by name.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn workers_everywhere(&self) -> Result<Vec<WorkerSeen>, Error> {
        colleagues::everywhere(&self.shared).await
    }

    /// Notes that a worker sent a heartbeat, for the list of workers.
    pub fn worker_seen(&self, worker: &mainspring_kernel::WorkerId) {
        self.shared.workers.beat(worker, self.now());
    }

    /// How the store is.
    pub fn health(&self) -> Health {
        let health = self.shared.store.health();
        match self.shared.config.fatal.reason() {
            Some(reason) => Health { broken: Some(reason.to_owned()), ..health },
            None => health,
        }
    }

    /// Numbers of this process.
    pub fn status(&self) -> RuntimeStatus {
        let tally = &self.shared.tally;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RuntimeStatus {
            started_at: self.shared.started_at,
            commits: read(&tally.commits),
            commands: read(&tally.commands),
            illegal_moves: read(&tally.illegal_moves),
            stale_leases: read(&tally.stale_leases),
            idempotent_hits: read(&tally.idempotent_hits),
            parked_pulls: read(&tally.parked_pulls),
            clock: self.shared.clock.course(),
        }
    }

    /// What this process has seen of the execution of jobs.
    pub fn execution(&self) -> Execution {
        self.shared.tally.executed.sum()
    }

    /// What this process has counted for metrics.
    pub fn meterings(&self) -> Meterings {
        self.shared.meters.read()
    }

    /// How many entities of each kind there were at the last count; of more than are counted, as
    /// many as that.
    pub fn census(&self) -> Vec<(Kind, u64)> {
        self.shared.census.told()
    }

    /// What the store has spent time on.
    pub fn spent(&self) -> Spent {
        self.shared.store.spent()
    }

    /// What there was to go on with when the engine started.
    pub fn restored(&self) -> Restored {
        self.shared.restored
    }

    /// What stands between a waiting job and a worker; `None` if it does not wait.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn standing(&self, id: JobId) -> Result<Option<Standing>, Error> {
        self.shared.store.standing(id, self.now()).await
    }

    /// Whether the engine is shutting down: long polls and streams end when it does.
    pub fn stopping(&self) -> CancellationToken {
        self.shared.stop.clone()
    }

    /// Ends long polls, finishes what was accepted, closes the store.
    ///
    /// # Errors
    /// If the store could not be flushed.
    pub async fn shutdown(&self) -> Result<(), Error> {
        self.shared.stop.cancel();
        let tasks =
            std::mem::take(&mut *self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            // A task that panicked has nothing left to finish.
            let _ = task.await;
        }
        self.shared.store.close().await
    }
}

/// Looks at what the store has, before anything happens to it.
async fn restored(store: &dyn Store, at: Timestamp) -> Result<Restored, Error> {
    let running = JobFilter { state: Some(StateName::Running), ..JobFilter::of(Scope::All) };
    let running_jobs = store.count_jobs(&running, RESTORED_COUNTED_MAX).await? as u64;
    let state = Some(schedule::Status::Active.as_str().to_owned());
    let active = EntityFilter { state, ..EntityFilter::of(Kind::Schedule, Scope::All) };
    let schedules = store.count_entities(&active, RESTORED_COUNTED_MAX).await? as u64;
    Ok(Restored { running_jobs, schedules, at })
}

impl Shared {
    /// Whether small commits are made durable on the runtime's thread.
    pub(crate) fn settles_here(&self) -> bool {
        self.config.settled_here_max > 0 && self.store.can_settle()
    }

    /// Starts a task that lives as long as the engine; its death is fatal.
    fn keep(&self, part: &'static str, body: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(self.config.fatal.clone().watch(part, body));
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }
}

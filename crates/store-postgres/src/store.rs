//! The `Store` trait on top of the writer, the readers and the upkeep.

use crate::backlog;
use crate::commit::Writer;
use crate::config::PostgresConfig;
use crate::connections::{Connections, Value};
use crate::due::entity_alarms;
use crate::entities;
use crate::fault::Fault;
use crate::list;
use crate::migrate::{self, MigrateError};
use crate::neighbours::{self, workers};
use crate::outage::probe;
use crate::queries::Query;
use crate::read;
use crate::stream::tail::Tail;
use crate::stream::{self, Stamper};
use crate::this_server::ThisServer;
use crate::upkeep;
use futures_util::future::BoxFuture;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::job::{Effect, Payload};
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Job, JobId, QueueSpec, TenantId, Timestamp, Token, TokenId,
    TypeSpec,
};
use mainspring_store::{
    Counts, EntityFilter, Error, Health, Held, ItemFilter, JobFilter, JobWithHistory, MovesPage,
    Needs, News, Page, Recovery, Scope, Spent, Standing, Store, Ticket, Wake, Work, WorkerNote,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

/// A store in a PostgreSQL database that any number of servers may share.
pub struct PostgresStore {
    server: Arc<ThisServer>,
    writer: Mutex<Writer>,
    /// For batches that only make jobs, beside those of the writer.
    maker: Mutex<Writer>,
    stamper: Arc<Mutex<Stamper>>,
    tail: Tail,
    tasks: StdMutex<Vec<JoinHandle<()>>>,
    recovery: Recovery,
    /// When upkeep was last done here.
    kept_at: StdMutex<Option<Instant>>,
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database is not fit for this version, or could not be made so.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The database cannot be used.
    #[error("{0}")]
    Failed(String),
}

/// How long a batch is held back for others to join: a small part of what a commit takes.
const GATHER: Duration = Duration::from_micros(150);
/// Submissions of one caller in one transaction, at most, while workers wait: it holds the one
/// writer. With 250 in one that shared its commit with others, a neighbour's p99 was 17 ms; with a
/// hundred alone 12 (N5 of the benchmark).
const TAKES_AT_ONCE: usize = 100;
/// How often a server does upkeep; the first time soon after it starts.
const UPKEEP_EVERY: Duration = Duration::from_secs(30);

impl PostgresStore {
    /// Opens the store; an empty database gets its schema, an older one the steps it misses, as
    /// long as servers of the version before may go on.
    ///
    /// # Errors
    /// If the database cannot be reached, was migrated by a newer version, misses a step that other
    /// servers would not survive, or a step fails.
    pub async fn open(config: PostgresConfig, node: u128) -> Result<Self, OpenError> {
        migrate::refuse_unsafe(&config).await?;
        migrate::prepare(&config).await?;
        let failed = |fault: Fault| OpenError::Failed(Error::from(fault).to_string());
        let connections = Connections::open(&config).await.map_err(failed)?;
        let server = Arc::new(ThisServer::new(connections, config, Uuid::from_u128(node)));
        server.read_registry().await.map_err(failed)?;
        neighbours::say_alive(&server).await.map_err(failed)?;
        upkeep::make_partitions(&server).await.map_err(failed)?;
        let window = server.config.key_window_secs.map(i64::from);
        let strict: Vec<Value> = vec![Box::new(server.config.are_types_strict), Box::new(window)];
        server.connections.read(Query::SetStrict, strict).await.map_err(failed)?;
        let stamper = Arc::new(Mutex::new(Stamper::default()));
        stamper.lock().await.stamp(&server).await.map_err(failed)?;
        backlog::look(&server).await.map_err(failed)?;
        server.learn_alarms().await.map_err(failed)?;
        let counts = stream::counts(&server).await.map_err(failed)?;
        let [queued, running, retrying, pending, recorded, ..] = counts.by_state;
        let recovery = Recovery {
            jobs: queued + running + retrying + pending + recorded,
            running,
            ..Recovery::default()
        };
        let watch = || server.config.fatal.clone();
        let life = neighbours::watch(server.clone(), stamper.clone());
        let mut tasks = vec![
            tokio::spawn(watch().watch("the look at other servers", life)),
            tokio::spawn(watch().watch("the teller", neighbours::tell(server.clone()))),
            tokio::spawn(watch().watch("the probe", probe::run(server.clone()))),
        ];
        if server.config.is_notified && !server.connections.is_pooled() {
            let listener = neighbours::listen(server.clone());
            tasks.push(tokio::spawn(watch().watch("the listener", listener)));
        }
        Ok(PostgresStore {
            server,
            writer: Mutex::default(),
            maker: Mutex::new(Writer::that_only_makes_jobs()),
            stamper,
            tail: Tail::default(),
            tasks: StdMutex::new(tasks),
            recovery,
            kept_at: StdMutex::default(),
        })
    }

    /// Commits, again and again while the database is away and callers are patient.
    async fn commit_patiently(&self, needs: Needs, work: &mut Work<'_>) -> Result<Ticket, Error> {
        let server = &self.server;
        if server.config.fatal.reason().is_some() || server.is_closed.load(Ordering::Acquire) {
            return Err(Error::Stopped);
        }
        let mut writer = match needs.is_beside {
            true => self.maker.lock().await,
            false => self.writer.lock().await,
        };
        let started = Instant::now();
        loop {
            server.see_clearly(started).await?;
            let asked = Instant::now();
            let outcome = writer.commit(server, &needs, work).await;
            if writer.only_makes_jobs && matches!(outcome, Err(Fault::RegistryChanged)) {
                drop(writer);
                writer = self.writer.lock().await;
                continue;
            }
            if server.tries_commit_again(&outcome, asked, started).await {
                continue;
            }
            outcome?;
            server.note_served();
            return Ok(Ticket::kept());
        }
    }

    async fn stamp(&self) -> Result<(), Fault> {
        self.stamper.lock().await.stamp(&self.server).await.map(|_| ())
    }
}

impl Store for PostgresStore {
    fn commit<'a>(
        &'a self,
        needs: Needs,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<Ticket, Error>> {
        Box::pin(self.commit_patiently(needs, work))
    }

    fn job(&self, id: JobId) -> BoxFuture<'_, Result<Option<JobWithHistory>, Error>> {
        Box::pin(async move {
            let found = self.server.patiently(|| read::job(&self.server, id)).await?;
            Ok(found.map(|found| JobWithHistory { job: *found.job, history: found.history }))
        })
    }

    fn holder_of_key(&self, key: Digest) -> BoxFuture<'_, Result<Option<KeyHolder>, Error>> {
        Box::pin(self.server.patiently(move || read::holder_of_key(&self.server, key)))
    }

    fn job_within<'a>(
        &'a self,
        id: JobId,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Option<JobWithHistory>, Error>> {
        Box::pin(async move {
            // Only who may see it learns what reading it costs.
            if *scope != Scope::All
                && !self.server.patiently(|| read::has_job(&self.server, id, scope)).await?
            {
                return Ok(None);
            }
            self.job(id).await
        })
    }

    fn ended<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        Box::pin(
            self.server.patiently(move || read::find_jobs(&self.server, Query::FindEnded, jobs)),
        )
    }

    fn held<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        Box::pin(async move { Ok(read::find_jobs(&self.server, Query::FindHeld, jobs).await?) })
    }

    fn effect<'a>(
        &'a self,
        id: JobId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Effect>, Error>> {
        Box::pin(self.server.patiently(move || read::effect(&self.server, id, name)))
    }

    fn effects(&self, id: JobId) -> BoxFuture<'_, Result<Vec<Effect>, Error>> {
        Box::pin(self.server.patiently(move || read::effects(&self.server, id)))
    }

    fn checkpoint(&self, id: JobId) -> BoxFuture<'_, Result<Option<Payload>, Error>> {
        Box::pin(self.server.patiently(move || read::checkpoint(&self.server, id)))
    }

    fn waits_on<'a>(
        &'a self,
        jobs: &'a [JobId],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(EntityId, JobId)>, Error>> {
        Box::pin(self.server.patiently(move || entities::waits_on(&self.server, jobs, limit)))
    }

    fn jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Job>, Error>> {
        Box::pin(self.server.patiently(move || list::jobs(&self.server, filter, before, limit)))
    }

    fn count_jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.server.patiently(move || list::count_jobs(&self.server, filter, most)))
    }

    fn item(&self, id: DlqId) -> BoxFuture<'_, Result<Option<DlqItem>, Error>> {
        Box::pin(self.server.patiently(move || read::item(&self.server, id, &Scope::All)))
    }

    fn item_within<'a>(
        &'a self,
        id: DlqId,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Option<DlqItem>, Error>> {
        Box::pin(self.server.patiently(move || read::item(&self.server, id, scope)))
    }

    fn items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<DlqItem>, Error>> {
        Box::pin(self.server.patiently(move || list::items(&self.server, filter, before, limit)))
    }

    fn count_items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.server.patiently(move || list::count_items(&self.server, filter, most)))
    }

    fn entity(&self, id: EntityId) -> BoxFuture<'_, Result<Option<Entity>, Error>> {
        Box::pin(self.server.patiently(move || entities::find(&self.server, id)))
    }

    fn entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        before: Option<EntityId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Entity, EntityId>, Error>> {
        Box::pin(self.server.patiently(move || entities::list(&self.server, filter, before, limit)))
    }

    fn count_entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.server.patiently(move || entities::count(&self.server, filter, most)))
    }

    fn types(&self) -> BoxFuture<'_, Result<Vec<TypeSpec>, Error>> {
        Box::pin(async move {
            let registry = self.server.patiently(|| self.server.fresh_registry()).await?;
            Ok(registry.types.values().cloned().collect())
        })
    }

    fn queues(&self) -> BoxFuture<'_, Result<Vec<QueueSpec>, Error>> {
        Box::pin(async move {
            let registry = self.server.patiently(|| self.server.fresh_registry()).await?;
            Ok(registry.queues.values().cloned().collect())
        })
    }

    fn tokens(&self) -> BoxFuture<'_, Result<Vec<Token>, Error>> {
        Box::pin(async move {
            let registry = self.server.patiently(|| self.server.fresh_registry()).await?;
            Ok(registry.tokens.values().cloned().collect())
        })
    }

    fn token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Token>, Error>> {
        if let Some(token) = self.server.registry().tokens.get(&id) {
            // A revocation elsewhere is seen at the next look.
            return Box::pin(std::future::ready(Ok(Some(token.clone()))));
        }
        Box::pin(self.server.patiently(move || self.server.find_token(id)))
    }

    fn standing(
        &self,
        id: JobId,
        _now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Standing>, Error>> {
        Box::pin(self.server.patiently(move || read::standing(&self.server, id)))
    }

    fn held_by<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Held, Error>> {
        Box::pin(std::future::ready(Ok(self.server.backlog().of(tenant).0.held())))
    }

    fn counts(&self, now: Timestamp) -> BoxFuture<'_, Result<Counts, Error>> {
        Box::pin(self.server.patiently(move || async move {
            self.server.promote(now).await?;
            self.stamp().await?;
            stream::counts(&self.server).await
        }))
    }

    fn moves_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<MovesPage, Error>> {
        Box::pin(self.server.patiently(move || async move {
            let read = || async {
                self.stamp().await?;
                stream::moves_after(&self.server, position, limit).await
            };
            self.tail.read(position, limit, read).await
        }))
    }

    fn overdue(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        Box::pin(self.server.patiently(move || self.server.find_overdue(now, limit)))
    }

    fn alarms(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(EntityId, Timestamp)>, Error>> {
        Box::pin(self.server.patiently(move || entity_alarms::find_due(&self.server, now, limit)))
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        Box::pin(self.server.patiently(|| self.server.find_running()))
    }

    fn wake(&self, now: Timestamp) -> BoxFuture<'_, Result<Wake, Error>> {
        Box::pin(self.server.patiently(move || self.server.wake(now)))
    }

    fn maintain(&self, now: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        {
            let mut kept_at = self.kept_at.lock().unwrap_or_else(PoisonError::into_inner);
            if kept_at.is_some_and(|at| at.elapsed() < UPKEEP_EVERY) {
                return Box::pin(std::future::ready(Ok(())));
            }
            *kept_at = Some(Instant::now());
        }
        Box::pin(self.server.patiently(move || upkeep::maintain(&self.server, now)))
    }

    fn is_low_on_space(&self) -> bool {
        false
    }

    fn health(&self) -> Health {
        let broken = match (
            self.server.config.fatal.reason(),
            self.server.is_closed.load(Ordering::Acquire),
        ) {
            (Some(reason), _) => Some(reason.to_owned()),
            (None, true) => Some("the store is closed".to_owned()),
            (None, false) => {
                self.server.away().map(|(why, _)| format!("PostgreSQL is away: {why}"))
            }
        };
        Health {
            kind: "postgres",
            broken,
            is_low_on_space: false,
            damaged_blocks: 0,
            recovery: self.recovery.clone(),
        }
    }

    fn spent(&self) -> Spent {
        Spent { database: self.server.connections.times.readout(), ..Spent::default() }
    }

    fn workers_elsewhere(&self) -> BoxFuture<'_, Result<Vec<WorkerNote>, Error>> {
        Box::pin(self.server.patiently(|| workers::workers_elsewhere(&self.server)))
    }

    fn gathers_for(&self) -> Duration {
        GATHER
    }

    fn commits_beside(&self) -> bool {
        true
    }

    fn takes_at_once(&self) -> usize {
        TAKES_AT_ONCE
    }

    fn watch(&self, news: Arc<dyn News>) {
        // One engine to a store; a second one would hear nothing.
        let _ = self.server.news.set(news);
    }

    fn close(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.server.is_closed.store(true, Ordering::Release);
            let tasks =
                std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
            for task in tasks {
                task.abort();
            }
            // Not worth an error: a server that is not seen is soon not counted on.
            let _ = self
                .server
                .connections
                .read(Query::ForgetNode, vec![Box::new(self.server.id)])
                .await;
            self.server.connections.close();
            Ok(())
        })
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        for task in self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

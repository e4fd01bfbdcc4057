//! The `Store` trait on top of the writer, the readers and the upkeep.

use crate::backlog;
use crate::commit::Writer;
use crate::config::PostgresConfig;
use crate::connections::{Connections, Value};
use crate::entities;
use crate::fault::Fault;
use crate::list;
use crate::migrate::{self, MigrateError};
use crate::neighbours;
use crate::neighbours::workers;
use crate::queries::Query;
use crate::read;
use crate::stream::tail::Tail;
use crate::stream::{self, Stamper};
use crate::this_server::ThisServer;
use crate::upkeep;
use crate::values::{At, job_id, uuid};
use futures_util::future::BoxFuture;
use mainspring_kernel::job::Effect;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Job, JobId, QueueSpec, TenantId, Timestamp, Token, TokenId,
    TypeSpec,
};
use mainspring_store::record::{Names, Record, records_of};
use mainspring_store::{
    Counts, EntityFilter, Error, Health, Held, ItemFilter, JobFilter, JobWithHistory, MovesPage,
    Needs, News, Page, Recovery, Scope, Standing, Store, Ticket, Wake, Work, WorkerNote,
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

/// A database that is away is asked again after this long.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Even a database that was away for long gets this much time for an answer.
const PATIENCE_MIN: Duration = Duration::from_millis(250);
/// What callers are told of a database that keeps silent.
const NO_ANSWER: &str = "no answer in time";
/// A lease that ran out this long ago and is still there was left alone by everybody.
const UNREAPED_MIN: Duration = Duration::from_millis(250);
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
        neighbours::see(&server).await.map_err(failed)?;
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
        let life = neighbours::run(server.clone(), stamper.clone());
        let mut tasks = vec![
            tokio::spawn(watch().watch("the look at other servers", life)),
            tokio::spawn(watch().watch("the teller", neighbours::tell(server.clone()))),
            tokio::spawn(watch().watch("the probe", neighbours::probe(server.clone()))),
        ];
        if server.config.is_notified && !server.connections.is_pooled() {
            let listener = neighbours::listen(server.clone());
            tasks.push(tokio::spawn(watch().watch("the listener", listener)));
        }
        Ok(PostgresStore {
            server,
            writer: Mutex::default(),
            stamper,
            tail: Tail::default(),
            tasks: StdMutex::new(tasks),
            recovery,
            kept_at: StdMutex::default(),
        })
    }

    /// Does `what`, again and again while the database is away and callers are patient.
    async fn patiently<T, F>(&self, mut what: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let started = Instant::now();
        loop {
            let asked = Instant::now();
            let outcome = match self.patience_left() {
                None => what().await,
                Some(left) => tokio::time::timeout(left, what())
                    .await
                    .unwrap_or_else(|_| Err(Fault::Away(NO_ANSWER.into()))),
            };
            self.server.note(&outcome, asked);
            if !self.is_worth_another(&outcome, started) {
                return outcome.map_err(Error::from);
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// While the database is away, how long it still gets for an answer: callers come one after the
    /// other and must not wait one after the other.
    fn patience_left(&self) -> Option<Duration> {
        let (_, since) = self.server.away()?;
        Some(self.server.config.patience.saturating_sub(since.elapsed()).max(PATIENCE_MIN))
    }

    /// Whether the caller should wait and try again.
    fn is_worth_another<T>(&self, outcome: &Result<T, Fault>, started: Instant) -> bool {
        let patience = self.server.config.patience;
        let is_long_away = self.server.away().is_some_and(|(_, since)| since.elapsed() > patience);
        matches!(outcome, Err(Fault::Away(_)))
            && started.elapsed() < patience
            && !is_long_away
            && !self.server.is_closed.load(Ordering::Acquire)
    }

    async fn commit_patiently(&self, needs: Needs, work: &mut Work<'_>) -> Result<Ticket, Error> {
        let is_broken = self.server.config.fatal.reason().is_some();
        if is_broken || self.server.is_closed.load(Ordering::Acquire) {
            return Err(Error::Stopped);
        }
        let mut writer = self.writer.lock().await;
        let started = Instant::now();
        loop {
            self.see_clearly(started).await?;
            let asked = Instant::now();
            let outcome = writer.commit(&self.server, &needs, work).await;
            self.server.note(&outcome, asked);
            if self.is_worth_another(&outcome, started) {
                tokio::time::sleep(AGAIN_AFTER).await;
                continue;
            }
            let done = outcome?;
            self.server.note_served();
            if let Some(due) = done.next_due {
                self.server.due_by(due);
            }
            if done.has_ready || done.has_moved {
                self.server.to_tell.notify_one();
            }
            return Ok(Ticket::kept());
        }
    }

    /// After an outage nothing is decided before it is known whether anybody could renew a lease
    /// meanwhile: waits for the probe, as long as callers are patient. A server that stood still
    /// looks by itself.
    async fn see_clearly(&self, started: Instant) -> Result<(), Fault> {
        let patience = self.server.config.patience;
        let mut is_back = self.server.is_back.subscribe();
        loop {
            while let Some((why, since)) = self.server.away() {
                let left = patience.saturating_sub(started.elapsed().max(since.elapsed()));
                if left.is_zero() || self.server.is_closed.load(Ordering::Acquire) {
                    return Err(Fault::Away(why));
                }
                // Whether it was rung or not, the next look at it tells.
                let _ = tokio::time::timeout(left, is_back.changed()).await;
            }
            if !self.server.has_not_looked() {
                return Ok(());
            }
            // A look that is not answered begins an outage: nobody waits for it and then again.
            let asked = Instant::now();
            let left = patience.saturating_sub(started.elapsed()).max(PATIENCE_MIN);
            let outcome = tokio::time::timeout(left, neighbours::see(&self.server)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(Fault::Away(NO_ANSWER.into())));
            self.server.note_look(&outcome, asked);
        }
    }

    async fn stamp(&self) -> Result<(), Fault> {
        self.stamper.lock().await.stamp(&self.server).await.map(|_| ())
    }

    /// The registries, read anew if somebody changed them.
    async fn fresh_registry(&self) -> Result<Arc<crate::registry::Registry>, Fault> {
        let version = self.server.registry().version;
        match self.server.check_registry(version).await {
            Err(Fault::RegistryChanged) => self.server.read_registry().await?,
            other => other?,
        }
        Ok(self.server.registry())
    }

    async fn find_overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<JobId>, Fault> {
        let Some(from) = self.server.alarms().begin(now) else { return Ok(Vec::new()) };
        let most = i32::try_from(limit).unwrap_or(i32::MAX);
        let values: Vec<Value> = vec![Box::new(At(now)), Box::new(At(from)), Box::new(most)];
        let rows = self.server.connections.read(Query::FindOverdue, values).await?;
        if rows.is_empty() {
            self.server.alarms().done(now);
        }
        rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
    }

    async fn find_wake(&self, now: Timestamp) -> Result<Wake, Fault> {
        self.server.promote(now).await?;
        Ok(Wake {
            is_work_due: self.server.has_promoted.swap(false, Ordering::AcqRel)
                | self.server.is_early_due(now),
            next: self.server.next_instant(now),
        })
    }

    async fn find_token(&self, id: TokenId) -> Result<Option<Token>, Fault> {
        let values: Vec<Value> = vec![Box::new(Uuid::from_u128(id.0))];
        let rows = self.server.connections.read(Query::LoadToken, values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        // It was made elsewhere: a pull on its behalf has to find it, too.
        self.server.read_registry().await?;
        let mut names = Names::default();
        match records_of(row.try_get(0)?, &mut names).next() {
            Some(Ok(Record::Token(token))) => Ok(Some(*token)),
            Some(Err(bad)) => Err(bad.into()),
            _ => Err(Fault::Broken("a token is no token".into())),
        }
    }

    /// Those of `jobs` that a statement picks.
    async fn find_jobs(&self, query: Query, jobs: &[JobId]) -> Result<Vec<JobId>, Fault> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| uuid(*job)).collect();
        let rows = self.server.connections.read(query, vec![Box::new(ids)]).await?;
        rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
    }

    async fn find_running(&self) -> Result<Vec<JobId>, Fault> {
        // While others serve, workers have somebody to send their heartbeats to, and a lease that
        // ran out is reaped at once: one that was not shows that nobody served.
        let by = match self.server.has_others.load(Ordering::Acquire) {
            true => self.server.now() - UNREAPED_MIN,
            false => Timestamp::MAX,
        };
        let rows = self.server.connections.read(Query::FindRunning, vec![Box::new(At(by))]).await?;
        rows.iter().map(|row| Ok(job_id(row.try_get(0)?))).collect()
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
            let found = self.patiently(|| read::job(&self.server, id)).await?;
            Ok(found.map(|found| JobWithHistory { job: *found.job, history: found.history }))
        })
    }

    fn job_within<'a>(
        &'a self,
        id: JobId,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Option<JobWithHistory>, Error>> {
        Box::pin(async move {
            // Only who may see it learns what reading it costs.
            if *scope != Scope::All
                && !self.patiently(|| read::has_job(&self.server, id, scope)).await?
            {
                return Ok(None);
            }
            self.job(id).await
        })
    }

    fn ended<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        Box::pin(self.patiently(move || self.find_jobs(Query::FindEnded, jobs)))
    }

    fn held<'a>(&'a self, jobs: &'a [JobId]) -> BoxFuture<'a, Result<Vec<JobId>, Error>> {
        Box::pin(async move { Ok(self.find_jobs(Query::FindHeld, jobs).await?) })
    }

    fn effect<'a>(
        &'a self,
        id: JobId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Effect>, Error>> {
        Box::pin(self.patiently(move || read::effect(&self.server, id, name)))
    }

    fn effects(&self, id: JobId) -> BoxFuture<'_, Result<Vec<Effect>, Error>> {
        Box::pin(self.patiently(move || read::effects(&self.server, id)))
    }

    fn jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        before: Option<JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Job>, Error>> {
        Box::pin(self.patiently(move || list::jobs(&self.server, filter, before, limit)))
    }

    fn count_jobs<'a>(
        &'a self,
        filter: &'a JobFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.patiently(move || list::count_jobs(&self.server, filter, most)))
    }

    fn item(&self, id: DlqId) -> BoxFuture<'_, Result<Option<DlqItem>, Error>> {
        Box::pin(self.patiently(move || read::item(&self.server, id, &Scope::All)))
    }

    fn item_within<'a>(
        &'a self,
        id: DlqId,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Option<DlqItem>, Error>> {
        Box::pin(self.patiently(move || read::item(&self.server, id, scope)))
    }

    fn items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<DlqItem>, Error>> {
        Box::pin(self.patiently(move || list::items(&self.server, filter, before, limit)))
    }

    fn count_items<'a>(
        &'a self,
        filter: &'a ItemFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.patiently(move || list::count_items(&self.server, filter, most)))
    }

    fn entity(&self, id: EntityId) -> BoxFuture<'_, Result<Option<Entity>, Error>> {
        Box::pin(self.patiently(move || entities::find(&self.server, id)))
    }

    fn entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        before: Option<EntityId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<Entity, EntityId>, Error>> {
        Box::pin(self.patiently(move || entities::list(&self.server, filter, before, limit)))
    }

    fn count_entities<'a>(
        &'a self,
        filter: &'a EntityFilter,
        most: usize,
    ) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(self.patiently(move || entities::count(&self.server, filter, most)))
    }

    fn types(&self) -> BoxFuture<'_, Result<Vec<TypeSpec>, Error>> {
        Box::pin(async move {
            let registry = self.patiently(|| self.fresh_registry()).await?;
            Ok(registry.types.values().cloned().collect())
        })
    }

    fn queues(&self) -> BoxFuture<'_, Result<Vec<QueueSpec>, Error>> {
        Box::pin(async move {
            let registry = self.patiently(|| self.fresh_registry()).await?;
            Ok(registry.queues.values().cloned().collect())
        })
    }

    fn tokens(&self) -> BoxFuture<'_, Result<Vec<Token>, Error>> {
        Box::pin(async move {
            let registry = self.patiently(|| self.fresh_registry()).await?;
            Ok(registry.tokens.values().cloned().collect())
        })
    }

    fn token(&self, id: TokenId) -> BoxFuture<'_, Result<Option<Token>, Error>> {
        if let Some(token) = self.server.registry().tokens.get(&id) {
            // A revocation elsewhere is seen at the next look.
            return Box::pin(std::future::ready(Ok(Some(token.clone()))));
        }
        Box::pin(self.patiently(move || self.find_token(id)))
    }

    fn standing(
        &self,
        id: JobId,
        _now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Standing>, Error>> {
        Box::pin(self.patiently(move || read::standing(&self.server, id)))
    }

    fn held_by<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Held, Error>> {
        Box::pin(std::future::ready(Ok(self.server.backlog().of(tenant).0.held())))
    }

    fn counts(&self, now: Timestamp) -> BoxFuture<'_, Result<Counts, Error>> {
        Box::pin(self.patiently(move || async move {
            self.server.promote(now).await?;
            self.stamp().await?;
            stream::counts(&self.server).await
        }))
    }

    fn moves_after(&self, position: u64, limit: usize) -> BoxFuture<'_, Result<MovesPage, Error>> {
        Box::pin(self.patiently(move || async move {
            let read = || async {
                self.stamp().await?;
                stream::moves_after(&self.server, position, limit).await
            };
            self.tail.read(position, limit, read).await
        }))
    }

    fn overdue(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        Box::pin(self.patiently(move || self.find_overdue(now, limit)))
    }

    fn alarms(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(EntityId, Timestamp)>, Error>> {
        Box::pin(self.patiently(move || entities::due(&self.server, now, limit)))
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<JobId>, Error>> {
        Box::pin(self.patiently(|| self.find_running()))
    }

    fn wake(&self, now: Timestamp) -> BoxFuture<'_, Result<Wake, Error>> {
        Box::pin(self.patiently(move || self.find_wake(now)))
    }

    fn maintain(&self, now: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        {
            let mut kept_at = self.kept_at.lock().unwrap_or_else(PoisonError::into_inner);
            if kept_at.is_some_and(|at| at.elapsed() < UPKEEP_EVERY) {
                return Box::pin(std::future::ready(Ok(())));
            }
            *kept_at = Some(Instant::now());
        }
        Box::pin(self.patiently(move || upkeep::maintain(&self.server, now)))
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

    fn workers_elsewhere(&self) -> BoxFuture<'_, Result<Vec<WorkerNote>, Error>> {
        Box::pin(self.patiently(|| workers::workers_elsewhere(&self.server)))
    }

    fn gathers_for(&self) -> Duration {
        GATHER
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

//! What the writer, the readers and the upkeep share: connections, the registries and lanes in
//! mind, and when something is next due.

use crate::backlog::KnownBacklog;
use crate::config::PostgresConfig;
use crate::connections::{Call, Connections, Wait};
use crate::due::job_alarms::JobAlarms;
use crate::entities::FirstEntityAlarm;
use crate::fault::Fault;
use crate::neighbours::workers::WorkersTold;
use crate::outage::log::{Line, Outages};
use crate::queries::Query;
use crate::registry::{Lanes, Registry, read_registry};
use crate::rows::lane_of;
use crate::stock::Stock;
use crate::values::At;
use mainspring_kernel::dispatch::LaneKey;
use mainspring_kernel::shared_time::LOOK_GAP_MAX;
use mainspring_kernel::{JobId, Timestamp};
use mainspring_store::News;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_postgres::Row;
use uuid::Uuid;

/// What is shared.
pub(crate) struct ThisServer {
    pub(crate) connections: Connections,
    pub(crate) config: PostgresConfig,
    pub(crate) id: Uuid,
    registry: RwLock<Arc<Registry>>,
    lanes: RwLock<Lanes>,
    /// When the next waiting job is due, as far as this server knows.
    next_due: AtomicI64,
    /// When the first ready job that is not due by our clock is.
    early: AtomicI64,
    alarms: Mutex<JobAlarms>,
    pub(crate) first_alarm: FirstEntityAlarm,
    /// Lanes in which jobs became ready by time alone, for the writer.
    filled: Mutex<Vec<i32>>,
    /// Whether jobs became ready by time alone since the last look.
    pub(crate) has_promoted: AtomicBool,
    /// Commits of this server since the last look.
    pub(crate) own_commits: AtomicI64,
    /// Whether others may have made jobs ready.
    pub(crate) has_to_look: AtomicBool,
    pub(crate) news: OnceLock<Arc<dyn News>>,
    /// Rung when other servers have to hear of ready jobs or moves.
    pub(crate) to_tell: Notify,
    /// Whether the database can be used at present.
    outages: RwLock<Outages>,
    /// Rung when an outage has begun.
    pub(crate) is_lost: Notify,
    /// Changed when one has ended.
    pub(crate) is_back: watch::Sender<u64>,
    /// When the database was last looked at, with or without an answer.
    looked_at: RwLock<tokio::time::Instant>,
    /// When it last took something from this server.
    served_at: RwLock<tokio::time::Instant>,
    /// What the others were told of workers.
    pub(crate) workers_told: WorkersTold,
    /// Whether other servers use the database.
    pub(crate) has_others: AtomicBool,
    /// What jobs that have not ended come to.
    backlog: Mutex<KnownBacklog>,
    pub(crate) is_closed: AtomicBool,
}

/// Waiting jobs moved at once, at most.
const PROMOTED_MAX: i32 = 5_000;

impl ThisServer {
    pub(crate) fn new(connections: Connections, config: PostgresConfig, node: Uuid) -> Self {
        ThisServer {
            connections,
            config,
            id: node,
            registry: RwLock::default(),
            lanes: RwLock::default(),
            next_due: AtomicI64::new(i64::MIN),
            early: AtomicI64::new(i64::MAX),
            alarms: Mutex::default(),
            first_alarm: FirstEntityAlarm::default(),
            filled: Mutex::default(),
            has_promoted: AtomicBool::new(false),
            own_commits: AtomicI64::new(0),
            has_to_look: AtomicBool::new(true),
            news: OnceLock::new(),
            to_tell: Notify::new(),
            outages: RwLock::default(),
            is_lost: Notify::new(),
            is_back: watch::Sender::new(0),
            looked_at: RwLock::new(tokio::time::Instant::now()),
            served_at: RwLock::new(tokio::time::Instant::now()),
            workers_told: WorkersTold::default(),
            has_others: AtomicBool::new(false),
            backlog: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.config.now)()
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The registries as this server itself changed them, or read them.
    pub(crate) fn learn_registry(&self, registry: Arc<Registry>) {
        let is_new = {
            let mut known = self.registry.write().unwrap_or_else(PoisonError::into_inner);
            let is_new = known.version < registry.version;
            if known.version <= registry.version {
                *known = registry;
            }
            is_new
        };
        if is_new && let Some(news) = self.news.get() {
            news.registry();
        }
    }

    /// Reads the registries anew.
    pub(crate) async fn read_registry(&self) -> Result<(), Fault> {
        let queries = [Query::ReadVersion, Query::LoadTypes, Query::LoadQueues, Query::LoadTokens];
        let calls = queries.map(|query| Call::new(query, Vec::new())).into();
        let rows = self.connections.get().await?.run(true, calls, true).await?;
        let [version, types, queues, tokens] = rows.as_slice() else {
            return Err(Fault::Broken("the registries did not answer".into()));
        };
        let version = version.first().map_or(Ok(0), |row| row.try_get(0))?;
        self.learn_registry(Arc::new(read_registry(version, types, queues, tokens)?));
        Ok(())
    }

    /// Fails if the registries are no longer those of `version`.
    pub(crate) async fn check_registry(&self, version: i64) -> Result<(), Fault> {
        let rows = self.connections.read(Query::ReadVersion, Vec::new()).await?;
        let present: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        if present == version { Ok(()) } else { Err(Fault::RegistryChanged) }
    }

    /// What jobs that have not ended come to, as far as this server knows.
    pub(crate) fn backlog(&self) -> MutexGuard<'_, KnownBacklog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lanes(&self) -> RwLockReadGuard<'_, Lanes> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lanes_mut(&self) -> RwLockWriteGuard<'_, Lanes> {
        self.lanes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that the lanes of rows with a job from column `at` on are known.
    pub(crate) async fn learn_lanes(&self, rows: &[Row], at: usize) -> Result<(), Fault> {
        let lanes: Result<Vec<i32>, Fault> = rows.iter().map(|row| lane_of(row, at)).collect();
        self.know_lanes(&lanes?).await
    }

    /// Makes sure that these lanes are known.
    pub(crate) async fn know_lanes(&self, numbers: &[i32]) -> Result<(), Fault> {
        for is_last in [false, true] {
            let from = {
                let lanes = self.lanes();
                if numbers.iter().all(|number| lanes.key(*number).is_some()) {
                    return Ok(());
                }
                if is_last { 0 } else { lanes.look_from() }
            };
            self.load_lanes(from).await?;
        }
        Ok(())
    }

    /// Makes sure that all lanes are known: a list must not miss those of other servers.
    pub(crate) async fn know_all_lanes(&self) -> Result<(), Fault> {
        let rows = self.connections.read(Query::CountLanes, Vec::new()).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        let is_known = || usize::try_from(count).is_ok_and(|count| self.lanes().len() >= count);
        if is_known() {
            return Ok(());
        }
        let from = self.lanes().look_from();
        self.load_lanes(from).await?;
        if is_known() { Ok(()) } else { self.load_lanes(0).await }
    }

    async fn load_lanes(&self, from: i32) -> Result<(), Fault> {
        let rows = self.connections.read(Query::LoadLanes, vec![Box::new(from)]).await?;
        self.lanes_mut().learn(&rows)
    }

    /// Gives lanes that have none a number.
    pub(crate) async fn number_lanes(
        &self,
        lanes: HashSet<LaneKey>,
        wait: Wait,
    ) -> Result<(), Fault> {
        if lanes.is_empty() {
            return Ok(());
        }
        let column = |of: fn(&LaneKey) -> &str| -> Vec<String> {
            lanes.iter().map(|lane| of(lane).to_owned()).collect()
        };
        let user = |lane: &LaneKey| {
            lane.user.as_ref().map(|user| user.as_str().to_owned()).unwrap_or_default()
        };
        self.connections
            .write(
                wait,
                Query::AddLanes,
                vec![
                    Box::new(column(|lane| lane.tenant.as_str())),
                    Box::new(column(|lane| lane.queue.as_str())),
                    Box::new(column(|lane| lane.job_type.as_str())),
                    Box::new(lanes.iter().map(user).collect::<Vec<_>>()),
                ],
            )
            .await?;
        let from = self.lanes().look_from();
        self.load_lanes(from).await?;
        let is_known = lanes.iter().all(|lane| self.lanes().number(lane).is_some());
        if is_known { Ok(()) } else { self.load_lanes(0).await }
    }

    /// A job was put to wait until then.
    pub(crate) fn due_by(&self, at: Timestamp) {
        self.next_due.fetch_min(at.0, Ordering::AcqRel);
    }

    /// Ready jobs are not due before then by our clock.
    pub(crate) fn work_by(&self, at: Timestamp) {
        if self.early.fetch_min(at.0, Ordering::AcqRel) > at.0
            && let Some(news) = self.news.get()
        {
            news.timers();
        }
    }

    /// Whether ready jobs that were not due by our clock are by `now`.
    pub(crate) fn is_early_due(&self, now: Timestamp) -> bool {
        let early = self.early.load(Ordering::Acquire);
        early <= now.0
            && self
                .early
                .compare_exchange(early, i64::MAX, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Makes jobs ready that are due by `now`, if any may be.
    pub(crate) async fn promote(&self, now: Timestamp) -> Result<(), Fault> {
        while self.next_due.load(Ordering::Acquire) <= now.0 {
            // Lowered again by whoever puts a job to wait meanwhile, and if this is given up.
            self.next_due.store(i64::MAX, Ordering::Release);
            let mut again = Again { server: self, at: Some(now) };
            let (found, is_all) = self.promote_some(now).await?;
            self.has_promoted.fetch_or(!found.is_empty(), Ordering::AcqRel);
            self.filled().extend(found);
            if is_all {
                again.at = None;
                break;
            }
        }
        Ok(())
    }

    async fn promote_some(&self, now: Timestamp) -> Result<(Vec<i32>, bool), Fault> {
        let values: Vec<crate::connections::Value> =
            vec![Box::new(At(now)), Box::new(PROMOTED_MAX)];
        let rows = self.connections.read(Query::PromoteDue, values).await?;
        let (mut lanes, mut moved) = (Vec::new(), 0);
        for row in &rows {
            lanes.push(row.try_get(0)?);
            moved += row.try_get::<_, i64>(1)?;
        }
        self.know_lanes(&lanes).await?;
        if let Some(next) = self.look(now, now).await?.due {
            self.due_by(next);
        }
        Ok((lanes, moved < i64::from(PROMOTED_MAX)))
    }

    /// Looks at what may have changed by `now`, and for the first job due after `due_from`.
    pub(crate) async fn look(&self, now: Timestamp, due_from: Timestamp) -> Result<Sight, Fault> {
        let seen_to = self.alarms().look_from();
        let values: Vec<crate::connections::Value> =
            vec![Box::new(At(now)), Box::new(At(seen_to)), Box::new(At(due_from))];
        let rows = self.connections.read(Query::NextInstants, values).await?;
        let row = rows.first().ok_or_else(|| Fault::Broken("nothing to see".into()))?;
        Ok(Sight {
            due: row.try_get::<_, Option<At>>(0)?.map(|at| at.0),
            is_overdue: row.try_get(1)?,
            newest: row.try_get(2)?,
            stamped: row.try_get(3)?,
            registry: row.try_get(4)?,
            alarm: row.try_get::<_, Option<At>>(5)?.map(|at| at.0),
        })
    }

    pub(crate) fn alarms(&self) -> MutexGuard<'_, JobAlarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Alarms of jobs moved, each from an instant to another.
    pub(crate) fn set_alarms(&self, moved: &[(JobId, Option<Timestamp>, Option<Timestamp>)]) {
        let mut alarms = self.alarms();
        for (job, from, to) in moved {
            alarms.moved(*job, *from, *to);
        }
    }

    /// Keeps the first alarm of the database in mind, whoever set it.
    pub(crate) async fn learn_alarms(&self) -> Result<(), Fault> {
        let rows = self.connections.read(Query::NextAlarm, Vec::new()).await?;
        let first: Option<At> = rows.first().map_or(Ok(None), |row| row.try_get(0))?;
        self.alarms().moved(JobId(0), None, first.map(|at| at.0));
        let now = self.now();
        if let Some(first) = self.look(now, now).await?.alarm {
            self.first_alarm.stands_at(first);
        }
        Ok(())
    }

    /// When something next becomes due or overdue after `now`, as far as this server knows.
    pub(crate) fn next_instant(&self, now: Timestamp) -> Option<Timestamp> {
        let due = self.next_due.load(Ordering::Acquire).min(self.early.load(Ordering::Acquire));
        let due = (due > now.0 && due < i64::MAX).then_some(Timestamp(due));
        due.into_iter().chain(self.alarms().next(now)).chain(self.first_alarm.after(now)).min()
    }

    /// Tells the writer where promoting put jobs.
    pub(crate) fn fill(&self, stock: &mut Stock) {
        let lanes = std::mem::take(&mut *self.filled());
        for lane in lanes {
            stock.stirred(lane);
        }
        if self.has_to_look.swap(false, Ordering::AcqRel) {
            stock.look_again();
        }
    }

    fn filled(&self) -> MutexGuard<'_, Vec<i32>> {
        self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when and why the database cannot be used.
    pub(crate) fn away(&self) -> Option<(String, tokio::time::Instant)> {
        self.outages.read().unwrap_or_else(PoisonError::into_inner).present()
    }

    /// Notes what was asked at `asked` if the database could not be reached with it.
    pub(crate) fn note<T>(&self, outcome: &Result<T, Fault>, asked: tokio::time::Instant) {
        let Err(Fault::Away(why) | Fault::Unknown(why)) = outcome else { return };
        let mut outages = self.outages.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(Line::Begins { untold }) =
            outages.failed(why, asked, tokio::time::Instant::now())
        {
            tracing::error!(why, untold, "PostgreSQL is away: requests wait or are refused");
        }
        if outages.present().is_some() {
            self.is_lost.notify_one();
        }
    }

    /// Notes the outcome of a look at the database that writes, too.
    pub(crate) fn note_look(&self, outcome: &Result<(), Fault>, asked: tokio::time::Instant) {
        let now = tokio::time::Instant::now();
        *self.looked_at.write().unwrap_or_else(PoisonError::into_inner) = now;
        if matches!(outcome, Err(Fault::Away(_) | Fault::Unknown(_))) {
            return self.note(outcome, asked);
        }
        self.note_served();
        // Whatever else is wrong, it answers.
        let ended = self.outages.write().unwrap_or_else(PoisonError::into_inner).seen(now);
        let Some(line) = ended else { return };
        if let Some(Line::Ends { lasted, failed }) = line {
            tracing::warn!(?lasted, failed, "PostgreSQL is back");
        }
        self.is_back.send_modify(|turn| *turn += 1);
    }

    /// Notes that the database took something.
    pub(crate) fn note_served(&self) {
        let now = tokio::time::Instant::now();
        *self.served_at.write().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Whether nobody here has looked for so long that the process may have stood still.
    pub(crate) fn has_not_looked(&self) -> bool {
        let looked_at = *self.looked_at.read().unwrap_or_else(PoisonError::into_inner);
        looked_at.elapsed() >= LOOK_GAP_MAX
    }

    /// How long this server could not serve: in an outage, or because it stood still. One that only
    /// came too late to look could.
    pub(crate) fn blind_for(&self) -> Duration {
        let served_at = *self.served_at.read().unwrap_or_else(PoisonError::into_inner);
        let still = if self.has_not_looked() { served_at.elapsed() } else { Duration::ZERO };
        self.away().map_or(Duration::ZERO, |(_, since)| since.elapsed()).max(still)
    }
}

/// Has jobs that are due by then looked for again when it is dropped.
struct Again<'a> {
    server: &'a ThisServer,
    at: Option<Timestamp>,
}

impl Drop for Again<'_> {
    fn drop(&mut self) {
        if let Some(at) = self.at {
            self.server.due_by(at);
        }
    }
}

/// What a look found.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) due: Option<Timestamp>,
    /// Whether an alarm has rung that nobody has seen to.
    pub(crate) is_overdue: bool,
    /// The number of the newest commit, of any server.
    pub(crate) newest: i64,
    /// The version of the registries.
    pub(crate) registry: i64,
    /// The first alarm of an entity.
    pub(crate) alarm: Option<Timestamp>,
    /// The position of the newest move that is stamped.
    pub(crate) stamped: Option<i64>,
}

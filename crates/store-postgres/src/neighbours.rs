//! This server among the others: it says that it is alive (a row of `node`), keeps its clock by the
//! database, looks for what the others did, and tells them by NOTIFY what they may want to know.
//! No commit decides wrongly for what it has not heard: `guard()` and the versions see to that. But
//! what a server that died left behind, and a token that was revoked elsewhere, are found here.

pub(crate) mod workers;

use crate::backlog;
use crate::clock;
use crate::connections::Value;
use crate::connections::connect::{Address, BadAddress};
use crate::fault::Fault;
use crate::migrate;
use crate::neighbours::workers::{REFUSALS_BYTES_MAX, WorkersTold};
use crate::queries::Query;
use crate::stream::Stamper;
use crate::this_server::ThisServer;
use crate::throttle::Throttle;
use crate::values::At;
use futures_util::future::poll_fn;
use mainspring_kernel::Timestamp;
use mainspring_store::record::decode_refusals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_postgres::AsyncMessage;

/// How often a server says that it is alive.
const SEEN_EVERY: Duration = Duration::from_secs(2);
/// A server unseen for this long is not counted on.
pub(crate) const GONE_AFTER: Duration = Duration::from_secs(10);
/// A commit may become visible this long after it was decided.
const LATE: Duration = Duration::from_secs(60);
/// How often to look for ready jobs when nobody seems to have made any.
const READY_EVERY: Duration = Duration::from_secs(2);
/// A revoked token works on other servers for no longer than this, however seldom they look for
/// work.
const REGISTRY_EVERY: Duration = Duration::from_millis(500);
/// What submit() tells.
const SUBMITTED: &str = "submit";
/// Hints of this long share one notification.
const GATHER: Duration = Duration::from_millis(2);
/// A listener that lost its connection tries again after this long.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What this server knows of the others.
pub(crate) struct Neighbours {
    /// Commits of this server since it last looked.
    pub(crate) own_commits: AtomicI64,
    /// Whether others may have put rows in `ready`.
    pub(crate) has_to_look: AtomicBool,
    /// Rung when others have to hear of ready jobs or moves.
    pub(crate) to_tell: Notify,
    /// Whether there are others.
    pub(crate) has_others: AtomicBool,
    /// What they were told of workers.
    workers_told: WorkersTold,
}

impl Default for Neighbours {
    /// Nobody has looked yet: there may be ready jobs, and nobody is known of.
    fn default() -> Self {
        Neighbours {
            own_commits: AtomicI64::new(0),
            has_to_look: AtomicBool::new(true),
            to_tell: Notify::new(),
            has_others: AtomicBool::new(false),
            workers_told: WorkersTold::default(),
        }
    }
}

/// Says that this server is alive, sets its clock, and ends the process if a newer version has
/// taken a step that this one cannot work with.
pub(crate) async fn say_alive(server: &ThisServer) -> Result<(), Fault> {
    let wall = clock::follow(server).await?;
    let values: Vec<Value> = vec![
        Box::new(server.id),
        Box::new(server.config.node_name.clone()),
        Box::new(env!("CARGO_PKG_VERSION").to_owned()),
        Box::new(At(server.now())),
        Box::new(server.neighbours.workers_told.workers_to_tell(server.news.get())),
        Box::new(migrate::NEWEST),
    ];
    server.connections.read(Query::SeeNode, values).await?;
    // Signs of life are stamped by the database's clock, wherever time may be.
    let since = At(wall - GONE_AFTER);
    let values: Vec<Value> = vec![
        Box::new(server.id),
        Box::new(since),
        Box::new(migrate::NEWEST),
        Box::new(REFUSALS_BYTES_MAX),
    ];
    let rows = server.connections.read(Query::CountNodes, values).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    server.neighbours.has_others.store(row.try_get::<_, i64>(0)? > 0, Ordering::Release);
    server.learn_of_older(row.try_get::<_, i64>(3)? > 0);
    if let Some(news) = server.news.get() {
        let told = row.try_get::<_, Option<Vec<Vec<u8>>>>(2)?.unwrap_or_default();
        // A newer version may tell more than this one understands.
        let notes = told.iter().map(|told| decode_refusals(told).unwrap_or_default());
        news.refused_elsewhere(notes.flatten().collect());
    }
    if let Some(step) = row.try_get::<_, Option<i32>>(1)? {
        // Whoever took it did not know of this server, or did not ask: what it writes from now on
        // is not what the others read.
        server.config.fatal.strike(migrate::beyond(step, None));
    }
    Ok(())
}

/// What looking remembers.
#[derive(Debug)]
struct Watch {
    newest: i64,
    stamped: Option<i64>,
    looked_at: Timestamp,
    /// Whether others committed at the last look: what they had not finished then shows now.
    was_stirred: bool,
    ready: Throttle,
}

/// Runs until the store is closed: life signs and looking.
pub(crate) async fn watch(server: Arc<ThisServer>, stamper: Arc<Mutex<Stamper>>) {
    let mut seen_at = Instant::now();
    let mut watch = Watch {
        newest: 0,
        stamped: None,
        was_stirred: false,
        ready: Throttle::new(),
        looked_at: server.now(),
    };
    loop {
        let look_at = Instant::now() + server.config.poll_every;
        while look_at.saturating_duration_since(Instant::now()) > REGISTRY_EVERY {
            tokio::time::sleep(REGISTRY_EVERY).await;
            learn_registry(&server).await;
        }
        tokio::time::sleep_until(look_at).await;
        let asked = Instant::now();
        let outcome = watch.look(&server, &stamper).await;
        server.note(&outcome, asked);
        if let Err(fault) = outcome {
            tracing::debug!(?fault, "the database did not answer a look");
            continue;
        }
        // In an outage the probe sees to it.
        if seen_at.elapsed() >= SEEN_EVERY && server.away().is_none() {
            seen_at = Instant::now();
            let outcome = say_alive(&server).await;
            server.note_look(&outcome, seen_at);
        }
    }
}

impl Watch {
    /// Looks for what others did.
    async fn look(&mut self, server: &ThisServer, stamper: &Mutex<Stamper>) -> Result<(), Fault> {
        let own = server.neighbours.own_commits.swap(0, Ordering::AcqRel);
        let now = server.now();
        // Whoever put a job to wait may have died before it was due: then it is due already.
        let found = server.look(now, self.looked_at - LATE).await?;
        self.looked_at = now;
        if found.registry != server.registry().version {
            server.read_registry().await?;
        }
        if let Some(due) = found.due {
            server.due_by(due);
        }
        if let Some(alarm) = found.alarm {
            server.due.entities.stands_at(alarm);
        }
        let is_alarmed = found.alarm.is_some_and(|at| at <= now);
        // A commit takes its number before it is seen, and somebody else may have stamped it.
        let was_stirred = self.was_stirred;
        let is_moved = was_stirred || found.newest != self.newest || found.stamped != self.stamped;
        let is_stirred = found.newest - self.newest > own;
        (self.newest, self.stamped, self.was_stirred) = (found.newest, found.stamped, is_stirred);
        let mut has_ready = is_stirred || was_stirred;
        if !has_ready && self.ready.is_due(READY_EVERY) {
            let began = Instant::now();
            let rows = server.connections.read(Query::HasReady, Vec::new()).await?;
            has_ready = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
            self.ready.done(began);
        }
        if has_ready {
            server.neighbours.has_to_look.store(true, Ordering::Release);
        }
        if let Some(news) = server.news.get() {
            if found.is_overdue {
                server.job_alarms().ring();
            }
            if found.is_overdue
                || is_alarmed
                || has_ready
                || found.due.is_some_and(|due| due <= now)
            {
                news.timers();
            }
            if has_ready {
                news.work();
            }
            if is_moved {
                news.moved();
            }
        }
        let mut stamper = stamper.lock().await;
        if is_moved || stamper.is_behind(found.newest) {
            // A commit that was slow to be seen shows only here.
            let is_any = stamper.stamp(server).await?;
            if let Some(news) = server.news.get().filter(|_| is_any && !is_moved) {
                news.moved();
            }
            backlog::look(server).await?;
        }
        Ok(())
    }
}

/// Tells the others, in bundles, that there may be work or that jobs moved. Runs until the store is
/// closed.
pub(crate) async fn tell(server: Arc<ThisServer>) {
    let channel = channel(&server);
    loop {
        server.neighbours.to_tell.notified().await;
        tokio::time::sleep(GATHER).await;
        if server.neighbours.has_others.load(Ordering::Acquire) {
            let values: Vec<Value> =
                vec![Box::new(channel.clone()), Box::new(server.id.to_string())];
            // Only a hint: who misses it looks by itself.
            let _ = server.connections.read(Query::Notify, values).await;
        }
    }
}

/// Hears what others tell. Runs until the store is closed.
pub(crate) async fn listen(server: Arc<ThisServer>) {
    loop {
        if let Err(fault) = hear(&server).await {
            tracing::debug!(?fault, "the listener lost its connection");
        }
        tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
    }
}

async fn hear(server: &ThisServer) -> Result<(), Fault> {
    let address: Address =
        server.config.url.parse().map_err(|error: BadAddress| Fault::Broken(error.to_string()))?;
    let (client, mut connection) = address.connect().await?;
    let mut listening =
        Box::pin(async { client.batch_execute(&format!("LISTEN {}", channel(server))).await });
    let mut is_listening = false;
    let own = server.id.to_string();
    loop {
        let message = poll_fn(|context| {
            if !is_listening
                && let std::task::Poll::Ready(outcome) = listening.as_mut().poll(context)
            {
                is_listening = true;
                if let Err(error) = outcome {
                    return std::task::Poll::Ready(Some(Err(error)));
                }
            }
            connection.poll_message(context)
        })
        .await;
        match message {
            None => return Ok(()),
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(AsyncMessage::Notification(told))) if told.payload() != own => {
                server.neighbours.has_to_look.store(true, Ordering::Release);
                if told.payload() == SUBMITTED {
                    learn_due(server).await;
                }
                if let Some(news) = server.news.get() {
                    news.work();
                    news.moved();
                    news.timers();
                }
            }
            Some(Ok(_)) => {}
        }
    }
}

/// Reads the registries if somebody changed them.
async fn learn_registry(server: &ThisServer) {
    let version = server.registry().version;
    // If the database is away, the next look says so.
    if let Err(Fault::RegistryChanged) = server.check_registry(version).await {
        let _ = server.read_registry().await;
    }
}

/// A job was submitted by SQL and may be due later: no server knows when.
async fn learn_due(server: &ThisServer) {
    let now = server.now();
    // Only a hint: if the database is away, a look finds it later.
    if let Ok(found) = server.look(now, now - LATE).await
        && let Some(due) = found.due
    {
        server.due_by(due);
    }
}

fn channel(server: &ThisServer) -> String {
    format!("{}_news", server.config.schema)
}

//! The loops that execute jobs in the server: one per mode, started when a type first asks for it.
//! They pull from the engine like any worker, so limits, pauses, priorities, leases and timeouts
//! hold for them as for everybody.
//!
//! A loop that dies ends the process. When the server stops, its loops drain: running jobs may go
//! on for the grace, then they are stopped and given back without using a try.

use crate::inprocess::Handlers;
use crate::limits::{CONCURRENCY_MAX, LEASE, LOOK_AGAIN, PULL_WAIT, STOP_GRACE};
use crate::plan::{Desk, Means, Plan};
use crate::process::typed::Commands;
use crate::webhook::{Secret, Webhooks};
use mainspring_engine::Engine;
use mainspring_engine::employer::Inside;
use mainspring_kernel::WorkerId;
use mainspring_kernel::executor::{Executor, Mode, Startable};
use mainspring_store::{Error, Fatal};
use mainspring_worker::Worker;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// What the server may execute, and how.
#[derive(Clone)]
pub struct Config {
    /// How jobs are executed whose type does not say.
    pub otherwise: Executor,
    /// Handlers in this process.
    pub handlers: Handlers,
    /// The commands that may be started.
    pub startable: Startable,
    /// The `mainspring` program as it is started to watch over a command. Without one a command
    /// that leaves its group behind outlives its attempt.
    pub supervisor: Option<PathBuf>,
    /// Where commands reach the server.
    pub url: Option<String>,
    /// What requests are signed with.
    pub secrets: Vec<Secret>,
    /// Whether requests may go to addresses of our own network.
    pub allows_private: bool,
    /// Jobs that one mode runs side by side.
    pub concurrency: usize,
    /// How long running jobs may go on when the server stops.
    pub grace: Duration,
    /// What a dead loop strikes.
    pub fatal: Fatal,
}

/// The loops, running.
pub struct Executors {
    stop: CancellationToken,
    keeper: JoinHandle<()>,
}

impl Executors {
    /// Starts what the types ask for, and goes by them from then on.
    ///
    /// # Errors
    /// If the types cannot be read.
    pub async fn start(engine: Engine, config: Config) -> Result<Self, Error> {
        let clock = engine.clone();
        let now = Arc::new(move || clock.now().0.div_euclid(1_000_000));
        let means = Arc::new(Means {
            handlers: config.handlers.clone(),
            commands: Commands {
                supervisor: config.supervisor.clone(),
                startable: config.startable.clone(),
                url: config.url.clone(),
            },
            webhooks: Webhooks::new(config.secrets.clone(), config.allows_private, now),
        });
        let modes = Mode::ALL.into_iter().filter(|mode| *mode != Mode::Pull);
        let desks = modes.map(|mode| Arc::new(Desk::new(mode, means.clone()))).collect();
        let (stop, fatal) = (CancellationToken::new(), config.fatal.clone());
        let mut keeper = Keeper { engine, config, desks, loops: JoinSet::new(), begun: Vec::new() };
        keeper.look(&stop).await?;
        let kept = fatal.watch("the executors", keeper.keep(stop.clone()));
        Ok(Executors { keeper: tokio::spawn(kept), stop })
    }

    /// Ends when `stop` does and everything is reported, given back or given up. If this is dropped
    /// before, what runs is ended at once, and its leases run out.
    pub async fn until(mut self, stop: CancellationToken) {
        stop.cancelled().await;
        self.stop.cancel();
        // A keeper that died has told so.
        let _ = (&mut self.keeper).await;
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        self.stop.cancel();
        self.keeper.abort();
    }
}

/// Keeps the loops in step with the types.
struct Keeper {
    engine: Engine,
    config: Config,
    desks: Vec<Arc<Desk>>,
    loops: JoinSet<()>,
    /// The modes whose loop runs.
    begun: Vec<Mode>,
}

impl Keeper {
    async fn keep(mut self, stop: CancellationToken) {
        let mut changed = self.engine.types_changed();
        // What changed before we listened.
        changed.mark_changed();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                rung = changed.changed() => if rung.is_err() { break },
            }
            while let Err(error) = self.look(&stop).await {
                tracing::warn!(%error, "the types could not be read; trying again");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                }
            }
        }
        stop.cancelled().await;
        while let Some(ended) = self.loops.join_next().await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a loop did not end well");
            }
        }
    }

    /// Reads the types, and makes the loops go by them.
    async fn look(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let types = self.engine.types().await?;
        let plan = Arc::new(Plan::of(&types, &self.config.otherwise));
        for desk in &self.desks {
            let has_changed = desk.change(&plan);
            if self.begun.contains(&desk.mode) {
                if has_changed && let Ok(worker) = WorkerId::new(&name(desk.mode)) {
                    // Its pull comes back, and the next one asks for what holds now.
                    self.engine.leave(None, worker);
                }
            } else if !desk.is_empty() {
                self.begun.push(desk.mode);
                tracing::info!(mode = desk.mode.as_str(), "jobs are executed by this server");
                self.loops.spawn(self.worker(desk.clone(), stop.clone()));
            }
        }
        Ok(())
    }

    /// The loop of one mode.
    fn worker(
        &self,
        desk: Arc<Desk>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let mode = desk.mode;
        let worker = Worker::builder(Inside::new(self.engine.clone()))
            .id(name(mode))
            .roster(desk)
            .concurrency(self.config.concurrency.clamp(1, CONCURRENCY_MAX))
            .lease(LEASE)
            .wait(PULL_WAIT)
            .drain_grace(self.config.grace)
            .stop_grace(STOP_GRACE)
            .build();
        let fatal = self.config.fatal.clone();
        let struck = fatal.clone();
        fatal.watch(part(mode), async move {
            match worker.run(stop.clone()).await {
                Ok(summary) => {
                    tracing::info!(mode = mode.as_str(), ?summary, "no more is executed")
                }
                Err(error) if stop.is_cancelled() => {
                    tracing::warn!(mode = mode.as_str(), %error, "a loop did not end well");
                }
                Err(error) => struck.strike(format!("{} ended: {error}", part(mode))),
            }
        })
    }
}

/// What a loop is called where a part of the server is.
const fn part(mode: Mode) -> &'static str {
    match mode {
        Mode::Pull => "the executor",
        Mode::InProcess => "the executor inprocess",
        Mode::Process => "the executor process",
        Mode::Webhook => "the executor webhook",
    }
}

/// How a loop calls itself as a worker: by mode, machine and process.
fn name(mode: Mode) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("server");
    format!("executor-{}-{host}-{}", mode.as_str(), std::process::id())
}

//! One life of the server: it opens its store, everybody uses it, and it dies, unless it is the
//! last one, in which everybody behaves until all is done.

use super::clients::{client, subscriber};
use super::nemesis::{Plan, Trouble, nemesis};
use super::server::Server;
use super::workers::worker;
use super::world::World;
use super::{dump, time::SimTime};
use crate::crash::{Lie, Watched};
use crate::drive;
use crate::planted::{Plant, PlantedStore};
use crate::rng::Rng;
use mainspring_engine::{Clock, Config, Engine, Entropy};
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::{Command, TypeSpec};
use mainspring_store::conformance::dump as store_dump;
use mainspring_store::{Fatal, Store};
use mainspring_store_memory::disk::sim::Faults;
use mainspring_store_memory::disk::{Disk, SimDisk};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Simulated time in which a healthy world must finish everything.
const QUIET: Duration = Duration::from_secs(1_800);

pub(super) struct Life<'a> {
    pub(super) world: Arc<World>,
    pub(super) disk: SimDisk,
    pub(super) plan: &'a Plan,
    pub(super) plant: Plant,
    pub(super) seed: u64,
    pub(super) is_last: bool,
}

struct SeededEntropy(Mutex<Rng>);

impl Entropy for SeededEntropy {
    fn bits(&self) -> u128 {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        u128::from(rng.bits()) << 64 | u128::from(rng.bits())
    }
}

/// Opens the store on `disk` and cuts the power after `changes` changes.
pub(super) fn open_and_cut(disk: &SimDisk, changes: u64, seed: u64) {
    disk.set_faults(Faults { power_off_after: Some(changes), ..Faults::default() });
    drop(MemoryStore::open(Arc::new(disk.clone()), config(seed, None), drive::BEGINNING));
}

fn config(seed: u64, world: Option<Arc<World>>) -> MemoryConfig {
    MemoryConfig {
        segment_bytes: if seed.is_multiple_of(2) { 8 << 10 } else { 16 << 10 },
        snapshot_bytes_min: 24 << 10,
        finished_bytes_max: 4_000,
        has_threads: false,
        fatal: Fatal::new(move |_| {
            let Some(world) = &world else { return };
            let (is_up, has_bad_disk) = {
                let memory = world.lock();
                (memory.is_up, memory.has_bad_disk)
            };
            // Only a disk that fails may stop the store; one that is full must not.
            match (is_up, has_bad_disk) {
                (true, true) => world.fault("disk_failed"),
                (true, false) => world.fault("stopped_for_nothing"),
                (false, _) => {}
            }
        }),
        ..MemoryConfig::standard(seed)
    }
}

impl Life<'_> {
    pub(super) fn live(&mut self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime needs no resources that could be missing");
        let outcome = runtime.block_on(async {
            self.world.time.begin();
            self.world.start();
            let outcome = self.run().await;
            self.world.lock().is_up = false;
            self.world.time.end();
            outcome
        });
        // Whatever was under way is under way no more.
        drop(runtime);
        if let Ok(Some(store)) = &outcome {
            // The power is off: closing reaches nothing, but lets go of everybody who waits.
            self.disk.set_faults(Faults { power_off_after: Some(0), ..Faults::default() });
            drop(drive::ready(store.close()));
        }
        outcome.map(drop)
    }

    async fn run(&mut self) -> Result<Option<Arc<MemoryStore>>, String> {
        let time: Arc<SimTime> = self.world.time.clone();
        let mut rng = Rng::new(self.seed, 31);
        let now = time.now();
        let disk: Arc<dyn Disk> = match self.plant {
            Plant::SkipSync => {
                Arc::new(Watched::new(self.disk.clone(), Lie::SkipSync, Arc::new(|| {})))
            }
            _ => Arc::new(self.disk.clone()),
        };
        let config = config(rng.bits(), Some(self.world.clone()));
        let memory = MemoryStore::open(disk, config, now)
            .map_err(|error| format!("refuses to open: {error:?}"))?;
        let memory = Arc::new(memory);
        let store = Arc::new(PlantedStore::new(memory.clone(), self.plant, now));
        let keeper = keeper(store.clone(), self.world.clone(), self.habits());
        let keeper = tokio::spawn(keeper);
        let entropy = Arc::new(SeededEntropy(Mutex::new(Rng::new(rng.bits(), 32))));
        let engine = Engine::start(store.clone(), time, entropy, Config::standard()).await;
        let Ok(engine) = engine else { return Ok(Some(memory)) };
        let (world, plant) = (self.world.clone(), self.plant);
        let server = Server { engine, world, plant };
        if register(&server).await {
            self.inhabit(&server);
            if self.is_last {
                self.settle(&server).await;
                keeper.abort();
                return self.compare(&server, &memory).await.map(|()| None);
            }
            let end =
                tokio::time::Instant::now() + Duration::from_millis(4_000 + rng.below(26_000));
            while tokio::time::Instant::now() < end && server.engine.health().broken.is_none() {
                server.pass(500).await;
            }
        }
        Ok(Some(memory))
    }

    fn habits(&self) -> (u64, u64) {
        (self.plan.sync_ms_max, self.plan.tidy_percent)
    }

    fn inhabit(&self, server: &Server) {
        tokio::spawn(subscriber(server.clone()));
        for nth in 0..4 {
            tokio::spawn(worker(server.clone(), format!("w{nth}")));
        }
        if self.is_last {
            return;
        }
        for _ in 0..3 {
            tokio::spawn(client(server.clone()));
        }
        let plan = self.plan;
        let trouble = Trouble {
            has_write_errors: plan.has_write_errors,
            has_sync_errors: plan.has_sync_errors,
            has_full_disks: plan.has_full_disks,
            jumps_forward: plan.jumps_forward,
            jumps_back: plan.jumps_back,
        };
        tokio::spawn(nemesis(server.clone(), self.disk.clone(), trouble));
    }

    /// The quiet phase: healthy workers finish everything.
    async fn settle(&self, server: &Server) {
        self.world.lock().is_quiet = true;
        server.pause("side", false).await;
        let deadline = tokio::time::Instant::now() + QUIET;
        while tokio::time::Instant::now() < deadline {
            let counts = server.engine.counts().await;
            if counts.is_ok_and(|counts| counts.by_state[..5].iter().all(|count| *count == 0)) {
                break;
            }
            server.pass(1_000).await;
        }
        // One more look for the subscriber.
        server.pass(6_000).await;
        let dump = dump::take(&server.engine).await;
        self.world.lock().history.dump = dump;
    }

    /// A clean restart changes nothing: the recovered store answers what the live one answered.
    async fn compare(&self, server: &Server, memory: &MemoryStore) -> Result<(), String> {
        let now = server.engine.now();
        let live = store_dump(memory, now).await.map_err(|error| error.to_string())?;
        server.engine.shutdown().await.map_err(|error| error.to_string())?;
        let again = MemoryStore::open(Arc::new(self.disk.clone()), config(self.seed, None), now)
            .map_err(|error| format!("refuses to open after a shutdown: {error:?}"))?;
        let reopened = store_dump(&again, now).await.map_err(|error| error.to_string())?;
        let cut = |text: &str| {
            let end = text.find("\nmoved ").unwrap_or(text.len());
            text[..end].trim_end().to_owned()
        };
        if cut(&live) == cut(&reopened) {
            return Ok(());
        }
        let (live, reopened) = (cut(&live), cut(&reopened));
        let mut pairs = live.lines().zip(reopened.lines());
        let (lost, new) = pairs.find(|(a, b)| a != b).unwrap_or(("something", "nothing"));
        Err(format!("a clean restart made {new} of {lost}"))
    }
}

/// Syncs some time after every commit, and tidies up now and then.
async fn keeper(store: Arc<PlantedStore>, world: Arc<World>, (sync_ms, tidy_percent): (u64, u64)) {
    loop {
        store.dirty.notified().await;
        loop {
            let micros = world.below(sync_ms * 1_000);
            tokio::time::sleep(Duration::from_micros(micros + 50)).await;
            // A full disk is tried again; a failed one has been noted and answers nothing more.
            if store.inner.flush().is_ok() || store.health().broken.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if store.health().broken.is_none() && world.chance(tidy_percent) {
            let now = world.time.now();
            let outcome = match world.below(3) {
                0 => store.inner.take_snapshot(now),
                _ => store.inner.tidy(now),
            };
            if outcome.is_err() {
                world.fault("tidy_failed");
            }
        }
    }
}

/// The types of every world; `false` if the server did not take them.
async fn register(server: &Server) -> bool {
    let mut specs = Vec::new();
    for (name, limit, scope, retries) in [
        ("plain", None, ConcurrencyScope::Global, 3),
        ("narrow", Some(2), ConcurrencyScope::Global, 3),
        ("single", Some(1), ConcurrencyScope::Tenant, 2),
        ("brittle", None, ConcurrencyScope::Global, 0),
    ] {
        let mut spec = TypeSpec::plain(drive::kind(name));
        spec.concurrency_limit = limit;
        spec.concurrency_scope = scope;
        spec.max_retries = retries;
        specs.push(spec);
    }
    server.world.lock().history.types = specs.iter().map(dump::rules).collect();
    for mut spec in specs {
        if server.plant == Plant::WrongLimit {
            spec.concurrency_limit = spec.concurrency_limit.map(|limit| limit + 1);
        }
        let command = Command::SetType(Box::new(spec));
        if !matches!(server.engine.execute_one(command).await, Ok(Ok(_))) {
            return false;
        }
    }
    true
}

//! One life of the server: it opens its store, everybody uses it, and it dies, unless it is the
//! last one, in which everybody behaves until all is done.

use super::clients::{client, subscriber};
use super::entities::{self, lighter};
use super::nemesis::{BadLuck, Hazards, Plan, nemesis};
use super::schedules::planner;
use super::server::{Server, holder};
use super::triggers::scribe;
use super::workers::worker;
use super::world::World;
use super::{dump, time::SimTime};
use crate::crash::{Lie, Watched};
use crate::drive;
use crate::history::Dump;
use crate::planted::{Fate, Luck, Plant, PlantedStore};
use crate::rng::Rng;
use mainspring_engine::{Clock, Config, Engine, Entropy};
use mainspring_kernel::flow::{Circuit, KeySource, RateLimit};
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::{Command, TypeSpec};
use mainspring_store::conformance::dump as store_dump;
use mainspring_store::{Fatal, Store};
use mainspring_store_memory::disk::sim::Faults;
use mainspring_store_memory::disk::{Disk, SimDisk};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Simulated time in which a healthy world must finish everything: the longest lease with the
/// grace after a restart, the longest backoff, and two seconds each for noticing their ends.
const QUIET: Duration = Duration::from_secs(9 + 5 + 2 + 31 + 2);

pub(super) struct Life<'a> {
    pub(super) world: Arc<World>,
    pub(super) disk: SimDisk,
    pub(super) plan: &'a Plan,
    pub(super) plant: Plant,
    pub(super) seed: u64,
    pub(super) is_last: bool,
}

pub(super) struct SeededEntropy(Mutex<Rng>);

impl SeededEntropy {
    pub(super) fn new(seed: u64) -> Self {
        SeededEntropy(Mutex::new(Rng::new(seed, 32)))
    }
}

impl Entropy for SeededEntropy {
    fn bits(&self) -> u128 {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        u128::from(rng.bits()) << 64 | u128::from(rng.bits())
    }
}

/// Commits come to grief while the world is unlucky.
pub(super) struct WorldFate {
    pub(super) world: Arc<World>,
    pub(super) bad: BadLuck,
}

impl Fate for WorldFate {
    fn next(&self) -> Luck {
        let mut memory = self.world.lock();
        if !memory.is_unlucky {
            return Luck::Good;
        }
        let BadLuck { again, busy, failed, unknown } = self.bad;
        let nth = memory.rng.below(1_000);
        let ends = [again, again + busy, again + busy + failed, again + busy + failed + unknown];
        let luck = match ends.into_iter().position(|end| nth < end) {
            Some(0) => Luck::Again,
            Some(1) => Luck::Busy,
            Some(2) => Luck::Failed,
            Some(_) => Luck::Unknown,
            None => return Luck::Good,
        };
        drop(memory);
        self.world.fault(match luck {
            Luck::Good | Luck::Again => "decided_again",
            Luck::Busy => "store_busy",
            Luck::Failed => "store_failed",
            Luck::Unknown => "store_unknown",
        });
        luck
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
            self.world.time.spoil(self.plant);
            self.world.start();
            let outcome = self.run().await;
            self.world.stop();
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
        let mut config = config(rng.bits(), Some(self.world.clone()));
        if let Some(secs) = self.plan.keep_secs {
            config.keep_finished = Duration::from_secs(secs);
        }
        let memory = MemoryStore::open(disk, config, now)
            .map_err(|error| format!("refuses to open: {error:?}"))?;
        let memory = Arc::new(memory);
        let fate = Arc::new(WorldFate { world: self.world.clone(), bad: self.plan.bad_luck });
        let store = Arc::new(PlantedStore::new(memory.clone(), fate, self.plant, now));
        let dirty = store.dirty.clone();
        let spoilt = (self.plant == Plant::DropRun).then(|| self.disk.clone());
        let keeper = keeper(dirty, memory.clone(), self.world.clone(), self.habits(), spoilt);
        let keeper = tokio::spawn(keeper);
        let entropy = Arc::new(SeededEntropy::new(rng.bits()));
        let engine = Engine::start(store.clone(), time, entropy, Config::standard()).await;
        let Ok(engine) = engine else {
            self.world.fault("not_ready");
            return Ok(Some(memory));
        };
        let (world, plant) = (self.world.clone(), self.plant);
        let (lost_percent, vanish_percent) = (self.plan.lost_percent, self.plan.vanish_percent);
        let engines = Arc::new(Mutex::new(vec![engine]));
        let phantoms = store.phantoms.clone();
        let server = Server { engines, world, plant, phantoms, lost_percent, vanish_percent };
        if register(&server).await {
            self.world.fault("ready");
            self.world.lock().is_unlucky = !self.is_last;
            self.inhabit(&server);
            if self.is_last {
                settle(&server).await;
                if let Some(secs) = self.plan.keep_secs {
                    let dump = &mut self.world.lock().history.dump;
                    dump.kept_since = Some(server.engine().now().0 - secs as i64 * 1_000_000);
                    dump.by_state = None;
                }
                keeper.abort();
                return self.compare(&server, &memory).await.map(|()| None);
            }
            let end =
                tokio::time::Instant::now() + Duration::from_millis(4_000 + rng.below(26_000));
            while tokio::time::Instant::now() < end && server.engine().health().broken.is_none() {
                server.pass(500).await;
            }
        } else {
            self.world.fault("not_ready");
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
        tokio::spawn(lighter(server.clone()));
        tokio::spawn(planner(server.clone()));
        tokio::spawn(scribe(server.clone()));
        let plan = self.plan;
        let hazards = Hazards {
            has_write_errors: plan.has_write_errors,
            has_sync_errors: plan.has_sync_errors,
            has_full_disks: plan.has_full_disks,
            jumps_forward: plan.jumps_forward,
            jumps_back: plan.jumps_back,
        };
        tokio::spawn(nemesis(server.clone(), self.disk.clone(), hazards));
    }

    /// A clean restart changes nothing: the recovered store answers what the live one answered.
    async fn compare(&self, server: &Server, memory: &MemoryStore) -> Result<(), String> {
        // Where finished jobs are dropped, the last upkeep of a shutdown drops some more.
        let is_kept = self.plan.keep_secs.is_none();
        let now = server.engine().now();
        let live = store_dump(memory, now).await.map_err(|error| error.to_string())?;
        server.engine().shutdown().await.map_err(|error| error.to_string())?;
        let again = MemoryStore::open(Arc::new(self.disk.clone()), config(self.seed, None), now)
            .map_err(|error| format!("refuses to open after a shutdown: {error:?}"))?;
        let reopened = store_dump(&again, now).await.map_err(|error| error.to_string())?;
        let cut = |text: &str| {
            let end = text.find("\nmoved ").unwrap_or(text.len());
            text[..end].trim_end().to_owned()
        };
        if cut(&live) == cut(&reopened) || !is_kept {
            return Ok(());
        }
        let (live, reopened) = (cut(&live), cut(&reopened));
        let mut pairs = live.lines().zip(reopened.lines());
        let (lost, new) = pairs.find(|(a, b)| a != b).unwrap_or(("something", "nothing"));
        Err(format!("a clean restart made {new} of {lost}"))
    }
}

/// The quiet phase: healthy workers finish everything.
pub(super) async fn settle(server: &Server) {
    let world = &server.world;
    world.lock().is_quiet = true;
    server.pause("side", false).await;
    let silent = entities::put_out(server).await;
    // A clock that was set back before a restart has to come as far as it once was.
    let deadline = tokio::time::Instant::now() + QUIET + world.time.behind();
    while tokio::time::Instant::now() < deadline {
        let counts = server.engine().counts().await;
        if counts.is_ok_and(|counts| counts.by_state[..5].iter().all(|count| *count == 0)) {
            break;
        }
        server.pass(1_000).await;
    }
    if world.lock().is_verbose() {
        for job in dump::unfinished(&server.engine()).await {
            world.lock().note(&job);
        }
    }
    // One more look for the subscriber.
    server.pass(6_000).await;
    let files = world.lock().files;
    let dump = Dump { silent, ..dump::take(&server.engine(), files).await };
    world.lock().history.dump = dump;
}

/// Syncs some time after every commit, and tidies up now and then.
async fn keeper(
    dirty: Arc<Notify>,
    store: Arc<MemoryStore>,
    world: Arc<World>,
    (sync_ms, tidy_percent): (u64, u64),
    spoilt: Option<SimDisk>,
) {
    loop {
        dirty.notified().await;
        loop {
            let micros = world.below(sync_ms * 1_000);
            tokio::time::sleep(Duration::from_micros(micros + 50)).await;
            // A full disk is tried again; a failed one has been noted and answers nothing more.
            if store.flush().is_ok() || store.health().broken.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if store.health().broken.is_none() && world.chance(tidy_percent) {
            let now = world.time.now();
            let outcome = match world.below(3) {
                0 => store.take_snapshot(now),
                _ => store.tidy(now),
            };
            if outcome.is_err() {
                world.fault("tidy_failed");
            }
            if let Some(disk) = &spoilt
                && world.chance(3)
            {
                let names = disk.list().unwrap_or_default();
                let run = names.iter().find(|name| name.ends_with(".arc"));
                run.map(|run| disk.remove(run));
            }
        }
    }
}

/// The types of every world.
fn specs() -> Vec<TypeSpec> {
    let spec = |name, limit, scope, retries| TypeSpec {
        concurrency_limit: limit,
        concurrency_scope: scope,
        max_retries: retries,
        ..TypeSpec::plain(drive::kind(name))
    };
    let mut brittle = spec("brittle", None, ConcurrencyScope::Global, 0);
    brittle.flow.rate_limit = Some(RateLimit::new(1.0, Some(2), None));
    let mut keyed = spec("keyed", Some(1), ConcurrencyScope::Global, 3);
    keyed.flow.concurrency_key = Some(KeySource::new("/k"));
    let mut fuse = spec("fuse", None, ConcurrencyScope::Global, 3);
    fuse.flow.circuit = Some(Circuit { failure_permille: 1_000, min_calls: 2, open_secs: 3 });
    vec![
        spec("plain", None, ConcurrencyScope::Global, 3),
        spec("narrow", Some(2), ConcurrencyScope::Global, 3),
        spec("single", Some(1), ConcurrencyScope::Tenant, 2),
        brittle,
        keyed,
        fuse,
    ]
}

/// A type as a server with a mistake has it.
fn mistaken(plant: Plant, spec: &mut TypeSpec, is_odd: bool) {
    let is_keyed = spec.flow.concurrency_key.is_some();
    match plant {
        Plant::WrongLimit if !is_keyed => {
            spec.concurrency_limit = spec.concurrency_limit.map(|limit| limit + 1);
        }
        Plant::WrongKeyLimit if is_keyed => {
            spec.concurrency_limit = spec.concurrency_limit.map(|limit| limit + 1);
        }
        Plant::NoCircuit => spec.flow.circuit = None,
        _ => {}
    }
    let Some(limit) = &mut spec.flow.rate_limit else { return };
    match plant {
        Plant::WrongRate => limit.burst += 1,
        Plant::WrongRefill => {
            *limit = RateLimit::new(limit.per_second() * 2.0, Some(limit.burst), None);
        }
        // Another key, another bucket.
        Plant::ForgetBuckets if is_odd => limit.key = Some(KeySource::new("/none")),
        _ => {}
    }
}

/// Registers the types of every world; `false` if the server did not take them.
pub(super) async fn register(server: &Server) -> bool {
    let specs = specs();
    server.world.lock().history.types = specs.iter().map(dump::rules).collect();
    for mut spec in specs {
        let is_odd = server.engine().now().0 % 2 == 1;
        mistaken(server.plant, &mut spec, is_odd);
        let command = Command::SetType(Box::new(spec));
        if !matches!(server.engine().execute_one(command).await, Ok(Ok(_))) {
            return false;
        }
    }
    for (name, id) in [("ada", 1), ("bob", 2), ("eve", 3)] {
        let command = Command::IssueToken(Box::new(holder(name, id)));
        if !matches!(server.engine().execute_one(command).await, Ok(Ok(_))) {
            return false;
        }
    }
    true
}

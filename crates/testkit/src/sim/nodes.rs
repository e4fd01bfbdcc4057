//! Several servers on one store that they share: real engines, each with a clock and a way to the
//! store of its own, on the simplest store that is right. Servers stand still and die, others take
//! over, hints get lost, answers get lost; in the end all is done and all servers say the same.

use super::clients::{client, subscriber};
use super::entities::lighter;
use super::life::{SeededEntropy, WorldFate, register, settle};
use super::nemesis::Plan;
use super::schedules::planner;
use super::server::Server;
use super::time::SimTime;
use super::triggers::scribe;
use super::workers::worker;
use super::world::World;
use super::{Outcome, judge};
use crate::checker::Violation;
use crate::drive;
use crate::planted::{Link, Network, Plant, PlantedStore};
use crate::rng::Rng;
use mainspring_engine::{Clock, Config, Engine};
use mainspring_kernel::Timestamp;
use mainspring_store::conformance::{ModelStore, dump as store_dump};
use mainspring_store::{Error, Store};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a server looks at the store although nobody told it to.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs one world of several servers, and keeps its trace if `is_verbose`.
pub fn run_nodes(seed: u64, plant: Plant, is_verbose: bool) -> Outcome {
    let world = Arc::new(World::new(seed, is_verbose));
    let mut rng = Rng::new(seed, 41);
    let plan = Plan::new(&mut rng);
    world.lock().history.is_stream_whole = true;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs no resources that could be missing");
    let outcome = runtime.block_on(async {
        world.time.begin();
        world.start();
        let nodes = Nodes { world: world.clone(), plan: &plan, plant, store: Arc::default() };
        let outcome = nodes.live(&mut rng).await;
        world.stop();
        world.time.end();
        outcome
    });
    drop(runtime);
    let wrong =
        outcome.err().map(|text| Violation { rule: "V5", subject: "the servers".to_owned(), text });
    judge(world, wrong.into_iter().collect())
}

struct Nodes<'a> {
    world: Arc<World>,
    plan: &'a Plan,
    plant: Plant,
    store: Arc<ModelStore>,
}

/// The clock of a server that keeps it by the store's, never quite exactly.
struct NodeClock {
    time: Arc<SimTime>,
    skew_micros: i64,
    given: Mutex<Timestamp>,
}

impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        let shared = drive::BEGINNING.0 + self.time.mono() as i64;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        *given = (*given).max(Timestamp(shared + self.skew_micros));
        *given
    }

    fn jumps(&self) -> Arc<[mainspring_kernel::shared_time::Jump]> {
        Arc::default()
    }
}

struct SimNetwork {
    world: Arc<World>,
    delay_max: u64,
    heard_percent: u64,
}

impl Network for SimNetwork {
    fn delay(&self) -> u64 {
        20 + self.world.below(self.delay_max)
    }

    fn is_hint_heard(&self) -> bool {
        self.world.chance(self.heard_percent)
    }
}

impl Nodes<'_> {
    /// A server, and its way to the store.
    async fn start(
        &self,
        network: &Arc<dyn Network>,
        rng: &mut Rng,
    ) -> Result<(Engine, Arc<Link>), Error> {
        let link = Link::new(network.clone());
        let fate = Arc::new(WorldFate { world: self.world.clone(), bad: self.plan.bad_luck });
        let store = PlantedStore::new(self.store.clone(), fate, self.plant, drive::BEGINNING);
        let store: Arc<dyn Store> = Arc::new(store.through(link.clone()));
        let skew_max = if self.plant == Plant::NodeSkew { 15_000_000 } else { 20_000 };
        let clock = Arc::new(NodeClock {
            time: self.world.time.clone(),
            skew_micros: rng.below(skew_max * 2) as i64 - skew_max as i64,
            given: Mutex::new(Timestamp::EPOCH),
        });
        let entropy = Arc::new(SeededEntropy::new(rng.bits()));
        let engine = Engine::start(store, clock, entropy, Config::standard()).await?;
        let looker = link.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                looker.look();
            }
        });
        Ok((engine, link))
    }

    async fn live(&self, rng: &mut Rng) -> Result<(), String> {
        let network: Arc<dyn Network> = Arc::new(SimNetwork {
            world: self.world.clone(),
            delay_max: *rng.pick(&[200, 5_000, 80_000]),
            heard_percent: *rng.pick(&[0, 50, 100]),
        });
        let count = rng.within(2, 3);
        let (mut engines, mut links) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (engine, link) =
                self.start(&network, rng).await.map_err(|error| error.to_string())?;
            join(&links, &link);
            engines.push(engine);
            links.push(link);
        }
        let server = Server {
            engines: Arc::new(Mutex::new(engines)),
            world: self.world.clone(),
            plant: self.plant,
            phantoms: Arc::default(),
            lost_percent: self.plan.lost_percent,
            vanish_percent: self.plan.vanish_percent,
        };
        if !register(&server).await {
            return Err("the types were not taken".to_owned());
        }
        self.world.lock().is_unlucky = true;
        tokio::spawn(subscriber(server.clone()));
        for nth in 0..4 {
            tokio::spawn(worker(server.clone(), format!("w{nth}")));
        }
        for _ in 0..3 {
            tokio::spawn(client(server.clone()));
        }
        tokio::spawn(lighter(server.clone()));
        tokio::spawn(planner(server.clone()));
        tokio::spawn(scribe(server.clone()));
        for _ in 0..rng.within(3, 9) {
            server.pass(1_000 + rng.below(6_000)).await;
            let nth = rng.below(count) as usize;
            if rng.chance(50) {
                self.world.fault("node_stalled");
                links[nth].stall(Duration::from_millis(500 + rng.below(8_000)));
                server.pass(rng.below(9_000)).await;
                links[nth].stall(Duration::ZERO);
            } else {
                self.world.fault("node_killed");
                links[nth].cut();
                server.pass(rng.below(3_000)).await;
                self.world.lock().is_unlucky = false;
                let started = self.start(&network, rng).await;
                self.world.lock().is_unlucky = true;
                let (engine, link) = started.map_err(|error| error.to_string())?;
                self.world.fault("node_restarted");
                links.remove(nth);
                join(&links, &link);
                links.insert(nth, link);
                let mut engines = server.engines.lock().unwrap_or_else(PoisonError::into_inner);
                engines[nth] = engine;
            }
        }
        {
            let mut memory = self.world.lock();
            (memory.is_unlucky, memory.is_quiet) = (false, true);
        }
        // What was under way by a server that stood still arrives.
        server.pass(20_000).await;
        settle(&server).await;
        self.agree(&server).await
    }

    /// All servers show the same, and it is what the store holds.
    async fn agree(&self, server: &Server) -> Result<(), String> {
        let engines = server.engines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = engines[0].now();
        let held = store_dump(&*self.store, now).await.map_err(|error| error.to_string())?;
        for engine in engines {
            let counts = engine.counts().await.map_err(|error| error.to_string())?;
            let known = self.world.lock().history.dump.by_state;
            if known != Some(counts.by_state) {
                return Err(format!("one counts {:?}, another {known:?}", counts.by_state));
            }
        }
        if held.is_empty() { Err("nothing was kept".to_owned()) } else { Ok(()) }
    }
}

fn join(links: &[Arc<Link>], new: &Arc<Link>) {
    for link in links {
        link.join(new);
        new.join(link);
    }
}

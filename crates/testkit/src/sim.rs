//! A whole world in one thread: the real engine on the real memory store, with simulated time,
//! disk, clients and workers, all driven by one seed. The server crashes, the disk fails and
//! fills up, the clock jumps; at the end everybody behaves and everything must finish. Then the
//! checker judges what clients and workers saw. The same seed gives the same trace.
//!
//! Read next: `sim/life.rs` for one life of the server, `sim/nemesis.rs` for what goes wrong.

mod clients;
mod dump;
mod entities;
mod life;
mod nemesis;
mod nodes;
mod schedules;
mod server;
mod time;
mod triggers;
mod workers;
mod world;

use crate::checker::{Violation, check};
use crate::history::History;
use crate::planted::Plant;
use crate::rng::Rng;
use mainspring_kernel::fingerprint::Digest;
use mainspring_store_memory::disk::SimDisk;
use mainspring_store_memory::disk::sim::CrashChoice;
use nemesis::Plan;
pub use nodes::run_nodes;
use std::sync::Arc;
use world::World;

/// What a seed came to.
#[derive(Debug)]
pub struct Outcome {
    /// What happened.
    pub history: History,
    /// What was wrong with it.
    pub violations: Vec<Violation>,
    /// The same for every run of the same seed.
    pub trace_hash: Digest,
    /// The trace, if it was asked for.
    pub trace: Vec<String>,
    /// Simulated microseconds.
    pub simulated_micros: u64,
}

/// Runs one world.
pub fn run(seed: u64, plant: Plant) -> Outcome {
    run_with(seed, plant, false)
}

/// Runs one world and keeps its trace if `is_verbose`.
pub fn run_with(seed: u64, plant: Plant, is_verbose: bool) -> Outcome {
    let world = Arc::new(World::new(seed, is_verbose));
    let mut rng = Rng::new(seed, 21);
    let plan = Plan::new(&mut rng);
    let mut disk = SimDisk::new();
    let mut wrong = Vec::new();
    for nth in 0..=plan.lives {
        let is_last = nth == plan.lives;
        if nth > 0 {
            world.fault("restart");
        }
        let mut life = life::Life {
            world: world.clone(),
            disk: disk.clone(),
            plan: &plan,
            plant,
            seed: rng.bits(),
            is_last,
        };
        match life.live() {
            Ok(()) => {}
            Err(why) => {
                wrong.push(Violation { rule: "D6", subject: "the store".to_owned(), text: why });
                break;
            }
        }
        disk = if is_last { disk } else { cut(&disk, &world, &plan, &mut rng) };
    }
    judge(world, wrong)
}

/// What the world came to, with what is wrong besides.
fn judge(world: Arc<World>, wrong: Vec<Violation>) -> Outcome {
    let simulated_micros = world.time.mono();
    let world = Arc::into_inner(world).expect("everybody who held the world is gone");
    let (history, trace_hash, trace) = world.finish();
    let mut violations = check(&history);
    violations.extend(wrong);
    Outcome { history, violations, trace_hash, trace, simulated_micros }
}

/// The power fails, perhaps again while the store is being opened.
fn cut(disk: &SimDisk, world: &World, plan: &Plan, rng: &mut Rng) -> SimDisk {
    world.fault("crash");
    let choice = match rng.below(4) {
        0 => CrashChoice::DropAll,
        1 => CrashChoice::KeepAll,
        _ => CrashChoice::Random(rng.bits()),
    };
    let mut disk = disk.crash(choice);
    while plan.recovery_crashes && rng.chance(40) {
        world.fault("recovery_crash");
        life::open_and_cut(&disk, rng.below(10), rng.bits());
        disk = disk.crash(CrashChoice::Random(rng.bits()));
    }
    disk
}

//! Schedules in zones whose clocks are changed, on a store that loses its power: each fixed time of
//! every day is fired as its policies say, once or twice or not at all. What should fire is
//! reckoned here from the two offsets alone, without the calendar. A mistake about what the clocks
//! show twice is planted and must be found.

use mainspring_kernel::calendar::{Cron, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::entity::schedule::{Misfire, ScheduleCommand, ScheduleSpec};
use mainspring_kernel::entity::{EntityId, Kind};
use mainspring_kernel::{Command, Timestamp, firing};
use mainspring_store::{JobFilter, Scope, Store};
use mainspring_store_memory::disk::SimDisk;
use mainspring_store_memory::disk::sim::CrashChoice;
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_testkit::drive;
use mainspring_testkit::planted::{Kind as Fortune, Plant, PlantedStore};
use mainspring_testkit::rng::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

const SEEDS: u64 = 120;
const DAY: i64 = 86_400;

/// A change of clocks: at `at`, the offset from UTC becomes `after`. Looked up elsewhere than in
/// the table that is compiled in.
#[derive(Debug, Clone, Copy)]
struct Change {
    zone: &'static str,
    at: i64,
    before: i64,
    after: i64,
}

const CHANGES: [Change; 8] = [
    Change { zone: "Europe/Berlin", at: 1_792_890_000, before: 7_200, after: 3_600 },
    Change { zone: "Europe/Berlin", at: 1_806_195_600, before: 3_600, after: 7_200 },
    Change { zone: "America/New_York", at: 1_793_512_800, before: -14_400, after: -18_000 },
    Change { zone: "America/New_York", at: 1_805_007_600, before: -18_000, after: -14_400 },
    Change { zone: "Australia/Lord_Howe", at: 1_806_764_400, before: 39_600, after: 37_800 },
    Change { zone: "Australia/Lord_Howe", at: 1_791_041_400, before: 37_800, after: 39_600 },
    Change { zone: "America/St_Johns", at: 1_793_507_400, before: -9_000, after: -12_600 },
    Change { zone: "Europe/Dublin", at: 1_792_890_000, before: 3_600, after: 0 },
];

/// One schedule across one change.
#[derive(Debug)]
struct Trial {
    change: Change,
    /// What the clocks show when it fires, in seconds of the day.
    time: i64,
    gap: Gap,
    fold: Fold,
    from: i64,
    until: i64,
}

impl Trial {
    fn new(rng: &mut Rng) -> Self {
        let change = CHANGES[rng.below(CHANGES.len() as u64) as usize];
        // Somewhere around what is jumped over or shown twice.
        let shown = (change.at + change.before.min(change.after)).rem_euclid(DAY);
        let time = (shown + 300 * (rng.below(25) as i64 - 6)).rem_euclid(DAY);
        let from = change.at - DAY - rng.below(2 * DAY as u64) as i64;
        let until = change.at + DAY + rng.below(2 * DAY as u64) as i64;
        let (gap, fold) = (Gap::ALL[rng.below(2) as usize], Fold::ALL[rng.below(2) as usize]);
        Trial { change, time, gap, fold, from, until }
    }

    fn spec(&self) -> ScheduleSpec {
        let (hour, minute) = (self.time / 3_600, self.time % 3_600 / 60);
        let cron = Cron::parse(&format!("{minute} {hour} * * *")).expect("a daily pattern");
        let zone = Zone::parse(self.change.zone).expect("a zone of the table");
        let rhythm = Rhythm::Cron { cron, zone, gap: self.gap, fold: self.fold };
        let misfire = Misfire::All;
        ScheduleSpec { misfire, ..ScheduleSpec::plain(drive::kind("plain"), rhythm) }
    }

    /// When it should fire.
    fn expected(&self) -> Vec<i64> {
        let Change { at, before, after, .. } = self.change;
        let mut expected = Vec::new();
        for day in (self.from / DAY - 2)..(self.until / DAY + 3) {
            let shown = day * DAY + self.time;
            let first = Some(shown - before).filter(|it| *it < at);
            let second = Some(shown - after).filter(|it| *it >= at);
            expected.extend(match (first, second, self.fold, self.gap) {
                (Some(first), Some(second), Fold::Twice, _) => vec![first, second],
                (Some(first), _, _, _) => vec![first],
                (None, Some(second), _, _) => vec![second],
                (None, None, _, Gap::Shift) => vec![at],
                (None, None, _, Gap::Skip) => Vec::new(),
            });
        }
        expected.retain(|it| *it > self.from && *it <= self.until);
        expected.sort_unstable();
        expected.dedup();
        expected
    }

    fn changes_something(&self) -> bool {
        let Change { at, before, after, .. } = self.change;
        let shown = (at + before).rem_euclid(DAY);
        let into = (self.time - shown.min((at + after).rem_euclid(DAY))).rem_euclid(DAY);
        into < (before - after).abs()
    }
}

fn instant(secs: i64) -> Timestamp {
    Timestamp(secs * 1_000_000)
}

/// A store whose power can be cut.
struct Place {
    disk: SimDisk,
    memory: Arc<MemoryStore>,
    store: PlantedStore,
    plant: Plant,
    fresh: u128,
}

impl Place {
    fn open(disk: SimDisk, plant: Plant, now: Timestamp) -> Self {
        let config = MemoryConfig {
            segment_bytes: 8 << 10,
            has_threads: false,
            ..MemoryConfig::standard(7)
        };
        let memory = MemoryStore::open(Arc::new(disk.clone()), config, now).expect("it opens");
        let memory = Arc::new(memory);
        let store = PlantedStore::new(memory.clone(), Arc::new(Fortune), plant, now);
        Place { disk, memory, store, plant, fresh: now.0 as u128 }
    }

    fn run(&mut self, command: Command, now: Timestamp) {
        let done = drive::commit(&self.store, &[command], 0, now, &mut self.fresh);
        assert!(done.expect("the store works").outcomes[0].is_ok());
    }

    /// Rings what is due, as the engine does; whether there was anything. Nothing of it is synced.
    fn ring(&mut self, now: Timestamp) -> bool {
        self.memory.flush().expect("the disk works");
        let due = drive::ready(self.store.alarms(now, 10)).expect("reads work");
        for (entity, at) in &due {
            self.run(Command::Ring { entity: *entity, at: *at, jobs: Vec::new() }, now);
        }
        !due.is_empty()
    }

    /// The power fails, perhaps before the last word was synced.
    fn cut(self, rng: &mut Rng, now: Timestamp) -> Place {
        let choice = match rng.below(3) {
            0 => CrashChoice::DropAll,
            1 => CrashChoice::KeepAll,
            _ => CrashChoice::Random(rng.bits()),
        };
        let disk = self.disk.crash(choice);
        Place::open(disk, self.plant, now)
    }

    /// For which instants there are jobs, and how many each has.
    fn fired(&self) -> BTreeMap<i64, usize> {
        let all = JobFilter::of(Scope::All);
        let page = drive::ready(self.store.jobs(&all, None, 100)).expect("reads work");
        let mut fired = BTreeMap::new();
        for job in page.items {
            let origin = firing::origin(&job).expect("only the schedule submits");
            *fired.entry(origin.at.0 / 1_000_000).or_default() += 1;
        }
        fired
    }
}

/// Lives through one change; what fired, if that is not what should have.
fn lived(seed: u64, plant: Plant) -> (Trial, Result<(), String>) {
    let mut rng = Rng::new(seed, 41);
    let trial = Trial::new(&mut rng);
    let mut now = instant(trial.from);
    let mut place = Place::open(SimDisk::new(), plant, now);
    let id = EntityId { kind: Kind::Schedule, bits: 1 };
    let (tenant, owner) = (drive::tenant("acme"), drive::user("ada"));
    let spec = Box::new(trial.spec());
    place.run(ScheduleCommand::Create { id, tenant, owner, spec }.into(), now);
    place.memory.flush().expect("the disk works");
    let end = instant(trial.until);
    while now < end {
        now = end.min(now.plus_millis(60_000 * (1 + rng.below(400))));
        while place.ring(now) {
            match rng.below(4) {
                0 => place = place.cut(&mut rng, now),
                1 => {
                    place.memory.flush().expect("the disk works");
                    place.memory.take_snapshot(now).expect("the disk works");
                }
                _ => {}
            }
        }
    }
    let expected: BTreeMap<i64, usize> = trial.expected().into_iter().map(|at| (at, 1)).collect();
    let fired = place.fired();
    let outcome = match fired == expected {
        true => Ok(()),
        false => Err(format!("fired {fired:?}, not {expected:?}")),
    };
    (trial, outcome)
}

#[test]
fn fixed_times_fire_as_their_policies_say_through_power_cuts() {
    let mut changed = 0;
    for seed in 1..=SEEDS {
        let (trial, outcome) = lived(seed, Plant::None);
        assert_eq!(outcome, Ok(()), "seed {seed}: {trial:?}");
        changed += usize::from(trial.changes_something());
    }
    println!("{SEEDS} changes of clocks, {changed} times jumped over or shown twice");
    assert!(changed as u64 > SEEDS / 4, "only {changed} were about a change");
}

#[test]
fn a_planted_mistake_about_what_is_shown_twice_is_found() {
    let found = (1..=SEEDS).find_map(|seed| Some((seed, lived(seed, Plant::WrongFold).1.err()?)));
    let (seed, why) = found.expect("the mistake shows");
    println!("WrongFold: found after {seed} seeds: {why}");
}

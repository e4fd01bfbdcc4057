//! Every planted bug is found, and the seeds that find it are clean without it.

use mainspring_testkit::crash::{self, Campaign, Lie};
use mainspring_testkit::planted::Plant;
use mainspring_testkit::sim;

/// Worlds in which a mistake must show.
const SEEDS_MAX: u64 = 1_500;

/// A mistake that shows only after this many worlds is a rare one.
const RARE: u64 = 50;

fn run(seed: u64, plant: Plant, is_of_nodes: bool) -> sim::Outcome {
    match is_of_nodes {
        true => sim::run_nodes(seed, plant, false),
        false => sim::run(seed, plant),
    }
}

/// The first world that shows a mistake, and the rule that is broken there.
fn found(plant: Plant) -> Option<(u64, &'static str)> {
    let is_of_nodes = plant.is_of_nodes();
    let (seed, rule) = (1..=SEEDS_MAX).find_map(|seed| {
        let outcome = run(seed, plant, is_of_nodes);
        outcome.violations.first().map(|violation| (seed, violation.rule))
    })?;
    let clean = run(seed, Plant::None, is_of_nodes).violations;
    assert_eq!(clean, Vec::new(), "seed {seed} is clean without {plant:?}");
    Some((seed, rule))
}

#[test]
fn every_planted_bug_is_found() {
    // Two at a time: the mistakes have nothing to do with one another.
    let (even, odd): (Vec<_>, Vec<_>) =
        Plant::ALL.into_iter().enumerate().partition(|(nth, _)| nth % 2 == 0);
    let half = |plants: Vec<(usize, Plant)>| {
        std::thread::spawn(move || {
            plants.into_iter().map(|(_, plant)| (plant, found(plant))).collect::<Vec<_>>()
        })
    };
    let halves = [half(even), half(odd)];
    let (mut survivors, mut rare) = (Vec::new(), 0);
    for (plant, first) in halves.into_iter().flat_map(|half| half.join().expect("no panic")) {
        match first {
            Some((seed, rule)) => {
                rare += usize::from(seed > RARE);
                println!("{plant:?}: {rule} after {seed} seeds");
            }
            None => survivors.push(plant),
        }
    }
    let count = Plant::ALL.len();
    println!(
        "{} of {count} planted bugs found by simulation, {rare} of them only after {RARE} seeds",
        count - survivors.len()
    );
    assert_eq!(survivors, Vec::new(), "these were not found in {SEEDS_MAX} seeds");
}

#[test]
fn every_planted_bug_of_the_disk_is_found_by_crash_images() {
    let honest = Campaign::new(1);
    let lies = [
        ("acknowledge early", Campaign { acknowledges_early: true, ..honest }),
        ("skip sync", Campaign { lie: Lie::SkipSync, ..honest }),
        ("skip directory sync", Campaign { lie: Lie::SkipDirSync, ..honest }),
        ("lose a write", Campaign { lie: Lie::LoseWrite, ..honest }),
    ];
    for (name, campaign) in lies {
        let found = (1..=20).find_map(|seed| {
            let outcome = crash::run(Campaign { seed, ..campaign });
            outcome.err().map(|why| (seed, why))
        });
        let (seed, why) = found.unwrap_or_else(|| panic!("{name} was not found"));
        println!("{name}: found in campaign {seed}: {}", why.lines().next().unwrap_or_default());
    }
}

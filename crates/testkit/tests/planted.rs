//! Every planted bug is found, and the seeds that find it are clean without it.

use mainspring_testkit::crash::{self, Campaign, Lie};
use mainspring_testkit::planted::Plant;
use mainspring_testkit::sim;

const SEEDS_MAX: u64 = 300;

#[test]
fn every_planted_bug_is_found() {
    let mut survivors = Vec::new();
    for plant in Plant::ALL {
        let found = (1..=SEEDS_MAX).find_map(|seed| {
            let outcome = sim::run(seed, plant);
            outcome.violations.into_iter().next().map(|violation| (seed, violation))
        });
        match found {
            Some((seed, violation)) => {
                println!("{plant:?}: {} after {seed} seeds", violation.rule);
                let clean = sim::run(seed, Plant::None).violations;
                assert_eq!(clean, Vec::new(), "seed {seed} is clean without {plant:?}");
            }
            None => survivors.push(plant),
        }
    }
    let count = Plant::ALL.len();
    println!("{} of {count} planted bugs found by simulation", count - survivors.len());
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

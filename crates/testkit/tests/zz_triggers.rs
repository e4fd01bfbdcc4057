//! Temporary: the planted bugs of triggers.
use mainspring_testkit::planted::Plant;
use mainspring_testkit::sim;

#[test]
fn planted() {
    for plant in [Plant::LoseEdge, Plant::KeepEdge, Plant::IgnoreCooldown] {
        let found = (1..=300u64).find_map(|seed| {
            let outcome = sim::run(seed, plant);
            outcome.violations.first().map(|it| (seed, it.to_string()))
        });
        println!("{plant:?}: {found:?}");
    }
}

#[test]
fn clean() {
    let (mut bad, mut fired) = (0, 0);
    for seed in 1..=120u64 {
        let outcome = sim::run(seed, Plant::None);
        fired += outcome.history.dump.firings.iter().filter(|it| it.entity.starts_with("trg")).map(|it| it.count).sum::<u64>();
        if let Some(first) = outcome.violations.first() {
            println!("seed {seed}: {first}");
            bad += 1;
        }
    }
    for seed in 1..=40u64 {
        let outcome = sim::run_nodes(seed, Plant::None, false);
        if let Some(first) = outcome.violations.first() {
            println!("nodes seed {seed}: {first}");
            bad += 1;
        }
    }
    println!("{bad} bad, {fired} firings of triggers");
    assert_eq!(bad, 0);
}

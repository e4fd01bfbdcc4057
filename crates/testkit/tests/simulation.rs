//! Thousands of simulated worlds, none of which breaks a rule.

use mainspring_testkit::checker::{Coverage, Minimum};
use mainspring_testkit::planted::Plant;
use mainspring_testkit::sim;

fn seeds() -> u64 {
    match std::env::var("MAINSPRING_TEST") {
        Ok(level) if level == "full" => 20_000,
        _ => 2_000,
    }
}

#[test]
fn no_world_breaks_a_rule() {
    let mut coverage = Coverage::default();
    let mut simulated = 0;
    for seed in 1..=seeds() {
        let outcome = sim::run(seed, Plant::None);
        if let Some(violation) = outcome.violations.first() {
            panic!(
                "seed {seed}: {violation}\n\
                 repeat it with: cargo run -p mainspring-testkit --bin sim -- --seed {seed}"
            );
        }
        simulated += outcome.simulated_micros;
        coverage.add(&outcome.history);
    }
    println!("{} seeds, {} simulated hours", coverage.runs, simulated / 3_600_000_000);
    println!("{coverage:#?}");
    let each = seeds() / 20;
    let kinds = [
        "crash",
        "recovery_crash",
        "disk_failed",
        "write_error",
        "sync_error",
        "disk_full",
        "clock_forward",
        "clock_back",
        "decided_again",
        "answer_lost",
        "caller_vanished",
        "store_busy",
        "store_failed",
        "store_unknown",
    ];
    let minimum = Minimum {
        successes: seeds() * 50,
        faults: kinds.into_iter().map(|kind| (kind, each)).collect(),
        moves: each,
    };
    assert_eq!(coverage.missing(&minimum), Vec::<String>::new());
}

#[test]
fn no_world_of_several_servers_breaks_a_rule() {
    let mut coverage = Coverage::default();
    let mut simulated = 0;
    let seeds = seeds() / 4;
    for seed in 1..=seeds {
        let outcome = sim::run_nodes(seed, Plant::None, false);
        if let Some(violation) = outcome.violations.first() {
            panic!(
                "seed {seed}: {violation}\n\
                 repeat it with: cargo run -p mainspring-testkit --bin sim -- --nodes --seed {seed}"
            );
        }
        simulated += outcome.simulated_micros;
        coverage.add(&outcome.history);
    }
    println!("{seeds} seeds of several servers, {} simulated hours", simulated / 3_600_000_000);
    println!("{:?}", coverage.faults);
    let kinds = ["node_stalled", "node_killed", "node_restarted", "decided_again", "answer_lost"];
    let minimum = Minimum {
        successes: seeds * 50,
        faults: kinds.into_iter().map(|kind| (kind, seeds / 2)).collect(),
        moves: seeds / 20,
    };
    assert_eq!(coverage.missing(&minimum), Vec::<String>::new());
}

#[test]
fn a_seed_gives_the_same_trace_every_time() {
    for seed in 1..=seeds() / 20 {
        let [first, second] = [(); 2].map(|()| sim::run(seed, Plant::None));
        assert_eq!(first.trace_hash, second.trace_hash, "seed {seed}");
        assert_eq!(first.history, second.history, "seed {seed}");
    }
    for seed in 1..=seeds() / 50 {
        let [first, second] = [(); 2].map(|()| sim::run_nodes(seed, Plant::None, false));
        assert_eq!(first.history, second.history, "seed {seed} of several servers");
    }
}

//! Runs the simulation: `sim --seed N` prints the trace of one world, `sim --seeds COUNT [--from
//! N]` runs many and sums up. Ends with an error and the command to repeat it if a rule was
//! broken.

use mainspring_testkit::checker::Coverage;
use mainspring_testkit::planted::Plant;
use mainspring_testkit::sim;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    match (number("--seed"), number("--seeds")) {
        (Some(seed), _) => one(seed),
        (None, Some(count)) => many(number("--from").unwrap_or(1), count),
        (None, None) => {
            eprintln!("usage: sim --seed N | sim --seeds COUNT [--from N]");
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64) -> ExitCode {
    let outcome = sim::run_with(seed, Plant::None, true);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    println!("trace {:?}", outcome.trace_hash);
    outcome.violations.iter().for_each(|violation| println!("VIOLATION {violation}"));
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn many(from: u64, count: u64) -> ExitCode {
    let mut coverage = Coverage::default();
    let mut simulated = 0;
    for seed in from..from + count {
        let outcome = sim::run(seed, Plant::None);
        simulated += outcome.simulated_micros;
        coverage.add(&outcome.history);
        if let Some(violation) = outcome.violations.first() {
            eprintln!("seed {seed}: {violation}");
            eprintln!("repeat it with: cargo run -p mainspring-testkit --bin sim -- --seed {seed}");
            return ExitCode::FAILURE;
        }
        if (seed + 1 - from).is_multiple_of(500) {
            println!("{} of {count} seeds", seed + 1 - from);
        }
    }
    let hours = simulated / 3_600_000_000;
    println!("{count} seeds, {hours} simulated hours, no violation");
    println!(
        "operations: {} ({} ok, {} unknown)",
        coverage.operations, coverage.successes, coverage.unknown
    );
    println!("faults: {:?}", coverage.faults);
    println!("refusals: {:?}", coverage.refusals);
    println!("moves:");
    coverage.moves.iter().for_each(|((a, b), n)| println!("  {a:>12} -> {b:<12} {n}"));
    ExitCode::SUCCESS
}

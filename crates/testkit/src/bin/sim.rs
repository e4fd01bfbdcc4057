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
    let run: Run = if arguments.iter().any(|argument| argument == "--nodes") {
        sim::run_nodes
    } else {
        sim::run_with
    };
    match (number("--seed"), number("--seeds")) {
        (Some(seed), _) => one(run, seed),
        (None, Some(count)) => many(run, number("--from").unwrap_or(1), count),
        (None, None) => {
            eprintln!("usage: sim [--nodes] --seed N | sim [--nodes] --seeds COUNT [--from N]");
            ExitCode::FAILURE
        }
    }
}

/// A world of one server, or of several.
type Run = fn(u64, Plant, bool) -> sim::Outcome;

fn one(run: Run, seed: u64) -> ExitCode {
    let outcome = run(seed, Plant::None, true);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    println!("trace {:?}", outcome.trace_hash);
    outcome.violations.iter().for_each(|violation| println!("VIOLATION {violation}"));
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn many(run: Run, from: u64, count: u64) -> ExitCode {
    let mut coverage = Coverage::default();
    let mut simulated = 0;
    let mut rules = std::collections::BTreeMap::new();
    // To see how many seeds a mistake shows in.
    let is_going_on = std::env::args().any(|argument| argument == "--go-on");
    for seed in from..from + count {
        let outcome = run(seed, Plant::None, false);
        simulated += outcome.simulated_micros;
        coverage.add(&outcome.history);
        for violation in &outcome.violations {
            let known = rules.entry(violation.rule).or_insert((0, seed));
            known.0 += 1;
        }
        if let Some(violation) = outcome.violations.first() {
            eprintln!("seed {seed}: {violation}");
            if !is_going_on {
                eprintln!("repeat it with: sim --seed {seed}");
                return ExitCode::FAILURE;
            }
        }
        if (seed + 1 - from).is_multiple_of(500) {
            println!("{} of {count} seeds", seed + 1 - from);
        }
    }
    if !rules.is_empty() {
        println!("broken rules, how often and by which seed first: {rules:?}");
        return ExitCode::FAILURE;
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

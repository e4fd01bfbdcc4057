//! The board and the alert rules of `ops/` ask for nothing that a server does not export.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::{Server, Store};
use mainspring_testkit::both_stores;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

both_stores![d11_the_board_and_the_alert_rules_use_names_that_are_exported];

/// The words of the query language that are no metrics.
const WORDS: [&str; 12] =
    ["max", "min", "sum", "rate", "increase", "delta", "changes", "by", "and", "or", "unless", "m"];

/// The metrics that a query asks for.
fn asked(query: &str) -> BTreeSet<String> {
    let mut plain = String::new();
    // What stands in braces, brackets, quotes or behind `by` names labels and times.
    let (mut depth, mut rest) = (0, query.replace("by (", "{").chars().collect::<Vec<_>>());
    if query.contains("by (") {
        // The bracket that ends the labels is the first one behind them.
        let mut is_open = false;
        for letter in &mut rest {
            match *letter {
                '{' if query.contains("by (") => is_open = true,
                ')' if is_open => (*letter, is_open) = ('}', false),
                '}' => is_open = false,
                _ => {}
            }
        }
    }
    for letter in rest {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            letter if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    plain
        .split(|letter| !is_name(letter))
        .filter(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter(|word| !WORDS.contains(word))
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn names_are_found_in_queries() {
    let query = "max by (state) (mainspring_jobs{state!~\"a|b\"}) > 3 and sum(rate(x_total[5m]))";
    let names: Vec<String> = asked(query).into_iter().collect();
    assert_eq!(names, ["mainspring_jobs", "x_total"]);
}

fn d11_the_board_and_the_alert_rules_use_names_that_are_exported(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    server.admin().submit_plain("t");
    let page = server.admin().get("/metrics").text();
    let name = |line: &str| {
        line.strip_prefix("# TYPE ").and_then(|rest| rest.split(' ').next().map(str::to_owned))
    };
    let exported: BTreeSet<String> = page.lines().filter_map(name).collect();
    let ops = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops");
    let board: Value =
        serde_json::from_str(&std::fs::read_to_string(ops.join("grafana.json")).unwrap()).unwrap();
    let targets =
        board["panels"].as_array().unwrap().iter().flat_map(|it| it["targets"].as_array().unwrap());
    let mut queries: Vec<String> =
        targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let of_board = queries.len();
    let rules = std::fs::read_to_string(ops.join("alerts.yml")).unwrap();
    queries.extend(
        rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(Into::into),
    );
    assert!(of_board >= 12 && queries.len() >= of_board + 9, "{of_board} of {}", queries.len());
    for query in &queries {
        let names = asked(query);
        assert!(!names.is_empty(), "{query}");
        let unknown: Vec<_> = names.difference(&exported).collect();
        assert!(unknown.is_empty(), "{query} asks for {unknown:?}, which nobody exports");
    }
    for wanted in [
        "jobs_due_count",
        "jobs_lag_seconds",
        "job_success_rate",
        "job_retry_rate",
        "dead_letter_count",
    ] {
        assert!(queries.iter().any(|query| asked(query).contains(wanted)), "{wanted}");
    }
    println!("{} queries, {} metrics exported", queries.len(), exported.len());
}

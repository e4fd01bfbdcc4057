//! Ids in names, and what counts as covered.

use super::*;
use crate::libtest::TestRun;

fn shown(path: &str) -> Vec<String> {
    ids(path).iter().map(Id::to_string).collect()
}

fn log(runs: &[(&str, &str, Outcome)]) -> Log {
    let run = |(binary, path, outcome): &(&str, &str, Outcome)| TestRun {
        binary: (*binary).to_owned(),
        path: (*path).to_owned(),
        outcome: *outcome,
    };
    let mut log = Log::default();
    log.runs = runs.iter().map(run).collect();
    log
}

fn tally(coverage: &Coverage, id: &str, store: Store) -> Option<Tally> {
    let id = Id::parse(id).expect("the test names a real id");
    coverage.rows.get(&(id, store)).copied()
}

#[test]
fn ids_are_the_leading_words_of_the_function() {
    assert_eq!(shown("g05_g06_fourth_failure_goes_to_the_dlq"), ["G05", "G06"]);
    assert_eq!(shown("memory::d17_late_ack_is_refused"), ["D17"]);
    assert_eq!(shown("m01_o02_a03_g04_d05"), ["M01", "O02", "A03", "G04", "D05"]);
    assert_eq!(shown("fourth_failure_g05"), Vec::<String>::new());
    assert_eq!(shown("g05::other"), Vec::<String>::new());
    assert_eq!(shown("g5_g005_x05"), Vec::<String>::new());
    assert_eq!(shown("g05_then_g06"), ["G05"]);
    assert_eq!(shown("gé5"), Vec::<String>::new());
}

#[test]
fn every_required_id_is_well_formed_and_listed_once() {
    let ids: Vec<Id> = REQUIRED
        .iter()
        .map(|text| Id::parse(text).expect("an id is a letter, two digits"))
        .collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(ids, sorted);
}

#[test]
fn only_blackbox_binaries_count() {
    let coverage = Coverage::of(&log(&[
        ("blackbox_jobs", "g01_fields", Outcome::Passed),
        ("mainspring_kernel", "g02_moves", Outcome::Passed),
    ]));
    assert_eq!(tally(&coverage, "G01", Store::Memory), Some(Tally { passed: 1, failed: 0 }));
    assert_eq!(tally(&coverage, "G02", Store::Memory), Some(Tally::default()));
    let missing = coverage.verdict().expect_err("G02 is required").to_string();
    let (on_memory, on_postgres) = missing.split_once("; ").expect("two stores");
    assert!(on_memory.contains("on memory for M01") && on_memory.contains("G02"), "{missing}");
    assert!(!on_memory.contains("G01") && on_postgres.contains("G01"), "{missing}");
}

#[test]
fn a_store_module_separates_the_rows() {
    let coverage = Coverage::of(&log(&[
        ("blackbox", "postgres::g01_fields", Outcome::Passed),
        ("blackbox", "memory::g01_fields", Outcome::Failed),
    ]));
    assert_eq!(tally(&coverage, "G01", Store::Postgres), Some(Tally { passed: 1, failed: 0 }));
    assert_eq!(tally(&coverage, "G01", Store::Memory), Some(Tally { passed: 0, failed: 1 }));
    let table = coverage.to_string();
    assert!(table.contains("G01  memory        1  FAILED"), "{table}");
    assert!(table.contains("G01  postgres      1  ok"), "{table}");
    assert!(table.contains("G02  memory        0  missing"), "{table}");
}

#[test]
fn an_ignored_test_covers_nothing() {
    let coverage = Coverage::of(&log(&[("blackbox", "g01_fields", Outcome::Ignored)]));
    assert_eq!(tally(&coverage, "G01", Store::Memory), Some(Tally::default()));
}

#[test]
fn all_required_ids_passing_is_a_pass() {
    let on = |store: &str| {
        let name = |id: &&str| format!("{store}::{}_x", id.to_lowercase());
        REQUIRED.iter().map(name).collect::<Vec<String>>()
    };
    let verdict = |names: &[String]| {
        let run = |name| ("blackbox_all", name, Outcome::Passed);
        let runs: Vec<_> = names.iter().map(|name| run(name.as_str())).collect();
        Coverage::of(&log(&runs)).verdict()
    };
    assert!(verdict(&[on("memory"), on("postgres")].concat()).is_ok());
    let half = verdict(&on("memory")).expect_err("one store is not enough").to_string();
    assert!(half.contains("on postgres for M01") && !half.contains("on memory"), "{half}");
}

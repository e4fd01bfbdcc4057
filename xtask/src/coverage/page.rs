//! `docs/conformance.md`: which tests prove each requirement, on which stores. Made from the same
//! runs as the table, and from nothing that differs from one run to the next.
//!
//! `cargo xtask test` and `cargo xtask coverage` compare it once every required id has passed;
//! `cargo xtask conformance` rewrites it from the names of the tests, without running them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result, bail};

use super::{Id, Store, ids, store};
use crate::cargo;
use crate::libtest::{Log, Outcome, TestRun};

const PAGE: &str = "docs/conformance.md";
const STORES: [Store; 2] = [Store::Memory, Store::Postgres];

/// By id and test: the stores on which it passed.
type Proofs = BTreeMap<Id, BTreeMap<String, BTreeSet<Store>>>;

/// Fails if the page does not say what was run.
pub(crate) fn compare(log: &Log) -> Result<()> {
    let kept = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    if kept == page(&log.runs) {
        return Ok(());
    }
    bail!("{PAGE} is stale: run `cargo xtask conformance` and read the diff")
}

/// Writes the page from the names of the tests.
pub(crate) fn write() -> Result<()> {
    let mut command = cargo::command();
    command.args(["test", "--workspace", "--locked", "--test", "blackbox*", "--", "--list"]);
    let shown = cargo::shown(&command);
    let told = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !told.status.success() {
        bail!("`{shown}` failed ({}):\n{}", told.status, String::from_utf8_lossy(&told.stderr));
    }
    fs::write(PAGE, page(&listed(&String::from_utf8_lossy(&told.stdout))))
        .with_context(|| format!("cannot write {PAGE}"))
}

/// The tests that a list names, as if each had passed. Which binary they are in is not told, and
/// need not be: only those of black boxes were asked.
fn listed(text: &str) -> Vec<TestRun> {
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    let run = |path: &str| TestRun {
        binary: "blackbox".to_owned(),
        path: path.to_owned(),
        outcome: Outcome::Passed,
    };
    names.map(run).collect()
}

fn page(runs: &[TestRun]) -> String {
    let proofs = proofs(runs);
    let mut page = String::from(
        "# Conformance\n\n\
         Which tests prove each requirement, and on which stores. Every test uses the public \
         surface of the real binary\nalone; its name starts with the ids it proves. The page is \
         written by `cargo xtask conformance`, and the test\ncommand fails when it is stale or \
         when a required id has no passing test.\n\n",
    );
    let covered = |store: Store| {
        let has = |tests: &&BTreeMap<String, BTreeSet<Store>>| {
            tests.values().any(|stores| stores.contains(&store))
        };
        proofs.values().filter(has).count()
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "{} requirements: {} on the memory store, {} on PostgreSQL.\n",
        proofs.len(),
        covered(Store::Memory),
        covered(Store::Postgres)
    );
    page.push_str("| id | memory | postgres | tests |\n|---|---|---|---|\n");
    for (id, tests) in &proofs {
        let count = |store: Store| tests.values().filter(|stores| stores.contains(&store)).count();
        let [memory, postgres] = STORES.map(count);
        let names: Vec<String> = tests.iter().map(|(name, on)| named(name, on)).collect();
        let _ = writeln!(page, "| {id} | {memory} | {postgres} | {} |", names.join("<br>"));
    }
    page
}

/// A test, and the store it belongs to if it is not run on both.
fn named(name: &str, on: &BTreeSet<Store>) -> String {
    match STORES.iter().all(|store| on.contains(store)) {
        true => format!("`{name}`"),
        false => {
            let stores: Vec<String> = on.iter().map(ToString::to_string).collect();
            format!("`{name}` ({})", stores.join(", "))
        }
    }
}

fn proofs(runs: &[TestRun]) -> Proofs {
    let mut proofs = Proofs::new();
    let passed = runs.iter().filter(|run| run.outcome == Outcome::Passed);
    for run in passed.filter(|run| run.binary.starts_with("blackbox")) {
        let name = run.path.rsplit("::").next().unwrap_or(&run.path);
        for id in ids(&run.path) {
            let tests = proofs.entry(id).or_default();
            tests.entry(name.to_owned()).or_default().insert(store(&run.path));
        }
    }
    proofs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_each_test_once_and_does_not_go_by_the_order_of_a_run() {
        let list = "memory::g01_two: test\npostgres::g01_two: test\nmemory::g01_m02_one: test\n\
                    other: test\n\n3 tests, 0 benchmarks\n";
        let mut runs = listed(list);
        let shown = page(&runs);
        assert!(shown.contains("2 requirements: 2 on the memory store, 1 on PostgreSQL."));
        let rows = "| M02 | 1 | 0 | `g01_m02_one` (memory) |\n\
                    | G01 | 2 | 1 | `g01_m02_one` (memory)<br>`g01_two` |\n";
        assert!(shown.ends_with(rows), "{shown}");
        runs.reverse();
        runs.push(TestRun { outcome: Outcome::Failed, ..runs[0].clone() });
        assert_eq!(page(&runs), shown);
    }
}

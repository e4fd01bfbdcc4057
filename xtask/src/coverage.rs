//! Which requirements the black-box tests cover, read from the names of the tests.
//!
//! A test that proves requirements starts with their ids, `g05_g06_fourth_failure_goes_to_the_dlq`,
//! and lives in a test binary named `blackbox*`, which can only use the public surface. A module
//! `memory` or `postgres` in its path says which store it ran on; without one it is `memory`.
//!
//! To promise more, add an id to `REQUIRED` or a store to `REQUIRED_STORES`. `coverage/page.rs`
//! keeps the page that tells of it.

pub(crate) mod page;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, bail};

use crate::echo::SHOW_OUTPUT;
use crate::libtest::{Log, Outcome};
use crate::postgres::Postgres;
use crate::{cargo, test};

/// Requirements that must have a passing test, in the order of the table.
const REQUIRED: &[&str] = &[
    "M01", "M02", "M03", "M04", "M05", "M06", "M07", "M08", "M09", "M10", "M11", "M12", "M13",
    "M14", //
    "O01", "O02", "O03", "O04", "O06", "O07", "O08", "O09", "O10", "O11", "O12", "O13", "O14",
    "O15", "O16", "O17", "O18", "O19", "O20", "O21", "O22", "O23", "O24", "O25", //
    "A01", "A02", "A03", "A04", "A05", "A06", "A07", "A08", "A09", "A10", "A11", "A12", "A13",
    "A14", "A15", //
    "G01", "G02", "G03", "G04", "G05", "G06", "G07", "G08", "G09", "G10", "G11", "G12", "G13",
    "G14", "G15", "G16", "G17", //
    "D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08", "D09", "D10", "D11", "D12", "D13",
    "D14", "D15", "D16", "D17", "D18",
];

/// Stores on which each of them must pass. There is no exception: the tests that are by nature of
/// one store prove O05, which is not in the list. They damage the files of the memory store
/// (`blackbox_disk`); PostgreSQL has its own ways with a broken disk.
const REQUIRED_STORES: &[Store] = &[Store::Memory, Store::Postgres];

/// Families of ids, in the order of the table.
const FAMILIES: &str = "moagd";

/// A requirement's id, such as `G05`; ordered by family, then number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    family: usize,
    number: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Store {
    Memory,
    Postgres,
}

/// What the tests of one id on one store did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u32,
    failed: u32,
}

/// The table, and what is missing from it.
pub(crate) struct Coverage {
    rows: BTreeMap<(Id, Store), Tally>,
}

/// `cargo xtask coverage`: the black-box tests alone.
pub(crate) fn run() -> Result<()> {
    cargo::run(&["build", "--workspace", "--all-targets", "--locked"])?;
    let postgres = Postgres::start()?;
    let mut command = cargo::command();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast", "--test", "blackbox*"]);
    postgres.lend(command.args(SHOW_OUTPUT));
    let (log, tests) = test::listen(&mut command);
    let coverage = Coverage::of(&log);
    print!("{coverage}");
    tests.and(coverage.verdict()).and_then(|()| page::compare(&log))
}

impl Coverage {
    pub(crate) fn of(log: &Log) -> Self {
        let mut rows = BTreeMap::new();
        for id in REQUIRED.iter().filter_map(|text| Id::parse(text)) {
            for store in REQUIRED_STORES {
                rows.insert((id, *store), Tally::default());
            }
        }
        for run in log.runs.iter().filter(|run| run.binary.starts_with("blackbox")) {
            for id in ids(&run.path) {
                let tally = rows.entry((id, store(&run.path))).or_default();
                match run.outcome {
                    Outcome::Passed => tally.passed += 1,
                    Outcome::Failed => tally.failed += 1,
                    Outcome::Ignored => {}
                }
            }
        }
        Self { rows }
    }

    /// An error that names every required id without a passing test.
    pub(crate) fn verdict(&self) -> Result<()> {
        let mut missing = Vec::new();
        for store in REQUIRED_STORES {
            let is_covered = |id: Id| self.rows.get(&(id, *store)).is_some_and(|t| t.passed > 0);
            let required = REQUIRED.iter().filter_map(|text| Id::parse(text));
            let ids: Vec<String> =
                required.filter(|id| !is_covered(*id)).map(|id| id.to_string()).collect();
            if !ids.is_empty() {
                missing.push(format!("no passing test on {store} for {}", ids.join(" ")));
            }
        }
        if missing.is_empty() { Ok(()) } else { bail!(missing.join("; ")) }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "id   store     tests  result")?;
        for ((id, store), tally) in &self.rows {
            let tests = tally.passed + tally.failed;
            let store = store.to_string();
            writeln!(out, "{id}  {store:<8}  {tests:>5}  {}", tally.result())?;
        }
        Ok(())
    }
}

impl Tally {
    fn result(self) -> &'static str {
        match self {
            Self { failed: 1.., .. } => "FAILED",
            Self { passed: 1.., .. } => "ok",
            Self { passed: 0, failed: 0 } => "missing",
        }
    }
}

impl Id {
    /// Reads `g05` or `G05`; any other text is not an id.
    fn parse(text: &str) -> Option<Self> {
        let [letter, digits @ ..] = text.as_bytes() else { return None };
        let letter = char::from(letter.to_ascii_lowercase());
        let family = FAMILIES.find(letter)?;
        if digits.len() != 2 || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(Self { family, number: text[1..].parse().ok()? })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = char::from(FAMILIES.as_bytes()[self.family]).to_ascii_uppercase();
        write!(out, "{letter}{:02}", self.number)
    }
}

impl fmt::Display for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Memory => "memory",
            Self::Postgres => "postgres",
        })
    }
}

/// The ids at the start of a test's function name.
fn ids(path: &str) -> Vec<Id> {
    let function = path.rsplit("::").next().unwrap_or(path);
    function.split('_').map_while(Id::parse).collect()
}

fn store(path: &str) -> Store {
    if path.split("::").any(|segment| segment == "postgres") {
        Store::Postgres
    } else {
        Store::Memory
    }
}

#[cfg(test)]
mod tests;

//! `cargo xtask schemathesis`: thousands of generated requests, right and wrong ones, to a real
//! server on each store, every answer compared with the OpenAPI document. The program comes from
//! PyPI into a directory of its own under `target/`; `xtask/schemathesis/` pins and configures it.
//!
//! Rounds with seeds 1, 2, 3 … follow one another until enough cases were sent. `server.rs` beside
//! this file starts and ends the server.

mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::postgres::Postgres;
use crate::{cargo, packages};
use server::Server;

/// Cases per store, unless another number is asked for.
const CASES: u64 = 2_000;

/// Most generated requests per operation and round.
const EXAMPLES_PER_ROUND: u64 = 60;

/// A round that sends fewer cases than this has not worked, and another one will not help.
const CASES_PER_ROUND_MIN: u64 = 200;

const FOLDER: &str = "xtask/schemathesis";

/// Where the server under test keeps its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Memory,
    Postgres,
}

impl Store {
    const fn name(self) -> &'static str {
        match self {
            Store::Memory => "memory",
            Store::Postgres => "postgres",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Wish {
    cases: u64,
    stores: Vec<Store>,
    first_seed: u64,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let wish = read(arguments)?;
    packages::ensure("test")?;
    cargo::run(&["build", "--locked", "-p", "mainspring-cli", "-p", "mainspring-testkit"])?;
    for store in &wish.stores {
        let postgres = match store {
            Store::Memory => None,
            Store::Postgres => Some(Postgres::start()?),
        };
        exercise(*store, wish.cases, wish.first_seed, postgres.as_ref())?;
    }
    Ok(())
}

fn read(arguments: &[String]) -> Result<Wish> {
    let mut wish =
        Wish { cases: CASES, stores: vec![Store::Memory, Store::Postgres], first_seed: 1 };
    for pair in arguments.chunks(2) {
        let flag = pair[0].as_str();
        let value = pair.get(1).with_context(|| format!("{flag} needs a value"))?;
        let number = || value.parse().with_context(|| format!("{flag} needs a number"));
        match (flag, value.as_str()) {
            ("--cases", _) => wish.cases = number()?,
            ("--seed", _) => wish.first_seed = number()?,
            ("--store", "memory") => wish.stores = vec![Store::Memory],
            ("--store", "postgres") => wish.stores = vec![Store::Postgres],
            ("--store", other) => bail!("there is no store `{other}`"),
            _ => bail!("unexpected argument `{flag}`; it takes --cases, --store and --seed"),
        }
    }
    Ok(wish)
}

/// Sends at least `cases` to a server on `store`; the workspace must be built. The database of
/// `postgres` must be nobody else's: the server moves into it as it is.
fn exercise(store: Store, cases: u64, first_seed: u64, postgres: Option<&Postgres>) -> Result<()> {
    let target = cargo::target_directory()?;
    let program = installed(&target)?;
    let place = target.join("schemathesis").join(store.name());
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("cannot empty {}", place.display()))?;
    }
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let mut server = Server::start(&target, &place, postgres.map(Postgres::url))?;
    let (mut sent, mut seed) = (0, first_seed);
    while sent < cases {
        let report = place.join(format!("seed-{seed}.txt"));
        let new = round(&program, &server, seed, &report)?;
        server.expect_alive()?;
        sent += new;
        println!("{}: {sent} of {cases} cases, nothing found", store.name());
        seed += 1;
    }
    Ok(())
}

/// One run of the program; says how many cases it sent.
fn round(program: &Path, server: &Server, seed: u64, report: &Path) -> Result<u64> {
    let folder = fs::canonicalize(FOLDER).context("run it from the repository")?;
    let mut command = Command::new(program);
    command
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", server.url), "--checks", "all"])
        .args(["--no-color", "--generation-database", "none", "--report-dir"])
        .arg(report.with_extension("d"))
        .args(["--max-examples", &EXAMPLES_PER_ROUND.to_string(), "--seed", &seed.to_string()])
        .env("SCHEMATHESIS_TOKEN", &server.token)
        .env("SCHEMATHESIS_KEPT_TOKENS", server.kept_tokens.join(","))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder);
    let output = command.stdin(Stdio::null()).output().context("cannot start schemathesis")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    fs::write(report, &said).context("cannot keep the report")?;
    if !output.status.success() {
        println!("{said}{}", String::from_utf8_lossy(&output.stderr));
        bail!("schemathesis, seed {seed}: {}; see {}", output.status, report.display());
    }
    let cases = generated(&said).context("schemathesis did not say how many cases it sent")?;
    if let Some(refused) = shut_out(&said) {
        bail!("schemathesis, seed {seed}: the token was refused: {refused}");
    }
    if cases < CASES_PER_ROUND_MIN {
        bail!("schemathesis, seed {seed}: only {cases} cases");
    }
    Ok(cases)
}

/// The number in `  2323 generated, 2323 passed`.
fn generated(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.trim_start().contains(" generated,"))?;
    line.trim_start().split(' ').next()?.parse().ok()
}

/// Whether an operation answered nothing but 401: then the run proved nothing about it.
fn shut_out(said: &str) -> Option<&str> {
    said.lines().find(|line| line.starts_with("401 Unauthorized ("))
}

/// The program, installed first if it is not there in exactly the pinned versions.
fn installed(target: &Path) -> Result<PathBuf> {
    let place = target.join("schemathesis").join("venv");
    let program = place.join("bin").join("schemathesis");
    let pinned = fs::read_to_string(format!("{FOLDER}/requirements.txt"))
        .context("cannot read the pinned versions")?;
    let note = place.join("pinned.txt");
    if program.is_file() && fs::read_to_string(&note).is_ok_and(|had| had == pinned) {
        return Ok(program);
    }
    if place.exists() {
        fs::remove_dir_all(&place).context("cannot remove the old one")?;
    }
    cargo::run_command(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    let mut pip = Command::new(place.join("bin").join("pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
    cargo::run_command(pip.arg(format!("{FOLDER}/requirements.txt")))?;
    fs::write(&note, pinned).context("cannot note the versions")?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::{Store, Wish, generated, read, shut_out};

    fn wish(arguments: &[&str]) -> Option<Wish> {
        read(&arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).ok()
    }

    #[test]
    fn the_number_of_cases_and_the_store_are_chosen_by_flags() {
        let both = vec![Store::Memory, Store::Postgres];
        assert_eq!(wish(&[]), Some(Wish { cases: 2_000, stores: both.clone(), first_seed: 1 }));
        let one = wish(&["--cases", "20000", "--store", "postgres", "--seed", "7"]);
        let stores = vec![Store::Postgres];
        assert_eq!(one, Some(Wish { cases: 20_000, stores, first_seed: 7 }));
        assert_eq!(wish(&["--store", "sqlite"]), None);
        assert_eq!(wish(&["--cases"]), None);
        assert_eq!(wish(&["--cases", "many"]), None);
    }

    #[test]
    fn a_summary_is_read_and_a_token_that_was_refused_is_seen() {
        let said = "Test cases:\n  2323 generated, 16 found 16 unique failures, 26 skipped\n";
        assert_eq!(generated(said), Some(2_323));
        assert_eq!(generated("nothing of the kind"), None);
        assert_eq!(shut_out(said), None);
        let shut = "403 Forbidden (1 operation):\n401 Unauthorized (16 operations):\n";
        assert_eq!(shut_out(shut), Some("401 Unauthorized (16 operations):"));
    }
}

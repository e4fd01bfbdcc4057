//! `cargo xtask schemathesis`: thousands of generated requests, right and wrong ones, to a real
//! server on each store, every answer compared with the OpenAPI document. The program comes from
//! PyPI into a directory of its own under `target/`; `xtask/schemathesis/` pins and configures it.
//!
//! Rounds with seeds 1, 2, 3 … follow one another until enough cases were sent. `server.rs` starts
//! and ends the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::postgres::Postgres;
use crate::server::Server;
use crate::{cargo, packages};

/// Cases per store, unless another number is asked for.
const CASES: u64 = 2_000;

/// Cases per store in the long test.
const CASES_FULL: u64 = 20_000;

/// Most generated requests per operation and round, besides those that go through the document
/// systematically; and in the one round of the usual test.
const EXAMPLES_PER_ROUND: u64 = 60;
const EXAMPLES_QUICK: u64 = 4;

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
    examples: u64,
}

impl Default for Wish {
    fn default() -> Self {
        let stores = vec![Store::Memory, Store::Postgres];
        Wish { cases: CASES, stores, first_seed: 1, examples: EXAMPLES_PER_ROUND }
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let wish = read(arguments)?;
    packages::ensure("test")?;
    cargo::run(&["build", "--workspace", "--locked"])?;
    exercise_all(&wish)
}

/// One short round per store; the workspace must be built.
pub(crate) fn quick() -> Result<()> {
    exercise_all(&Wish { cases: 1, examples: EXAMPLES_QUICK, ..Wish::default() })
}

/// As many cases per store as a release is shown with; the workspace must be built.
pub(crate) fn full() -> Result<()> {
    exercise_all(&Wish { cases: CASES_FULL, ..Wish::default() })
}

/// The stores side by side: the program keeps one core busy at most.
fn exercise_all(wish: &Wish) -> Result<()> {
    let target = cargo::target_directory()?;
    let program = installed(&target)?;
    thread::scope(|scope| {
        let start = |store: &Store| {
            let (store, target, program) = (*store, &target, &program);
            scope.spawn(move || {
                let postgres = match store {
                    Store::Memory => None,
                    Store::Postgres => Some(Postgres::start()?),
                };
                exercise(store, wish, (target, program), postgres.as_ref())
            })
        };
        let running: Vec<_> = wish.stores.iter().map(start).collect();
        let ended =
            running.into_iter().map(|it| it.join().unwrap_or_else(|_| bail!("it panicked")));
        // Each is waited for, and the first that found something is told.
        ended.collect::<Vec<Result<()>>>().into_iter().collect()
    })
}

fn read(arguments: &[String]) -> Result<Wish> {
    let mut wish = Wish::default();
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

/// Sends at least the cases of `wish` to a server on `store`; the workspace must be built. The
/// database of `postgres` must be nobody else's: the server moves into it as it is.
fn exercise(
    store: Store,
    wish: &Wish,
    (target, program): (&Path, &Path),
    postgres: Option<&Postgres>,
) -> Result<()> {
    let place = target.join("schemathesis").join(store.name());
    if place.exists() {
        fs::remove_dir_all(&place).with_context(|| format!("cannot empty {}", place.display()))?;
    }
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let mut server = Server::start(target, &place, postgres.map(Postgres::url))?;
    let (mut sent, mut seed) = (0, wish.first_seed);
    while sent < wish.cases {
        let report = place.join(format!("seed-{seed}.txt"));
        let new = round(program, &server, (seed, wish.examples), &report)?;
        server.expect_alive()?;
        sent += new;
        println!("{}: seed {seed}, {sent} cases so far, nothing found", store.name());
        seed += 1;
    }
    Ok(())
}

/// One run of the program; says how many cases it sent.
fn round(
    program: &Path,
    server: &Server,
    (seed, examples): (u64, u64),
    report: &Path,
) -> Result<u64> {
    let folder = fs::canonicalize(FOLDER).context("run it from the repository")?;
    let mut command = Command::new(program);
    command
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", server.url), "--checks", "all"])
        .args(["--no-color", "--generation-database", "none", "--report-dir"])
        .arg(report.with_extension("d"))
        .args(["--max-examples", &examples.to_string(), "--seed", &seed.to_string()])
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
        assert_eq!(wish(&[]), Some(Wish::default()));
        let one = wish(&["--cases", "20000", "--store", "postgres", "--seed", "7"]);
        let stores = vec![Store::Postgres];
        assert_eq!(one, Some(Wish { cases: 20_000, stores, first_seed: 7, ..Wish::default() }));
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

//! `cargo xtask instructions`: what the hot paths cost in instructions, counted by valgrind, beside
//! the figures that are kept. Unlike times they are the same on a busy machine; a change that makes
//! one dearer by more than a twentieth fails unless the figures are written anew, which is then
//! read in the diff. The build is the one of the tests: the figures are compared with each other
//! only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, packages};

/// Where the figures are kept.
const FIGURES: &str = "crates/testkit/instructions.txt";

/// What is counted (`crates/testkit/examples/instructions.rs`), for how many rounds, and what one
/// round is.
const WORKS: [(&str, u64, &str); 4] = [
    ("rules", 2_000, "one job submitted, claimed and completed: decide and evolve"),
    ("frames", 20, "a journal frame of 100 submissions, written and read"),
    ("submit", 20, "a request of 100 submissions through engine and memory store"),
    ("drain", 20, "the same, handed out and completed as well"),
];

/// How much dearer something may get, in hundredths, before it has to be looked at.
const DEARER_MAX: u64 = 5;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    packages::ensure("test")?;
    cargo::run(&["build", "--workspace", "--all-targets", "--locked"])?;
    match arguments {
        [] => check(),
        [flag] if flag == "--write" => write(),
        [other, ..] => bail!("unexpected argument `{other}`; it takes only --write"),
    }
}

/// Compares with what is kept; the workspace must be built. A build in steps is cut into other
/// pieces, and other things are inlined: it is shown, and not judged.
pub(crate) fn check() -> Result<()> {
    let kept = read(&fs::read_to_string(FIGURES).with_context(|| format!("no {FIGURES}"))?)?;
    let mut dearer = Vec::new();
    for (work, now) in count_all()? {
        let kept = *kept.get(&work).with_context(|| format!("{FIGURES} does not have {work}"))?;
        println!("{work:<8} {now:>12} instructions a round, {kept:>12} kept");
        if is_dearer(now, kept) && !cargo::is_built_in_steps() {
            dearer.push(format!("{work}: {kept} to {now}"));
        }
    }
    if !dearer.is_empty() {
        let what = dearer.join(", ");
        bail!("dearer than it was: {what}; if that is worth it: cargo xtask instructions --write");
    }
    Ok(())
}

fn write() -> Result<()> {
    let mut text = String::from(
        "# Instructions a round, counted by `cargo xtask instructions --write`. What a round is:\n",
    );
    for (work, _, what) in WORKS {
        text.push_str(&format!("# {work}: {what}\n"));
    }
    for (work, count) in count_all()? {
        text.push_str(&format!("{work} {count}\n"));
    }
    fs::write(FIGURES, text).with_context(|| format!("cannot write {FIGURES}"))
}

fn is_dearer(now: u64, kept: u64) -> bool {
    now * 100 > kept * (100 + DEARER_MAX)
}

fn read(text: &str) -> Result<BTreeMap<String, u64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (work, count) = line.split_once(' ').context("a line is a name and a number")?;
            Ok((work.to_owned(), count.parse().context("a line is a name and a number")?))
        })
        .collect()
}

/// Every piece of work with the instructions of one round.
fn count_all() -> Result<Vec<(String, u64)>> {
    let program = cargo::target_directory()?.join("debug/examples/instructions");
    let one = |(work, rounds, _): (&str, u64, &str)| {
        // What it takes to begin and to end is in both.
        let (once, twice) = (count(&program, work, rounds)?, count(&program, work, 2 * rounds)?);
        Ok((work.to_owned(), twice.saturating_sub(once) / rounds))
    };
    WORKS.into_iter().map(one).collect()
}

fn count(program: &Path, work: &str, rounds: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args([work, &rounds.to_string()])
        .output()
        .context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{work} failed under valgrind: {said}");
    }
    instructions(&said).with_context(|| format!("valgrind counted nothing: {said}"))
}

/// The number in valgrind's line `I refs: 1,234`.
fn instructions(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("I") && line.contains("refs:"))?;
    let (_, number) = line.split_once("refs:")?;
    number.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{instructions, is_dearer, read};

    #[test]
    fn what_valgrind_says_is_read() {
        assert_eq!(instructions("==7== \n==7== I   refs:      1,234,567\n"), Some(1_234_567));
        assert_eq!(instructions("==7== nothing"), None);
    }

    #[test]
    fn a_twentieth_is_let_pass() {
        assert!(!is_dearer(1_050, 1_000));
        assert!(is_dearer(1_051, 1_000));
        assert!(!is_dearer(500, 1_000));
    }

    #[test]
    fn figures_are_read() {
        let kept = read("# a round\nrules 12\nframes 7\n").unwrap_or_default();
        assert_eq!(
            kept.into_iter().collect::<Vec<_>>(),
            [("frames".to_owned(), 7), ("rules".to_owned(), 12)]
        );
        assert!(read("rules").is_err());
    }
}

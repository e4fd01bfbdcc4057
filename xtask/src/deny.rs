//! `cargo xtask deny`: what cargo-deny says of our dependencies, by `deny.toml`.
//!
//! It takes minutes to build once, and asks the network for the list of advisories, so the usual
//! test run leaves it to `--full`; licences, bans and sources are checked by tidy in every run.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cargo;

/// A check must not change by itself.
const VERSION: &str = "0.20.2";

pub(crate) fn run() -> Result<()> {
    let program = installed()?;
    let has_advisories = cargo::run_command(Command::new(&program).args(["fetch", "db"])).is_ok();
    let mut command = Command::new(&program);
    command.args(["--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    if has_advisories {
        command.arg("advisories");
    } else {
        println!("SKIPPED: advisories, for their list cannot be fetched from here");
    }
    cargo::run_command(&mut command)
}

/// The program, installed first into a directory of its own under `target/`.
fn installed() -> Result<PathBuf> {
    let place = cargo::target_directory()?.join("cargo-deny").join(VERSION);
    let program = place.join("bin").join("cargo-deny");
    if !program.is_file() {
        let mut command = cargo::command();
        command.args(["install", "--locked", "--version", VERSION, "cargo-deny", "--root"]);
        cargo::run_command(command.arg(&place))?;
    }
    Ok(program)
}

//! `cargo xtask bench`: a release build of the CLI, then its own `bench` command.
//!
//! The measuring lives in `mainspring-bench`, a part of that command, so that users can repeat it
//! without this repository. All arguments pass through.

use std::process::Command;

use anyhow::Result;

use crate::{cargo, packages};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    packages::ensure("bench")?;
    cargo::run(&["build", "--release", "--locked", "-p", "mainspring-cli"])?;
    let binary = cargo::target_directory()?.join("release").join("mainspring");
    cargo::run_command(Command::new(binary).arg("bench").args(arguments))
}

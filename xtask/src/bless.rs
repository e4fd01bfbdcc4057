//! `cargo xtask bless`: the only way golden files are rewritten.
//!
//! It runs the tests of the crates that keep goldens, or of the packages named, and lets them
//! write what they see. It proves nothing: read the diff, then run `cargo xtask test`.

use std::path::Path;

use anyhow::{Context, Result};

use crate::{cargo, limits, tidy};

/// The crates with golden files.
const GOLDEN_CRATES: [&str; 6] = [
    "mainspring-kernel",
    "mainspring-store",
    "mainspring-store-memory",
    "mainspring-store-postgres",
    "mainspring-api",
    "mainspring-server",
];

/// The page of limits shows the settings; the rest of the command line's tests keep nothing. Of the
/// whole workspace: a package alone has other features, and every dependency would be built again.
const SETTINGS: [&str; 5] = ["test", "--locked", "--workspace", "--bins", "the_page_of_limits"];

/// The page of limits alone.
pub(crate) fn limits() -> Result<()> {
    limits::write(&tidy::files(Path::new("."))?)?;
    let mut settings = cargo::command();
    settings.args(SETTINGS).env("MAINSPRING_BLESS", "1");
    cargo::run_command(&mut settings).context("the settings are not written")
}

pub(crate) fn run(packages: &[String]) -> Result<()> {
    if packages.is_empty() {
        limits()?;
    }
    let mut command = cargo::command();
    command.args(["test", "--locked", "--no-fail-fast"]);
    if packages.is_empty() {
        command.args(GOLDEN_CRATES.iter().flat_map(|package| ["-p", *package]));
    } else {
        command.args(packages.iter().flat_map(|package| ["-p", package.as_str()]));
    }
    command.env("MAINSPRING_BLESS", "1").env("INSTA_UPDATE", "always");
    cargo::run_command(&mut command).context("some goldens may not be written")?;
    println!("goldens written; read `git diff` before you commit them");
    Ok(())
}

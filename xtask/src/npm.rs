//! Packages from npm, in the versions that a file names, under `target/`: kept between runs and
//! installed anew when the file says otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo;

/// What looks at the pages of the dashboard, and its version.
const AXE: (&str, &str) = ("axe-core", "xtask/npm/axe-core.txt");

/// Tells the browser tests where the script is; the testkit reads it.
pub(crate) const AXE_PLACE: &str = "MAINSPRING_AXE";

/// The script that finds what people with other senses or hands trip over in a page.
pub(crate) fn axe() -> Result<PathBuf> {
    let home = cargo::target_directory()?.join("axe");
    Ok(pinned(&home, AXE)?.join("axe.min.js"))
}

/// Where a package is; installs it if it is not there in the version that a file names.
pub(crate) fn pinned(home: &Path, (package, version): (&str, &str)) -> Result<PathBuf> {
    let place = home.join("node_modules").join(package);
    let pinned = fs::read_to_string(version).context("cannot read the pinned version")?;
    let note = home.join("pinned.txt");
    if place.is_dir() && fs::read_to_string(&note).is_ok_and(|had| had == pinned) {
        return Ok(place);
    }
    if home.exists() {
        fs::remove_dir_all(home).context("cannot remove the old package")?;
    }
    fs::create_dir_all(home).context("cannot make a place for the package")?;
    install(home, &[], &format!("{package}@{}", pinned.trim()))?;
    fs::write(&note, pinned).context("cannot note the version")?;
    Ok(place)
}

/// `npm install` in a directory of its own.
pub(crate) fn install(home: &Path, flags: &[&str], what: &str) -> Result<()> {
    // Without a file of its own there, npm would look for one further up.
    fs::write(home.join("package.json"), "{\"private\": true}\n").context("cannot begin")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"]);
    cargo::run_command(npm.args(flags).arg(what).current_dir(home).stdin(Stdio::null()))
}

//! `cargo xtask older`: the server of the version before, built from the history, so that tests can
//! run it beside this one on the same database. `older.txt` names its commit. Where the history is
//! not there (a shallow clone, an archive of the sources) there is none.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// What a test looks for to find it.
pub(crate) const PLACE: &str = "MAINSPRING_OLDER";
/// Which commit it is: that of the last release, or what stands for one.
const COMMIT: &str = "xtask/older.txt";

pub(crate) fn run() -> Result<()> {
    match binary()? {
        Some(binary) => println!("export {PLACE}={}", binary.display()),
        None => println!("the history does not have the commit that {COMMIT} names"),
    }
    Ok(())
}

/// The binary of the version before; built unless it is there.
pub(crate) fn binary() -> Result<Option<PathBuf>> {
    let text = fs::read_to_string(COMMIT).with_context(|| format!("cannot read {COMMIT}"))?;
    let commit =
        text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let commit = commit.with_context(|| format!("{COMMIT} names no commit"))?;
    if !is_known(commit) {
        return Ok(None);
    }
    let place = cargo::target_directory()?.join("older").join(commit);
    let (tree, built) = (place.join("tree"), place.join("target"));
    let binary = built.join("debug/mainspring");
    if !binary.exists() {
        unpack(commit, &place, &tree)?;
        // With the features of the whole workspace, as the tests build this version.
        let mut build = cargo::command();
        build.args(["build", "--locked", "--workspace", "--bin", "mainspring", "--target-dir"]);
        cargo::run_command(build.arg(&built).current_dir(&tree).env_remove("CARGO_MANIFEST_DIR"))?;
    }
    Ok(Some(binary))
}

fn is_known(commit: &str) -> bool {
    Command::new("git")
        .args(["cat-file", "-e", &format!("{commit}^{{commit}}")])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The sources of a commit, without touching anything of this tree.
fn unpack(commit: &str, place: &Path, tree: &Path) -> Result<()> {
    fs::create_dir_all(tree).context("cannot make a place for the sources")?;
    let archive = place.join("tree.tar");
    let mut pack = Command::new("git");
    pack.args(["archive", commit]);
    pack.stdout(File::create(&archive).context("cannot keep the sources")?);
    ensure!(pack.status().context("cannot start git")?.success(), "git archive failed");
    cargo::run_command(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(tree))?;
    fs::remove_file(&archive).context("cannot tidy up")
}

//! How a task calls cargo: from the workspace root, always with the lock file as it is.
//!
//! Nothing here prints a verdict; the caller decides what a failed command means.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Clippy over everything, warnings as errors.
pub(crate) const CLIPPY: [&str; 7] =
    ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];

/// Makes the workspace root the current directory, so that every path in a task is relative to it.
pub(crate) fn enter_root() -> Result<()> {
    let manifest_dir =
        env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let root = Path::new(&manifest_dir).parent().context("xtask lies in the workspace root")?;
    env::set_current_dir(root).with_context(|| format!("cannot enter {}", root.display()))
}

/// The cargo that started us, so that nested calls use the same toolchain.
///
/// Where nothing was built in steps so far, nothing is noted down for the next step: on a fresh
/// clone that is work for nobody. Whoever builds by hand has it noted, and from then on so do we.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if !is_built_in_steps() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// The same, behind everything that is in a hurry.
pub(crate) fn nice() -> Command {
    let plain = command();
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(plain.get_program());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Whether somebody chose, or steps of our crates were noted down before. Of this crate alone they
/// always are: it is what runs.
pub(crate) fn is_built_in_steps() -> bool {
    static IS_BUILT_IN_STEPS: OnceLock<bool> = OnceLock::new();
    *IS_BUILT_IN_STEPS.get_or_init(look_for_steps)
}

fn look_for_steps() -> bool {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let noted = fs::read_dir(target.join("debug/incremental")).into_iter().flatten().flatten();
    env::var_os("CARGO_INCREMENTAL").is_some()
        || noted
            .map(|it| it.file_name())
            .any(|name| name.as_encoded_bytes().starts_with(b"mainspring"))
}

/// Runs cargo with the terminal attached; an unsuccessful exit is an error.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    run_command(command().args(arguments))
}

/// Runs any command with the terminal attached; an unsuccessful exit is an error.
pub(crate) fn run_command(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    println!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Whether `cargo <name>` is installed: rustfmt and clippy are optional parts of a toolchain.
pub(crate) fn has_subcommand(name: &str) -> bool {
    command()
        .args([name, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The workspace and all its dependencies, as `cargo metadata` describes them.
pub(crate) fn metadata() -> Result<Value> {
    let output = command()
        .args(["metadata", "--format-version", "1", "--locked"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start `cargo metadata`")?;
    if !output.status.success() {
        bail!("`cargo metadata --locked` failed ({})", output.status);
    }
    serde_json::from_slice(&output.stdout).context("cannot read the answer of `cargo metadata`")
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let path = metadata["target_directory"].as_str().context("metadata without a target")?;
    Ok(PathBuf::from(path))
}

/// The command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(name.to_string_lossy()).chain(words).collect::<Vec<_>>().join(" ")
}

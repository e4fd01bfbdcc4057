//! `mainspring man`: a page for each command, for `man`. `cargo xtask dist` puts them into its
//! archive.

use crate::exit;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// Where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the pages into this directory
    directory: PathBuf,
}

pub(crate) fn run(args: &Args, command: clap::Command) -> anyhow::Result<u8> {
    std::fs::create_dir_all(&args.directory)
        .with_context(|| format!("cannot make {}", args.directory.display()))?;
    write(command.disable_help_subcommand(true), "mainspring", &args.directory)?;
    Ok(exit::OK)
}

/// Writes the page of a command and those of the commands below it.
fn write(command: clap::Command, name: &str, directory: &Path) -> anyhow::Result<()> {
    let command = command.name(leaked(name)).display_name(leaked(name));
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below.clone(), &format!("{name}-{}", below.get_name()), directory)?;
    }
    Ok(())
}

/// Names of commands live as long as the program, which ends with the last page.
fn leaked(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}

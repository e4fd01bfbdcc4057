//! `mainspring completions`: a script for the shell.

use crate::exit;

/// Which shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell to print the script for
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: Args, mut command: clap::Command) -> anyhow::Result<u8> {
    clap_complete::generate(args.shell, &mut command, "mainspring", &mut std::io::stdout());
    Ok(exit::OK)
}

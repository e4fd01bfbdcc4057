//! `mainspring completions`: a script for the shell.

use crate::exit;
use crate::output::say;

/// Which shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell to print the script for
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: Args, mut command: clap::Command) -> anyhow::Result<u8> {
    // Through a buffer: a reader that goes away (`| head`) must not be a panic.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "mainspring", &mut script);
    say(String::from_utf8_lossy(&script).trim_end());
    Ok(exit::OK)
}

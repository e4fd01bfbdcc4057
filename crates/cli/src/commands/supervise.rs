//! `mainspring supervise`: the parent of one command of a worker or server, never started by hand.
//! What it does is in `mainspring_executor::supervise`.

use std::ffi::OsString;

/// What to run, for whom.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The worker or server
    #[arg(long)]
    parent: i32,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<u8> {
    Ok(mainspring_executor::supervise::run(args.parent, &args.command).await?)
}

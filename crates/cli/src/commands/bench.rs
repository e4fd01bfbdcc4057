//! `mainspring bench`: measuring.

use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    suite: bool,
    what: Option<String>,
}
#[derive(Debug, clap::Args)]
pub(crate) struct EchoArgs {}
pub(crate) fn run(_: Args, _: Output) -> anyhow::Result<u8> {
    Ok(0)
}
pub(crate) async fn echo(_: EchoArgs) -> anyhow::Result<u8> {
    Ok(0)
}

//! `mainspring worker`: a command per job. The payload goes in on stdin, the result comes out on
//! stdout, the exit code says how it went.

use crate::exit;
use crate::output::{say, say_json};
use crate::session::Session;
use crate::signals::StopSignals;
use crate::span;
use anyhow::bail;
use mainspring_executor::process::judge::{Codes, judge};
use mainspring_executor::process::{self, Inherited, Task};
use mainspring_kernel::executor::is_own_variable;
use mainspring_sdk::api::Json;
use mainspring_sdk::{Context, Failure, Worker};
use serde_json::json;
use std::ffi::OsString;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What to run for which jobs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command gets the payload on stdin and MAINSPRING_JOB_ID, MAINSPRING_ATTEMPT,
MAINSPRING_RETRY_COUNT, MAINSPRING_EXECUTION_KEY, MAINSPRING_LEASE_TOKEN, MAINSPRING_TRACE_ID and
MAINSPRING_URL in its environment. Secrets of the worker itself (other MAINSPRING_ variables,
DATABASE_URL, PGPASSWORD) are withheld unless --env names them. Exit 0 completes the job with what it wrote to stdout (JSON as
it is, anything else as a JSON string); 65 fails it for good; any other code fails it for now.")]
pub(crate) struct Args {
    /// Type of the jobs; give several times
    #[arg(long = "type", required = true, value_name = "TYPE")]
    types: Vec<String>,
    /// Only jobs of this queue; give several times
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Jobs that run side by side
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// How long a job stays ours without a heartbeat, in milliseconds
    #[arg(long, default_value_t = 15_000, value_parser = clap::value_parser!(u32).range(100..))]
    lease_ms: u32,
    /// Name of this worker [default: host and process]
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// How long running jobs may go on after SIGTERM or SIGINT
    #[arg(long, value_parser = span::parse, default_value = "25s", value_name = "SPAN")]
    grace: Duration,
    /// How long a command has between SIGTERM and SIGKILL
    #[arg(long, value_parser = span::parse, default_value = "5s", value_name = "SPAN")]
    kill_grace: Duration,
    /// Most bytes of output that become the result
    #[arg(long, default_value_t = 1_000_000, value_name = "BYTES",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    output_max: u32,
    /// Pass this variable on to the command although it is withheld by default; give several times
    #[arg(long = "env", value_name = "NAME")]
    passed_on: Vec<String>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) async fn run(args: Args, session: Session) -> anyhow::Result<u8> {
    let mut builder = Worker::builder(session.client.clone())
        .queues(args.queues.clone())
        .concurrency(usize::from(args.concurrency))
        .lease(Duration::from_millis(u64::from(args.lease_ms)))
        .drain_grace(args.grace)
        // The handler ends the group by itself within the grace; this is only the backstop.
        .stop_grace(args.kill_grace + Duration::from_secs(3));
    if let Some(id) = args.id {
        builder = builder.id(id);
    }
    for job_type in &args.types {
        let plan = Task {
            command: args.command.clone(),
            // By this name it is the same program, even if its file has been replaced meanwhile.
            supervisor: Some("/proc/self/exe".into()),
            inherited: Inherited::AllBut(withheld(
                std::env::vars_os().map(|(name, _)| name),
                &args.passed_on,
            )),
            variables: Vec::new(),
            directory: None,
            input: Vec::new(),
            output_bytes_max: args.output_max as usize,
            grace: args.kill_grace,
        };
        builder = builder.on(job_type.clone(), move |ctx| {
            let (task, max) = (task(&ctx, plan.clone()), plan.output_bytes_max);
            async move { attempt(&ctx, task, max).await }
        });
    }
    tracing::info!(types = ?args.types, server = session.client.url(), "worker started");
    let mut signals = StopSignals::listen()?;
    let stop = CancellationToken::new();
    let mut working = Box::pin(builder.build().run(stop.clone()));
    let summary = tokio::select! {
        ended = &mut working => ended?,
        () = signals.first() => {
            tracing::info!("stopping: running jobs may finish; once more to stop at once");
            stop.cancel();
            tokio::select! {
                ended = &mut working => ended?,
                // Dropping the worker ends its commands; their leases run out by themselves.
                () = signals.second() => bail!("stopped at once; running jobs were given up"),
            }
        }
    };
    if session.is_json() {
        say_json(&json!({
            "completed": summary.completed, "failed": summary.failed,
            "released": summary.released, "lost": summary.lost, "refused": summary.refused,
        }));
    } else {
        let (completed, failed) = (summary.completed, summary.failed);
        let (released, lost) = (summary.released, summary.lost + summary.refused);
        say(&format!("{completed} completed, {failed} failed, {released} released, {lost} lost"));
    }
    Ok(exit::OK)
}

/// The variables that are the worker's own business: its tokens and the way to the database.
fn withheld(names: impl Iterator<Item = OsString>, passed_on: &[String]) -> Vec<OsString> {
    let is_own = |name: &OsString| {
        let name = name.to_string_lossy();
        is_own_variable(&name) && !passed_on.iter().any(|passed| *passed == name)
    };
    names.filter(is_own).collect()
}

fn task(ctx: &Context, plan: Task) -> Task {
    let job = ctx.job();
    Task {
        variables: vec![
            ("MAINSPRING_JOB_ID", job.job_id.clone()),
            ("MAINSPRING_ATTEMPT", job.attempt.to_string()),
            ("MAINSPRING_RETRY_COUNT", job.retry_count.to_string()),
            ("MAINSPRING_EXECUTION_KEY", job.execution_key.clone()),
            ("MAINSPRING_LEASE_TOKEN", job.lease_token.clone()),
            ("MAINSPRING_TRACE_ID", job.trace_id.clone()),
            ("MAINSPRING_URL", ctx.client().url().to_owned()),
        ],
        input: job.payload.get().as_bytes().to_vec(),
        ..plan
    }
}

async fn attempt(ctx: &Context, task: Task, max: usize) -> Result<Option<Json>, Failure> {
    let job = ctx.job();
    tracing::info!(job_id = job.job_id, attempt = job.attempt, "running");
    let finished = process::run(task, ctx.stopped()).await.map_err(|error| {
        Failure::retryable("COMMAND_NOT_STARTED", format!("cannot run the command: {error}"))
    })?;
    tracing::info!(job_id = job.job_id, ending = ?finished.ending, "ended");
    judge(finished, max, Codes::ByExit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_worker_are_withheld_unless_they_are_named() {
        let names =
            ["PATH", "MAINSPRING_TOKEN", "MAINSPRING_ADMIN_TOKEN", "DATABASE_URL", "PGHOST"];
        let all = || names.iter().map(OsString::from);
        let expected = ["MAINSPRING_TOKEN", "MAINSPRING_ADMIN_TOKEN", "DATABASE_URL"];
        assert_eq!(withheld(all(), &[]), expected);
        assert_eq!(withheld(all(), &["DATABASE_URL".into()]), expected[..2]);
    }
}

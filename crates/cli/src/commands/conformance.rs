//! `mainspring conformance`: puts a worker of anybody's to the test. It is started as a command and
//! works for a stage (`conformance/stage.rs`): a server that does on purpose what a real one does
//! seldom. What is played is in `conformance/scenes.rs`.

mod scenes;
mod stage;

use crate::exit;
use crate::output::{Output, say, say_json, table};
use crate::span;
use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt};
use scenes::{SCENES, Scene};
use serde_json::json;
use stage::Stage;
use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// So many scenes are played side by side: most of each is waiting.
const SCENES_AT_A_TIME: usize = 4;

/// Which worker, and how patient to be.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The worker finds MAINSPRING_URL and MAINSPRING_TOKEN in its environment and takes jobs of --type. A
payload is {\"work_ms\": N, \"value\": any, \"fail\": CODE or null}: it works for N milliseconds,
listening for a reason to stop, then fails with CODE, not to be retried, or completes with the value.
SIGTERM is to make it leave. The exit code is 1 if it did something wrong.")]
pub(crate) struct Args {
    /// Type of the jobs
    #[arg(long = "type", default_value = "conformance", value_name = "TYPE")]
    job_type: String,
    /// How long the worker may take to do what is expected of it, besides the work
    #[arg(long, value_parser = span::parse, default_value = "30s", value_name = "SPAN")]
    patience: Duration,
    /// Only this scene; give several times
    #[arg(long = "scene", value_name = "NAME")]
    only: Vec<String>,
    /// The worker and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What came of a scene.
struct Verdict {
    scene: &'static str,
    about: &'static str,
    problem: Option<String>,
}

pub(crate) async fn run(args: Args, output: Output) -> anyhow::Result<u8> {
    if let Some(unknown) = args.only.iter().find(|name| SCENES.iter().all(|it| it.name != **name)) {
        let names: Vec<&str> = SCENES.iter().map(|scene| scene.name).collect();
        let told = format!("there is no scene {unknown:?}; there are {}", names.join(", "));
        return Err(exit::usage(told));
    }
    let is_wanted =
        |scene: &&Scene| args.only.is_empty() || args.only.iter().any(|name| name == scene.name);
    let played = SCENES.iter().filter(is_wanted).map(|scene| play(scene, &args));
    let played = futures_util::stream::iter(played).buffered(SCENES_AT_A_TIME);
    let verdicts: Vec<Verdict> = played.try_collect().await?;
    show(&verdicts, output);
    let is_good = verdicts.iter().all(|verdict| verdict.problem.is_none());
    Ok(if is_good { exit::OK } else { exit::REFUSED })
}

/// Plays one scene. Each has a worker of its own: what one of them did wrong is not held against
/// the next.
async fn play(scene: &Scene, args: &Args) -> anyhow::Result<Verdict> {
    let stage = Stage::open(&args.job_type, args.patience).await?;
    let mut worker = start(&args.command, stage.url())?;
    let played = tokio::select! {
        // A worker that has done its part may be gone by then.
        biased;
        played = (scene.play)(&stage, worker.id()) => played,
        ended = worker.wait() => Err(match ended {
            Ok(status) => format!("the worker ended by itself ({status})"),
            Err(error) => format!("the worker cannot be waited for: {error}"),
        }),
    };
    let problem = match (played, scene.is_stop) {
        (Ok(()), true) => leaves(&mut worker, args.patience).await.err(),
        (played, _) => played.err(),
    };
    let problem = problem.or_else(|| stage.offence());
    // It has nothing left to lose.
    let _ = worker.kill().await;
    Ok(Verdict { scene: scene.name, about: scene.about, problem })
}

fn start(command: &[OsString], url: &str) -> anyhow::Result<Child> {
    let (program, arguments) = command.split_first().context("no command")?;
    Command::new(program)
        .args(arguments)
        .env("MAINSPRING_URL", url)
        .env("MAINSPRING_TOKEN", "conformance")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// Whether the worker ends by itself, after all is said.
async fn leaves(worker: &mut Child, patience: Duration) -> Result<(), String> {
    match tokio::time::timeout(patience, worker.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("it was asked to stop and ended with {status}")),
        Ok(Err(error)) => Err(format!("it cannot be waited for: {error}")),
        Err(_) => Err("it was asked to stop and goes on".to_owned()),
    }
}

fn show(verdicts: &[Verdict], output: Output) {
    let told = |verdict: &Verdict| verdict.problem.clone().unwrap_or_else(|| "ok".to_owned());
    match output {
        Output::Json => {
            let scenes = verdicts.iter().map(|verdict| {
                json!({ "scene": verdict.scene, "about": verdict.about, "problem": verdict.problem })
            });
            say_json(&json!({ "scenes": scenes.collect::<Vec<_>>() }));
        }
        Output::Table => {
            let row = |it: &Verdict| vec![it.scene.to_owned(), it.about.to_owned(), told(it)];
            say(&table(&["scene", "the worker", "result"], verdicts.iter().map(row)));
        }
    }
}

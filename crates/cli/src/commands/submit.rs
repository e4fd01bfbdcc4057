//! `mainspring jobs submit`: one job from the command line, or many from a file of JSON lines.

use crate::commands::jobs;
use crate::exit::{self, usage};
use crate::output::{say, say_json};
use crate::session::Session;
use crate::span;
use anyhow::Context;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use mainspring_sdk::Submitted;
use mainspring_sdk::api::job::Submit as Wish;
use mainspring_sdk::api::{Json, Time};
use serde_json::json;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Jobs per request when submitting from a file.
const BATCH: usize = 1_000;
/// Refused lines that are told one by one.
const TOLD_MAX: usize = 20;

/// What to submit.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Type of the job
    #[arg(required_unless_present_any = ["file", "type_flag"], value_name = "TYPE")]
    job_type: Option<String>,
    /// Payload: any JSON value
    #[arg(conflicts_with_all = ["payload_flag", "payload_file"])]
    payload: Option<String>,
    /// Type of the job, as a flag
    #[arg(long = "type", id = "type_flag", value_name = "TYPE", conflicts_with = "job_type")]
    type_flag: Option<String>,
    /// Payload, as a flag
    #[arg(long = "payload", id = "payload_flag", value_name = "JSON")]
    payload_flag: Option<String>,
    /// Read the payload from this file; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "payload_flag")]
    payload_file: Option<PathBuf>,
    /// Submit every line of this file, each a JSON object as `POST /api/v1/jobs` takes it; - is
    /// stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job_type", "type_flag", "wait"])]
    file: Option<PathBuf>,
    /// Queue to wait in
    #[arg(long)]
    queue: Option<String>,
    /// Higher is sooner, 0 to 255
    #[arg(long)]
    priority: Option<u8>,
    /// Not before this long from now
    #[arg(long, value_parser = span::parse, value_name = "SPAN", conflicts_with = "run_at")]
    delay: Option<Duration>,
    /// Not before this instant (RFC 3339)
    #[arg(long, value_name = "INSTANT")]
    run_at: Option<Time>,
    /// Cancelled if not started by this instant (RFC 3339)
    #[arg(long, value_name = "INSTANT")]
    expires_at: Option<Time>,
    /// The job is over by this instant (RFC 3339), over all tries
    #[arg(long, value_name = "INSTANT")]
    deadline: Option<Time>,
    /// The longest that it may wait for a worker once it is due, at each try
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    queue_timeout: Option<Duration>,
    /// Job that has to end first; give several times
    #[arg(long, value_name = "JOB")]
    after: Vec<String>,
    /// What has to become of those jobs: success or end
    #[arg(long, value_name = "CONDITION", requires = "after")]
    after_condition: Option<String>,
    /// How long one attempt may run
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    timeout: Option<Duration>,
    /// Extra tries
    #[arg(long)]
    max_retries: Option<u16>,
    /// Idempotency key: the same key again returns the same job
    #[arg(long, alias = "idempotency-key")]
    key: Option<String>,
    /// Space in which the key is unique
    #[arg(long, alias = "idempotency-scope")]
    scope: Option<String>,
    /// Trace the job belongs to
    #[arg(long)]
    trace_id: Option<String>,
    /// Job this one belongs to
    #[arg(long)]
    parent: Option<String>,
    /// What the job is about
    #[arg(long)]
    subject: Option<String>,
    /// Label, as name=value; give several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = read_label)]
    labels: Vec<(String, String)>,
    /// Wait for the end, at most this long [default with --wait alone: 1h]
    #[arg(long, value_parser = span::parse, value_name = "SPAN", num_args = 0..=1,
        default_missing_value = "1h")]
    wait: Option<Duration>,
}

fn read_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be written as name=value")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) async fn run(mut args: Args, session: Session) -> anyhow::Result<u8> {
    if let Some(file) = args.file.take() {
        return submit_file(&file, &session).await;
    }
    let wait = args.wait;
    let wish = wish(args)?;
    let submitted = session.client.submit(&wish.into()).await?;
    let job = match (submitted, wait) {
        (Submitted::Job(job), None) => *job,
        (Submitted::Job(job), Some(timeout)) => jobs::wait(&session, &job.job_id, timeout).await?,
        (Submitted::Hidden { job_id, status }, _) => {
            jobs::print_hidden(&job_id, status.as_deref(), &session);
            return Ok(exit::OK);
        }
    };
    jobs::print_job(&job, &session)?;
    Ok(if wait.is_some() { jobs::verdict(&job) } else { exit::OK })
}

fn wish(args: Args) -> anyhow::Result<Wish> {
    let job_type = args.job_type.or(args.type_flag).ok_or_else(|| usage("name a type"))?;
    let text = match (args.payload.or(args.payload_flag), args.payload_file) {
        (Some(text), _) => text,
        (None, Some(file)) => read_all(&file)?,
        (None, None) => "{}".to_owned(),
    };
    let payload: Json = serde_json::from_str(text.trim())
        .map_err(|error| usage(format!("the payload is not JSON: {error}")))?;
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Ok(Wish {
        queue: args.queue,
        priority: args.priority,
        delay_ms: args.delay.map(millis),
        run_at: args.run_at,
        expires_at: args.expires_at,
        deadline_at: args.deadline,
        queue_timeout_ms: args
            .queue_timeout
            .map(|it| u32::try_from(millis(it)).unwrap_or(u32::MAX)),
        after: args.after,
        after_condition: args.after_condition,
        timeout_ms: args.timeout.map(|span| u32::try_from(millis(span)).unwrap_or(u32::MAX)),
        max_retries: args.max_retries,
        idempotency_key: args.key,
        idempotency_scope: args.scope,
        trace_id: args.trace_id,
        parent_id: args.parent,
        subject: args.subject,
        labels: args.labels.into_iter().collect(),
        ..Wish::new(job_type, payload)
    })
}

fn open(file: &Path) -> anyhow::Result<Box<dyn Read>> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(std::io::stdin()));
    }
    let opened = std::fs::File::open(file);
    let opened = opened.map_err(|error| usage(format!("cannot open {}: {error}", file.display())));
    Ok(Box::new(opened?))
}

fn read_all(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    open(file)?.read_to_string(&mut text).with_context(|| format!("reading {}", file.display()))?;
    Ok(text)
}

/// What became of a file.
#[derive(Debug, Default)]
struct Tally {
    accepted: u64,
    hits: u64,
    refused: u64,
}

async fn submit_file(file: &Path, session: &Session) -> anyhow::Result<u8> {
    let size = std::fs::metadata(file).map(|found| found.len()).unwrap_or(0);
    let progress = progress(size);
    let mut tally = Tally::default();
    let mut batch: Vec<(usize, Wish)> = Vec::new();
    for (index, line) in BufReader::new(open(file)?).lines().enumerate() {
        let line = line.with_context(|| format!("reading {}", file.display()))?;
        progress.inc(line.len() as u64 + 1);
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(&line) {
            Ok(wish) => batch.push((index + 1, wish)),
            Err(error) => refuse(&mut tally, index + 1, &format!("not a job: {error}")),
        }
        if batch.len() == BATCH {
            send(std::mem::take(&mut batch), session, &mut tally).await?;
        }
    }
    send(batch, session, &mut tally).await?;
    progress.finish_and_clear();
    let Tally { accepted, hits, refused } = tally;
    if session.is_json() {
        say_json(&json!({"accepted": accepted, "idempotent_hits": hits, "refused": refused}));
    } else {
        let [accepted, hits, refused] = [accepted, hits, refused].map(HumanCount);
        say(&format!("{accepted} accepted, {hits} existed already, {refused} refused"));
    }
    Ok(if refused == 0 { exit::OK } else { exit::REFUSED })
}

async fn send(
    batch: Vec<(usize, Wish)>,
    session: &Session,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let (lines, wishes): (Vec<usize>, Vec<Wish>) = batch.into_iter().unzip();
    let first = lines.first().copied().unwrap_or(0);
    let answer = session.client.submit_batch(wishes).await;
    let done = tally.accepted + tally.hits;
    let answer = answer.with_context(|| {
        format!("the batch that starts at line {first}; {done} before it are accepted")
    })?;
    for (line, item) in lines.into_iter().zip(answer.items) {
        match (item.error, item.idempotent_hit) {
            (Some(error), _) => refuse(tally, line, &format!("{}: {}", error.code, error.message)),
            (None, Some(true)) => tally.hits += 1,
            (None, _) => tally.accepted += 1,
        }
    }
    Ok(())
}

fn refuse(tally: &mut Tally, line: usize, why: &str) {
    tally.refused += 1;
    if tally.refused as usize <= TOLD_MAX {
        eprintln!("line {line}: {}", crate::output::plain(why));
    }
}

fn progress(bytes: u64) -> ProgressBar {
    if bytes == 0 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{bar:40} {percent}% {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

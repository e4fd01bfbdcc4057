//! A schedule as the flags of the command line say it.

use crate::exit::usage;
use crate::span;
use mainspring_sdk::api::schedule::{Exclude, SetSchedule};
use mainspring_sdk::api::{Json, Time};
use std::time::Duration;

/// When to fire: one of `--cron`, `--every` and `--at`.
#[derive(Debug, clap::Args)]
pub(crate) struct Rhythm {
    /// Cron pattern of five or six fields
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["every", "at"])]
    cron: Option<String>,
    /// Every so often, such as 15m
    #[arg(long, value_parser = span::parse, value_name = "SPAN", conflicts_with = "at")]
    every: Option<Duration>,
    /// Once, at this instant (RFC 3339)
    #[arg(long, value_name = "INSTANT")]
    at: Option<Time>,
    /// With --every: all firings are this much later
    #[arg(long, value_parser = span::parse, value_name = "SPAN", requires = "every")]
    phase: Option<Duration>,
    /// IANA time zone of the pattern and of excluded dates
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// A time that the clocks jump over
    #[arg(long, value_parser = ["shift", "skip"], requires = "cron")]
    dst_gap: Option<String>,
    /// A time that the clocks show twice
    #[arg(long, value_parser = ["once", "twice"], requires = "cron")]
    dst_fold: Option<String>,
    /// No firing before this instant (RFC 3339)
    #[arg(long, value_name = "INSTANT")]
    start_at: Option<Time>,
    /// No firing after this instant (RFC 3339)
    #[arg(long, value_name = "INSTANT")]
    end_at: Option<Time>,
    /// Not on this date, or from one date to another: 2026-12-25 or 2026-12-24..2027-01-01
    #[arg(long, value_name = "DATES", value_parser = exclude)]
    exclude: Vec<Exclude>,
}

/// What to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Wish {
    /// Type of its jobs
    #[arg(value_name = "TYPE")]
    job_type: String,
    /// Payload of its jobs: any JSON value
    payload: Option<String>,
    #[command(flatten)]
    rhythm: Rhythm,
    /// A name for people
    #[arg(long)]
    name: Option<String>,
    /// What becomes of firings that were missed
    #[arg(long, value_parser = ["coalesce", "skip", "all"])]
    misfire: Option<String>,
    /// With --misfire all: how many are made up for at most
    #[arg(long)]
    misfire_limit: Option<u32>,
    /// When it is to fire while a job of it has not ended
    #[arg(long, value_parser = ["allow", "skip", "queue_one", "cancel_running"])]
    overlap: Option<String>,
    /// Its jobs start up to this much later
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    jitter: Option<Duration>,
    /// It ends after this many firings
    #[arg(long)]
    max_runs: Option<u32>,
    /// It pauses itself after this many failed jobs in a row
    #[arg(long)]
    pause_after_failures: Option<u32>,
    /// Queue of its jobs
    #[arg(long)]
    queue: Option<String>,
    /// Priority of its jobs, 0 to 255; higher is sooner
    #[arg(long)]
    priority: Option<u8>,
    /// How long one attempt of its jobs may run, such as 30m
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    timeout: Option<Duration>,
    /// Extra tries of its jobs
    #[arg(long)]
    max_retries: Option<u16>,
    /// Label of its jobs, as name=value; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
}

impl Rhythm {
    /// The wish of these flags for jobs of a type.
    pub(crate) fn read(self, job_type: &str) -> anyhow::Result<SetSchedule> {
        let kind = match (&self.cron, &self.every, &self.at) {
            (Some(_), _, _) => "cron",
            (_, Some(_), _) => "interval",
            (_, _, Some(_)) => "at",
            (None, None, None) => return Err(usage("say when: --cron, --every or --at")),
        };
        Ok(SetSchedule {
            at: self.at,
            interval_seconds: self.every.map(|span| seconds("--every", span)).transpose()?,
            phase_seconds: self.phase.map(|span| seconds("--phase", span)).transpose()?,
            cron: self.cron,
            timezone: self.timezone,
            dst_gap: self.dst_gap,
            dst_fold: self.dst_fold,
            start_at: self.start_at,
            end_at: self.end_at,
            exclude: self.exclude,
            ..SetSchedule::new(job_type, kind)
        })
    }
}

impl Wish {
    /// The wish of these flags.
    pub(crate) fn read(self) -> anyhow::Result<SetSchedule> {
        let payload = self.payload.map(|text| {
            let payload = serde_json::from_str::<Json>(text.trim());
            payload.map_err(|error| usage(format!("the payload is not JSON: {error}")))
        });
        let payload = payload.transpose()?;
        let narrow = |name: &str, span: Duration| {
            let seconds = seconds(name, span)?;
            u32::try_from(seconds).map_err(|_| usage(format!("{name} is too long")))
        };
        let timeout = |span: Duration| {
            let millis = u32::try_from(span.as_millis());
            millis.map_err(|_| usage("--timeout is too long"))
        };
        let rhythm = self.rhythm.read(&self.job_type)?;
        Ok(SetSchedule {
            name: self.name,
            payload,
            misfire: self.misfire,
            misfire_limit: self.misfire_limit,
            overlap: self.overlap,
            jitter_seconds: self.jitter.map(|span| narrow("--jitter", span)).transpose()?,
            max_runs: self.max_runs,
            pause_after_failures: self.pause_after_failures,
            queue: self.queue,
            priority: self.priority,
            timeout_ms: self.timeout.map(timeout).transpose()?,
            max_retries: self.max_retries,
            labels: self.labels.into_iter().collect(),
            ..rhythm
        })
    }
}

/// Whole seconds; a schedule knows nothing finer.
fn seconds(name: &str, span: Duration) -> anyhow::Result<u64> {
    match span.subsec_nanos() {
        0 => Ok(span.as_secs()),
        _ => Err(usage(format!("{name} must be whole seconds"))),
    }
}

fn exclude(text: &str) -> Result<Exclude, String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    Ok(Exclude { from: from.to_owned(), to: to.to_owned() })
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not a label; write it like team=red")),
    }
}

//! `mainspring jobs`: everything about jobs that is not running them.

use crate::commands::filters::{Filters, say_more};
use crate::commands::{submit, tail};
use crate::exit;
use crate::output::{plain, record, say, say_json, say_wire, table, when};
use crate::session::Session;
use crate::span;
use mainspring_sdk::api::job::{Job, JobEvent};
use mainspring_sdk::client::JobFilter;
use std::time::Duration;

/// What to do with jobs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Submit one job, or many from a file
    Submit(Box<submit::Args>),
    /// Jobs, newest first
    List {
        /// Only jobs in this state
        #[arg(long, value_parser = STATES)]
        status: Option<String>,
        /// Only jobs made from this one
        #[arg(long, value_name = "JOB")]
        parent: Option<String>,
        #[command(flatten)]
        filters: Box<Filters>,
    },
    /// One job
    Get {
        /// The job
        id: String,
    },
    /// Why a job is not running yet
    Explain {
        /// The job
        id: String,
    },
    /// A job's history
    Events {
        /// The job
        id: String,
    },
    /// The moves of jobs as they happen
    Tail(tail::Args),
    /// End a job that is not finished
    Cancel {
        /// The job
        id: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Wait for a job's end; exit 0 only if it succeeded, 5 if it has not ended in time
    Wait {
        /// The job
        id: String,
        /// Give up after this long
        #[arg(long, value_parser = span::parse, default_value = "1h", value_name = "SPAN")]
        timeout: Duration,
    },
}

/// What a job can be.
pub(crate) const STATES: [&str; 8] = [
    "queued",
    "running",
    "retrying",
    "dlq_pending",
    "dlq_recorded",
    "succeeded",
    "failed",
    "cancelled",
];

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    match verb {
        Verb::Submit(args) => return submit::run(*args, session).await,
        Verb::Tail(args) => return tail::run(args, session).await,
        Verb::List { status, parent, filters } => {
            let filter = JobFilter { parent_id: parent, ..filters.with(status) };
            let page = client.jobs(&filter).await?;
            if session.is_json() {
                say_wire(&page)?;
            } else {
                let columns = ["job", "type", "status", "try", "created", "error", "queue"];
                say(&table(&columns, page.items.into_iter().map(row)));
                say_more(page.next_cursor, page.total, page.total_at_least);
            }
        }
        Verb::Get { id } => print_job(&client.job(&id).await?, &session)?,
        Verb::Explain { id } => {
            let told = client.explain(&id).await?;
            if session.is_json() {
                say_wire(&told)?;
            } else {
                let mut fields = vec![("job", told.job_id), ("status", told.status)];
                fields.push(("summary", told.summary));
                for reason in told.reasons {
                    fields.push(("reason", format!("{}: {}", reason.code, reason.message)));
                }
                if let Some(at) = told.earliest_at {
                    fields.push(("earliest", when(at)));
                }
                if let Some(start) = told.estimated_start {
                    let at = start.at.map_or_else(|| "unknown".to_owned(), when);
                    fields.push(("estimate", format!("{at} ({})", start.message)));
                }
                say(&record(&fields));
            }
        }
        Verb::Events { id } => {
            let history = client.job_events(&id).await?;
            if session.is_json() {
                say_wire(&history.items)?;
            } else {
                let columns = ["seq", "from", "to", "at", "attempt", "why", "actor"];
                say(&table(&columns, history.items.into_iter().map(event_row)));
            }
        }
        Verb::Cancel { id, reason } => {
            print_job(&client.cancel(&id, reason.as_deref()).await?, &session)?;
        }
        Verb::Wait { id, timeout } => {
            let job = wait(&session, &id, timeout).await?;
            print_job(&job, &session)?;
            return Ok(verdict(&job));
        }
    }
    Ok(exit::OK)
}

/// Asks until the job has ended or the time is over, and says on stderr what is waited for.
pub(crate) async fn wait(session: &Session, id: &str, timeout: Duration) -> anyhow::Result<Job> {
    let end = tokio::time::Instant::now() + timeout;
    let mut pause = Duration::from_millis(50);
    let mut said = String::new();
    let mut has_answered = false;
    loop {
        let found = session.client.job(id).await;
        let left = end.saturating_duration_since(tokio::time::Instant::now());
        let job = match found {
            Ok(job) => job,
            // A server that is restarted meanwhile is waited for, too.
            Err(error) if has_answered && error.is_retryable() && !left.is_zero() => {
                let why = format!("{} does not answer", session.client.url());
                if why != said {
                    eprintln!("waiting for {id}: {why}: {}", plain(&error.to_string()));
                    said = why;
                }
                tokio::time::sleep(Duration::from_secs(1).min(left)).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        has_answered = true;
        if is_ended(&job) {
            return Ok(job);
        }
        if left.is_zero() {
            eprintln!("{id} is still {} after {}", job.status, span::show(timeout));
            return Ok(job);
        }
        // Not in the first moments: most are over before anybody could read it.
        if pause > Duration::from_millis(200) {
            // Whoever may read a job may not always ask why.
            let why = session.client.explain(id).await;
            let why = why.map_or_else(|_| String::new(), |told| told.summary);
            if why != said {
                eprintln!("waiting for {id}, {}: {}", job.status, plain(&why));
                said = why;
            }
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

fn is_ended(job: &Job) -> bool {
    matches!(job.status.as_str(), "succeeded" | "failed" | "cancelled")
}

/// The exit code that tells how the job ended.
pub(crate) fn verdict(job: &Job) -> u8 {
    match is_ended(job) {
        false => exit::TIMEOUT,
        true if job.status == "succeeded" => exit::OK,
        true => exit::REFUSED,
    }
}

fn row(job: Job) -> Vec<String> {
    let attempt = format!("{}/{}", job.attempt, u32::from(job.max_retries) + 1);
    vec![
        job.job_id,
        job.job_type,
        job.status,
        attempt,
        when(job.created_at),
        job.error_code.unwrap_or_default(),
        job.queue,
    ]
}

fn event_row(event: JobEvent) -> Vec<String> {
    let why = match (event.reason_code, event.reason_message) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => String::new(),
    };
    vec![
        event.seq.to_string(),
        event.from_state.unwrap_or_else(|| "-".into()),
        event.to_state,
        when(event.occurred_at),
        event.attempt.to_string(),
        why,
        event.actor,
    ]
}

/// Prints what is told of a job that is somebody else's, but holds the key.
pub(crate) fn print_hidden(job_id: &str, status: Option<&str>, session: &Session) {
    if session.is_json() {
        say_json(&serde_json::json!({
            "job_id": job_id, "status": status, "idempotent_hit": true,
        }));
        return;
    }
    let fields = vec![
        ("job", job_id.to_owned()),
        ("status", status.unwrap_or("no longer kept").to_owned()),
        ("existed already", "yes, and it is not yours to read".to_owned()),
    ];
    say(&record(&fields));
}

pub(crate) fn print_job(job: &Job, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(job);
    }
    let mut fields = vec![
        ("job", job.job_id.clone()),
        ("type", job.job_type.clone()),
        ("status", job.status.clone()),
        ("attempt", format!("{} of {}", job.attempt, u32::from(job.max_retries) + 1)),
        ("queue", job.queue.clone()),
        ("priority", job.priority.to_string()),
        ("run at", when(job.run_at)),
        ("created", when(job.created_at)),
        ("trace", job.trace_id.clone()),
        ("payload", job.payload.get().to_owned()),
    ];
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    add("result", job.result.as_ref().map(|result| result.get().to_owned()));
    add("error", job.last_error.as_ref().map(|e| format!("{}: {}", e.code, e.message)));
    add("next try", job.next_retry_at.map(when));
    add("worker", job.lease.as_ref().map(|lease| lease.worker_id.clone()));
    add("finished", job.finished_at.map(when));
    add("dead letter", job.dlq_id.clone());
    add("existed already", job.idempotent_hit.filter(|hit| *hit).map(|_| "yes".into()));
    say(&record(&fields));
    Ok(())
}

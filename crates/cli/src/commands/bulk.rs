//! `mainspring bulk`: the same thing done to everything that a filter admits.

use crate::commands::filters::say_more;
use crate::exit;
use crate::output::{record, say, say_wire, table, when};
use crate::progress::Progress;
use crate::session::Session;
use mainspring_sdk::api::Time;
use mainspring_sdk::api::bulk::{
    Bulk, BulkCanary, BulkFilter, BulkOutcome, BulkSample, CreateBulk,
};

/// What to do with bulk operations.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Tell how many things an operation would be about, and show a few; nothing is done
    Preview(Box<Wish>),
    /// Begin an operation
    Start {
        #[command(flatten)]
        wish: Box<Wish>,
        /// Wait until it is over, or needs a second person; exit 0 only if all of it was done, 5 if
        /// somebody has to agree first
        #[arg(long)]
        wait: bool,
    },
    /// Operations, newest first
    List {
        /// Only those in this state
        #[arg(long, value_parser = ["awaiting_approval", "running", "canary", "stopped", "done"])]
        status: Option<String>,
        /// At most this many, 1 to 100
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Where the last page ended; with the same filters
        #[arg(long)]
        cursor: Option<String>,
    },
    /// How far one is
    Show {
        /// The operation
        id: String,
    },
    /// What became of each thing
    Items {
        /// The operation
        id: String,
        /// At most this many, 1 to 100
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Where the last page ended
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Agree to one, as another person than the one who asked
    #[command(disable_version_flag = true)]
    Approve {
        /// The operation
        id: String,
        /// The version you read with `bulk show`
        #[arg(long)]
        version: u32,
    },
    /// End one; what is done stays done
    Stop {
        /// The operation
        id: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
}

/// How often is looked how far an operation is.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(300);

/// An operation as the flags say it.
#[derive(Debug, clap::Args)]
pub(crate) struct Wish {
    /// What to do: requeue or discard dead letters; cancel, pause or resume jobs
    #[arg(value_parser = ["requeue", "discard", "cancel", "pause", "resume"])]
    action: String,
    /// Why
    #[arg(long)]
    reason: String,
    /// Only jobs in this state; needed for jobs, and `retrying` to resume those that were paused
    #[arg(long)]
    status: Option<String>,
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Only those of this queue
    #[arg(long)]
    queue: Option<String>,
    /// Only those of this trace
    #[arg(long, value_name = "TRACE")]
    trace: Option<String>,
    /// Only those submitted by this user
    #[arg(long)]
    user: Option<String>,
    /// Only those with this label; up to four times
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Only those whose last failed attempt said this code
    #[arg(long, value_name = "CODE")]
    error_code: Option<String>,
    /// Only dead letters with this failure, as `dlq groups` names it
    #[arg(long)]
    signature: Option<String>,
    /// Only those created then or later, as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<Time>,
    /// Only those created earlier
    #[arg(long, value_name = "TIME")]
    until: Option<Time>,
    /// So many go first, and the others only if few enough of them fail
    #[arg(long, value_name = "COUNT")]
    canary: Option<u32>,
    /// The share of the first ones that may fail, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "canary")]
    max_failure_ratio: f64,
}

impl Wish {
    fn wire(self) -> CreateBulk {
        let max_failure_ratio = self.max_failure_ratio;
        CreateBulk {
            action: self.action,
            filter: BulkFilter {
                status: self.status,
                job_type: self.job_type,
                queue: self.queue,
                trace_id: self.trace,
                user_id: self.user,
                label: Some(self.labels).filter(|labels| !labels.is_empty()),
                error_code: self.error_code,
                signature: self.signature,
                created_after: self.since,
                created_before: self.until,
            },
            reason: self.reason,
            dry_run: None,
            canary: self.canary.map(|first| BulkCanary { first, max_failure_ratio }),
        }
    }
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    match verb {
        Verb::Preview(wish) => {
            let preview = client.preview_bulk(&wish.wire()).await?;
            if session.is_json() {
                say_wire(&preview)?;
            } else {
                let columns = ["id", "type", "state", "message"];
                say(&table(&columns, preview.samples.into_iter().map(sample_row)));
                let second = if preview.needs_approval { "; takes a second person" } else { "" };
                say(&format!("{} {} in all{second}", preview.matched, preview.action));
            }
        }
        Verb::Start { wish, wait } => {
            let mut bulk = client.create_bulk(&wish.wire()).await?;
            if wait {
                bulk = until_ended(bulk, &session).await?;
            }
            print(&bulk, &session)?;
            if wait {
                return Ok(verdict(&bulk));
            }
        }
        Verb::List { status, limit, cursor } => {
            let page = client.bulks(status, cursor, limit).await?;
            if session.is_json() {
                say_wire(&page)?;
            } else {
                let columns = ["operation", "action", "state", "matched", "done", "failed", "by"];
                say(&table(&columns, page.items.into_iter().map(row)));
                say_more(page.next_cursor, page.total, page.total_at_least);
            }
        }
        Verb::Show { id } => print(&client.bulk(&id).await?, &session)?,
        Verb::Items { id, limit, cursor } => {
            let page = client.bulk_items(&id, cursor, limit).await?;
            if session.is_json() {
                say_wire(&page)?;
            } else {
                let columns = ["id", "outcome", "runs again as", "code"];
                say(&table(&columns, page.items.into_iter().map(outcome_row)));
                say_more(page.next_cursor, page.total, page.total_at_least);
            }
        }
        Verb::Approve { id, version } => {
            print(&client.approve_bulk(&id, version).await?, &session)?;
        }
        Verb::Stop { id, reason } => {
            print(&client.stop_bulk(&id, reason.as_deref()).await?, &session)?;
        }
    }
    Ok(exit::OK)
}

/// Asks until the operation is over, or rests until somebody agrees.
async fn until_ended(mut bulk: Bulk, session: &Session) -> anyhow::Result<Bulk> {
    let bar = Progress::of_things("working", Some(bulk.matched), session.output);
    if !session.is_json() {
        eprintln!("waiting for {}, which goes on if this command is ended", bulk.bulk_id);
    }
    while bulk.ended_at.is_none() && bulk.status != "awaiting_approval" {
        bar.at(bulk.done + bulk.failed, bulk.matched);
        tokio::time::sleep(LOOK_EVERY).await;
        bulk = session.client.bulk(&bulk.bulk_id).await?;
    }
    Ok(bulk)
}

/// The exit code that tells how it ended: well, with things that it did not do, or not yet.
fn verdict(bulk: &Bulk) -> u8 {
    match bulk.status.as_str() {
        _ if bulk.ended_at.is_none() => {
            eprintln!(
                "{} waits for a second person: mainspring bulk approve {} --version {}",
                bulk.bulk_id, bulk.bulk_id, bulk.version
            );
            exit::TIMEOUT
        }
        "done" if bulk.failed == 0 => exit::OK,
        _ => exit::REFUSED,
    }
}

fn dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}

fn sample_row(sample: BulkSample) -> Vec<String> {
    vec![sample.id, sample.job_type, sample.status, dash(sample.error_message)]
}

fn outcome_row(outcome: BulkOutcome) -> Vec<String> {
    vec![outcome.id, outcome.outcome, dash(outcome.job_id), dash(outcome.error_code)]
}

fn row(bulk: Bulk) -> Vec<String> {
    vec![
        bulk.bulk_id,
        bulk.action,
        bulk.status,
        bulk.matched.to_string(),
        bulk.done.to_string(),
        bulk.failed.to_string(),
        bulk.requested_by,
    ]
}

fn print(bulk: &Bulk, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(bulk);
    }
    let ended = bulk.ended_at.map(when);
    say(&record(&[
        ("operation", bulk.bulk_id.clone()),
        ("action", bulk.action.clone()),
        ("filter", serde_json::to_string(&bulk.filter)?),
        ("reason", bulk.reason.clone()),
        ("state", bulk.status.clone()),
        ("matched", bulk.matched.to_string()),
        ("done", bulk.done.to_string()),
        ("failed", bulk.failed.to_string()),
        ("requested by", bulk.requested_by.clone()),
        ("approved by", dash(bulk.approved_by.clone())),
        ("stopped by", dash(bulk.stopped_by.clone())),
        ("because", dash(bulk.stopped_reason.clone())),
        ("ended", dash(ended)),
        ("version", bulk.version.to_string()),
    ]));
    Ok(())
}

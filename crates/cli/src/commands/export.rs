//! `mainspring export`: what there is, as JSON Lines; and what agents' systems read, as a directory
//! (`agent_files.rs`). A list is read page by page, the newest first, and written as it comes: what
//! changes meanwhile may be told as it was or as it is, but nothing that stays is left out.

use crate::commands::agent_files;
use crate::exit;
use crate::output::Output;
use crate::progress::Progress;
use crate::session::Session;
use anyhow::Context;
use mainspring_sdk::Client;
use mainspring_sdk::api::Json;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// What can be exported.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Export {
    /// Runs, results, plans, triggers and the index of what has ended, as a directory
    Agent {
        /// A directory that is empty or not there yet
        directory: PathBuf,
    },
    /// Jobs, with their histories if asked for
    Jobs {
        #[command(flatten)]
        place: Place,
        /// With every move of each job
        #[arg(long)]
        events: bool,
    },
    /// Dead letters
    Dlq(Place),
    /// Schedules
    Schedules(Place),
    /// Triggers
    Triggers(Place),
    /// Alerts
    Alerts(Place),
    /// Bulk operations
    Bulk(Place),
    /// Subscriptions, without secrets
    Subscriptions(Place),
    /// Governed objects and gates
    Objects(Place),
    /// The audit trail
    Audit(Place),
    /// Types and queues
    Registry(Place),
    /// All of these
    All {
        #[command(flatten)]
        place: Place,
        /// With every move of each job
        #[arg(long)]
        events: bool,
    },
}

/// Where the lines go.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// A new file that only you can read; what is printed otherwise
    #[arg(long)]
    file: Option<PathBuf>,
}

/// A list: what one of its entries is called, and where it is.
#[derive(Debug, Clone, Copy)]
struct List {
    kind: &'static str,
    path: &'static [&'static str],
    has_pages: bool,
}

const fn list(kind: &'static str, path: &'static [&'static str]) -> List {
    List { kind, path, has_pages: true }
}

const JOBS: List = list("job", &["jobs"]);
const DLQ: List = list("dlq_item", &["dlq", "items"]);
const SCHEDULES: List = list("schedule", &["schedules"]);
const TRIGGERS: List = list("trigger", &["triggers"]);
const ALERTS: List = list("alert", &["alerts"]);
const BULK: List = list("bulk", &["bulk"]);
const SUBSCRIPTIONS: List = list("subscription", &["subscriptions"]);
const OBJECTS: List = list("object", &["objects"]);
const GATES: List = List { kind: "gate", path: &["gates"], has_pages: false };
const AUDIT: List = list("audit", &["audit"]);
const TYPES: List = List { kind: "type", path: &["types"], has_pages: false };
const QUEUES: List = List { kind: "queue", path: &["queues"], has_pages: false };

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'a str,
    data: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<mainspring_sdk::api::job::JobEvent>>,
}

pub(crate) async fn run(verb: Export, session: Session) -> anyhow::Result<u8> {
    let (lists, place, has_events): (&[List], Place, bool) = match verb {
        Export::Agent { directory } => return agent_files::export(&directory, session).await,
        Export::Jobs { place, events } => (&[JOBS], place, events),
        Export::Dlq(place) => (&[DLQ], place, false),
        Export::Schedules(place) => (&[SCHEDULES], place, false),
        Export::Triggers(place) => (&[TRIGGERS], place, false),
        Export::Alerts(place) => (&[ALERTS], place, false),
        Export::Bulk(place) => (&[BULK], place, false),
        Export::Subscriptions(place) => (&[SUBSCRIPTIONS], place, false),
        Export::Objects(place) => (&[OBJECTS, GATES], place, false),
        Export::Audit(place) => (&[AUDIT], place, false),
        Export::Registry(place) => (&[TYPES, QUEUES], place, false),
        Export::All { place, events } => {
            let all = &[
                TYPES,
                QUEUES,
                JOBS,
                DLQ,
                SCHEDULES,
                TRIGGERS,
                ALERTS,
                BULK,
                SUBSCRIPTIONS,
                OBJECTS,
                GATES,
                AUDIT,
            ];
            (all, place, events)
        }
    };
    let mut out: Box<dyn Write> = match &place.file {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            let file = file.with_context(|| format!("cannot make {}", path.display()))?;
            Box::new(BufWriter::new(file))
        }
    };
    // What goes to the terminal itself shows how far it is.
    let form = place.file.as_ref().map_or(Output::Json, |_| session.output);
    let bar = Progress::of_things("exporting", None, form);
    for list in lists {
        write((&session.client, &bar), *list, has_events, &mut out).await?;
    }
    drop(bar);
    out.flush().context("cannot write")?;
    Ok(exit::OK)
}

async fn write(
    (client, bar): (&Client, &Progress),
    list: List,
    has_events: bool,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let page = match list.has_pages {
            true => client.page(list.path, cursor.as_deref()).await?,
            false => client.whole(list.path).await?,
        };
        for data in &page.items {
            let events = match has_events && list.kind == JOBS.kind {
                true => Some(events(client, data).await?),
                false => None,
            };
            let line = Line { kind: list.kind, data, events };
            serde_json::to_writer(&mut *out, &line).context("cannot write")?;
            out.write_all(b"\n").context("cannot write")?;
            bar.add(1);
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(()),
        }
    }
}

/// The history of a job.
async fn events(
    client: &Client,
    job: &Json,
) -> anyhow::Result<Vec<mainspring_sdk::api::job::JobEvent>> {
    #[derive(serde::Deserialize)]
    struct Named {
        job_id: String,
    }
    let named: Named = serde_json::from_str(job.get()).context("a job without an id")?;
    Ok(client.job_events(&named.job_id).await?.items)
}

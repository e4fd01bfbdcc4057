//! `mainspring runs` and `mainspring plans`: what agents do, and what they ask.

use crate::exit;
use crate::output::{record, say, say_json, table};
use crate::session::Session;
use serde_json::{Value, json};

/// What to do with runs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum RunVerb {
    /// Create a run
    Create(Wish),
    /// Runs, newest first
    List(Filter),
    /// One run
    Get {
        /// Its id
        id: String,
    },
    /// The result of a run that has ended
    Result {
        /// Its id
        id: String,
    },
    /// End a run, whether it waits or runs
    Cancel {
        /// Its id
        id: String,
    },
}

/// What to do with plans.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PlanVerb {
    /// Create a plan
    Create(Wish),
    /// Plans, newest first; `--status needs_input` shows those that wait for an answer
    List(Filter),
    /// One plan, with what it asks and what it made
    Get {
        /// Its id
        id: String,
    },
    /// Answer what a plan asks
    Answer {
        /// Its id
        id: String,
        /// The answer
        answer: String,
    },
}

/// What is to be done.
#[derive(Debug, clap::Args)]
pub(crate) struct Wish {
    /// What is to be done
    prompt: String,
    /// Its id; one is made if left out
    #[arg(long)]
    id: Option<String>,
    /// 0 to 10, higher is sooner
    #[arg(long)]
    priority: Option<u8>,
    /// Seconds that one attempt may take
    #[arg(long)]
    timeout: Option<u32>,
    /// Not before this (RFC 3339, UTC)
    #[arg(long, value_name = "INSTANT")]
    defer_until: Option<String>,
}

/// Which to list.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only those that stand so
    #[arg(long)]
    status: Option<String>,
    /// How many, 1 to 100
    #[arg(long)]
    limit: Option<u64>,
    /// Where to go on
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(verb: RunVerb, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    match verb {
        RunVerb::Create(wish) => {
            shown(&session, &client.agent_post(&["runs"], Some(&wish.body())).await?);
        }
        RunVerb::List(filter) => listed(&session, "runs", filter).await?,
        RunVerb::Get { id } => shown(&session, &client.agent_get(&["runs", &id], &[]).await?),
        RunVerb::Result { id } => {
            shown(&session, &client.agent_get(&["runs", &id, "result"], &[]).await?);
        }
        RunVerb::Cancel { id } => {
            shown(&session, &client.agent_post(&["runs", &id, "cancel"], None).await?);
        }
    }
    Ok(exit::OK)
}

pub(crate) async fn run_plan(verb: PlanVerb, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    match verb {
        PlanVerb::Create(wish) => {
            shown(&session, &client.agent_post(&["plans"], Some(&wish.body())).await?);
        }
        PlanVerb::List(filter) => listed(&session, "plans", filter).await?,
        PlanVerb::Get { id } => shown(&session, &client.agent_get(&["plans", &id], &[]).await?),
        PlanVerb::Answer { id, answer } => {
            let body = json!({ "answer": answer });
            let parts = ["plans", &id, "answer"];
            shown(&session, &client.agent_post(&parts, Some(&body)).await?);
        }
    }
    Ok(exit::OK)
}

impl Wish {
    fn body(self) -> Value {
        let Wish { prompt, id, priority, timeout, defer_until } = self;
        json!({
            "prompt": prompt, "id": id, "priority": priority, "timeout": timeout,
            "deferUntil": defer_until,
        })
    }
}

/// Prints one thing.
fn shown(session: &Session, found: &Value) {
    if session.is_json() {
        return say_json(found);
    }
    let fields = found.as_object().into_iter().flatten();
    let told = fields.filter(|(_, value)| !value.is_null());
    let lines: Vec<(&str, String)> =
        told.map(|(name, value)| (name.as_str(), plain(value))).collect();
    say(&record(&lines));
}

async fn listed(session: &Session, noun: &str, filter: Filter) -> anyhow::Result<()> {
    let Filter { status, limit, cursor } = filter;
    let query =
        [("status", status), ("limit", limit.map(|limit| limit.to_string())), ("cursor", cursor)];
    let page = session.client.agent_get(&[noun], &query).await?;
    if session.is_json() {
        say_json(&page);
        return Ok(());
    }
    let items = page["items"].as_array().into_iter().flatten();
    let rows = items.map(|item| {
        let ask = if item["status"] == "needs_input" { "question" } else { "prompt" };
        ["id", "status", "attempts", "priority", "createdAt", ask]
            .map(|field| plain(&item[field]))
            .to_vec()
    });
    say(&table(&["id", "status", "attempts", "priority", "created", "prompt or question"], rows));
    if let Some(cursor) = page["nextCursor"].as_str() {
        eprintln!("more: --cursor {cursor}");
    }
    Ok(())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

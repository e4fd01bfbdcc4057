//! `mainspring triggers`: rules that make agent runs every so often, once, or when a condition
//! holds.

use crate::commands::filters::say_more;
use crate::exit::{self, usage};
use crate::output::{record, say, say_wire, table, when};
use crate::session::Session;
use crate::span;
use mainspring_sdk::api::Time;
use mainspring_sdk::api::trigger::{
    SetTrigger, Trigger, TriggerEvaluation, TriggerExplanation, TriggerLeaf, TriggerSchedule,
};
use mainspring_sdk::client::TriggerFilter;
use serde_json::{Value, json};
use std::time::Duration;

/// What to do with triggers.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Make a trigger: with one of --every, --at, --file-changed and --condition
    Create(Box<Wish>),
    /// Triggers
    List {
        /// Only those in this state
        #[arg(long, value_parser = ["active", "paused"])]
        status: Option<String>,
        /// Only those of this type
        #[arg(long = "type", value_name = "TYPE", value_parser = ["recurring", "scheduled", "conditional"])]
        kind: Option<String>,
        /// At most this many, 1 to 100
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Where the last page ended; with the same filters
        #[arg(long)]
        cursor: Option<String>,
    },
    /// One trigger
    Get {
        /// The trigger
        id: String,
    },
    /// Why it has not fired
    Explain {
        /// The trigger
        id: String,
    },
    /// What was decided about it, the latest first
    Evaluations {
        /// The trigger
        id: String,
    },
    /// Look at it as if it were its turn, and change nothing
    DryRun {
        /// The trigger
        id: String,
    },
    /// Have it rest until it is resumed
    Pause {
        /// The trigger
        id: String,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Have it go on with what happens from now on
    Resume {
        /// The trigger
        id: String,
    },
    /// Take it away
    Delete {
        /// The trigger
        id: String,
    },
}

/// A trigger as the flags say it.
#[derive(Debug, clap::Args)]
pub(crate) struct Wish {
    /// What its runs are to do
    prompt: String,
    /// Its name, unique in the tenant
    #[arg(long)]
    id: Option<String>,
    /// Every so often, such as 15m
    #[arg(
        long,
        value_parser = span::parse,
        value_name = "SPAN",
        conflicts_with_all = ["at", "file_changed", "condition"]
    )]
    every: Option<Duration>,
    /// Once, at this instant (RFC 3339)
    #[arg(long, value_name = "INSTANT", conflicts_with_all = ["file_changed", "condition"])]
    at: Option<Time>,
    /// When a file changes: a path with *, ** and ?
    #[arg(long, value_name = "PATH", conflicts_with = "condition")]
    file_changed: Option<String>,
    /// On a condition: {"type": ..., "params": {...}}
    #[arg(long, value_name = "JSON")]
    condition: Option<String>,
    /// Time that must lie between two runs, with a condition
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    cooldown: Option<Duration>,
    /// Priority of its runs, 0 to 10
    #[arg(long)]
    priority: Option<u8>,
    /// How long one attempt of a run may take
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    timeout: Option<Duration>,
    /// Trace of its runs
    #[arg(long)]
    trace_id: Option<String>,
    /// Parent of its runs
    #[arg(long)]
    parent_task_id: Option<String>,
}

impl Wish {
    fn read(self) -> anyhow::Result<SetTrigger> {
        let kind = match (&self.every, &self.at) {
            (Some(_), _) => "recurring",
            (None, Some(_)) => "scheduled",
            (None, None) => "conditional",
        };
        let condition = match (self.file_changed, self.condition) {
            (Some(path), _) => Some(json!({ "type": "file_changed", "params": { "path": path } })),
            (None, Some(text)) => {
                let read: Result<Value, _> = serde_json::from_str(&text);
                Some(read.map_err(|error| usage(format!("--condition is not JSON: {error}")))?)
            }
            (None, None) => None,
        };
        if kind == "conditional" && condition.is_none() {
            let text = "say when: --every, --at, --file-changed or --condition";
            return Err(usage(text.to_owned()));
        }
        let schedule = (kind != "conditional").then(|| TriggerSchedule {
            interval: self.every.map(|every| every.as_secs()),
            run_at: self.at,
            ..TriggerSchedule::default()
        });
        Ok(SetTrigger {
            id: self.id,
            kind: kind.to_owned(),
            prompt: self.prompt,
            priority: self.priority,
            timeout: self.timeout.map(|it| u32::try_from(it.as_secs()).unwrap_or(u32::MAX)),
            trace_id: self.trace_id,
            parent_task_id: self.parent_task_id,
            schedule,
            condition,
            cooldown: self.cooldown.map(|it| it.as_secs()),
            ..SetTrigger::default()
        })
    }
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    match verb {
        Verb::Create(wish) => print(&client.create_trigger(&wish.read()?).await?, &session)?,
        Verb::List { status, kind, limit, cursor } => {
            let filter = TriggerFilter { status, kind, cursor, limit: Some(limit) };
            let page = client.triggers(&filter).await?;
            if session.is_json() {
                say_wire(&page)?;
            } else {
                let columns = ["trigger", "type", "state", "fired", "last", "next"];
                say(&table(&columns, page.items.into_iter().map(row)));
                say_more(page.next_cursor, page.total, page.total_at_least);
            }
        }
        Verb::Get { id } => print(&client.trigger(&id).await?, &session)?,
        Verb::Explain { id } => print_look(&client.explain_trigger(&id).await?, &session)?,
        Verb::DryRun { id } => print_look(&client.dry_run_trigger(&id).await?, &session)?,
        Verb::Evaluations { id } => {
            let told = client.trigger_evaluations(&id).await?;
            if session.is_json() {
                say_wire(&told)?;
            } else {
                let rows = told.items.into_iter().map(evaluation);
                say(&table(&["at", "outcome", "why", "leaves", "job", "next"], rows));
            }
        }
        Verb::Pause { id, note } => {
            print(&client.pause_trigger(&id, note.as_deref()).await?, &session)?;
        }
        Verb::Resume { id } => print(&client.resume_trigger(&id).await?, &session)?,
        Verb::Delete { id } => {
            let removed = client.delete_trigger(&id).await?;
            match session.is_json() {
                true => say_wire(&removed)?,
                false => say(&format!("{} is {}", removed.id, removed.status)),
            }
        }
    }
    Ok(exit::OK)
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn row(trigger: Trigger) -> Vec<String> {
    vec![
        trigger.id,
        trigger.kind,
        trigger.status,
        trigger.fired_count.to_string(),
        trigger.state.last_triggered_at.map_or_else(|| "-".to_owned(), when),
        trigger.state.next_run_at.map_or_else(|| "-".to_owned(), when),
    ]
}

fn evaluation(line: TriggerEvaluation) -> Vec<String> {
    let leaves: Vec<String> = line.leaves.iter().map(|leaf| leaf.truth.clone()).collect();
    vec![
        when(line.at),
        line.outcome,
        line.reason,
        leaves.join(" "),
        shown(line.job_id),
        line.next_at.map_or_else(|| "-".to_owned(), when),
    ]
}

fn print(trigger: &Trigger, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(trigger);
    }
    let (schedule, state) = (trigger.schedule.as_ref(), &trigger.state);
    say(&record(&[
        ("trigger", trigger.id.clone()),
        ("type", trigger.kind.clone()),
        ("state", trigger.status.clone()),
        ("owner", trigger.user_id.clone()),
        ("prompt", trigger.prompt.clone()),
        ("every", shown(schedule.and_then(|it| it.interval).map(|secs| format!("{secs} s")))),
        ("at", shown(schedule.and_then(|it| it.run_at))),
        ("condition", shown(trigger.condition.as_ref())),
        ("cooldown", format!("{} s", trigger.cooldown)),
        ("fired", trigger.fired_count.to_string()),
        ("last fired", state.last_triggered_at.map_or_else(|| "-".to_owned(), when)),
        ("next", state.next_run_at.map_or_else(|| "-".to_owned(), when)),
        ("running since", state.running_at.map_or_else(|| "-".to_owned(), when)),
        ("last status", shown(state.last_status.as_ref())),
        ("last error", shown(state.last_error.as_ref())),
        ("version", trigger.version.to_string()),
    ]));
    Ok(())
}

fn print_look(look: &TriggerExplanation, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(look);
    }
    say(&record(&[
        ("trigger", look.id.clone()),
        ("would fire", look.would_fire.to_string()),
        ("why", look.reason.clone()),
        ("next", look.next_run_at.map_or_else(|| "-".to_owned(), when)),
        ("cooldown until", shown(look.cooldown_until)),
        ("running", shown(look.running_job_id.as_ref())),
    ]));
    let leaf = |leaf: &TriggerLeaf| {
        let leaf = leaf.clone();
        vec![leaf.kind, leaf.about, leaf.truth, leaf.reason, shown(leaf.at), shown(leaf.way)]
    };
    if !look.leaves.is_empty() {
        let columns = ["leaf", "about", "holds", "why", "at", "looked at"];
        say(&table(&columns, look.leaves.iter().map(leaf)));
    }
    Ok(())
}

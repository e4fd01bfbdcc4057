//! `mainspring schedules`: rules that make jobs at set times. The server describes them in the
//! language of the terminal.

mod wish;

use crate::commands::filters::say_more;
use crate::exit;
use crate::output::{record, say, say_wire, table, when};
use crate::session::Session;
use mainspring_sdk::api::Time;
use mainspring_sdk::api::schedule::{Backfill, Preview, Schedule};
use mainspring_sdk::client::ScheduleFilter;
use wish::Wish;

/// What to do with schedules.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Make a schedule
    Create(Box<Wish>),
    /// Schedules, newest first
    List {
        /// Only those in this state
        #[arg(long, value_parser = ["active", "paused", "stopped", "ended"])]
        status: Option<String>,
        /// Only those that make jobs of this type
        #[arg(long = "type", value_name = "TYPE")]
        job_type: Option<String>,
        /// Only those of this user
        #[arg(long, value_name = "USER")]
        owner: Option<String>,
        /// At most this many, 1 to 100
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Where the last page ended; with the same filters
        #[arg(long)]
        cursor: Option<String>,
    },
    /// One schedule
    Get {
        /// The schedule
        id: String,
    },
    /// Have it do something else from now on; what is left out gets its default
    Update {
        /// The schedule
        id: String,
        #[command(flatten)]
        wish: Box<Wish>,
    },
    /// Have it rest until it is resumed
    Pause {
        /// The schedule
        id: String,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Have it go on with what is due from now on
    Resume {
        /// The schedule
        id: String,
    },
    /// End it for good; it can still be read
    Stop {
        /// The schedule
        id: String,
    },
    /// Take it away
    Delete {
        /// The schedule
        id: String,
    },
    /// Make a job now
    Trigger {
        /// The schedule
        id: String,
    },
    /// Make the jobs that firings of the past have not had
    Backfill {
        /// The schedule
        id: String,
        /// From this instant on (RFC 3339)
        #[arg(long, value_name = "INSTANT")]
        from: Time,
        /// Up to this instant (RFC 3339)
        #[arg(long, value_name = "INSTANT")]
        to: Time,
        /// At most this many, 1 to 1000
        #[arg(long)]
        limit: Option<u32>,
    },
    /// When it will fire; with the flags of `create`, when a schedule would
    Preview {
        /// The schedule; leave it out to try a rhythm
        #[arg(value_name = "ID", conflicts_with_all = ["cron", "every", "at"])]
        id: Option<String>,
        #[command(flatten)]
        rhythm: Box<wish::Rhythm>,
        /// How many firings, 1 to 100
        #[arg(long)]
        count: Option<u32>,
        /// From this instant on (RFC 3339)
        #[arg(long, value_name = "INSTANT")]
        from: Option<Time>,
    },
    /// What became of its latest firings
    History {
        /// The schedule
        id: String,
    },
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let client = match language() {
        Some(language) => session.client.with_language(language)?,
        None => session.client.clone(),
    };
    let client = &client;
    match verb {
        Verb::Create(wish) => print(&client.create_schedule(&wish.read()?).await?, &session)?,
        Verb::List { status, job_type, owner, limit, cursor } => {
            let filter = ScheduleFilter { status, job_type, owner, cursor, limit: Some(limit) };
            let page = client.schedules(&filter).await?;
            if session.is_json() {
                say_wire(&page)?;
            } else {
                let columns = ["schedule", "name", "type", "state", "when", "next", "fired"];
                say(&table(&columns, page.items.into_iter().map(row)));
                say_more(page.next_cursor, page.total, page.total_at_least);
            }
        }
        Verb::Get { id } => print(&client.schedule(&id).await?, &session)?,
        Verb::Update { id, wish } => {
            print(&client.update_schedule(&id, &wish.read()?).await?, &session)?;
        }
        Verb::Pause { id, note } => {
            print(&client.pause_schedule(&id, note.as_deref()).await?, &session)?;
        }
        Verb::Resume { id } => print(&client.resume_schedule(&id).await?, &session)?,
        Verb::Stop { id } => print(&client.stop_schedule(&id).await?, &session)?,
        Verb::Delete { id } => {
            let removed = client.delete_schedule(&id).await?;
            match session.is_json() {
                true => say_wire(&removed)?,
                false => say(&format!("{} is {}", removed.schedule_id, removed.status)),
            }
        }
        Verb::Trigger { id } => {
            let triggered = client.trigger_schedule(&id).await?;
            match session.is_json() {
                true => say_wire(&triggered)?,
                false => say(&triggered.job_id),
            }
        }
        Verb::Backfill { id, from, to, limit } => {
            backfill(client, &id, Backfill { from, to, limit }, &session).await?;
        }
        Verb::Preview { id, rhythm, count, from } => {
            let preview = match id {
                Some(id) => client.preview_schedule(&id, count, from).await?,
                None => client.preview_unsaved(&rhythm.read("preview")?, count, from).await?,
            };
            print_preview(&preview, &session)?;
        }
        Verb::History { id } => history(client, &id, &session).await?,
    }
    Ok(exit::OK)
}

/// The language of the terminal, if the server may have it: the first of these that says one.
fn language() -> Option<&'static str> {
    let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
    let mut said = names.into_iter().filter_map(crate::config::layers::process_environment);
    said.next().filter(|locale| locale.to_ascii_lowercase().starts_with("zh")).map(|_| "zh")
}

async fn backfill(
    client: &mainspring_sdk::Client,
    id: &str,
    wish: Backfill,
    session: &Session,
) -> anyhow::Result<()> {
    let done = client.backfill_schedule(id, &wish).await?;
    if session.is_json() {
        return say_wire(&done);
    }
    let rows = done.items.into_iter().map(|item| {
        let told = item.error.map(|error| format!("{}: {}", error.code, error.message));
        vec![item.fire_at.to_string(), item.outcome, item.job_id.or(told).unwrap_or_default()]
    });
    say(&table(&["firing", "outcome", "job"], rows));
    say(&format!("{} jobs made", done.fired));
    if let Some(next) = done.next_from {
        eprintln!("more with --from {next}");
    }
    Ok(())
}

async fn history(
    client: &mainspring_sdk::Client,
    id: &str,
    session: &Session,
) -> anyhow::Result<()> {
    let history = client.schedule_history(id).await?;
    if session.is_json() {
        return say_wire(&history);
    }
    let rows = history.items.into_iter().map(|item| {
        vec![
            item.fire_at.to_string(),
            if item.count > 1 {
                format!("{} until {}", item.count, item.until)
            } else {
                String::new()
            },
            item.outcome,
            item.reason.unwrap_or_default(),
            item.job_id.unwrap_or_default(),
            item.late_ms.map(|late| format!("{late} ms")).unwrap_or_default(),
        ]
    });
    say(&table(&["firing", "and more", "outcome", "why", "job", "late"], rows));
    Ok(())
}

fn print_preview(preview: &Preview, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(preview);
    }
    say(&preview.description);
    let row = |item: &mainspring_sdk::api::schedule::PreviewItem| {
        let note = item.note.clone().unwrap_or_default();
        vec![item.fire_at.to_string(), item.local_time.clone(), note]
    };
    say(&table(&["firing", "local time", "note"], preview.items.iter().map(row)));
    Ok(())
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn row(schedule: Schedule) -> Vec<String> {
    vec![
        schedule.schedule_id,
        shown(schedule.name),
        schedule.job_type,
        schedule.status,
        schedule.description,
        schedule.next_fire_at.map_or_else(|| "-".to_owned(), when),
        schedule.fired_count.to_string(),
    ]
}

fn print(schedule: &Schedule, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(schedule);
    }
    say(&record(&[
        ("schedule", schedule.schedule_id.clone()),
        ("name", shown(schedule.name.as_ref())),
        ("state", schedule.status.clone()),
        ("when", schedule.description.clone()),
        ("type", schedule.job_type.clone()),
        ("owner", schedule.user_id.clone()),
        ("namespace", schedule.namespace.clone()),
        ("next", schedule.next_fire_at.map_or_else(|| "-".to_owned(), when)),
        ("last", schedule.last_fire_at.map_or_else(|| "-".to_owned(), when)),
        ("fired", schedule.fired_count.to_string()),
        ("skipped", schedule.skipped_count.to_string()),
        ("misfire", schedule.misfire.clone()),
        ("overlap", schedule.overlap.clone()),
        ("paused by", shown(schedule.paused_by.as_ref())),
        ("pause note", shown(schedule.pause_note.as_ref())),
        ("version", schedule.version.to_string()),
        ("payload", schedule.payload.get().to_owned()),
    ]));
    Ok(())
}

//! `mainspring templates`: the schedules that the configuration of a server asks for.

use crate::exit;
use crate::output::{say, say_json, table};
use crate::session::Session;
use serde_json::Value;

/// What to do with templates.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Every template with its schedule
    List,
    /// Make the schedules that are missing; those that are there stay as they are
    Recover,
}

const LISTED: [&str; 5] = ["templateId", "taskType", "expression", "scheduleId", "scheduleStatus"];
const RECOVERED: [&str; 3] = ["templateId", "scheduleId", "status"];

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let (told, columns) = match verb {
        Verb::List => {
            let told = session.client.templates().await?;
            (told, &LISTED[..])
        }
        Verb::Recover => {
            let mut told = session.client.recover_templates().await?;
            (told["summary"].take(), &RECOVERED[..])
        }
    };
    if session.is_json() {
        say_json(&told);
        return Ok(exit::OK);
    }
    let items = told["items"].as_array().map_or(&[][..], Vec::as_slice);
    let shown = |item: &Value, column: &str| item[column].as_str().unwrap_or("-").to_owned();
    let row = |item: &Value| columns.iter().map(|column| shown(item, column)).collect();
    say(&table(columns, items.iter().map(row)));
    Ok(exit::OK)
}

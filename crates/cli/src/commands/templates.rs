//! `mainspring templates`: the schedules that the configuration of a server asks for.

use crate::exit;
use crate::output::{say, say_json, say_wire, table};
use crate::session::Session;
use mainspring_sdk::client::RecoveredTemplate;
use serde_json::json;

/// What to do with templates.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Every template with its schedule
    List,
    /// Make the schedules that are missing; those that are there stay as they are
    Recover,
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let is_json = session.is_json();
    match verb {
        Verb::List => {
            let items = session.client.templates().await?;
            if is_json {
                say_json(&json!({ "items": items }));
                return Ok(exit::OK);
            }
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            let rows = items.into_iter().map(|it| {
                let standing = or_none(it.schedule_status);
                vec![it.template_id, it.task_type, it.expression, or_none(it.schedule_id), standing]
            });
            say(&table(&["template", "type", "expression", "schedule", "status"], rows));
        }
        Verb::Recover => {
            let told = session.client.recover_templates().await?;
            if is_json {
                say_wire(&told)?;
                return Ok(exit::OK);
            }
            let row = |it: RecoveredTemplate| vec![it.template_id, it.schedule_id, it.status];
            let rows = told.items.into_iter().map(row);
            say(&table(&["template", "schedule", "status"], rows));
        }
    }
    Ok(exit::OK)
}

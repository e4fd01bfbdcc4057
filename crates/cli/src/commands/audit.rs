//! `mainspring audit`.

use crate::exit;
use crate::output::{say, say_wire, table, when};
use crate::session::Session;
use mainspring_sdk::api::audit::AuditLine;

/// What to do with the audit trail.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// The latest lines
    List {
        /// How many, at most 100
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// See whether the trail is whole: nothing changed, moved or taken away
    Verify,
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    match verb {
        Verb::List { limit } => {
            let lines = session.client.audit(limit).await?.items;
            if session.is_json() {
                say_wire(&lines)?;
            } else {
                let columns = ["line", "when", "who", "action", "outcome", "what"];
                say(&table(&columns, lines.into_iter().map(row)));
            }
        }
        Verb::Verify => {
            let verdict = session.client.verify_audit().await?;
            if session.is_json() {
                say_wire(&verdict)?;
            } else {
                say(&format!("the audit trail is whole: {} lines", verdict.checked));
            }
        }
    }
    Ok(exit::OK)
}

fn row(line: AuditLine) -> Vec<String> {
    vec![
        line.seq.to_string(),
        when(line.at),
        line.actor.user_id,
        line.action,
        line.outcome,
        format!("{} {}", line.object_type, line.object_id),
    ]
}

//! `mainspring audit`.

use crate::exit;
use crate::output::{say, say_wire, table, when};
use crate::session::Session;
use mainspring_sdk::api::audit::{AuditLine, AuditVerdict};

/// What to do with the audit trail.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// The latest lines
    List {
        /// How many, at most 100
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// See whether the trail is whole: nothing changed, moved or taken away; and the history of
    /// jobs what was sealed
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
            let verdict = verified(&session).await?;
            if session.is_json() {
                say_wire(&verdict)?;
            } else {
                let moves = verdict.history.map_or(0, |history| history.checked);
                say(&format!("the audit trail is whole: {} lines", verdict.checked));
                say(&format!("the history of jobs is what was sealed: {moves} moves"));
            }
        }
    }
    Ok(exit::OK)
}

/// The verdict on the trail and on all of the history that is kept, a stretch at a time.
async fn verified(session: &Session) -> anyhow::Result<AuditVerdict> {
    let mut verdict = session.client.verify_audit(None).await?;
    while let Some(before) = verdict.history.as_ref().and_then(|history| history.next) {
        let earlier = session.client.verify_audit(Some(before)).await?.history;
        if let (Some(all), Some(earlier)) = (&mut verdict.history, earlier) {
            all.checked += earlier.checked;
            all.seals += earlier.seals;
            all.from = earlier.from.or(all.from);
            all.next = earlier.next;
        }
    }
    Ok(verdict)
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

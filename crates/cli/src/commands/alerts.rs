//! `mainspring alerts`: what a person should look at.

use crate::commands::filters::say_more;
use crate::exit;
use crate::output::{record, say, say_wire, table, when};
use crate::session::Session;
use mainspring_sdk::api::alert::Alert;
use mainspring_sdk::client::AlertFilter;

/// What to do with alerts.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Alerts of your tenant
    List {
        /// Only those in this state
        #[arg(long, value_parser = ["open", "acknowledged", "cleared"])]
        state: Option<String>,
        /// Only those of this rule
        #[arg(long)]
        rule: Option<String>,
        /// At most this many, 1 to 100
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Where the last page ended; with the same filters
        #[arg(long)]
        cursor: Option<String>,
    },
    /// One alert
    Show {
        /// The alert
        id: String,
    },
    /// Take notice of it
    Ack {
        /// The alert
        id: String,
        /// What you say about it
        #[arg(long)]
        note: Option<String>,
    },
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    match verb {
        Verb::List { state, rule, limit, cursor } => {
            let filter = AlertFilter { state, rule, cursor, limit: Some(limit) };
            let page = client.alerts(&filter).await?;
            if session.is_json() {
                say_wire(&page)?;
            } else {
                let columns = ["alert", "severity", "rule", "state", "since", "message"];
                say(&table(&columns, page.items.into_iter().map(row)));
                say_more(page.next_cursor, page.total, page.total_at_least);
            }
        }
        Verb::Show { id } => print(&client.alert(&id).await?, &session)?,
        Verb::Ack { id, note } => {
            print(&client.acknowledge_alert(&id, note.as_deref()).await?, &session)?;
        }
    }
    Ok(exit::OK)
}

fn row(alert: Alert) -> Vec<String> {
    vec![
        alert.alert_id,
        alert.severity,
        alert.rule,
        alert.state,
        when(alert.raised_at),
        alert.message,
    ]
}

fn print(alert: &Alert, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(alert);
    }
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let cleared = alert.cleared_at.map_or_else(|| "-".to_owned(), when);
    say(&record(&[
        ("alert", alert.alert_id.clone()),
        ("severity", alert.severity.clone()),
        ("rule", alert.rule.clone()),
        ("subject", text(&alert.subject)),
        ("state", alert.state.clone()),
        ("message", alert.message.clone()),
        ("value", alert.value.to_string()),
        ("threshold", alert.threshold.to_string()),
        ("raised", format!("{}, for the {}. time", when(alert.raised_at), alert.count)),
        ("last seen", when(alert.seen_at)),
        ("acknowledged by", text(&alert.acknowledged_by)),
        ("note", text(&alert.note)),
        ("cleared", cleared),
    ]));
    Ok(())
}

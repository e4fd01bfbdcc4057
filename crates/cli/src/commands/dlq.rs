//! `mainspring dlq`: jobs that failed for good, and what people decide about them.

use crate::commands::filters::{Filters, say_more};
use crate::exit;
use crate::output::{record, say, say_wire, table, when};
use crate::session::Session;
use mainspring_sdk::api::Time;
use mainspring_sdk::api::dlq::{BrokenGlass, DlqGroup, DlqItem, DlqStanding};
use mainspring_sdk::client::ItemFilter;

/// What to do with dead letters.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Items, newest first
    List {
        /// Only items in this state
        #[arg(long, value_parser = ["open", "requeued", "discard_requested", "discarded"])]
        status: Option<String>,
        /// Only items with this failure, as `dlq groups` names it
        #[arg(long)]
        signature: Option<String>,
        #[command(flatten)]
        filters: Box<Filters>,
    },
    /// Failures: items that have the same, those with most first
    Groups {
        /// Of items in this state; of open ones if left out
        #[arg(long, value_parser = ["open", "requeued", "discard_requested", "discarded"])]
        status: Option<String>,
        /// Tell which were first seen then or later, as 2026-01-31T08:00:00Z
        #[arg(long, value_name = "TIME")]
        new_since: Option<Time>,
        #[command(flatten)]
        filters: Box<Filters>,
    },
    /// One item with its payload
    Get {
        /// The item
        id: String,
    },
    /// Run it again as a new job
    Requeue {
        /// The item
        id: String,
        /// Idempotency key; the item's id if left out, so that it is requeued once
        #[arg(long)]
        key: Option<String>,
    },
    /// Ask for it to be dropped; another person has to approve
    Discard {
        /// The item
        id: String,
        /// Why
        #[arg(long)]
        reason: String,
    },
    /// Agree to drop it, as another person than the one who asked
    #[command(disable_version_flag = true)]
    Approve {
        /// The item
        id: String,
        /// The version you read with `dlq get`
        #[arg(long)]
        version: u32,
    },
    /// Drop it alone, in an emergency; admins only, and the item shows it for ever
    BreakGlass {
        /// The item
        id: String,
        /// Why it cannot wait for a second person
        #[arg(long)]
        reason: String,
    },
    /// Refuse to drop it
    Reject {
        /// The item
        id: String,
    },
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    match verb {
        Verb::List { status, signature, filters } => {
            let filter = ItemFilter { signature, ..filters.with(status) };
            let page = client.dlq_items(&filter).await?;
            if session.is_json() {
                say_wire(&page)?;
            } else {
                let columns = ["item", "job", "type", "code", "message", "state", "since"];
                say(&table(&columns, page.items.into_iter().map(row)));
                say_more(page.next_cursor, page.total, page.total_at_least);
            }
        }
        Verb::Groups { status, new_since, filters } => {
            let found = client.dlq_groups(&filters.with(status), new_since).await?;
            if session.is_json() {
                say_wire(&found)?;
            } else {
                let columns = ["signature", "count", "new", "code", "pattern", "first", "last"];
                say(&table(&columns, found.items.into_iter().map(group_row)));
                say_more(found.next_cursor, Some(found.total), None);
                if !found.complete {
                    eprintln!("of the latest {} items", found.looked_at);
                }
            }
        }
        Verb::Get { id } => print_item(&client.dlq_item(&id).await?, &session)?,
        Verb::Requeue { id, key } => {
            let key = key.unwrap_or_else(|| format!("requeue-{id}"));
            let requeued = client.requeue(&id, &key).await?;
            if session.is_json() {
                say_wire(&requeued)?;
            } else {
                say(&format!("{} runs again as {}", requeued.dlq_id, requeued.job_id));
            }
        }
        Verb::Discard { id, reason } => {
            print_standing(&client.discard(&id, &reason).await?, &session)?;
        }
        Verb::Approve { id, version } => {
            print_standing(&client.approve_discard(&id, version).await?, &session)?;
        }
        Verb::BreakGlass { id, reason } => {
            print_standing(&client.break_glass(&id, &reason).await?, &session)?;
        }
        Verb::Reject { id } => print_standing(&client.reject_discard(&id).await?, &session)?,
    }
    Ok(exit::OK)
}

fn broken_glass(item: &DlqItem) -> String {
    let told = |mark: &BrokenGlass| format!("by {} at {}: {}", mark.by, mark.at, mark.reason);
    item.break_glass.as_ref().map_or_else(|| "-".into(), told)
}

fn row(item: DlqItem) -> Vec<String> {
    vec![
        item.dlq_id,
        item.job_id,
        item.job_type,
        item.error_code,
        item.error_message,
        item.status,
        when(item.created_at),
    ]
}

fn group_row(group: DlqGroup) -> Vec<String> {
    let is_new = match group.new_since {
        Some(true) => "new",
        Some(false) => "",
        None => "-",
    };
    vec![
        group.signature,
        group.count.to_string(),
        is_new.to_owned(),
        group.error_code,
        group.pattern,
        when(group.first_at),
        when(group.last_at),
    ]
}

fn print_standing(standing: &DlqStanding, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(standing);
    }
    say(&format!("{} is {}", standing.dlq_id, standing.status));
    Ok(())
}

fn print_item(item: &DlqItem, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(item);
    }
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let payload = item.payload_snapshot.as_ref().map_or("-", |payload| payload.get());
    say(&record(&[
        ("item", item.dlq_id.clone()),
        ("job", item.job_id.clone()),
        ("type", item.job_type.clone()),
        ("state", item.status.clone()),
        ("code", item.error_code.clone()),
        ("message", item.error_message.clone()),
        ("class", item.error_class.clone()),
        ("signature", item.signature.clone()),
        ("since", when(item.created_at)),
        ("reason", text(&item.reason)),
        ("requested by", text(&item.requested_by)),
        ("approved by", text(&item.approved_by)),
        ("break-glass", broken_glass(item)),
        ("version", item.version.to_string()),
        ("runs again as", text(&item.requeued_job_id)),
        ("payload", payload.to_owned()),
    ]));
    Ok(())
}

//! `mainspring subscriptions`: who outside is told of what happens to jobs.

use crate::commands::filters::say_more;
use crate::exit;
use crate::output::{record, say, say_wire, table, when};
use crate::session::Session;
use crate::span;
use mainspring_sdk::api::subscription::{
    CreateSubscription, Subscription, SubscriptionFilter, SubscriptionGap,
};
use mainspring_sdk::client::SubscriptionsFilter;
use std::time::Duration;

/// What to do with subscriptions.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Have events told to a webhook (--webhook) or to NATS JetStream (--nats-subject)
    Create(Box<Wish>),
    /// Subscriptions, newest first
    List {
        /// Only those in this state
        #[arg(long, value_parser = ["active", "failing", "paused"])]
        status: Option<String>,
        /// At most this many, 1 to 100
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Where the last page ended; with the same filters
        #[arg(long)]
        cursor: Option<String>,
    },
    /// One subscription
    Get {
        /// The subscription
        id: String,
    },
    /// Have it rest until it is resumed
    Pause {
        /// The subscription
        id: String,
        /// Why
        #[arg(long)]
        note: Option<String>,
    },
    /// Have it go on where it was, at once
    Resume {
        /// The subscription
        id: String,
    },
    /// Sign with a new secret, which is shown once
    RotateSecret {
        /// The subscription
        id: String,
        /// How long the secret before signs, too, such as 1h
        #[arg(long, value_parser = span::parse, value_name = "SPAN")]
        overlap: Option<Duration>,
    },
    /// Take it away
    Delete {
        /// The subscription
        id: String,
    },
}

/// A subscription as the flags say it.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("target").required(true).args(["webhook", "nats_subject"])))]
pub(crate) struct Wish {
    /// What it is called
    name: String,
    /// Send signed requests there
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Publish messages whose subjects begin with this
    #[arg(long, value_name = "SUBJECT")]
    nats_subject: Option<String>,
    /// Only events of this name, such as job.failed; may be given several times
    #[arg(long = "event", value_name = "NAME")]
    events: Vec<String>,
    /// Only of jobs of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only of jobs in this queue; may be given several times
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Of the jobs of every tenant
    #[arg(long)]
    all_tenants: bool,
    /// Events after this position, not only those from now on
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
}

impl Wish {
    fn read(self) -> CreateSubscription {
        let Wish { name, webhook: url, nats_subject, events, types, queues, all_tenants, after } =
            self;
        CreateSubscription {
            name,
            url,
            nats_subject,
            events: Some(events).filter(|events| !events.is_empty()),
            filter: Some(SubscriptionFilter { types, queues, all_tenants }),
            after,
        }
    }
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    match verb {
        Verb::Create(wish) => print(&client.create_subscription(&wish.read()).await?, &session)?,
        Verb::List { status, limit, cursor } => {
            let filter = SubscriptionsFilter { status, cursor, limit: Some(limit) };
            let page = client.subscriptions(&filter).await?;
            if session.is_json() {
                say_wire(&page)?;
            } else {
                let columns = ["subscription", "name", "target", "state", "lag", "delivered"];
                say(&table(&columns, page.items.into_iter().map(row)));
                say_more(page.next_cursor, page.total, page.total_at_least);
            }
        }
        Verb::Get { id } => print(&client.subscription(&id).await?, &session)?,
        Verb::Pause { id, note } => {
            print(&client.pause_subscription(&id, note.as_deref()).await?, &session)?;
        }
        Verb::Resume { id } => print(&client.resume_subscription(&id).await?, &session)?,
        Verb::RotateSecret { id, overlap } => {
            let overlap = overlap.map(|overlap| overlap.as_secs());
            print(&client.rotate_subscription_secret(&id, overlap).await?, &session)?;
        }
        Verb::Delete { id } => {
            let removed = client.delete_subscription(&id).await?;
            match session.is_json() {
                true => say_wire(&removed)?,
                false => say(&format!("{} is {}", removed.subscription_id, removed.status)),
            }
        }
    }
    Ok(exit::OK)
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn row(it: Subscription) -> Vec<String> {
    vec![
        it.subscription_id,
        it.name,
        it.target,
        it.status,
        it.lag.to_string(),
        it.delivered_count.to_string(),
    ]
}

fn print(it: &Subscription, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(it);
    }
    let all = |names: &[String]| match names.is_empty() {
        true => "all".to_owned(),
        false => names.join(" "),
    };
    let gap = |gap: &SubscriptionGap| format!("{} to {}", gap.from, gap.to);
    let place = it.url.as_ref().or(it.nats_subject.as_ref());
    let mut lines = vec![
        ("subscription", it.subscription_id.clone()),
        ("name", it.name.clone()),
        ("target", format!("{} {}", it.target, shown(place))),
        ("events", all(&it.events)),
        ("types", all(&it.filter.types)),
        ("queues", all(&it.filter.queues)),
        ("tenant", if it.filter.all_tenants { "all".to_owned() } else { it.tenant_id.clone() }),
        ("state", it.status.clone()),
        ("position", format!("{}, {} behind", it.position, it.lag)),
        ("delivered", it.delivered_count.to_string()),
        ("last delivered", it.last_delivered_at.map_or_else(|| "-".to_owned(), when)),
        ("failed tries", format!("{}, {} in a row", it.failed_count, it.consecutive_failures)),
        ("last error", shown(it.last_error.as_ref())),
        ("missed", it.missed_count.to_string()),
    ];
    if let Some(last) = it.gaps.last() {
        lines.push(("last gap", gap(last)));
    }
    if it.status == "paused" {
        lines.push(("paused by", shown(it.paused_by.as_ref())));
        lines.push(("why", shown(it.pause_note.as_ref())));
    }
    if let Some(secret) = &it.secret {
        lines.push(("secret, shown once", secret.clone()));
    }
    say(&record(&lines));
    Ok(())
}

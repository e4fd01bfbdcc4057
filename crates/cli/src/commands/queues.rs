//! `mainspring queues`.

use crate::exit;
use crate::output::{say, say_wire, table};
use crate::session::Session;
use mainspring_sdk::api::registry::Queue;

/// What to do with queues.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Every queue with its numbers
    List,
    /// Stop handing out jobs
    Pause {
        /// The queue
        name: String,
    },
    /// Hand out jobs again
    Resume {
        /// The queue
        name: String,
    },
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let queues = match verb {
        Verb::List => session.client.queues().await?.items,
        Verb::Pause { name } => vec![session.client.pause_queue(&name).await?],
        Verb::Resume { name } => vec![session.client.resume_queue(&name).await?],
    };
    if session.is_json() {
        say_wire(&queues)?;
    } else {
        let columns = ["queue", "paused", "order", "ready", "pending", "running"];
        say(&table(&columns, queues.into_iter().map(row)));
    }
    Ok(exit::OK)
}

fn row(queue: Queue) -> Vec<String> {
    vec![
        queue.name,
        if queue.paused { "paused".into() } else { "-".into() },
        queue.order,
        queue.ready.to_string(),
        queue.pending.to_string(),
        queue.running.to_string(),
    ]
}

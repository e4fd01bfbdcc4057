//! `mainspring workers`.

use crate::exit;
use crate::output::{say, say_wire, table, when};
use crate::session::Session;

pub(crate) async fn run(session: Session) -> anyhow::Result<u8> {
    let mut page = session.client.workers(None).await?;
    let mut workers = std::mem::take(&mut page.items);
    while let Some(cursor) = page.next_cursor.take() {
        page = session.client.workers(Some(&cursor)).await?;
        workers.append(&mut page.items);
    }
    if session.is_json() {
        say_wire(&workers)?;
        return Ok(exit::OK);
    }
    let columns = ["worker", "tenant", "types", "queues", "last seen", "jobs"];
    let any = |list: Option<Vec<String>>| list.map_or("any".into(), |list| list.join(", "));
    let rows = workers.into_iter().map(|worker| {
        vec![
            worker.worker_id,
            worker.tenant_id.unwrap_or_else(|| "any".into()),
            any(worker.types),
            any(worker.queues),
            when(worker.last_seen_at),
            worker.granted.to_string(),
        ]
    });
    say(&table(&columns, rows));
    Ok(exit::OK)
}

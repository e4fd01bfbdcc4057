//! Workers heard of lately.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_engine::WorkerSeen;
use mainspring_kernel::Principal;
use std::fmt::{Display, Write};

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["limit", "cursor"])?;
    let (after, limit) = (query.get("cursor").map(read_cursor).transpose()?, query.limit()?);
    let is_visible =
        |seen: &WorkerSeen| who.is_admin() || seen.tenant.as_ref() == Some(&who.tenant);
    let is_next =
        |seen: &WorkerSeen| after.as_ref().is_none_or(|after| place(seen) > (&after.0, &after.1));
    let mut seen = ask.engine().workers_everywhere().await?;
    seen.retain(is_visible);
    let total = Some(seen.len() as u64);
    let mut rest = seen.into_iter().filter(is_next);
    let page: Vec<WorkerSeen> = rest.by_ref().take(limit).collect();
    let next_cursor = rest.next().and(page.last()).map(write_cursor);
    let items = page.iter().map(shown).collect();
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least: None }))
}

/// Where a worker stands in the list.
fn place(seen: &WorkerSeen) -> (&str, &str) {
    (seen.id.as_str(), seen.tenant.as_ref().map_or("", |tenant| tenant.as_str()))
}

/// The last worker that was shown, in digits: whoever gets it has seen that worker.
fn write_cursor(seen: &WorkerSeen) -> String {
    let (id, tenant) = place(seen);
    let mut text = String::new();
    for byte in id.bytes().chain([0]).chain(tenant.bytes()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn read_cursor(text: &str) -> Result<(String, String), Refusal> {
    let read = || {
        let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        let bytes: Option<Vec<u8>> = digits
            .map(|pair| u8::from_str_radix(pair.filter(|it| it.len() == 2)?, 16).ok())
            .collect();
        let text = String::from_utf8(bytes?).ok()?;
        let (id, tenant) = text.split_once('\0')?;
        Some((id.to_owned(), tenant.to_owned()))
    };
    read().ok_or_else(refusal::cursor_invalid)
}

fn shown(seen: &WorkerSeen) -> api::registry::Worker {
    api::registry::Worker {
        worker_id: seen.id.to_string(),
        tenant_id: seen.tenant.as_ref().map(ToString::to_string),
        types: seen.types.as_deref().map(texts),
        queues: seen.queues.as_deref().map(texts),
        first_seen_at: api::Time(seen.first_seen.0),
        last_seen_at: api::Time(seen.last_seen.0),
        granted: seen.granted,
    }
}

fn texts(names: &[impl Display]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

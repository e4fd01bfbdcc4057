//! Workers heard of lately.

use super::errors::Fault;
use crate::answer::Reply;
use crate::ask::Ask;
use mainspring_api as api;
use mainspring_engine::WorkerSeen;
use mainspring_kernel::Principal;
use std::fmt::Display;

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Fault> {
    let seen = ask.engine().workers_everywhere().await?;
    let is_visible =
        |seen: &&WorkerSeen| who.is_admin() || seen.tenant.as_ref() == Some(&who.tenant);
    let items = seen.iter().filter(is_visible).map(shown).collect();
    Ok(Reply::data(&api::Page::whole(items)))
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

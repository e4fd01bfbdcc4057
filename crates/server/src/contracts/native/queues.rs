//! Queues: their numbers, their order, pausing them.

use super::errors::{self, Fault};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::json;
use mainspring_api as api;
use mainspring_kernel::{Command, Principal, QueueName, QueueOrder, QueueSpec};
use std::collections::BTreeMap;

pub(super) async fn list(ask: Ask, _who: Principal) -> Result<Reply, Fault> {
    Ok(Reply::data(&api::Page::whole(numbered(&ask).await?)))
}

pub(super) async fn set(ask: Ask, _who: Principal) -> Result<Reply, Fault> {
    let wish: api::registry::SetQueue = json::read(json::check(&ask.body)?)?;
    let order = QueueOrder::parse(&wish.order)
        .ok_or_else(|| errors::invalid("order", "must be aged or due"))?;
    change(ask, |spec| spec.order = order).await
}

pub(super) async fn pause(ask: Ask, _who: Principal) -> Result<Reply, Fault> {
    change(ask, |spec| spec.is_paused = true).await
}

pub(super) async fn resume(ask: Ask, _who: Principal) -> Result<Reply, Fault> {
    change(ask, |spec| spec.is_paused = false).await
}

async fn change(ask: Ask, edit: impl FnOnce(&mut QueueSpec)) -> Result<Reply, Fault> {
    let name = QueueName::new(ask.param()).map_err(|bad| errors::invalid("name", bad))?;
    let known = ask.engine().queues().await?.into_iter().find(|spec| spec.name == name);
    let mut spec = known.unwrap_or_else(|| QueueSpec::plain(name.clone()));
    edit(&mut spec);
    let plain = shown(&spec);
    ask.engine().execute_one(Command::SetQueue(spec)).await??;
    let found = numbered(&ask).await?.into_iter().find(|queue| queue.name == name.as_str());
    Ok(Reply::data(&found.unwrap_or(plain)))
}

/// Every queue that was configured or has jobs, by name.
async fn numbered(ask: &Ask) -> Result<Vec<api::registry::Queue>, Fault> {
    let specs = ask.engine().queues().await?;
    let counts = ask.engine().counts().await?;
    let mut all: BTreeMap<QueueName, api::registry::Queue> =
        specs.iter().map(|spec| (spec.name.clone(), shown(spec))).collect();
    for count in counts.queues {
        let queue = all
            .entry(count.name.clone())
            .or_insert_with(|| shown(&QueueSpec::plain(count.name.clone())));
        queue.ready = count.ready;
        queue.pending = count.pending;
        queue.running = count.running;
    }
    Ok(all.into_values().collect())
}

fn shown(spec: &QueueSpec) -> api::registry::Queue {
    api::registry::Queue {
        name: spec.name.to_string(),
        paused: spec.is_paused,
        order: spec.order.as_str().to_owned(),
        ready: 0,
        pending: 0,
        running: 0,
    }
}

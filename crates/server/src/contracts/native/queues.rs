//! Queues: their numbers, their order, pausing them.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::json;
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_kernel::entity::audit::Seen;
use mainspring_kernel::governance::is_reserved;
use mainspring_kernel::{Command, Principal, QueueName, QueueOrder, QueueSpec};
use std::collections::BTreeMap;

pub(super) async fn list(ask: Ask, _who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&api::Page::whole(numbered(&ask).await?)))
}

pub(super) async fn set(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::registry::SetQueue = json::read(json::check(&ask.body)?)?;
    let order = QueueOrder::parse(&wish.order)
        .ok_or_else(|| refusal::invalid("order", "must be aged or due"))?;
    change(ask, who, ("queue.set", Unknown::IsMade), |spec| spec.order = order).await
}

pub(super) async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    change(ask, who, ("queue.pause", Unknown::IsRefused), |spec| spec.is_paused = true).await
}

pub(super) async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    change(ask, who, ("queue.resume", Unknown::IsRefused), |spec| spec.is_paused = false).await
}

/// What becomes of a queue that nobody knows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    IsMade,
    /// A mistyped name must not look as if the queue that was meant had been paused.
    IsRefused,
}

async fn change(
    ask: Ask,
    who: Principal,
    (action, unknown): (&'static str, Unknown),
    edit: impl Fn(&mut QueueSpec) + Sync,
) -> Result<Reply, Refusal> {
    let name = QueueName::new(ask.param()).map_err(|bad| refusal::invalid("name", bad))?;
    if is_reserved(&name) {
        // Behind it is a gate, which is set by its own name.
        return Err(refusal::denied());
    }
    let mut outcome = change_once(&ask, &who, &name, (action, unknown), &edit).await;
    for _ in 1..audit::TRIES {
        if !audit::has_changed(&outcome) {
            break;
        }
        outcome = change_once(&ask, &who, &name, (action, unknown), &edit).await;
    }
    let plain = outcome?;
    let found = numbered(&ask).await?.into_iter().find(|queue| queue.name == name.as_str());
    Ok(Reply::data(&found.unwrap_or(plain)))
}

/// Changes a queue as it is now, and tells what it was.
async fn change_once(
    ask: &Ask,
    who: &Principal,
    name: &QueueName,
    (action, unknown): (&'static str, Unknown),
    edit: &(impl Fn(&mut QueueSpec) + Sync),
) -> Result<api::registry::Queue, Refusal> {
    let known = ask.engine().queues().await?.into_iter().find(|spec| spec.name == *name);
    if known.is_none() && unknown == Unknown::IsRefused && !is_used(ask, name).await? {
        return Err(refusal::queue_unknown());
    }
    let mut spec = known.clone().unwrap_or_else(|| QueueSpec::plain(name.clone()));
    // One that is used is there, if only as a plain one; one that is made was nothing before.
    let was = (known.is_some() || unknown == Unknown::IsRefused).then(|| shown(&spec));
    edit(&mut spec);
    let spec = spec.kept();
    let plain = shown(&spec);
    let note = Note {
        action,
        object_type: "queue",
        object_id: name.to_string(),
        before: was.and_then(|was| audit::json(&was)),
        after: audit::json(&plain),
        seen: Some(Seen::Queue(name.clone(), known)),
        ..Note::default()
    };
    audit::change(ask, who, Command::SetQueue(spec), note).await?;
    Ok(plain)
}

/// Whether a queue that nobody configured is named by a type or has or had jobs.
async fn is_used(ask: &Ask, name: &QueueName) -> Result<bool, Refusal> {
    Ok(*name == QueueSpec::default_name()
        || ask.engine().types().await?.iter().any(|spec| spec.queue == *name)
        || ask.counts().await?.queues.iter().any(|count| count.name == *name))
}

/// Every queue that was configured or has jobs, by name.
async fn numbered(ask: &Ask) -> Result<Vec<api::registry::Queue>, Refusal> {
    let specs = ask.engine().queues().await?;
    let counts = ask.counts().await?;
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

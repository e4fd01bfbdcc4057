//! Triggers in the native contract: what they are is told in `server/src/triggers.rs`.

use super::filters::{self, Total};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::json;
use crate::refusal::Refusal;
use crate::triggers::{self, Spelling};
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_kernel::{Entity, Principal};

/// The parameters of the list.
pub(super) const FILTERS: [(&str, &str); 4] = [
    ("status", "Only those in this state."),
    ("type", "Only those of this type."),
    filters::PAGE[0],
    filters::PAGE[1],
];

pub(super) async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: api::trigger::SetTrigger = json::read(json::check(&ask.body)?)?;
    let engine = ask.engine();
    let by = (&who, engine.fresh_id(), engine.trigger_pace());
    let wish = triggers::wish(&wire, Spelling::Snake, by)?;
    let made = triggers::make(&ask, &who, wish).await?;
    Ok(Reply::status_data(StatusCode::CREATED, &shown(&ask, &made)?))
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&FILTERS.map(|(name, _)| name))?;
    let found = triggers::list(&ask, &who, &query).await?;
    let items =
        found.entities.iter().map(|entity| shown(&ask, entity)).collect::<Result<_, _>>()?;
    let Total { exact: total, at_least: total_at_least } =
        found.total.map_or(Total::UNTOLD, Total::of);
    Ok(Reply::data(&api::Page { items, next_cursor: found.next, total, total_at_least }))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = triggers::visible(&ask, &who).await?;
    Ok(Reply::data(&shown(&ask, &entity)?))
}

pub(super) async fn remove(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let removed = triggers::remove(&ask, &who).await?;
    let id = triggers::body(&removed)?.spec.name.to_string();
    Ok(Reply::data(&api::trigger::RemovedTrigger { id, status: "deleted".to_owned() }))
}

pub(super) async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::trigger::PauseTrigger = match ask.body.is_empty() {
        true => api::trigger::PauseTrigger::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let paused = triggers::pause(&ask, &who, wish.note).await?;
    Ok(Reply::data(&shown(&ask, &paused)?))
}

pub(super) async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let resumed = triggers::resume(&ask, &who).await?;
    Ok(Reply::data(&shown(&ask, &resumed)?))
}

pub(super) async fn evaluations(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = triggers::visible(&ask, &who).await?;
    Ok(Reply::data(&triggers::evaluations(triggers::body(&entity)?)))
}

pub(super) async fn explain(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&triggers::explain(&ask, &who).await?))
}

fn shown(ask: &Ask, entity: &Entity) -> Result<api::trigger::Trigger, Refusal> {
    let now = ask.engine().now();
    Ok(triggers::trigger(entity, triggers::body(entity)?, Spelling::Snake, now))
}

//! Alerts: looking, and taking notice. They are raised and cleared by the engine.

use super::filters::{self, Total};
use crate::answer::Reply;
use crate::ask::{Ask, Query};
use crate::audit::{self, Note};
use crate::cursor;
use crate::json;
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::entity::alert::{Alert, AlertCommand, AlertState, Milli, Rule};
use mainspring_kernel::entity::{Body, EntityId, Kind};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::{Entity, Principal, Rejection};
use serde_json::Value;

/// The parameters of the list.
pub(super) const FILTERS: [(&str, &str); 4] = [
    ("state", "Only those in this state."),
    ("rule", "Only those of this rule."),
    filters::PAGE[0],
    filters::PAGE[1],
];

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&FILTERS.map(|(name, _)| name))?;
    let state = word(&query, "state", |text| AlertState::parse(text).is_some())?;
    let rule = word(&query, "rule", |text| Rule::parse(text).is_some())?;
    let parts = [&*who.tenant.to_string(), state.unwrap_or(""), rule.unwrap_or("")];
    let [tenant, in_state, of_rule] = parts.map(str::as_bytes);
    let place = digest(&[b"alerts", tenant, in_state, of_rule]);
    let filter = EntityFilter {
        state: state.map(str::to_owned),
        field: rule.map(|rule| ("rule".to_owned(), rule.to_owned())),
        ..EntityFilter::of(Kind::Alert, Scope::Tenant(who.tenant.clone()))
    };
    let before = filters::before(&query, place)?.map(|bits| EntityId { kind: Kind::Alert, bits });
    let page = ask.engine().entities(&filter, before, query.limit()?).await?;
    let whole = (before.is_none() && page.next.is_none()).then_some(page.items.len());
    let count = ask.engine().count_entities(&filter, filters::COUNTED);
    let Total { exact: total, at_least: total_at_least } =
        filters::total(&ask, whole, count).await?;
    let items = page.items.iter().map(shown).collect::<Result<_, _>>()?;
    let next_cursor = page.next.map(|next| cursor::write(place, next.bits));
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least }))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&shown(&visible(&ask, &who).await?)?))
}

pub(super) async fn acknowledge(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::alert::AcknowledgeAlert = match ask.body.is_empty() {
        true => api::alert::AcknowledgeAlert::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let entity = visible(&ask, &who).await?;
    let alert = body(&entity)?;
    let note = Note {
        action: "alert.acknowledge",
        object_type: "alert",
        object_id: entity.id.to_string(),
        before: Some(Value::from(alert.state().as_str())),
        after: Some(Value::from(AlertState::Acknowledged.as_str())),
        reason: wish.note.clone(),
        ..Note::default()
    };
    let command = AlertCommand::Acknowledge {
        id: entity.id,
        by: who.user.clone(),
        note: wish.note.map(Into::into),
    };
    audit::change(&ask, &who, command.into(), note).await?;
    Ok(Reply::data(&shown(&visible(&ask, &who).await?)?))
}

/// A parameter that is one word of a list.
fn word<'a>(
    query: &'a Query,
    name: &'static str,
    is_one: impl Fn(&str) -> bool,
) -> Result<Option<&'a str>, Refusal> {
    match query.get(name) {
        Some(text) if !is_one(text) => Err(refusal::invalid(name, "is not one that alerts have")),
        text => Ok(text),
    }
}

/// The alert of the path, if it is of the caller's tenant. Nonsense, unknown and foreign ids are
/// one case.
async fn visible(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    let found = match EntityId::parse(Kind::Alert, ask.param()) {
        Ok(id) => ask.engine().entity(id).await?,
        Err(_) => None,
    };
    found.filter(|entity| entity.tenant == who.tenant).ok_or_else(|| match who.is_admin() {
        true => Rejection::EntityUnknown { kind: Kind::Alert }.into(),
        false => refusal::denied(),
    })
}

fn body(entity: &Entity) -> Result<&Alert, Refusal> {
    if let Body::Alert(alert) = &entity.body { Ok(alert) } else { Err(refusal::internal()) }
}

fn shown(entity: &Entity) -> Result<api::alert::Alert, Refusal> {
    let alert = body(entity)?;
    let acknowledged = alert.acknowledged.as_ref();
    let number = |milli: Milli| milli.0 as f64 / 1_000.0;
    Ok(api::alert::Alert {
        alert_id: entity.id.to_string(),
        rule: alert.rule.as_str().to_owned(),
        severity: alert.rule.severity().as_str().to_owned(),
        state: alert.state().as_str().to_owned(),
        tenant_id: entity.tenant.to_string(),
        subject: Some(alert.subject.to_string()).filter(|subject| !subject.is_empty()),
        message: alert.message.to_string(),
        value: number(alert.value),
        threshold: number(alert.threshold),
        raised_at: api::Time(alert.raised_at.0),
        seen_at: api::Time(alert.seen_at.0),
        count: alert.count,
        acknowledged_at: acknowledged.map(|it| api::Time(it.at.0)),
        acknowledged_by: acknowledged.map(|it| it.by.to_string()),
        note: acknowledged.and_then(|it| it.note.as_deref()).map(str::to_owned),
        cleared_at: alert.cleared_at.map(|at| api::Time(at.0)),
    })
}

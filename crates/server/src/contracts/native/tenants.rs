//! Tenants: what they get of the turns, what they may have waiting, pausing them.

use super::filters::{self, PAGE, Total};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::cursor;
use crate::json;
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::entity::tenant::{TenantCard, TenantCommand, tenant_id};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::registry::TenantShare;
use mainspring_kernel::{Entity, EntityId, Principal, Rejection, TenantId};

/// How often a change is tried that somebody else gets ahead of.
const TRIES: usize = 5;

pub(super) async fn list(ask: Ask, _who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&PAGE.map(|(name, _)| name))?;
    let filter = EntityFilter::of(Kind::Tenant, Scope::All);
    let place = digest(&[b"tenants"]);
    let before = filters::before(&query, place)?.map(|bits| EntityId { kind: Kind::Tenant, bits });
    let page = ask.engine().entities(&filter, before, query.limit()?).await?;
    let whole = (before.is_none() && page.next.is_none()).then_some(page.items.len());
    let count = ask.engine().count_entities(&filter, filters::COUNTED);
    let Total { exact: total, at_least: total_at_least } =
        filters::total(&ask, whole, count).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for entity in &page.items {
        items.push(shown(&ask, &entity.tenant, Some(entity)).await?);
    }
    let next_cursor = page.next.map(|next| cursor::write(place, next.bits));
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least }))
}

pub(super) async fn get(ask: Ask, _who: Principal) -> Result<Reply, Refusal> {
    let tenant = named(&ask)?;
    let found = ask.engine().entity(tenant_id(&tenant)).await?;
    Ok(Reply::data(&shown(&ask, &tenant, found.as_ref()).await?))
}

pub(super) async fn set(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::registry::SetTenant = json::read(json::check(&ask.body)?)?;
    let tenant = named(&ask)?;
    for _ in 0..TRIES {
        let found = ask.engine().entity(tenant_id(&tenant)).await?;
        let command = TenantCommand::Set {
            tenant: tenant.clone(),
            version: found.as_ref().map_or(0, |entity| entity.version),
            share: TenantShare {
                weight: wish.weight.unwrap_or(TenantShare::PLAIN.weight),
                backlog_max: wish.backlog_max,
                backlog_bytes_max: wish.backlog_bytes_max,
            },
            is_paused: wish.paused.unwrap_or(false),
            by: who.user.clone(),
        };
        let note = Note {
            action: "tenant.set",
            object_type: "tenant",
            object_id: tenant.to_string(),
            before: audit::json(&shown(&ask, &tenant, found.as_ref()).await?),
            after: serde_json::from_slice(&ask.body).ok(),
            ..Note::default()
        };
        match audit::change(&ask, &who, command.into(), note).await {
            Err(refusal) if refusal.code == "ENTITY_CHANGED" => {}
            outcome => {
                outcome?;
                let found = ask.engine().entity(tenant_id(&tenant)).await?;
                return Ok(Reply::data(&shown(&ask, &tenant, found.as_ref()).await?));
            }
        }
    }
    Err(Rejection::EntityChanged { kind: Kind::Tenant }.into())
}

fn named(ask: &Ask) -> Result<TenantId, Refusal> {
    TenantId::new(ask.param()).map_err(|bad| refusal::invalid("tenant_id", bad))
}

async fn shown(
    ask: &Ask,
    tenant: &TenantId,
    found: Option<&Entity>,
) -> Result<api::registry::Tenant, Refusal> {
    let plain = TenantCard { share: TenantShare::PLAIN, paused: None };
    let card = found
        .and_then(|entity| if let Body::Tenant(card) = &entity.body { Some(card) } else { None })
        .unwrap_or(&plain);
    let held = ask.engine().held_by(tenant).await?;
    Ok(api::registry::Tenant {
        tenant_id: tenant.to_string(),
        weight: card.share.weight,
        backlog_max: card.share.backlog_max,
        backlog_bytes_max: card.share.backlog_bytes_max,
        paused: card.paused.is_some(),
        paused_by: card.paused.as_ref().map(|pause| pause.by.to_string()),
        paused_at: card.paused.as_ref().map(|pause| api::Time(pause.at.0)),
        backlog: held.jobs,
        backlog_bytes: held.bytes,
    })
}

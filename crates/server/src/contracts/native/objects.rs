//! Governed objects and gates in the native envelope.

use super::filters;
use crate::answer::Reply;
use crate::ask::Ask;
use crate::cursor;
use crate::governed;
use crate::refusal::Refusal;
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::Principal;
use mainspring_kernel::entity::{EntityId, Kind};
use mainspring_kernel::fingerprint::digest;

pub(super) async fn put(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&governed::put(&ask, &who).await?))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&governed::get(&ask, &who).await?))
}

/// The objects of the tenant, in the order of their ids.
pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&filters::PAGE.map(|(name, _)| name))?;
    let place = digest(&[b"objects", who.tenant.as_str().as_bytes()]);
    let filter = EntityFilter::of(Kind::Object, Scope::Tenant(who.tenant.clone()));
    let before = filters::before(&query, place)?.map(|bits| EntityId { kind: Kind::Object, bits });
    let page = ask.engine().entities(&filter, before, query.limit()?).await?;
    let items: Vec<_> = page.items.iter().filter_map(governed::shown).collect();
    let next_cursor = page.next.map(|next| cursor::write(place, next.bits));
    Ok(Reply::data(&api::Page { items, next_cursor, total: None, total_at_least: None }))
}

pub(super) async fn set_gate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&governed::set_gate(&ask, &who).await?))
}

pub(super) async fn get_gate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&governed::get_gate(&ask, &who).await?))
}

pub(super) async fn gates(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&api::Page::whole(governed::gates(&ask, &who).await?)))
}

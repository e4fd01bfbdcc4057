//! Bulk operations: looking first, asking, agreeing, ending, and what became of each thing. They go
//! on in the engine. `bulk/translate.rs` is pure.

mod translate;

use super::filters::{self, Total};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::cursor;
use crate::json;
use crate::limits::{BULKS_PER_TENANT_MAX, PREVIEWED_MAX, SAMPLES_MAX};
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::entity::bulk::{
    Bulk, BulkAction, BulkCommand, BulkStatus, Outcome, page_id,
};
use mainspring_kernel::entity::{Body, EntityId, Kind};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::limits::OUTCOMES_PER_PAGE;
use mainspring_kernel::{Command, DlqId, Entity, JobId, Principal, Rejection};
use translate::{sampled, shown, spec};

/// The parameters of the list.
pub(super) const FILTERS: [(&str, &str); 3] =
    [("status", "Only those in this state."), filters::PAGE[0], filters::PAGE[1]];

pub(super) async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::bulk::CreateBulk = json::read(json::check(&ask.body)?)?;
    let is_dry = wish.dry_run == Some(true);
    let spec = spec(wish)?;
    spec.check()?;
    let about = (spec.action, &spec.filter);
    let samples = if is_dry { SAMPLES_MAX } else { 1 };
    let approval_above = ask.app.config.bulk_approval_above;
    let most = if is_dry && ask.is_glance { glanced_at(approval_above) } else { usize::MAX };
    let admitted = ask.engine().bulk_preview(&who.tenant, about, (samples, most)).await?;
    let matched = admitted.matched;
    if is_dry {
        let needs_approval = matched > approval_above;
        return Ok(Reply::data(&sampled(spec.action, &admitted, needs_approval)));
    }
    let own = EntityFilter::of(Kind::Bulk, Scope::Tenant(who.tenant.clone()));
    if ask.engine().count_entities(&own, BULKS_PER_TENANT_MAX).await? >= BULKS_PER_TENANT_MAX {
        return Err(refusal::too_many_bulks(BULKS_PER_TENANT_MAX));
    }
    let id = EntityId { kind: Kind::Bulk, bits: ask.engine().fresh_id() };
    let note = Note {
        after: audit::json(&translate::filter(&spec)),
        reason: Some(spec.reason.to_string()),
        ..note(action(spec.action), id)
    };
    let (tenant, by) = (who.tenant.clone(), Box::new(who.clone()));
    let spec = Box::new(spec);
    let command = BulkCommand::Create { id, tenant, by, spec, matched, approval_above };
    change(&ask, &who, command.into(), note).await?;
    let made = found(&ask, &who, id).await?;
    Ok(Reply::status_data(StatusCode::CREATED, &shown(&made, body(&made)?)))
}

/// How far a page of the dashboard counts what an operation would be about: far enough to tell
/// whether a second person has to agree.
pub(crate) fn glanced_at(approval_above: u64) -> usize {
    usize::try_from(approval_above).unwrap_or(usize::MAX).max(PREVIEWED_MAX)
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&FILTERS.map(|(name, _)| name))?;
    let status = query.get("status");
    if status.is_some_and(|status| BulkStatus::parse(status).is_none()) {
        return Err(refusal::invalid("status", "is not a state of an operation"));
    }
    let parts = [who.tenant.as_str(), status.unwrap_or("")].map(str::as_bytes);
    let place = digest(&[b"bulk", parts[0], parts[1]]);
    let filter = EntityFilter {
        state: status.map(str::to_owned),
        ..EntityFilter::of(Kind::Bulk, Scope::Tenant(who.tenant.clone()))
    };
    let before = filters::before(&query, place)?.map(|bits| EntityId { kind: Kind::Bulk, bits });
    let page = ask.engine().entities(&filter, before, query.limit()?).await?;
    let whole = (before.is_none() && page.next.is_none()).then_some(page.items.len());
    let count = ask.engine().count_entities(&filter, filters::COUNTED);
    let Total { exact: total, at_least: total_at_least } =
        filters::total(&ask, whole, count).await?;
    let show = |entity: &Entity| Ok::<_, Refusal>(shown(entity, body(entity)?));
    let items = page.items.iter().map(show).collect::<Result<_, _>>()?;
    let next_cursor = page.next.map(|next| cursor::write(place, next.bits));
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least }))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = visible(&ask, &who).await?;
    Ok(Reply::data(&shown(&entity, body(&entity)?)))
}

/// What became of each thing, in the order in which it was done.
pub(super) async fn items(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&filters::PAGE.map(|(name, _)| name))?;
    let entity = visible(&ask, &who).await?;
    let bulk = body(&entity)?;
    let place = digest(&[b"outcomes", &entity.id.bits.to_be_bytes()]);
    let (from, limit) = (filters::before(&query, place)?.unwrap_or(0), query.limit()?);
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let count = usize::try_from(bulk.done + bulk.failed).unwrap_or(usize::MAX);
    let to = from.saturating_add(limit).min(count);
    let mut items = Vec::new();
    let mut at = from;
    while at < to {
        let number = u32::try_from(at / OUTCOMES_PER_PAGE).unwrap_or(u32::MAX);
        let first = number as usize * OUTCOMES_PER_PAGE;
        let outcomes = outcomes(&ask, &entity, bulk, number).await?;
        let some = outcomes.iter().skip(at - first).take(to - at);
        items.extend(some.map(|outcome| told(bulk.spec.action, outcome)));
        at = first + OUTCOMES_PER_PAGE;
    }
    let next_cursor = (to < count).then(|| cursor::write(place, to as u128));
    let (total, total_at_least) = (Some(count as u64), None);
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least }))
}

pub(super) async fn approve(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::bulk::ApproveBulk = json::read(json::check(&ask.body)?)?;
    let id = visible(&ask, &who).await?.id;
    let (by, version) = (Box::new(who.clone()), wish.version);
    let command = BulkCommand::Approve { id, by, version };
    change(&ask, &who, command.into(), note("bulk.approve", id)).await?;
    let entity = found(&ask, &who, id).await?;
    Ok(Reply::data(&shown(&entity, body(&entity)?)))
}

pub(super) async fn stop(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::bulk::StopBulk = match ask.body.is_empty() {
        true => api::bulk::StopBulk::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let id = visible(&ask, &who).await?.id;
    let note = Note { reason: wish.reason.clone(), ..note("bulk.stop", id) };
    let (by, why) = (who.user.clone(), wish.reason.map(Into::into));
    change(&ask, &who, BulkCommand::Stop { id, by, why }.into(), note).await?;
    let entity = found(&ask, &who, id).await?;
    Ok(Reply::data(&shown(&entity, body(&entity)?)))
}

async fn change(ask: &Ask, who: &Principal, command: Command, note: Note) -> Result<(), Refusal> {
    audit::change(ask, who, command, note).await.map(drop)
}

fn note(action: &'static str, id: EntityId) -> Note {
    Note { action, object_type: "bulk", object_id: id.to_string(), ..Note::default() }
}

/// What the audit trail calls an operation that begins.
fn action(action: BulkAction) -> &'static str {
    match action {
        BulkAction::Requeue => "bulk.requeue",
        BulkAction::Discard => "bulk.discard",
        BulkAction::Cancel => "bulk.cancel",
        BulkAction::Pause => "bulk.pause",
        BulkAction::Resume => "bulk.resume",
    }
}

/// The outcomes of one page: the last one is still in the operation.
async fn outcomes(
    ask: &Ask,
    entity: &Entity,
    bulk: &Bulk,
    number: u32,
) -> Result<Vec<Outcome>, Refusal> {
    if number >= bulk.pages {
        return Ok(bulk.outcomes.clone());
    }
    let page = ask.engine().entity(page_id(entity.id, number)).await?.map(|page| page.body);
    if let Some(Body::BulkPage(page)) = page { Ok(page.outcomes) } else { Ok(Vec::new()) }
}

fn told(action: BulkAction, outcome: &Outcome) -> api::bulk::BulkOutcome {
    let id = match action {
        BulkAction::Requeue | BulkAction::Discard => DlqId(outcome.target).to_string(),
        BulkAction::Cancel | BulkAction::Pause | BulkAction::Resume => {
            JobId(outcome.target).to_string()
        }
    };
    api::bulk::BulkOutcome {
        id,
        outcome: if outcome.code.is_none() { "done" } else { "failed" }.to_owned(),
        job_id: outcome.made.map(|job| job.to_string()),
        error_code: outcome.code.as_deref().map(str::to_owned),
    }
}

/// The operation of the path, if it is of the caller's tenant. Nonsense, unknown and foreign ids
/// are one case.
async fn visible(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    match EntityId::parse(Kind::Bulk, ask.param()) {
        Ok(id) => found(ask, who, id).await,
        Err(_) => Err(unseen(who)),
    }
}

async fn found(ask: &Ask, who: &Principal, id: EntityId) -> Result<Entity, Refusal> {
    let found = ask.engine().entity(id).await?;
    found.filter(|entity| entity.tenant == who.tenant).ok_or_else(|| unseen(who))
}

fn unseen(who: &Principal) -> Refusal {
    match who.is_admin() {
        true => Rejection::EntityUnknown { kind: Kind::Bulk }.into(),
        false => refusal::denied(),
    }
}

fn body(entity: &Entity) -> Result<&Bulk, Refusal> {
    if let Body::Bulk(bulk) = &entity.body { Ok(bulk) } else { Err(refusal::internal()) }
}

//! Triggers, for every contract that has them: making, finding and steering them, and explaining
//! what they do. `triggers/wish.rs` reads wishes and `triggers/view.rs` shows triggers, both purely
//! and in either spelling of names.

mod condition;
mod view;
mod wish;

pub(crate) use condition::Spelling;
pub(crate) use view::{evaluations, trigger};
pub(crate) use wish::wish;

use crate::ask::{Ask, Query};
use crate::auth;
use crate::cursor;
use crate::limits::TRIGGERS_PER_TENANT_MAX;
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::entity::trigger::{
    Outcome, Past, Sight, Status, Trigger, TriggerCommand, TriggerSpec, TriggerType, named,
};
use mainspring_kernel::entity::{Body, Entity, EntityId, Kind};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::limits::TOTAL_MAX;
use mainspring_kernel::{Principal, Rejection, Timestamp};

/// A trigger to be made.
pub(crate) struct Wish {
    pub(crate) spec: TriggerSpec,
    pub(crate) past: Past,
}

/// Makes a trigger that belongs to `who`.
pub(crate) async fn make(ask: &Ask, who: &Principal, wish: Wish) -> Result<Entity, Refusal> {
    let command = command(ask, who, wish).await?;
    room(ask, who).await?;
    let TriggerCommand::Create { id, tenant, owner, spec, sights, past } = command.clone() else {
        return Err(refusal::internal());
    };
    ask.engine().execute_one(command.into()).await??;
    // One whose time has come may be gone by now.
    let now = ask.engine().now();
    Ok(ask.engine().entity(id).await?.unwrap_or_else(|| Entity {
        id,
        version: 1,
        tenant,
        owner,
        created_at: now,
        updated_at: now,
        body: Body::Trigger(Box::new(Trigger::begun(&spec, &sights, &past, now))),
    }))
}

/// The command that makes a trigger, with what there is to see as it is made. It is for those who
/// make several things in one commit; they ask for [`room`] themselves.
pub(crate) async fn command(
    ask: &Ask,
    who: &Principal,
    wish: Wish,
) -> Result<TriggerCommand, Refusal> {
    let Wish { spec, past } = wish;
    let sights = sights(ask, (who, &spec)).await?;
    let id = named(&who.tenant, &spec.name);
    let (tenant, owner) = (who.tenant.clone(), who.user.clone());
    let (spec, past) = (Box::new(spec), Box::new(past));
    Ok(TriggerCommand::Create { id, tenant, owner, spec, sights, past })
}

/// Refuses one more trigger to a tenant that has as many as it may.
pub(crate) async fn room(ask: &Ask, who: &Principal) -> Result<(), Refusal> {
    let tenant = EntityFilter::of(Kind::Trigger, Scope::Tenant(who.tenant.clone()));
    match ask.engine().count_entities(&tenant, TRIGGERS_PER_TENANT_MAX).await? {
        known if known >= TRIGGERS_PER_TENANT_MAX => {
            Err(refusal::too_many_triggers(TRIGGERS_PER_TENANT_MAX))
        }
        _ => Ok(()),
    }
}

async fn sights(ask: &Ask, (who, spec): (&Principal, &TriggerSpec)) -> Result<Vec<Sight>, Refusal> {
    let seen = ask.engine().trigger_sights((&who.tenant, &who.user), spec).await?;
    seen.map_err(|why| refusal::invalid("condition", why.reason()))
}

/// The trigger of the path, if the caller may see it. Nonsense, unknown and foreign names are one
/// case.
pub(crate) async fn visible(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    found(ask, named(&who.tenant, ask.param()), who).await
}

async fn found(ask: &Ask, id: EntityId, who: &Principal) -> Result<Entity, Refusal> {
    let entity = ask.engine().entity(id).await?;
    let scope = auth::scope(who);
    let entity = entity.filter(|entity| scope.covers(&entity.tenant, &entity.owner));
    entity.ok_or_else(|| match who.is_admin() {
        true => Rejection::EntityUnknown { kind: Kind::Trigger }.into(),
        false => refusal::denied(),
    })
}

async fn steerable(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    let entity = visible(ask, who).await?;
    match who.can_steer(&entity.tenant, &entity.owner) {
        true => Ok(entity),
        false => Err(refusal::denied()),
    }
}

/// What an entity is that is a trigger.
pub(crate) fn body(entity: &Entity) -> Result<&Trigger, Refusal> {
    if let Body::Trigger(trigger) = &entity.body { Ok(trigger) } else { Err(refusal::internal()) }
}

/// Takes the trigger of the path away.
pub(crate) async fn remove(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    let entity = steerable(ask, who).await?;
    ask.engine().execute_one(TriggerCommand::Remove { id: entity.id }.into()).await??;
    Ok(entity)
}

/// Pauses the trigger of the path.
pub(crate) async fn pause(
    ask: &Ask,
    who: &Principal,
    note: Option<String>,
) -> Result<Entity, Refusal> {
    let id = steerable(ask, who).await?.id;
    let (by, note) = (who.user.clone(), note.map(Into::into));
    ask.engine().execute_one(TriggerCommand::Pause { id, by, note }.into()).await??;
    found(ask, id, who).await
}

/// Has the trigger of the path go on.
pub(crate) async fn resume(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    let entity = steerable(ask, who).await?;
    let (owner, spec) = ((&entity.tenant, &entity.owner), &body(&entity)?.spec);
    // What cannot be seen now is compared with what was seen before.
    let sights = ask.engine().trigger_sights(owner, spec).await?.unwrap_or_default();
    ask.engine().execute_one(TriggerCommand::Resume { id: entity.id, sights }.into()).await??;
    found(ask, entity.id, who).await
}

/// A page of triggers.
pub(crate) struct Found {
    pub(crate) entities: Vec<Entity>,
    pub(crate) next: Option<String>,
    /// How many there are in all, up to a bound; nobody counts them for a glance.
    pub(crate) total: Option<usize>,
}

/// The page that a query asks for; the names of its parameters are the contract's.
pub(crate) async fn list(ask: &Ask, who: &Principal, query: &Query) -> Result<Found, Refusal> {
    let state = query.get("status");
    if state.is_some_and(|state| !Status::NAMES.contains(&state)) {
        return Err(refusal::invalid("status", "must be active or paused"));
    }
    let kind = query.get("type");
    if kind.is_some_and(|kind| TriggerType::parse(kind).is_none()) {
        return Err(refusal::invalid("type", "must be recurring, scheduled or conditional"));
    }
    let filter = EntityFilter {
        state: state.map(str::to_owned),
        field: kind.map(|kind| ("type".to_owned(), kind.to_owned())),
        ..EntityFilter::of(Kind::Trigger, auth::scope(who))
    };
    let list = digest(&[b"triggers", &filter.term().0.to_be_bytes()]);
    let before = match query.get("cursor") {
        Some(text) => {
            let bits = cursor::read(list, text).ok_or_else(refusal::cursor_invalid)?;
            Some(EntityId { kind: Kind::Trigger, bits })
        }
        None => None,
    };
    let page = ask.engine().entities(&filter, before, query.limit()?).await?;
    let total = match (before, page.next) {
        (None, None) => Some(page.items.len()),
        _ if ask.is_glance => None,
        _ => Some(ask.engine().count_entities(&filter, TOTAL_MAX + 1).await?),
    };
    let next = page.next.map(|next| cursor::write(list, next.bits));
    Ok(Found { entities: page.items, next, total })
}

/// Looks at the trigger of the path as if it were its turn, and changes nothing.
pub(crate) async fn explain(
    ask: &Ask,
    who: &Principal,
) -> Result<api::trigger::TriggerExplanation, Refusal> {
    let entity = visible(ask, who).await?;
    let trigger = body(&entity)?;
    let owner = (&entity.tenant, &entity.owner);
    let seen = ask.engine().trigger_sights(owner, &trigger.spec).await?;
    let ways = ask.engine().trigger_ways(entity.id).await;
    let now = ask.engine().now();
    let sights = seen.unwrap_or_default();
    let (found, outcome) = foreseen(trigger, &sights, now);
    Ok(view::explanation(&entity, trigger, view::Look { found, outcome, ways, at: now }))
}

/// What a look at a trigger comes to.
fn foreseen(
    trigger: &Trigger,
    sights: &[Sight],
    now: Timestamp,
) -> (Option<mainspring_kernel::entity::trigger::Evaluated>, Outcome) {
    let spec = &trigger.spec;
    if let Some(condition) = spec.watched_condition() {
        let found = mainspring_kernel::entity::trigger::evaluate(
            condition,
            &trigger.leaves,
            sights,
            spec.rules(),
            now,
        );
        let outcome = trigger.comes_to(&found, now).0;
        return (Some(found), outcome);
    }
    let is_due = trigger.next_run_at.is_some_and(|next| next <= now);
    let outcome = match (trigger.outstanding, is_due) {
        (Some(_), _) => Outcome::Running,
        (None, true) => Outcome::Due,
        (None, false) => Outcome::NotYet,
    };
    (None, outcome)
}

//! Subscriptions: who outside is told of what happens to jobs. Telling them is the executor's.

use super::filters::{self, Total};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::auth;
use crate::cursor;
use crate::json;
use crate::limits::{POSITION_MAX, SUBSCRIPTIONS_PER_TENANT_MAX};
use crate::refusal::{self, Refusal};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::access::Sight;
use mainspring_kernel::entity::subscription::{
    EventName, Filter, SigningSecret, Subscription, SubscriptionCommand, SubscriptionSpec, Target,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::limits::SUBSCRIPTION_OVERLAP_MS_DEFAULT;
use mainspring_kernel::{Entity, EntityId, JobType, Principal, QueueName, Rejection, Timestamp};
use std::time::Duration;

/// The parameters of the list.
pub(super) const FILTERS: [(&str, &str); 3] =
    [("status", "Only those in this state."), filters::PAGE[0], filters::PAGE[1]];

/// A position no store reaches, which every store can write down.
const BEYOND: u64 = i64::MAX as u64;

pub(super) async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: api::subscription::CreateSubscription = json::read(json::check(&ask.body)?)?;
    let spec = spec(&wire, &who)?;
    room(&ask, &who).await?;
    let newest = newest(&ask).await?;
    let position = wire.after.unwrap_or(newest);
    if position > newest {
        let why = format_args!("must be a position that was reached, at most {newest}");
        return Err(refusal::invalid("after", why));
    }
    let secret = match spec.target {
        Target::Webhook { .. } => Some(fresh_secret(&ask)),
        Target::Nats { .. } | Target::Consumer { .. } => None,
    };
    let id = EntityId { kind: Kind::Subscription, bits: ask.engine().fresh_id() };
    let after = serde_json::json!({ "name": spec.name, "target": spec.target.kind() });
    let command = SubscriptionCommand::Create {
        id,
        tenant: who.tenant.clone(),
        owner: who.user.clone(),
        spec: Box::new(spec),
        secret: secret.clone(),
        position,
    };
    let note = Note { after: Some(after), ..note("subscription.create", id) };
    change(&ask, &who, command, note).await?;
    let made = shown(&ask, &found(&ask, id, &who).await?, secret).await?;
    Ok(Reply::status_data(StatusCode::CREATED, &made))
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&FILTERS.map(|(name, _)| name))?;
    let state = query.get("status");
    if state.is_some_and(|state| !Subscription::STATES.contains(&state)) {
        return Err(refusal::invalid("status", "must be active, failing or paused"));
    }
    let filter = EntityFilter {
        state: state.map(str::to_owned),
        ..EntityFilter::of(Kind::Subscription, scope(&who))
    };
    let place = digest(&[b"subscriptions", &filter.term().0.to_be_bytes()]);
    let before =
        filters::before(&query, place)?.map(|bits| EntityId { kind: Kind::Subscription, bits });
    let page = ask.engine().entities(&filter, before, query.limit()?).await?;
    let whole = (before.is_none() && page.next.is_none()).then_some(page.items.len());
    let count = ask.engine().count_entities(&filter, filters::COUNTED);
    let Total { exact: total, at_least: total_at_least } =
        filters::total(&ask, whole, count).await?;
    let newest = newest(&ask).await?;
    let items =
        page.items.iter().map(|entity| view(entity, newest, None)).collect::<Result<_, _>>()?;
    let next_cursor = page.next.map(|next| cursor::write(place, next.bits));
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least }))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = visible(&ask, &who).await?;
    Ok(Reply::data(&shown(&ask, &entity, None).await?))
}

pub(super) async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::subscription::PauseSubscription = match ask.body.is_empty() {
        true => api::subscription::PauseSubscription::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let id = visible(&ask, &who).await?.id;
    let note = Note { reason: wish.note.clone(), ..note("subscription.pause", id) };
    let (by, words) = (Some(who.user.clone()), wish.note.map(Into::into));
    change(&ask, &who, SubscriptionCommand::Pause { id, by, note: words }, note).await?;
    answer(&ask, &who, id, None).await
}

pub(super) async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let id = visible(&ask, &who).await?.id;
    let note = note("subscription.resume", id);
    change(&ask, &who, SubscriptionCommand::Resume { id }, note).await?;
    answer(&ask, &who, id, None).await
}

pub(super) async fn rotate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::subscription::RotateSecret = match ask.body.is_empty() {
        true => api::subscription::RotateSecret::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let id = visible(&ask, &who).await?.id;
    let overlap_ms = wish
        .overlap_seconds
        .map_or(SUBSCRIPTION_OVERLAP_MS_DEFAULT, |secs| secs.saturating_mul(1_000));
    let secret = fresh_secret(&ask);
    let note = note("subscription.rotate_secret", id);
    let command = SubscriptionCommand::Rotate { id, secret: secret.clone(), overlap_ms };
    change(&ask, &who, command, note).await?;
    answer(&ask, &who, id, Some(secret)).await
}

pub(super) async fn remove(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = visible(&ask, &who).await?;
    let before = view(&entity, 0, None)?;
    let before = serde_json::json!({ "name": before.name, "target": before.target });
    let note = Note { before: Some(before), ..note("subscription.delete", entity.id) };
    change(&ask, &who, SubscriptionCommand::Remove { id: entity.id }, note).await?;
    Ok(Reply::data(&api::subscription::RemovedSubscription {
        subscription_id: entity.id.to_string(),
        status: "deleted".to_owned(),
    }))
}

fn note(action: &'static str, id: EntityId) -> Note {
    Note { action, object_type: "subscription", object_id: id.to_string(), ..Note::default() }
}

/// Makes a change, with its line in the audit trail, and wakes whoever goes by it.
async fn change(
    ask: &Ask,
    who: &Principal,
    command: SubscriptionCommand,
    note: Note,
) -> Result<(), Refusal> {
    audit::change(ask, who, command.into(), note).await?;
    ask.engine().ring_bus();
    Ok(())
}

async fn answer(
    ask: &Ask,
    who: &Principal,
    id: EntityId,
    secret: Option<SigningSecret>,
) -> Result<Reply, Refusal> {
    let entity = found(ask, id, who).await?;
    Ok(Reply::data(&shown(ask, &entity, secret).await?))
}

/// Subscriptions are a tenant's, not a user's.
fn scope(who: &Principal) -> Scope {
    match auth::scope(who) {
        Scope::All => Scope::All,
        Scope::Tenant(tenant) | Scope::User(tenant, _) => Scope::Tenant(tenant),
    }
}

/// The subscription of the path, if the caller may see it. Nonsense, unknown and foreign ids are
/// one case.
async fn visible(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    match EntityId::parse(Kind::Subscription, ask.param()) {
        Ok(id) => found(ask, id, who).await,
        Err(_) => Err(unknown(who)),
    }
}

async fn found(ask: &Ask, id: EntityId, who: &Principal) -> Result<Entity, Refusal> {
    let (entity, scope) = (ask.engine().entity(id).await?, scope(who));
    let entity = entity.filter(|entity| scope.covers(&entity.tenant, &entity.owner));
    entity.ok_or_else(|| unknown(who))
}

fn unknown(who: &Principal) -> Refusal {
    match who.is_admin() {
        true => Rejection::EntityUnknown { kind: Kind::Subscription }.into(),
        false => refusal::denied(),
    }
}

/// Refuses if the tenant has as many as it may.
async fn room(ask: &Ask, who: &Principal) -> Result<(), Refusal> {
    let tenant = EntityFilter::of(Kind::Subscription, Scope::Tenant(who.tenant.clone()));
    let known = ask.engine().count_entities(&tenant, SUBSCRIPTIONS_PER_TENANT_MAX).await?;
    match known >= SUBSCRIPTIONS_PER_TENANT_MAX {
        true => Err(refusal::too_many_subscriptions(SUBSCRIPTIONS_PER_TENANT_MAX)),
        false => Ok(()),
    }
}

async fn newest(ask: &Ask) -> Result<u64, Refusal> {
    Ok(ask.engine().moves_after(BEYOND, 1, Duration::ZERO).await?.newest)
}

fn fresh_secret(ask: &Ask) -> SigningSecret {
    let mut bytes = [0; 32];
    let (one, two) = bytes.split_at_mut(16);
    one.copy_from_slice(&ask.engine().fresh_bits().to_be_bytes());
    two.copy_from_slice(&ask.engine().fresh_bits().to_be_bytes());
    SigningSecret(bytes)
}

/// What is asked for, as far as the caller may ask for it.
fn spec(
    wire: &api::subscription::CreateSubscription,
    who: &Principal,
) -> Result<SubscriptionSpec, Refusal> {
    let is_of_all = who.sight() == Sight::Everything;
    let target = match (&wire.url, &wire.nats_subject) {
        (Some(url), None) => Target::Webhook { url: url.as_str().into() },
        // Subjects are not divided by tenant: who may choose one could speak for another.
        (None, Some(_)) if !is_of_all => return Err(refusal::denied()),
        (None, Some(subject)) => Target::Nats { subject: subject.as_str().into() },
        (Some(_), Some(_)) | (None, None) => {
            return Err(refusal::invalid("url", "or nats_subject must be given, and not both"));
        }
    };
    if wire.after.is_some_and(|after| after > POSITION_MAX) {
        return Err(refusal::invalid("after", format_args!("must be at most {POSITION_MAX}")));
    }
    let empty = api::subscription::SubscriptionFilter::default();
    let api::subscription::SubscriptionFilter { types, queues, all_tenants } =
        wire.filter.as_ref().unwrap_or(&empty);
    if *all_tenants && !is_of_all {
        return Err(refusal::denied());
    }
    let event = |name: &String| {
        EventName::parse(name).ok_or_else(|| refusal::invalid("events", "has an unknown name"))
    };
    let job_type =
        |name: &String| JobType::new(name).map_err(|bad| refusal::invalid("filter.types", bad));
    let queue =
        |name: &String| QueueName::new(name).map_err(|bad| refusal::invalid("filter.queues", bad));
    Ok(SubscriptionSpec {
        name: wire.name.as_str().into(),
        target,
        filter: Filter {
            events: wire.events.iter().flatten().map(event).collect::<Result<_, _>>()?,
            types: types.iter().map(job_type).collect::<Result<_, _>>()?,
            queues: queues.iter().map(queue).collect::<Result<_, _>>()?,
            is_for_all: *all_tenants,
        },
    })
}

async fn shown(
    ask: &Ask,
    entity: &Entity,
    secret: Option<SigningSecret>,
) -> Result<api::subscription::Subscription, Refusal> {
    view(entity, newest(ask).await?, secret)
}

fn view(
    entity: &Entity,
    newest: u64,
    secret: Option<SigningSecret>,
) -> Result<api::subscription::Subscription, Refusal> {
    let Body::Subscription(it) = &entity.body else { return Err(refusal::internal()) };
    let Filter { events, types, queues, is_for_all } = &it.spec.filter;
    let (url, nats_subject) = match &it.spec.target {
        Target::Webhook { url } => (Some(url.to_string()), None),
        Target::Nats { subject } => (None, Some(subject.to_string())),
        Target::Consumer { .. } => (None, None),
    };
    let time = |at: Timestamp| api::Time(at.0);
    let gap = |gap: &mainspring_kernel::entity::subscription::Gap| {
        api::subscription::SubscriptionGap { from: gap.from, to: gap.to, at: time(gap.at) }
    };
    Ok(api::subscription::Subscription {
        subscription_id: entity.id.to_string(),
        name: it.spec.name.to_string(),
        target: it.spec.target.kind().to_owned(),
        url,
        nats_subject,
        events: events.iter().map(|event| event.as_str().to_owned()).collect(),
        filter: api::subscription::SubscriptionFilter {
            types: types.iter().map(ToString::to_string).collect(),
            queues: queues.iter().map(ToString::to_string).collect(),
            all_tenants: *is_for_all,
        },
        status: it.state().to_owned(),
        tenant_id: entity.tenant.to_string(),
        user_id: entity.owner.to_string(),
        position: it.position,
        lag: newest.saturating_sub(it.position),
        delivered_count: it.delivered,
        failed_count: it.failed,
        consecutive_failures: it.failures,
        last_delivered_at: it.delivered_at.map(time),
        last_error: it.trouble.as_ref().map(|trouble| trouble.message.to_string()),
        last_error_at: it.trouble.as_ref().map(|trouble| time(trouble.at)),
        missed_count: it.missed,
        gaps: it.gaps.iter().map(gap).collect(),
        paused_by: it.pause.as_ref().and_then(|pause| pause.by.as_ref()).map(ToString::to_string),
        pause_note: it.pause.as_ref().and_then(|pause| pause.note.as_deref()).map(str::to_owned),
        former_secret_until: it.former.as_ref().map(|former| time(former.until)),
        created_at: time(entity.created_at),
        updated_at: time(entity.updated_at),
        version: entity.version,
        secret: secret.map(|secret| format!("whsec_{}", STANDARD.encode(secret.0))),
    })
}

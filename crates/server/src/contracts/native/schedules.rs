//! Schedules: making, reading, changing, pausing; firing by hand; what they will do and have done.
//! `schedules/translate.rs` reads wishes, `schedules/view.rs` shows schedules; both are pure.

mod translate;
mod view;

use super::filters::{self, Total};
use crate::answer::Reply;
use crate::ask::{Ask, Query};
use crate::audit;
use crate::auth;
use crate::cursor;
use crate::json;
use crate::limits::{BACKFILL_DEFAULT, PREVIEW_DEFAULT, PREVIEW_MAX};
use crate::refusal::{self, Refusal};
use crate::schedules;
use hyper::StatusCode;
use hyper::header::ACCEPT_LANGUAGE;
use mainspring_api as api;
use mainspring_engine::Backfilled;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::calendar::Language;
use mainspring_kernel::entity::schedule::{Schedule, ScheduleCommand, ScheduleSpec, Status};
use mainspring_kernel::entity::{Body, Entity, EntityId, Kind};
use mainspring_kernel::fingerprint::{Digest, digest};
use mainspring_kernel::limits::BACKFILL_MAX;
use mainspring_kernel::{Command, JobType, Principal, Rejection, Timestamp, UserId};

/// The parameters of the list.
pub(super) const FILTERS: [(&str, &str); 5] = [
    ("status", "Only those in this state."),
    ("job_type", "Only those that make jobs of this type."),
    ("owner", "Only those of this user; for an admin, of the tenant that is acted in."),
    filters::PAGE[0],
    filters::PAGE[1],
];

/// The parameters of a preview.
pub(super) const PREVIEW: [(&str, &str); 2] = [
    ("count", "How many firings, 1 to 100; 10 if left out."),
    ("from", "Firings from this instant on; from now on if left out. RFC 3339."),
];

pub(super) async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let spec = translate::spec(&json::read(json::check(&ask.body)?)?)?;
    let id = schedules::make(&ask, &who, spec).await?;
    let made = found(&ask, id, &who).await?;
    Ok(Reply::status_data(StatusCode::CREATED, &shown(&ask, &made)?))
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&FILTERS.map(|(name, _)| name))?;
    let Some(filter) = filter(&query, &who)? else {
        return Ok(Reply::data(&api::Page::<api::schedule::Schedule>::whole(Vec::new())));
    };
    let list = bound(&filter);
    let before = filters::before(&query, list)?;
    let before = before.map(|bits| EntityId { kind: Kind::Schedule, bits });
    let page = ask.engine().entities(&filter, before, query.limit()?).await?;
    let whole = (before.is_none() && page.next.is_none()).then_some(page.items.len());
    let count = ask.engine().count_entities(&filter, filters::COUNTED);
    let Total { exact: total, at_least: total_at_least } =
        filters::total(&ask, whole, count).await?;
    let items = page.items.iter().map(|entity| shown(&ask, entity)).collect::<Result<_, _>>()?;
    let next_cursor = page.next.map(|next| cursor::write(list, next.bits));
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least }))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = visible(&ask, &who).await?;
    Ok(Reply::data(&shown(&ask, &entity)?))
}

pub(super) async fn update(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    // What is wrong with the wish is told before whether the schedule exists.
    let spec = Box::new(translate::spec(&json::read(json::check(&ask.body)?)?)?);
    let id = steerable(&ask, &who).await?.id;
    step(&ask, &who, id, ScheduleCommand::Update { id, spec }).await
}

pub(super) async fn remove(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let id = steerable(&ask, &who).await?.id;
    let command = ScheduleCommand::Remove { id }.into();
    audit::change(&ask, &who, command, audit::of_schedule("schedule.remove", id)).await?;
    let left = ask.engine().entity(id).await?;
    let status = left.as_ref().map_or("deleted", Entity::state).to_owned();
    Ok(Reply::data(&api::schedule::RemovedSchedule { schedule_id: id.to_string(), status }))
}

pub(super) async fn pause(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::schedule::PauseSchedule = match ask.body.is_empty() {
        true => api::schedule::PauseSchedule::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let id = steerable(&ask, &who).await?.id;
    let (by, note) = (who.user.clone(), wish.note.map(Into::into));
    step(&ask, &who, id, ScheduleCommand::Pause { id, by, note }).await
}

pub(super) async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let id = steerable(&ask, &who).await?.id;
    step(&ask, &who, id, ScheduleCommand::Resume { id }).await
}

pub(super) async fn stop(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let id = steerable(&ask, &who).await?.id;
    step(&ask, &who, id, ScheduleCommand::Stop { id }).await
}

pub(super) async fn trigger(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let id = steerable(&ask, &who).await?.id;
    let job_id = ask.engine().trigger(id).await??.to_string();
    let answer = api::schedule::Triggered { job_id };
    Ok(Reply::status_data(StatusCode::ACCEPTED, &answer))
}

pub(super) async fn backfill(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::schedule::Backfill = json::read(json::check(&ask.body)?)?;
    let limit = wish.limit.map_or(BACKFILL_DEFAULT, |limit| limit as usize);
    if !(1..=BACKFILL_MAX).contains(&limit) {
        let reason = format_args!("must be between 1 and {BACKFILL_MAX}");
        return Err(refusal::invalid("limit", reason));
    }
    if wish.to < wish.from {
        return Err(refusal::invalid("to", "must not be before from"));
    }
    let entity = steerable(&ask, &who).await?;
    let now = ask.engine().now();
    if wish.to.0 > now.0 {
        return Err(refusal::invalid("to", "must not lie in the future"));
    }
    let before = Timestamp(wish.from.0.saturating_sub(1));
    let (from, to) = (Timestamp(wish.from.0), Timestamp(wish.to.0));
    // One more than is filled in says where to go on.
    let firings = schedule(&entity)?.spec.firings(before, to, limit + 1);
    let filled = ask.engine().backfill(entity.id, (from, to), limit).await??;
    let items: Vec<_> = filled.into_iter().map(backfilled).collect();
    let fired = items.iter().filter(|item| item.outcome == BACKFILLED).count();
    Ok(Reply::data(&api::schedule::Backfilled {
        fired: u32::try_from(fired).unwrap_or(u32::MAX),
        items,
        next_from: firings.get(limit).map(|at| api::Time(at.0)),
    }))
}

const BACKFILLED: &str = "backfilled";

fn backfilled(filled: Backfilled) -> api::schedule::BackfilledItem {
    let (word, job_id, error) = match filled.outcome {
        Ok((job, true)) => (BACKFILLED, Some(job.to_string()), None),
        Ok((job, false)) => ("existing", Some(job.to_string()), None),
        Err(rejection) => {
            let (code, message) = (rejection.code().to_owned(), rejection.to_string());
            ("refused", None, Some(api::ErrorCode { code, message }))
        }
    };
    let fire_at = api::Time(filled.at.0);
    api::schedule::BackfilledItem { fire_at, outcome: word.to_owned(), job_id, error }
}

pub(super) async fn preview(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let (count, from) = preview_of(&ask)?;
    let entity = visible(&ask, &who).await?;
    let schedule = schedule(&entity)?;
    let is_over = matches!(schedule.status, Status::Stopped | Status::Ended);
    let left = schedule.spec.max_runs.map(|most| most.saturating_sub(schedule.runs));
    let count = if is_over && from.is_none() { 0 } else { count };
    Ok(Reply::data(&foreseen(&ask, &schedule.spec, (count, from), left)))
}

pub(super) async fn preview_unsaved(ask: Ask, _who: Principal) -> Result<Reply, Refusal> {
    let wanted = preview_of(&ask)?;
    let spec = translate::spec(&json::read(json::check(&ask.body)?)?)?;
    let left = spec.max_runs;
    Ok(Reply::data(&foreseen(&ask, &spec, wanted, left)))
}

fn preview_of(ask: &Ask) -> Result<(usize, Option<Timestamp>), Refusal> {
    let query = ask.query(&PREVIEW.map(|(name, _)| name))?;
    let count = query.number("count")?.unwrap_or(PREVIEW_DEFAULT as u64);
    if !(1..=PREVIEW_MAX as u64).contains(&count) {
        return Err(refusal::invalid("count", format_args!("must be between 1 and {PREVIEW_MAX}")));
    }
    let from = query.get("from").map(str::parse::<api::Time>).transpose();
    let from = from.map_err(|bad| refusal::invalid("from", bad))?;
    Ok((count as usize, from.map(|time| Timestamp(time.0))))
}

/// The firings from an instant on, or those to come; of the latter no more than are left.
fn foreseen(
    ask: &Ask,
    spec: &ScheduleSpec,
    (count, from): (usize, Option<Timestamp>),
    left: Option<u32>,
) -> api::schedule::Preview {
    let (after, count) = match from {
        Some(from) => (Timestamp(from.0.saturating_sub(1)), count),
        None => (ask.engine().now(), count.min(left.map_or(count, |left| left as usize))),
    };
    let firings = spec.firings(after, Timestamp::MAX, count);
    view::preview(spec, &firings, language(ask))
}

pub(super) async fn history(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = visible(&ask, &who).await?;
    Ok(Reply::data(&view::history(schedule(&entity)?)))
}

/// Does what was asked and answers with the schedule as it then is.
async fn step(
    ask: &Ask,
    who: &Principal,
    id: EntityId,
    command: ScheduleCommand,
) -> Result<Reply, Refusal> {
    let command = Command::from(command);
    let note = audit::of_schedule(command.name(), id);
    audit::change(ask, who, command, note).await?;
    Ok(Reply::data(&shown(ask, &found(ask, id, who).await?)?))
}

/// The schedule of the path, if the caller may see it. Nonsense, unknown and foreign ids are one
/// case.
async fn visible(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    match EntityId::parse(Kind::Schedule, ask.param()) {
        Ok(id) => found(ask, id, who).await,
        Err(_) => Err(unseen(who)),
    }
}

async fn found(ask: &Ask, id: EntityId, who: &Principal) -> Result<Entity, Refusal> {
    let entity = ask.engine().entity(id).await?;
    let scope = auth::scope(who);
    let entity = entity.filter(|entity| scope.covers(&entity.tenant, &entity.owner));
    entity.ok_or_else(|| unseen(who))
}

async fn steerable(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    let entity = visible(ask, who).await?;
    match who.can_steer(&entity.tenant, &entity.owner) {
        true => Ok(entity),
        false => Err(refusal::denied()),
    }
}

fn unseen(who: &Principal) -> Refusal {
    match who.is_admin() {
        true => Rejection::EntityUnknown { kind: Kind::Schedule }.into(),
        false => refusal::denied(),
    }
}

fn schedule(entity: &Entity) -> Result<&Schedule, Refusal> {
    if let Body::Schedule(schedule) = &entity.body {
        Ok(schedule)
    } else {
        Err(refusal::internal())
    }
}

fn shown(ask: &Ask, entity: &Entity) -> Result<api::schedule::Schedule, Refusal> {
    Ok(view::schedule(entity, schedule(entity)?, language(ask)))
}

/// The language that the caller likes best, of those that there are.
fn language(ask: &Ask) -> Language {
    let wanted = ask.header(ACCEPT_LANGUAGE.as_str()).unwrap_or_default().trim_start();
    let is_chinese = wanted.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("zh"));
    if is_chinese { Language::Chinese } else { Language::English }
}

/// What the parameters of a list ask for; `None` if the caller can see nothing of it.
fn filter(query: &Query, who: &Principal) -> Result<Option<EntityFilter>, Refusal> {
    let state = query.get("status");
    if state.is_some_and(|state| !Status::NAMES.contains(&state)) {
        return Err(refusal::invalid("status", "is not a state of a schedule"));
    }
    let job_type = query.get("job_type").map(JobType::new).transpose();
    let job_type = job_type.map_err(|bad| refusal::invalid("job_type", bad))?;
    let owner = query.get("owner").map(UserId::new).transpose();
    let owner = owner.map_err(|bad| refusal::invalid("owner", bad))?;
    let mut scope = auth::scope(who);
    if let Some(owner) = owner {
        if !scope.covers(&who.tenant, &owner) {
            return Ok(None);
        }
        scope = Scope::User(who.tenant.clone(), owner);
    }
    Ok(Some(EntityFilter {
        state: state.map(str::to_owned),
        field: job_type.map(|name| ("job_type".to_owned(), name.to_string())),
        ..EntityFilter::of(Kind::Schedule, scope)
    }))
}

/// What a cursor is bound to: the one number of everything that is asked for.
fn bound(filter: &EntityFilter) -> Digest {
    digest(&[b"schedules", &filter.term().0.to_be_bytes()])
}

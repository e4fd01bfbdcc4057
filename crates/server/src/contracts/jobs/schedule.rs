//! Schedules of this contract: by interval or by a cron expression in UTC, in the user's own
//! namespace; and the system's, which are made from templates and are an admin's business.

use super::system::{for_admins, status};
use super::wire::{
    OrchestrationCron, OrchestrationInterval, OrchestrationRecovered, OrchestrationRecovery,
    OrchestrationRecoverySummary, OrchestrationSchedule, OrchestrationSchedules,
    OrchestrationTemplate, OrchestrationTemplates,
};
use super::{errors, translate, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit;
use crate::cursor;
use crate::json;
use crate::limits::{PAGE_MAX, SCHEDULES_PAGE_MAX};
use crate::refusal::{self, Refusal};
use crate::route::table::SUBMITTERS;
use crate::schedules;
use crate::templates;
use hyper::header::HeaderValue;
use mainspring_engine::schedules::template_id;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::calendar::{Cron, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::entity::schedule::{ScheduleCommand, ScheduleSpec, Status};
use mainspring_kernel::entity::{Body, Entity, EntityId, Kind};
use mainspring_kernel::{Principal, Rejection};

/// What a list can be asked for.
pub(super) const LIST: [(&str, &str); 2] = [
    ("limit", "How many entries at most, 1 to 1000; 1000 if left out."),
    ("cursor", "Where to go on: `x-next-cursor` of the page before."),
];

pub(super) async fn interval(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    may_steer(&who)?;
    let wish: OrchestrationInterval = json::read(json::check(&ask.body)?)?;
    let rhythm = Rhythm::Interval { every_secs: wish.every_seconds, phase_secs: 0 };
    create(&ask, &who, &wish.task_type, rhythm).await
}

pub(super) async fn cron(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    may_steer(&who)?;
    let wish: OrchestrationCron = json::read(json::check(&ask.body)?)?;
    let cron = Cron::parse(&wish.cron_expr).map_err(|bad| errors::bad_cron(&bad))?;
    let (gap, fold) = (Gap::default(), Fold::default());
    create(&ask, &who, &wish.task_type, Rhythm::Cron { cron, zone: Zone::UTC, gap, fold }).await
}

async fn create(
    ask: &Ask,
    who: &Principal,
    task_type: &str,
    rhythm: Rhythm,
) -> Result<Reply, Refusal> {
    let spec = ScheduleSpec::plain(translate::task_type(task_type)?, rhythm);
    let id = schedules::make(ask, who, spec).await?;
    after(ask, who, id).await
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&LIST.map(|(name, _)| name))?;
    let list = translate::schedule_list(&who);
    let read = |text: &str| cursor::read(list, text).ok_or_else(refusal::cursor_invalid);
    let before = query.get("cursor").map(read).transpose()?;
    let entity = |bits| EntityId { kind: Kind::Schedule, bits };
    let scope = Scope::User(who.tenant.clone(), who.user.clone());
    let filter = EntityFilter::of(Kind::Schedule, scope);
    let limit = translate::limit(&query, SCHEDULES_PAGE_MAX)?;
    let (mut items, mut before) = (Vec::new(), before.map(entity));
    loop {
        let most = PAGE_MAX.min(limit - items.len());
        let page = ask.engine().entities(&filter, before, most).await?;
        items.extend(page.items.iter().filter_map(shown));
        before = page.next;
        if before.is_none() || items.len() >= limit {
            break;
        }
    }
    let runtime = status(&ask, &who).await?;
    let reply = view::data(&OrchestrationSchedules { items, runtime });
    let next = before.map(|before| HeaderValue::try_from(cursor::write(list, before.bits)));
    Ok(match next {
        Some(Ok(next)) => reply.with_value(super::job::NEXT_CURSOR, next),
        Some(Err(_)) | None => reply,
    })
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = visible(&ask, &who).await?;
    let schedule = shown(&entity).ok_or_else(|| unseen(&who))?;
    Ok(view::data(&schedule))
}

/// Ends a schedule for good. A second time changes nothing.
pub(super) async fn stop(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = visible(&ask, &who).await?;
    if !who.can_steer(&entity.tenant, &entity.owner) {
        return Err(errors::schedule_denied());
    }
    let command = ScheduleCommand::Stop { id: entity.id }.into();
    let note = audit::of_schedule("schedule.stop", entity.id);
    audit::change(&ask, &who, command, note).await?;
    after(&ask, &who, entity.id).await
}

pub(super) async fn templates(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    for_admins(&who)?;
    let config = &ask.app.config;
    let mut items = Vec::with_capacity(config.templates.list.len());
    for template in &config.templates.list {
        let id = template_id(&config.templates.tenant, &template.name);
        let found = ask.engine().entity(id).await?;
        let schedule = found.as_ref().and_then(shown);
        let (kind, expression) = rhythm(&template.spec.rhythm);
        items.push(OrchestrationTemplate {
            template_id: template.name.clone(),
            task_type: template.spec.job_type.to_string(),
            schedule_type: kind.to_owned(),
            expression,
            registered: schedule.is_some(),
            schedule_id: schedule.as_ref().map(|schedule| schedule.id.clone()),
            schedule_status: schedule.map(|schedule| schedule.status),
        });
    }
    let runtime = status(&ask, &who).await?;
    Ok(view::data(&OrchestrationTemplates { items, runtime }))
}

/// Makes sure that the schedule of every template is there.
pub(super) async fn recover(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    for_admins(&who)?;
    let ensured = templates::ensure(ask.engine(), &ask.app.config.templates).await?;
    let ensured = ensured.map_err(|(_, rejection)| rejection)?;
    let created = ensured.iter().filter(|it| it.is_new).count() as u64;
    let total = ensured.len() as u64;
    let items = ensured.into_iter().map(|it| OrchestrationRecovered {
        template_id: it.name,
        schedule_id: it.id.to_string(),
        status: if it.is_new { "created" } else { "deduplicated" }.to_owned(),
    });
    let items = items.collect();
    let deduplicated = total - created;
    let summary = OrchestrationRecoverySummary { total, created, deduplicated, items };
    let runtime = status(&ask, &who).await?;
    Ok(view::data(&OrchestrationRecovery { summary, runtime }))
}

fn may_steer(who: &Principal) -> Result<(), Refusal> {
    if who.roles.any(SUBMITTERS) { Ok(()) } else { Err(errors::schedule_denied()) }
}

async fn after(ask: &Ask, who: &Principal, id: EntityId) -> Result<Reply, Refusal> {
    let found = ask.engine().entity(id).await?;
    let schedule = found.as_ref().and_then(shown).ok_or_else(|| unseen(who))?;
    Ok(view::data(&schedule))
}

/// The schedule of the path, if the caller may see it. Nonsense, unknown and foreign are one case.
async fn visible(ask: &Ask, who: &Principal) -> Result<Entity, Refusal> {
    let found = match EntityId::parse(Kind::Schedule, ask.param()) {
        Ok(id) => ask.engine().entity(id).await?,
        Err(_) => None,
    };
    let seen = found.filter(|entity| who.can_see(&entity.tenant, &entity.owner));
    seen.ok_or_else(|| unseen(who))
}

fn unseen(who: &Principal) -> Refusal {
    match who.is_admin() {
        true => Rejection::EntityUnknown { kind: Kind::Schedule }.into(),
        false => errors::schedule_denied(),
    }
}

/// A schedule as this contract shows it: it fires, or it does not.
fn shown(entity: &Entity) -> Option<OrchestrationSchedule> {
    let Body::Schedule(schedule) = &entity.body else { return None };
    let (kind, expression) = rhythm(&schedule.spec.rhythm);
    let status = match schedule.status {
        Status::Active => "active",
        Status::Paused(_) | Status::Stopped | Status::Ended => "stopped",
    };
    Some(OrchestrationSchedule {
        id: entity.id.to_string(),
        user_id: entity.owner.to_string(),
        namespace: schedule.namespace.to_string(),
        task_type: schedule.spec.job_type.to_string(),
        schedule_type: kind.to_owned(),
        expression,
        status: status.to_owned(),
        created_at: mainspring_api::Time(entity.created_at.0),
        updated_at: mainspring_api::Time(entity.updated_at.0),
    })
}

/// The kind of a rhythm, and how it is written.
fn rhythm(rhythm: &Rhythm) -> (&'static str, String) {
    match rhythm {
        Rhythm::At(at) => ("at", mainspring_api::Time(at.0).to_string()),
        Rhythm::Interval { every_secs, .. } => ("interval", every_secs.to_string()),
        Rhythm::Cron { cron, .. } => ("cron", cron.as_str().to_owned()),
    }
}

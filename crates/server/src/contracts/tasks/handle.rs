//! The handlers: create, read, cancel, move by hand.

use super::translate::{self, Critical, Windows, Wish};
use super::wire::{
    CreateTask, CreatedTask, HitTask, HitUnseen, MoveTask, Task, TaskEvents, UnseenTask,
};
use super::{NAMESPACE, errors, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::json;
use crate::refusal::{self, Refusal};
use crate::write::Out;
use hyper::StatusCode;
use mainspring_engine::store::{JobWithHistory, Scope};
use mainspring_kernel::command::Submit;
use mainspring_kernel::entity::schedule::Schedule;
use mainspring_kernel::entity::{Body, EntityId, Kind};
use mainspring_kernel::firing;
use mainspring_kernel::idempotency::alias_hash;
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::view::tasks;
use mainspring_kernel::{Command, Job, JobId, Principal, Rejection};
use serde::Serialize;

pub(super) async fn create(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish = {
        let wire: CreateTask = json::read(json::check(&ask.body)?)?;
        let config = &ask.app.config;
        let windows =
            Windows { key_secs: config.key_window_secs, name_secs: config.name_window_secs };
        let schedule = EntityId { kind: Kind::Schedule, bits: ask.engine().fresh_id() };
        translate::wish(&wire, &who, ask.trace.as_deref(), windows, schedule)?
    };
    ask.let_go_of_body();
    let Wish { submit, critical, alias, key } = wish;
    // Not enough to make a task may be enough to ask for one that there is, and a plan that there
    // is needs no more room.
    if submit.as_ref().map_or(true, |submit| submit.plan.is_some())
        && let Some(found) = known(&ask, &who, &alias, key.as_ref()).await?
    {
        return hit(&ask, &who, &found, &critical).await;
    }
    let submit = Submit { traceparent: ask.traceparent(), ..submit? };
    if submit.plan.is_some() {
        ask.room_for_a_schedule(&who).await?;
    }
    let submitted = match ask.engine().submit(submit).await? {
        Ok(submitted) => submitted,
        Err(Rejection::KeysDisagree) => {
            let named = ask.engine().job_of_key(alias.hash, &auth::scope(&who)).await?;
            return Err(disagreed(&ask, &who, named.map(|named| named.job)));
        }
        Err(rejection) => return Err(rejection.into()),
    };
    if submitted.is_hit {
        return hit(&ask, &who, &submitted.job, &critical).await;
    }
    let task = shown(&ask, &submitted.job).await?;
    let reply = bare(StatusCode::CREATED, &CreatedTask { idempotent_hit: false, task });
    Ok(reply.with_trace(submitted.job.trace_id()))
}

/// The task that a name or a key leads to.
async fn known(
    ask: &Ask,
    who: &Principal,
    alias: &Idempotency,
    key: Option<&Idempotency>,
) -> Result<Option<Job>, Refusal> {
    let tenant = Scope::Tenant(who.tenant.clone());
    let named = ask.engine().job_of_key(alias.hash, &tenant).await?.map(|found| found.job);
    let keyed = match key {
        Some(key) => ask.engine().job_of_key(key.hash, &tenant).await?.map(|found| found.job),
        None => None,
    };
    match (named, keyed) {
        (Some(named), Some(keyed)) if named.id != keyed.id => Err(disagreed(ask, who, Some(named))),
        (named, keyed) => Ok(named.or(keyed)),
    }
}

/// The answer to a wish for a task that there is.
async fn hit(ask: &Ask, who: &Principal, job: &Job, critical: &Critical) -> Result<Reply, Refusal> {
    let now = ask.engine().now();
    let is_seen = who.can_see_job(job);
    let conflicts = critical.conflicts(job, plan_of(ask, job).await?.as_deref());
    if !conflicts.is_empty() {
        return Err(errors::duplicate(&conflicts, is_seen.then(|| as_value(ask, job))));
    }
    Ok(match is_seen {
        true => {
            let task = view::snapshot(job, now);
            bare(StatusCode::OK, &HitTask { idempotent_hit: true, task })
        }
        // Keys may be shared further than tasks.
        false => {
            let state = tasks::state(job, now).as_str();
            let task = UnseenTask { task_id: view::task_id(job), state };
            bare(StatusCode::OK, &HitUnseen { idempotent_hit: true, task })
        }
    })
}

/// The refusal of an id of one task with the key of another.
fn disagreed(ask: &Ask, who: &Principal, named: Option<Job>) -> Refusal {
    let seen = named.filter(|job| who.can_see_job(job)).map(|job| as_value(ask, &job));
    errors::duplicate(&["task_id", "idempotency_key"], seen)
}

fn as_value(ask: &Ask, job: &Job) -> serde_json::Value {
    let snapshot = view::snapshot(job, ask.engine().now());
    serde_json::to_value(snapshot).expect("our own shapes are JSON")
}

/// A task with everything there is to say about it.
async fn shown(ask: &Ask, job: &Job) -> Result<Task, Refusal> {
    let plan = plan_of(ask, job).await?;
    Ok(view::task(job, plan.as_deref(), ask.engine().now()))
}

/// The schedule of a task that is a plan.
async fn plan_of(ask: &Ask, job: &Job) -> Result<Option<Box<Schedule>>, Refusal> {
    let Some(id) = job.plan() else { return Ok(None) };
    Ok(ask.engine().entity(id).await?.and_then(|entity| {
        if let Body::Schedule(schedule) = entity.body { Some(schedule) } else { None }
    }))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let found = visible(&ask, &who).await?;
    Ok(bare(StatusCode::OK, &shown(&ask, &found.job).await?))
}

pub(super) async fn history(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let JobWithHistory { job, history } = visible(&ask, &who).await?;
    let named = view::Named::of(&job);
    let items = history.iter().flat_map(|step| view::events(job.id, &named, step)).collect();
    Ok(bare(StatusCode::OK, &TaskEvents { items }))
}

pub(super) async fn cancel(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = visible(&ask, &who).await?.job;
    if !who.can_steer(&job.tenant, &job.user) {
        return Err(refusal::denied());
    }
    let command = Command::Cancel { job: job.id, by: who.user.clone(), reason: None };
    moved(&ask, &who, job.id, command).await
}

pub(super) async fn transition(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: MoveTask = json::read(json::check(&ask.body)?)?;
    let job = visible(&ask, &who).await?.job;
    let to = tasks::State::parse(&wish.to_state)
        .ok_or_else(|| errors::field("to_state", "is not a state of a task"))?;
    let from = tasks::state(&job, ask.engine().now());
    let is_start = from == tasks::State::Ready && to == tasks::State::Running;
    if is_start && ask.limit_reached(&job).await?.is_some() {
        return Err(refusal::limit_reached());
    }
    let command = Command::MoveTask { job: job.id, to, by: who.user.clone() };
    moved(&ask, &who, job.id, command).await
}

/// Carries out a command about a task and shows what became of it.
async fn moved(ask: &Ask, who: &Principal, job: JobId, command: Command) -> Result<Reply, Refusal> {
    ask.engine().execute_one(command).await??;
    let after = ask.engine().job(job).await?.ok_or_else(|| unseen(who))?.job;
    Ok(bare(StatusCode::OK, &shown(ask, &after).await?))
}

/// The task of the path, if the caller may see it: by its own name, by that of its plan and its
/// instant, or by the id of its job. Nonsense, unknown and foreign names are one case.
async fn visible(ask: &Ask, who: &Principal) -> Result<JobWithHistory, Refusal> {
    let (id, scope) = (ask.param(), auth::scope(who));
    let named = |id: &str| alias_hash(&who.tenant, NAMESPACE, id);
    let mut found = ask.engine().job_of_key(named(id), &scope).await?;
    if let (None, Some((plan, at))) = (&found, translate::run_of(id)) {
        let plan = ask.engine().job_of_key(named(plan), &scope).await?;
        if let Some(schedule) = plan.and_then(|plan| plan.job.plan()) {
            found = ask.engine().job_of_key(firing::key(schedule, at), &scope).await?;
        }
    }
    if let (None, Ok(id)) = (&found, id.parse::<JobId>()) {
        found = ask.engine().job_within(id, &scope).await?;
    }
    found.ok_or_else(|| unseen(who))
}

/// What whoever asks for a task they cannot see is told.
fn unseen(who: &Principal) -> Refusal {
    if who.is_admin() { refusal::job_unknown() } else { refusal::denied() }
}

/// An answer without an envelope.
fn bare(status: StatusCode, body: &impl Serialize) -> Reply {
    let mut out = Out::sized(1_024);
    out.serde(body);
    Reply::begun(status, out, |_, _| {})
}

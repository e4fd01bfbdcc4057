//! The handlers: create, read, cancel, move by hand.

use super::translate::{self, Critical, Windows, Wish};
use super::wire::{CreateTask, CreatedTask, HitTask, HitUnseen, MoveTask, TaskEvents, UnseenTask};
use super::{NAMESPACE, errors, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::json;
use crate::refusal::{self, Refusal};
use crate::write::Out;
use hyper::StatusCode;
use mainspring_engine::store::{JobWithHistory, Scope};
use mainspring_kernel::idempotency::alias_hash;
use mainspring_kernel::view::tasks;
use mainspring_kernel::{Command, Job, JobId, Principal, Rejection};
use serde::Serialize;

pub(super) async fn create(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish = {
        let wire: CreateTask = json::read(json::check(&ask.body)?)?;
        let config = &ask.app.config;
        let windows =
            Windows { key_secs: config.key_window_secs, name_secs: config.name_window_secs };
        translate::wish(&wire, &who, ask.trace.as_deref(), windows)?
    };
    ask.let_go_of_body();
    let Wish { submit, critical, alias, key } = wish;
    let submit = match submit {
        Ok(submit) => submit,
        // Not enough to make a task, but enough to ask for one that there is.
        Err(missing) => {
            let tenant = Scope::Tenant(who.tenant.clone());
            let named = ask.engine().job_of_key(alias.hash, &tenant).await?;
            let keyed = match key {
                Some(key) => ask.engine().job_of_key(key.hash, &tenant).await?,
                None => None,
            };
            return match (named, keyed) {
                (Some(named), Some(keyed)) if named.job.id != keyed.job.id => {
                    Err(disagreed(&ask, &who, Some(named.job)))
                }
                (Some(found), _) | (None, Some(found)) => hit(&ask, &who, &found.job, &critical),
                (None, None) => Err(missing),
            };
        }
    };
    let submitted = match ask.engine().submit(submit).await? {
        Ok(submitted) => submitted,
        Err(Rejection::KeysDisagree) => {
            let named = ask.engine().job_of_key(alias.hash, &auth::scope(&who)).await?;
            return Err(disagreed(&ask, &who, named.map(|named| named.job)));
        }
        Err(rejection) => return Err(rejection.into()),
    };
    if submitted.is_hit {
        return hit(&ask, &who, &submitted.job, &critical);
    }
    let task = view::task(&submitted.job, ask.engine().now());
    let reply = bare(StatusCode::CREATED, &CreatedTask { idempotent_hit: false, task });
    Ok(reply.with_trace(submitted.job.trace_id()))
}

/// The answer to a wish for a task that there is.
fn hit(ask: &Ask, who: &Principal, job: &Job, critical: &Critical) -> Result<Reply, Refusal> {
    let now = ask.engine().now();
    let is_seen = who.can_see_job(job);
    let conflicts = critical.conflicts(job);
    if !conflicts.is_empty() {
        return Err(errors::duplicate(&conflicts, is_seen.then(|| shown(ask, job))));
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
    let seen = named.filter(|job| who.can_see_job(job)).map(|job| shown(ask, &job));
    errors::duplicate(&["task_id", "idempotency_key"], seen)
}

fn shown(ask: &Ask, job: &Job) -> serde_json::Value {
    let snapshot = view::snapshot(job, ask.engine().now());
    serde_json::to_value(snapshot).expect("our own shapes are JSON")
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let found = visible(&ask, &who).await?;
    Ok(bare(StatusCode::OK, &view::task(&found.job, ask.engine().now())))
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
    let job = visible(&ask, &who).await?.job.id;
    let to = tasks::State::parse(&wish.to_state)
        .ok_or_else(|| errors::field("to_state", "is not a state of a task"))?;
    moved(&ask, &who, job, Command::MoveTask { job, to, by: who.user.clone() }).await
}

/// Carries out a command about a task and shows what became of it.
async fn moved(ask: &Ask, who: &Principal, job: JobId, command: Command) -> Result<Reply, Refusal> {
    ask.engine().execute_one(command).await??;
    let after = ask.engine().job(job).await?.ok_or_else(|| unseen(who))?.job;
    Ok(bare(StatusCode::OK, &view::task(&after, ask.engine().now())))
}

/// The task of the path, if the caller may see it: by its own name, or by the id of its job.
/// Nonsense, unknown and foreign names are one case.
async fn visible(ask: &Ask, who: &Principal) -> Result<JobWithHistory, Refusal> {
    let (id, scope) = (ask.param(), auth::scope(who));
    let hash = alias_hash(&who.tenant, NAMESPACE, id);
    let found = match (ask.engine().job_of_key(hash, &scope).await?, id.parse::<JobId>()) {
        (None, Ok(id)) => ask.engine().job_within(id, &scope).await?,
        (found, _) => found,
    };
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

//! Runs: create, list, read, report, cancel.

use super::find::{self, Wanted};
use super::wire::{AgentRun, AgentRuns, CreateRun, ReportRun, ReportedRun, UnseenRun};
use super::{errors, translate, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::json;
use crate::refusal::{self, Refusal};
use crate::write::Out;
use hyper::StatusCode;
use mainspring_engine::store::Scope;
use mainspring_kernel::agent::{self, Purpose};
use mainspring_kernel::command::Submit;
use mainspring_kernel::view::agent as shown;
use mainspring_kernel::{Command, Job, JobId, Principal, Rejection, StateName};
use serde::Serialize;

pub(super) async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    make(ask, who, Purpose::Run).await
}

/// Makes a run or a plan, or finds the one of that name.
pub(super) async fn make(mut ask: Ask, who: Principal, purpose: Purpose) -> Result<Reply, Refusal> {
    let submit = {
        let wire: CreateRun = json::read(json::check(&ask.body)?)?;
        let config = &ask.app.config;
        let fresh = ask.engine().fresh_id();
        let mut wish = translate::run(&wire, purpose, fresh, &config.agent)?;
        if wish.trace.is_none() {
            wish.trace = ask.trace.as_deref().map(Into::into);
        }
        let submit = wish.submit(&who.tenant, &who.user, config.name_window_secs)?;
        Submit { traceparent: ask.traceparent(), ..submit }
    };
    ask.let_go_of_body();
    let submitted = ask.engine().submit(submit).await??;
    if !submitted.is_hit {
        let run = view::run(&submitted.job);
        let trace = run.trace_id.clone();
        return Ok(bare(StatusCode::CREATED, &run).with_trace(trace));
    }
    let found = &submitted.job;
    Ok(match who.can_see_job(found) {
        true => bare(StatusCode::OK, &AgentRun { idempotent_hit: true, ..view::run(found) }),
        false => {
            let (id, status) = (agent::id_of(found), shown::state(found).as_str());
            bare(StatusCode::OK, &UnseenRun { id, status, idempotent_hit: true })
        }
    })
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&find::LIST.map(|(name, _)| name))?;
    let states = query.get("status").map(states).transpose()?;
    let wanted = Wanted { purposes: vec![Purpose::Run], states };
    let found = find::page(&ask, &who, &query, &wanted).await?;
    let items = found.jobs.iter().map(view::run).collect();
    Ok(bare(
        StatusCode::OK,
        &AgentRuns {
            items,
            next_cursor: found.next,
            total: found.total,
            total_at_least: found.total_at_least,
        },
    ))
}

/// The states that are shown as `status`.
pub(super) fn states(status: &str) -> Result<Vec<StateName>, Refusal> {
    let wanted = shown::State::parse(status)
        .ok_or_else(|| refusal::invalid("status", "must be queue, running, done or failed"))?;
    Ok(StateName::ALL.into_iter().filter(|state| shown::shown(*state) == wanted).collect())
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = find::visible(&ask, &who, &[Purpose::Run]).await?;
    Ok(bare(StatusCode::OK, &view::run(&job)))
}

pub(super) async fn result(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = find::visible(&ask, &who, &[Purpose::Run]).await?;
    let result = view::result(&job);
    let result = result.ok_or_else(|| errors::not_ended(shown::state(&job).as_str()))?;
    Ok(bare(StatusCode::OK, &result))
}

pub(super) async fn cancel(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = find::visible(&ask, &who, &[Purpose::Run, Purpose::Plan]).await?;
    if !who.can_steer(&job.tenant, &job.user) {
        return Err(refusal::denied());
    }
    let command = Command::Cancel { job: job.id, by: who.user.clone(), reason: None };
    ask.engine().execute_one(command).await??;
    reported(&ask, job.id).await
}

/// Takes the result of an attempt from whoever holds its lease. Text that is no name of a run and
/// no token names no lease at all: a report reveals nothing.
pub(super) async fn report(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: ReportRun = json::read(json::check(&ask.body)?)?;
    let outcome = translate::outcome(&wire)?;
    let token = wire.lease_token.parse().map_err(|()| Rejection::LeaseLost)?;
    let purposes = [Purpose::Run, Purpose::Evaluation];
    let job = reportable(&ask, &who, &purposes).await?.ok_or(Rejection::LeaseLost)?;
    ask.engine().execute_one(outcome.command(job.id, token)).await??;
    reported(&ask, job.id).await
}

/// The job of the path, for whoever may have been handed it: not what the caller may see counts,
/// but what the lease token proves.
pub(super) async fn reportable(
    ask: &Ask,
    who: &Principal,
    purposes: &[Purpose],
) -> Result<Option<Job>, Refusal> {
    let scope = match who.is_admin() {
        true => Scope::All,
        false => Scope::Tenant(who.tenant.clone()),
    };
    find::job(ask, &who.tenant, &scope, ask.param(), purposes).await
}

/// Where a run stands after something was done to it.
pub(super) async fn reported(ask: &Ask, id: JobId) -> Result<Reply, Refusal> {
    let job = ask.engine().job(id).await?.ok_or_else(refusal::job_unknown)?.job;
    let run = view::run(&job);
    let reported =
        ReportedRun { success: true, id: run.id, status: run.status, attempts: run.attempts };
    Ok(bare(StatusCode::OK, &reported))
}

/// An answer without an envelope.
pub(super) fn bare(status: StatusCode, body: &impl Serialize) -> Reply {
    let mut out = Out::sized(1_024);
    out.serde(body);
    Reply::begun(status, out, |_, _| {})
}

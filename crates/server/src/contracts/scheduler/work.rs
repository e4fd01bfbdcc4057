//! What workers do: pull, ack, fail, renew. Whoever pulled a job may report on it without a lease
//! token; anybody else needs it.

use super::jobs::{bare, visible};
use super::translate::{self, instant, lease_ms};
use super::view;
use super::wire::{
    SchedulerAck, SchedulerAcked, SchedulerFail, SchedulerFailed, SchedulerPull, SchedulerPulled,
    SchedulerRenew, SchedulerRenewed,
};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::governed;
use crate::json;
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_engine::store::Scope;
use mainspring_kernel::command::{Ack, Complete, Fail, Heartbeat, Renew};
use mainspring_kernel::entity::audit::Seen;
use mainspring_kernel::event::TASK_EXECUTION_FAILED;
use mainspring_kernel::governance::{RiskTier, decision_trace_id, object_name, object_of, subject};
use mainspring_kernel::job::{Failure, LeaseToken};
use mainspring_kernel::view::scheduler;
use mainspring_kernel::{Command, Job, JobId, Payload, Principal, Receipt, Rejection};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// How often one call looks behind jobs that were held; the next one goes on.
const PULLS: usize = 16;
/// Seconds until a job is tried again whose worker does not say.
const RETRY_DELAY_SECS: u64 = 300;

pub(super) async fn pull(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let pull = {
        let wire: SchedulerPull = json::read(json::check(&ask.body)?)?;
        translate::pull(&wire, &who, ask.app.config.allow_client_clock)?
    };
    ask.let_go_of_body();
    let (mut pull, mut grants) = (pull, Vec::new());
    let limit = pull.limit;
    for _ in 0..PULLS {
        pull.limit = limit - grants.len();
        let reply = ask.engine().work(Vec::new(), Some(pull.clone())).await?;
        grants.extend(reply.grants);
        // What was held is out of the way now: there may be others behind it.
        if !reply.has_held || grants.len() >= limit {
            break;
        }
    }
    // They come so from one queue; shards take turns.
    grants.sort_by_key(|it| (view::run_at(&it.job), Reverse(it.job.priority), it.job.id));
    let jobs = grants.iter().filter_map(|grant| view::granted(&grant.job)).collect();
    Ok(bare(StatusCode::OK, &SchedulerPulled { jobs }))
}

pub(super) async fn ack(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: SchedulerAck = json::read(json::check(&ask.body)?)?;
    ask.let_go_of_body();
    let job = held(&ask, &who).await?;
    let token = token(&job, &who, wire.lease_token.as_deref(), wire.worker_id.as_deref())?;
    let object = object_of(&job).ok_or_else(refusal::denied)?;
    let next_action_at =
        wire.next_action_at.as_deref().map(|text| instant("next_action_at", text)).transpose()?;
    let said = json!({
        "result": wire.result,
        "audit_event_id": wire.audit_event_id,
        "next_action_at": next_action_at.map(view::instant_text),
    });
    let ack = Ack {
        report: Complete { job: job.id, token, result: Some(Payload::from(said.to_string())) },
        object,
        next_action_at,
        audit_event_id: wire.audit_event_id.as_deref().map(Into::into),
        keeps_object: governed::has_room(&ask, &who, object).await?,
    };
    take(&ask, &who, &job, (ack, said)).await?;
    let after = again(&ask, job.id).await?;
    let object = governed::find(&ask, object).await?;
    let acked = SchedulerAcked {
        job_id: job.id.to_string(),
        status: scheduler::state(&after).as_str(),
        audit_event_id: view::said(&after).audit_event_id,
        next_action_at: object.as_ref().and_then(|object| object.next_action_at.clone()),
        object,
    };
    Ok(bare(StatusCode::OK, &acked))
}

/// Takes a job as done, together with the line that tells what that was done to. The trail takes a
/// bounded number of lines a day; beyond that an ack of little risk stands without one of its own:
/// it is in the history of the job, which the trail covers.
async fn take(
    ask: &Ask,
    who: &Principal,
    job: &Job,
    (ack, said): (Ack, Value),
) -> Result<(), Refusal> {
    // A report on a job that nobody holds is a repeat, or refused.
    let Some(lease) = job.lease() else {
        return report(ask, Command::Ack(Box::new(ack))).await.map(drop);
    };
    let decision = decision_trace_id(job.id, lease.fence);
    let mut taken = take_once(ask, who, job, (&ack, &said, &decision)).await;
    for _ in 1..audit::TRIES {
        if !audit::has_changed(&taken) {
            break;
        }
        taken = take_once(ask, who, job, (&ack, &said, &decision)).await;
    }
    match taken {
        Ok(Receipt::TakenBack { gate }) => Err(Rejection::GateClosed { gate }.into()),
        Err(no) if no.code == Rejection::AuditFull.code() => {
            report(ask, Command::Ack(Box::new(ack))).await.map(drop)
        }
        taken => taken.map(drop),
    }
}

/// Takes it, if the object is still what it was when it was read.
async fn take_once(
    ask: &Ask,
    who: &Principal,
    job: &Job,
    (ack, said, decision): (&Ack, &Value, &str),
) -> Result<Receipt, Refusal> {
    let found = ask.engine().entity(ack.object).await?;
    let risk_tier = found.as_ref().and_then(governed::object).map(|object| object.risk_tier);
    let version = found.as_ref().map_or(0, |entity| entity.version);
    let mut evidence_refs = vec![job.id.to_string()];
    evidence_refs.extend(ack.audit_event_id.as_deref().map(str::to_owned));
    let name = object_name(job).map(|(kind, name)| subject(kind, name));
    let note = Note {
        action: "job.ack",
        object_type: "object",
        object_id: name.unwrap_or_default(),
        before: found.as_ref().and_then(governed::shown).as_ref().and_then(audit::json),
        after: Some(said.clone()),
        evidence_refs,
        risk_tier,
        decision_trace_id: Some(decision.to_owned()),
        seen: Some(Seen::Entity(ack.object, version)),
        is_owed: risk_tier == Some(RiskTier::High),
        ..Note::default()
    };
    audit::change(ask, who, Command::Ack(Box::new(ack.clone())), note).await
}

pub(super) async fn fail(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: SchedulerFail = json::read(json::check(&ask.body)?)?;
    ask.let_go_of_body();
    let job = held(&ask, &who).await?;
    let token = token(&job, &who, wire.lease_token.as_deref(), wire.worker_id.as_deref())?;
    let delay = wire.retry_delay_sec.unwrap_or(RETRY_DELAY_SECS);
    let failure = Failure {
        code: TASK_EXECUTION_FAILED.into(),
        message: wire.error.as_str().into(),
        retryable: true,
    };
    let command = Command::Fail(Fail {
        job: job.id,
        token,
        failure,
        retry_delay_ms: Some(delay.saturating_mul(1_000)),
        result: None,
        snooze_ms: None,
    });
    report(&ask, command).await?;
    let after = again(&ask, job.id).await?;
    let failed = SchedulerFailed {
        job_id: job.id.to_string(),
        status: scheduler::state(&after).as_str(),
        attempt: scheduler::attempt(&after),
        max_attempts: scheduler::max_attempts(&after),
        run_at: view::instant_text(view::run_at(&after)),
    };
    Ok(bare(StatusCode::OK, &failed))
}

pub(super) async fn renew(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wire: SchedulerRenew = match ask.body.is_empty() {
        true => SchedulerRenew::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let job = held(&ask, &who).await?;
    let token = token(&job, &who, wire.lease_token.as_deref(), wire.worker_id.as_deref())?;
    let object = object_of(&job).ok_or_else(refusal::denied)?;
    let lease_ms = lease_ms("extend_sec", wire.extend_sec)?;
    let beat = Heartbeat { job: job.id, token, lease_ms, progress_pct: None, note: None };
    let command = Command::Renew(Box::new(Renew { beat, object }));
    let Receipt::Renewed { expires_at } = report(&ask, command).await? else {
        return Err(Rejection::LeaseLost.into());
    };
    let renewed = SchedulerRenewed {
        job_id: job.id.to_string(),
        status: "running",
        lease_expires_at: view::instant_text(expires_at),
        extended_by_sec: u64::from(lease_ms / 1_000),
    };
    Ok(bare(StatusCode::OK, &renewed))
}

/// The job of the path, if it is one of the caller's tenant.
async fn held(ask: &Ask, who: &Principal) -> Result<Job, Refusal> {
    Ok(visible(ask, who, &Scope::Tenant(who.tenant.clone())).await?.job)
}

/// The token of the lease that the caller holds, or held when the job was last reported on.
fn token(
    job: &Job,
    who: &Principal,
    given: Option<&str>,
    worker: Option<&str>,
) -> Result<LeaseToken, Refusal> {
    let lost = || Refusal::from(Rejection::LeaseLost);
    let is_named = |name: &str| job.lease().is_none_or(|lease| lease.worker.as_str() == name);
    if worker.is_some_and(|name| !is_named(name)) {
        return Err(lost());
    }
    if let Some(text) = given {
        return text.parse().map_err(|()| lost());
    }
    match (job.lease(), &job.last_report) {
        (Some(lease), _) if lease.holder.as_ref() == Some(&who.user) => Ok(lease.token()),
        (Some(_), _) | (None, None) => Err(lost()),
        // A repeat is answered again, and anything else is told apart by the kernel.
        (None, Some(last)) => Ok(last.token),
    }
}

/// Has a report decided. A job that was taken back because of a gate is told as one.
async fn report(ask: &Ask, command: Command) -> Result<Receipt, Refusal> {
    let receipt = ask.engine().execute_one(command).await??;
    if let Receipt::TakenBack { gate } = receipt {
        return Err(Rejection::GateClosed { gate }.into());
    }
    Ok(receipt)
}

async fn again(ask: &Ask, id: JobId) -> Result<Job, Refusal> {
    let found = ask.engine().job(id).await?;
    found.map(|found| found.job).ok_or_else(refusal::denied)
}

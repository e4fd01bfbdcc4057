//! Jobs as this contract shows them, purely.

use super::wire::{SchedulerActor, SchedulerAudit, SchedulerGranted, SchedulerJob};
use mainspring_api::Time;
use mainspring_engine::store::JobWithHistory;
use mainspring_kernel::governance::{self, Duty, decision_trace_id};
use mainspring_kernel::job::Actor;
use mainspring_kernel::view::scheduler;
use mainspring_kernel::{Job, JobId, State, StateName, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The priorities, by name.
const PRIORITIES: [(&str, u8); 3] = [("low", 25), ("medium", 50), ("high", 75)];

/// The number of a priority.
pub(super) fn priority_number(name: &str) -> Option<u8> {
    PRIORITIES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// The priority nearest to a number.
fn priority_name(number: u8) -> &'static str {
    let nearest = PRIORITIES.iter().min_by_key(|(_, known)| known.abs_diff(number));
    nearest.map_or("medium", |(name, _)| name)
}

/// An instant without needless digits.
pub(super) fn instant_text(at: Timestamp) -> String {
    Time(at.0).to_jiff().to_string()
}

/// What a worker said when it was done, as it is kept with the job.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    pub(super) audit_event_id: Option<String>,
}

/// What the worker of `job` said, if it was done.
pub(super) fn said(job: &Job) -> Said<'_> {
    let result = job.result().and_then(|result| serde_json::from_str(result).ok());
    result.unwrap_or_default()
}

/// When a job is, or was, due.
pub(super) fn run_at(job: &Job) -> Timestamp {
    match &job.state {
        State::Retrying { due_at } if *due_at != Timestamp::NEVER => *due_at,
        State::Running(lease) => lease.due_at.unwrap_or(job.run_at),
        State::Retrying { .. }
        | State::Queued
        | State::DlqPending
        | State::DlqRecorded
        | State::Succeeded { .. }
        | State::Failed { .. }
        | State::Cancelled { .. } => job.run_at,
    }
}

/// A governed job; nothing of another one.
pub(super) fn job(job: &Job) -> Option<SchedulerJob> {
    let duty = Duty::of(&job.job_type)?;
    let (object_type, object_id) = governance::object_name(job)?;
    let lease = job.lease();
    Some(SchedulerJob {
        job_id: job.id.to_string(),
        object_type: object_type.as_str(),
        object_id: object_id.to_owned(),
        action: duty.action.as_str(),
        run_at: instant_text(run_at(job)),
        priority: priority_name(job.priority),
        attempt: scheduler::attempt(job),
        max_attempts: scheduler::max_attempts(job),
        idempotency_key: job.idempotency.as_ref().map(|key| key.key.to_string()),
        status: scheduler::state(job).as_str(),
        last_error: job.last_failure.as_ref().map(|last| last.failure.message.to_string()),
        risk_tier: duty.risk_tier.as_str(),
        worker_id: lease.map(|lease| lease.worker.to_string()),
        lease_expires_at: lease.map(|lease| instant_text(lease.ends_at())),
        correlation_id: job.trace.as_deref().map(str::to_owned),
        created_at: instant_text(job.created_at),
        updated_at: instant_text(job.updated_at),
        result: said(job).result.map(RawValue::to_owned),
    })
}

/// A job that was handed out.
pub(super) fn granted(job: &Job) -> Option<SchedulerGranted> {
    let lease = job.lease()?;
    Some(SchedulerGranted {
        lease_token: lease.token().to_string(),
        decision_trace_id: decision_trace_id(job.id, lease.fence),
        job: self::job(job)?,
    })
}

/// The moves of a job, each as an entry, with what they are sorted by.
pub(super) fn audits(found: &JobWithHistory) -> Vec<((Timestamp, JobId, u32), SchedulerAudit)> {
    let JobWithHistory { job, history } = found;
    let Some(duty) = Duty::of(&job.job_type) else { return Vec::new() };
    let Some((object_type, object_id)) = governance::object_name(job) else { return Vec::new() };
    let mut fence = 0;
    let entry = |step: &mainspring_kernel::Transition| {
        fence += u32::from(step.to == StateName::Running);
        let mut evidence_refs = vec![job.id.to_string()];
        if step.to == StateName::Succeeded {
            evidence_refs.extend(said(job).audit_event_id);
        }
        let audit = SchedulerAudit {
            id: format!("{}:{}", job.id, step.seq),
            event_type: "scheduler_job",
            actor: actor(&step.actor),
            object_type: object_type.as_str(),
            object_id: object_id.to_owned(),
            job_id: job.id.to_string(),
            before: step.from.map(|from| scheduler::shown(from).as_str()),
            after: scheduler::shown(step.to).as_str(),
            reason: step.reason.as_ref().map(|why| format!("{}: {}", why.code, why.message)),
            evidence_refs,
            timestamp: instant_text(step.at),
            risk_tier: duty.risk_tier.as_str(),
            correlation_id: job.trace.as_deref().map(str::to_owned),
            decision_trace_id: (fence > 0).then(|| decision_trace_id(job.id, fence)),
        };
        ((step.at, job.id, step.seq), audit)
    };
    history.iter().map(entry).collect()
}

fn actor(actor: &Actor) -> SchedulerActor {
    match actor {
        Actor::User(user) => SchedulerActor { kind: "user", id: user.to_string() },
        Actor::Worker(worker) => SchedulerActor { kind: "worker", id: worker.to_string() },
        Actor::Reaper => SchedulerActor { kind: "system", id: "scheduler-lease-reaper".to_owned() },
    }
}

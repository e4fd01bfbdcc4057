//! From the contract's words to the kernel's, purely.

use super::wire::{CreateRun, PullRuns, ReportRun};
use crate::config::AgentSettings;
use crate::refusal::{self, Refusal};
use mainspring_api::Time;
use mainspring_engine::Pull;
use mainspring_kernel::agent::{Purpose, RunId, RunWish};
use mainspring_kernel::command::{Complete, Fail};
use mainspring_kernel::event::{TASK_EXECUTION_FAILED, TASK_TIMEOUT};
use mainspring_kernel::job::{Failure, LeaseToken};
use mainspring_kernel::limits::{LEASE_MS_DEFAULT, LEASE_MS_MAX, PULL_MAX, WAIT_MS_MAX};
use mainspring_kernel::view::agent::{FailureReason, RUN_KILLED};
use mainspring_kernel::{Command, JobId, Payload, Principal, Timestamp, WorkerId};
use std::time::Duration;

/// What a result can be.
pub(super) const RESULT_TYPES: [&str; 4] = ["text", "code_change", "analysis", "summary"];

/// Reads the wish for a run or plan; `fresh` is its name if it has none.
pub(super) fn run(
    wire: &CreateRun,
    purpose: Purpose,
    fresh: u128,
    settings: &AgentSettings,
) -> Result<RunWish, Refusal> {
    version(wire.schema_version)?;
    let kind = kind(purpose);
    if wire.kind.as_deref().is_some_and(|given| given != kind) && wire.schema_version == Some(2) {
        return Err(refusal::invalid("type", format_args!("must be {kind}")));
    }
    let is_plan = purpose == Purpose::Plan;
    if is_plan && (wire.max_attempts.is_some_and(|most| most != 1) || wire.backoff_ms.is_some()) {
        return Err(refusal::invalid("maxAttempts", "must be left out: a plan is tried once"));
    }
    let id = wire.id.clone().unwrap_or_else(|| fresh_id(fresh));
    Ok(RunWish {
        priority: wire.priority,
        trace: wire.trace_id.as_deref().map(Into::into),
        parent_task_id: wire.parent_task_id.as_deref().map(Into::into),
        timeout_secs: wire.timeout,
        defer_until: instant("deferUntil", wire.defer_until.as_deref())?,
        max_attempts: if is_plan { 1 } else { wire.max_attempts.unwrap_or(settings.max_attempts) },
        backoff_ms: if is_plan { 0 } else { wire.backoff_ms.unwrap_or(settings.backoff_ms) },
        source_trigger_id: wire.source_trigger_id.as_deref().map(Into::into),
        triggered_at: instant("triggeredAt", wire.triggered_at.as_deref())?,
        created_at: instant("createdAt", wire.created_at.as_deref())?,
        attempts: wire.attempts.unwrap_or(0),
        ..RunWish::plain(purpose, RunId::Chosen(id.into()), &wire.prompt)
    })
}

/// A name for what its caller gave none.
pub(super) fn fresh_id(bits: u128) -> String {
    JobId(bits).to_string().replacen(JobId::PREFIX, "run", 1)
}

/// The word for a purpose as `type`.
pub(super) const fn kind(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Run => "oneshot",
        Purpose::Plan => "plan",
        Purpose::Evaluation => "evaluation",
    }
}

/// Refuses a document of a version that is not known.
pub(super) fn version(given: Option<u32>) -> Result<(), Refusal> {
    match given {
        None | Some(1 | 2) => Ok(()),
        Some(_) => Err(refusal::invalid("schemaVersion", "must be 1 or 2")),
    }
}

/// An instant in UTC: one with another offset is refused, because the contract has none.
pub(super) fn instant(
    field: &'static str,
    text: Option<&str>,
) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let is_utc = ["Z", "z", "+00:00", "-00:00"].iter().any(|end| text.ends_with(end));
    match text.parse::<Time>() {
        Ok(time) if is_utc => Ok(Some(Timestamp(time.0))),
        Ok(_) => Err(refusal::invalid(field, "must be in UTC: end it with Z")),
        Err(_) => Err(refusal::invalid(field, "must be an RFC 3339 instant in UTC")),
    }
}

/// The engine's pull. Only an admin pulls over all tenants.
pub(super) fn pull(wire: &PullRuns, who: &Principal) -> Result<Pull, Refusal> {
    let limit = wire.limit.unwrap_or(1);
    if !(1..=PULL_MAX as u64).contains(&limit) {
        return Err(refusal::invalid("limit", "must be between 1 and 10000"));
    }
    let wait_ms = wire.wait_ms.unwrap_or(0);
    if wait_ms > WAIT_MS_MAX {
        return Err(refusal::invalid("wait_ms", "must be at most 60000"));
    }
    let lease_ms = match wire.lease_ms {
        None => LEASE_MS_DEFAULT,
        Some(ms) if (1..=u64::from(LEASE_MS_MAX)).contains(&ms) => ms as u32,
        Some(_) => return Err(refusal::invalid("lease_ms", "must be between 1 and 86400000")),
    };
    let purposes = match wire.purpose.as_deref() {
        None => vec![Purpose::Run, Purpose::Plan],
        Some(text) => vec![
            Purpose::parse(text)
                .ok_or_else(|| refusal::invalid("purpose", "must be run, plan or evaluation"))?,
        ],
    };
    let worker =
        WorkerId::new(&wire.worker_id).map_err(|bad| refusal::invalid("worker_id", bad.reason))?;
    Ok(Pull {
        governed: None,
        tenant: (!who.is_admin()).then(|| who.tenant.clone()),
        worker,
        token: Some(who.token),
        types: Some(purposes.into_iter().map(Purpose::job_type).collect()),
        queues: None,
        limit: limit as usize,
        wait: Duration::from_millis(wait_ms),
        lease_ms,
    })
}

/// How an attempt ended, as far as the report makes sense.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Well, with this to show.
    Done(Payload),
    /// Badly; perhaps there is something to show all the same.
    Failed(Failure, Option<Payload>),
}

impl Outcome {
    /// The report of it under a lease.
    pub(super) fn command(self, job: JobId, token: LeaseToken) -> Command {
        match self {
            Outcome::Done(result) => {
                Command::Complete(Complete { job, token, result: Some(result) })
            }
            Outcome::Failed(failure, result) => {
                let (retry_delay_ms, snooze_ms) = (None, None);
                Command::Fail(Fail { job, token, failure, retry_delay_ms, result, snooze_ms })
            }
        }
    }
}

/// Reads how an attempt ended.
pub(super) fn outcome(wire: &ReportRun) -> Result<Outcome, Refusal> {
    version(wire.schema_version)?;
    let result_type = result_type(wire.result_type.as_deref())?;
    let shown = wire.result.as_deref().map(|result| result.get());
    match wire.status.as_str() {
        "done" => {
            if wire.failure_reason.is_some() {
                return Err(refusal::invalid("failureReason", "belongs to a failed result"));
            }
            Ok(Outcome::Done(wrapped(result_type, shown.unwrap_or("\"\""))))
        }
        "failed" => {
            let failure = failed(wire.failure_reason.as_deref(), wire.error.as_deref())?;
            Ok(Outcome::Failed(failure, shown.map(|shown| wrapped(result_type, shown))))
        }
        _ => Err(refusal::invalid("status", "must be done or failed")),
    }
}

/// One of the types of results.
pub(super) fn result_type(given: Option<&str>) -> Result<&'static str, Refusal> {
    let given = given.unwrap_or(RESULT_TYPES[0]);
    let known = RESULT_TYPES.into_iter().find(|known| *known == given);
    known.ok_or_else(|| {
        refusal::invalid("resultType", "must be text, code_change, analysis or summary")
    })
}

/// What is kept of a result.
pub(super) fn wrapped(result_type: &str, shown: &str) -> Payload {
    format!("{{\"resultType\":\"{result_type}\",\"result\":{shown}}}").into()
}

/// The failure that a reason stands for. Another try may help, whatever it was.
pub(super) fn failed(reason: Option<&str>, error: Option<&str>) -> Result<Failure, Refusal> {
    let reason = reason.unwrap_or(FailureReason::Error.as_str());
    let reason = FailureReason::parse(reason)
        .ok_or_else(|| refusal::invalid("failureReason", "must be timeout, error or killed"))?;
    let code = match reason {
        FailureReason::Timeout => TASK_TIMEOUT,
        FailureReason::Error => TASK_EXECUTION_FAILED,
        FailureReason::Killed => RUN_KILLED,
    };
    let message = error.unwrap_or("the worker gave no message").into();
    Ok(Failure { code: code.into(), message, retryable: true })
}

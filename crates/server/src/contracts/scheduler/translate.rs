//! From the contract's words to the kernel's, purely.

use super::view::{instant_text, priority_number};
use super::wire::{SchedulerEnqueue, SchedulerPull};
use crate::config::Shards;
use crate::limits::SCHEDULER_PULL_MAX;
use crate::refusal::{self, Refusal};
use mainspring_api::Time;
use mainspring_engine::{GovernedPull, Pull};
use mainspring_kernel::command::{DueClock, Submit};
use mainspring_kernel::governance::{self, Action, Duty, ObjectType, RiskTier};
use mainspring_kernel::idempotency::scheduler_key;
use mainspring_kernel::limits::{LEASE_MS_MAX, OBJECT_ID_BYTES_MAX, RETRIES_MAX};
use mainspring_kernel::view::scheduler;
use mainspring_kernel::{JobType, Payload, Principal, QueueName, Timestamp, WorkerId, text};
use serde_json::json;
use std::time::Duration;

/// Executions of a job that does not say.
const MAX_ATTEMPTS: u64 = 3;
/// Jobs of a pull that does not say.
const LIMIT: u64 = 100;
/// Seconds of a lease that does not say.
pub(super) const LEASE_SECS: u64 = 120;

/// A wish for a job that makes sense.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) object_type: ObjectType,
    pub(super) object_id: String,
    action: Action,
    run_at: Timestamp,
    priority: u8,
    max_retries: u16,
    pub(super) key: String,
    correlation_id: Option<String>,
}

/// Reads a wish.
pub(super) fn wish(wire: &SchedulerEnqueue) -> Result<Wish, Refusal> {
    let (object_type, object_id) = object(&wire.object_type, &wire.object_id)?;
    let action = word("action", &wire.action, Action::parse)?;
    let run_at = instant("run_at", &wire.run_at)?;
    let priority = priority_number(wire.priority.as_deref().unwrap_or("medium"))
        .ok_or_else(|| refusal::invalid("priority", "must be low, medium or high"))?;
    let max_attempts = wire.max_attempts.unwrap_or(MAX_ATTEMPTS);
    if !(1..=u64::from(RETRIES_MAX) + 1).contains(&max_attempts) {
        return Err(refusal::invalid("max_attempts", "must be between 1 and 1001"));
    }
    let default = || {
        let run_at = instant_text(run_at.whole_second());
        format!("{object_id}:{}:{run_at}", action.as_str())
    };
    let given = wire.idempotency_key.as_ref().filter(|key| !key.is_empty());
    Ok(Wish {
        object_type,
        action,
        run_at,
        priority,
        max_retries: scheduler::max_retries(max_attempts as u16),
        key: given.cloned().unwrap_or_else(default),
        correlation_id: wire.correlation_id.clone(),
        object_id: object_id.to_owned(),
    })
}

impl Wish {
    /// The job of it, on an object of that risk.
    pub(super) fn submit(
        self,
        who: &Principal,
        risk_tier: RiskTier,
        (shards, trace): (Shards, Option<&str>),
    ) -> Result<Submit, Refusal> {
        let Wish { object_type, object_id, action, run_at, .. } = &self;
        let key = scheduler_key(&who.tenant, &self.key)?;
        let duty = Duty { object_type: *object_type, action: *action, risk_tier };
        let payload = json!({
            "object_type": object_type.as_str(),
            "object_id": object_id,
            "action": action.as_str(),
            "run_at": instant_text(*run_at),
        });
        let plain = Submit::plain(who.tenant.clone(), who.user.clone(), duty.job_type());
        Ok(Submit {
            payload: Payload::from(payload.to_string()),
            run_at: Some(*run_at),
            priority: Some(self.priority),
            queue: Some(queue(shards, duty)),
            max_retries: Some(self.max_retries),
            idempotency: Some(Box::new(key)),
            trace: self.correlation_id.as_deref().or(trace).map(Into::into),
            subject: Some(governance::subject(*object_type, object_id).into()),
            labels: governance::labels(*object_type, object_id),
            ..plain
        })
    }
}

/// The queue of jobs with that duty.
pub(super) fn queue(shards: Shards, duty: Duty) -> QueueName {
    let shard = match shards {
        Shards::None => return QueueName::stored(governance::QUEUE.into()),
        Shards::ObjectType => duty.object_type.as_str(),
        Shards::RiskTier => duty.risk_tier.as_str(),
    };
    QueueName::stored(format!("{}.{shard}", governance::QUEUE).into())
}

/// Reads a pull.
pub(super) fn pull(
    wire: &SchedulerPull,
    who: &Principal,
    may_choose_clock: bool,
) -> Result<Pull, Refusal> {
    let limit = wire.limit.unwrap_or(LIMIT);
    if !(1..=SCHEDULER_PULL_MAX as u64).contains(&limit) {
        return Err(refusal::invalid("limit", "must be between 1 and 1000"));
    }
    let clock = match &wire.now {
        None => DueClock::Server,
        Some(text) if may_choose_clock => DueClock::Callers(instant("now", text)?),
        Some(text) => DueClock::Narrowed(instant("now", text)?),
    };
    let actions = words("actions", wire.actions.as_deref(), Action::parse, Action::ALL)?;
    let object_types =
        words("object_types", wire.object_types.as_deref(), ObjectType::parse, ObjectType::ALL)?;
    let tiers = words("risk_tiers", wire.risk_tiers.as_deref(), RiskTier::parse, RiskTier::ALL)?;
    let is_wanted = |duty: &Duty| {
        actions.contains(&duty.action)
            && object_types.contains(&duty.object_type)
            && tiers.contains(&duty.risk_tier)
    };
    let types: Vec<JobType> = Duty::all().filter(is_wanted).map(Duty::job_type).collect();
    Ok(Pull {
        tenant: Some(who.tenant.clone()),
        worker: worker(&wire.worker_id)?,
        token: Some(who.token),
        types: Some(types.into()),
        queues: None,
        limit: limit as usize,
        wait: Duration::ZERO,
        lease_ms: lease_ms("lease_sec", wire.lease_sec)?,
        governed: Some(GovernedPull { holder: who.user.clone(), clock }),
    })
}

/// The words of a filter; all of them if there is no filter.
fn words<T: Copy>(
    field: &'static str,
    texts: Option<&[String]>,
    parse: fn(&str) -> Option<T>,
    all: &[T],
) -> Result<Vec<T>, Refusal> {
    match texts {
        None => Ok(all.to_vec()),
        Some(texts) if texts.len() > crate::limits::PULL_NAMES_MAX => {
            Err(refusal::invalid(field, "must have at most 100 entries"))
        }
        Some(texts) => texts.iter().map(|text| word(field, text, parse)).collect(),
    }
}

/// One word of a field.
pub(super) fn word<T>(
    field: &'static str,
    text: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, Refusal> {
    parse(text).ok_or_else(|| refusal::invalid(field, "is not one of the words of this field"))
}

/// The kind and name of an object.
pub(super) fn object<'a>(kind: &str, name: &'a str) -> Result<(ObjectType, &'a str), Refusal> {
    let kind = word("object_type", kind, ObjectType::parse)?;
    if name.is_empty() || name.len() > OBJECT_ID_BYTES_MAX || name.trim() != name {
        let reason = "must be 1 to 160 bytes long and not start or end with a space";
        return Err(refusal::invalid("object_id", reason));
    }
    text::refuse_control("object_id", name)?;
    Ok((kind, name))
}

/// An instant.
pub(super) fn instant(field: &'static str, text: &str) -> Result<Timestamp, Refusal> {
    let time: Time =
        text.parse().map_err(|_| refusal::invalid(field, "must be an RFC 3339 instant"))?;
    Ok(Timestamp(time.0))
}

/// The milliseconds of a lease.
pub(super) fn lease_ms(field: &'static str, secs: Option<u64>) -> Result<u32, Refusal> {
    let millis = secs.unwrap_or(LEASE_SECS).saturating_mul(1_000);
    match u32::try_from(millis) {
        Ok(millis) if (1_000..=LEASE_MS_MAX).contains(&millis) => Ok(millis),
        Ok(_) | Err(_) => Err(refusal::invalid(field, "must be between 1 and 86400")),
    }
}

/// The name of a worker.
pub(super) fn worker(text: &str) -> Result<WorkerId, Refusal> {
    WorkerId::new(text).map_err(|bad| refusal::invalid("worker_id", bad.reason))
}

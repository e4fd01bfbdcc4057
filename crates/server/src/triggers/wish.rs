//! From the wish for a trigger to what it is to do.

use super::Wish;
use super::condition::{self, Spelling};
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_kernel::access::Sight;
use mainspring_kernel::entity::EntityId;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::entity::trigger::{LastStatus, Pace, Past, TriggerSpec, TriggerType};
use mainspring_kernel::limits::{NAME_BYTES_MAX, RUN_PRIORITY_DEFAULT};
use mainspring_kernel::{Principal, Timestamp};
use serde_json::Value;

/// The trigger that is asked for; `fresh` makes its name if it has none.
pub(crate) fn wish(
    wire: &api::trigger::SetTrigger,
    spelling: Spelling,
    (who, fresh, pace): (&Principal, u128, Pace),
) -> Result<Wish, Refusal> {
    let kind = TriggerType::parse(&wire.kind)
        .ok_or_else(|| refusal::invalid("type", "must be recurring, scheduled or conditional"))?;
    let made = || EntityId { kind: Kind::Trigger, bits: fresh }.to_string();
    let schedule = wire.schedule.as_ref();
    let condition = wire.condition.as_ref().filter(|condition| !condition.is_null());
    let spec = TriggerSpec {
        name: wire.id.clone().unwrap_or_else(made).into(),
        kind,
        interval_secs: schedule.and_then(|schedule| schedule.interval),
        run_at: schedule.and_then(|schedule| schedule.run_at).map(instant),
        condition: condition.map(|condition| condition::read(condition, spelling)).transpose()?,
        cooldown_secs: wire.cooldown.unwrap_or(0),
        prompt: wire.prompt.as_str().into(),
        priority: wire.priority.unwrap_or(RUN_PRIORITY_DEFAULT),
        timeout_secs: wire.timeout,
        trace: wire.trace_id.as_deref().map(Into::into),
        parent_task_id: wire.parent_task_id.as_deref().map(Into::into),
        pace,
        sees_tenant: who.sight() != Sight::Own,
    };
    spec.check()?;
    Ok(Wish { past: past(wire)?, spec })
}

fn past(wire: &api::trigger::SetTrigger) -> Result<Past, Refusal> {
    let plain = api::trigger::TriggerState::default();
    let state = wire.state.as_ref().unwrap_or(&plain);
    let schedule = wire.schedule.as_ref();
    let last_run_at = schedule.and_then(|schedule| schedule.last_run_at);
    let next_run_at = schedule.and_then(|schedule| schedule.next_run_at);
    let last_status = state.last_status.as_deref().map(|text| {
        LastStatus::parse(text).ok_or_else(|| {
            refusal::invalid("state", "has a last status other than ok, error, skipped")
        })
    });
    let last_seen = state.last_seen_result_id.as_deref();
    if last_seen.is_some_and(|text| text.len() > NAME_BYTES_MAX) {
        return Err(refusal::invalid("state", "names a result of more than 200 bytes"));
    }
    Ok(Past {
        created_at: wire.created_at.map(instant),
        last_triggered_at: state.last_triggered_at.or(last_run_at).map(instant),
        last_eval_at: state.last_eval_at.map(instant),
        last_seen_result_id: last_seen.map(Into::into),
        last_mtime: state
            .last_mtime
            .as_ref()
            .and_then(|value| mtime(value).transpose())
            .transpose()?,
        is_initialized: state.initialized.unwrap_or(false),
        last_status: last_status.transpose()?,
        last_error: state.last_error.as_deref().map(Into::into),
        last_duration_ms: state.last_duration_ms,
        next_run_at: state.next_run_at.or(next_run_at).map(instant),
    })
}

/// The time of a file: an instant, or milliseconds since 1970.
fn mtime(value: &Value) -> Result<Option<Timestamp>, Refusal> {
    let bad = || refusal::invalid("state", "has a last mtime that is neither a time nor a number");
    match value {
        Value::Null => Ok(None),
        Value::Number(number) => {
            let millis = number.as_f64().filter(|it| (0.0..1e15).contains(it)).ok_or_else(bad)?;
            Ok(Some(Timestamp((millis * 1_000.0) as i64)))
        }
        Value::String(text) => match text.parse::<api::Time>() {
            Ok(time) => Ok(Some(instant(time))),
            Err(_) => Err(bad()),
        },
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(bad()),
    }
}

fn instant(time: api::Time) -> Timestamp {
    Timestamp(time.0)
}

//! Jobs as the native contract shows them, written straight into the answer. A test holds the
//! text and the `api` types together.

use crate::write::Out;
use mainspring_kernel::error_class::ErrorClass;
use mainspring_kernel::event::{JOB_CANCELLED, TASK_EXPIRED};
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::job::{After, Bounds, Extras, Idempotency};
use mainspring_kernel::{Job, JobId, StateName};

/// About how many bytes a job takes, for sizing buffers.
pub(super) fn job_bytes(job: &Job) -> usize {
    1_100 + 3 * job.payload.len()
}

/// Writes a job; `is_hit` is shown in the answer to a submission only.
pub(super) fn job(job: &Job, is_hit: Option<bool>, out: &mut Out) {
    named(job, out);
    last_failure(job, out);
    out.raw(",\"payload\":");
    out.raw(&job.payload);
    out.raw(",\"payload_json\":");
    out.string(&job.payload);
    out.raw(",\"result\":");
    out.raw(job.result().map_or("null", |result| result));
    times(job, out);
    out.raw(",\"lease\":");
    match job.lease() {
        Some(lease) => {
            out.raw("{\"worker_id\":");
            out.string(lease.worker.as_str());
            out.raw(",\"expires_at\":");
            out.time(lease.expires_at);
            out.raw(",\"deadline_at\":");
            out.time(lease.deadline_at);
            out.raw("}");
        }
        None => out.raw("null"),
    }
    rare(job, out);
    if let Some(is_hit) = is_hit {
        out.raw(",\"idempotent_hit\":");
        out.flag(is_hit);
    }
    out.raw("}");
}

/// Writes what whoever may not read a job learns from hitting its key.
pub(super) fn hit(job: JobId, state: Option<StateName>, out: &mut Out) {
    out.raw("{\"job_id\":");
    out.job_id(job);
    out.raw(",\"status\":");
    out.maybe_string(state.map(StateName::as_str));
    out.raw(",\"idempotent_hit\":true}");
}

/// Writes `"error":{...}` of an item that is refused.
pub(super) fn refused(code: &str, message: &str, out: &mut Out) {
    out.raw("\"error\":{\"code\":\"");
    out.raw(code);
    out.raw("\",\"message\":");
    out.string(message);
    out.raw("}");
}

fn named(job: &Job, out: &mut Out) {
    out.raw("{\"job_id\":");
    out.job_id(job.id);
    out.raw(",\"tenant_id\":");
    out.string(job.tenant.as_str());
    out.raw(",\"user_id\":");
    out.string(job.user.as_str());
    out.raw(",\"job_type\":");
    out.string(job.job_type.as_str());
    out.raw(",\"queue\":");
    out.string(job.queue.as_str());
    out.raw(",\"status\":\"");
    out.raw(job.state.name().as_str());
    out.raw("\",\"priority\":");
    out.number(u64::from(job.priority));
    out.raw(",\"retry_count\":");
    out.number(u64::from(job.retry_count));
    out.raw(",\"attempt\":");
    out.number(u64::from(job.attempt()));
    out.raw(",\"max_retries\":");
    out.number(u64::from(job.max_retries));
    out.raw(",\"timeout_ms\":");
    out.number(u64::from(job.timeout_ms));
    let key = job.idempotency.as_deref();
    out.raw(",\"idempotency_key\":");
    out.maybe_string(key.map(|key| &*key.key));
    out.raw(",\"idempotency_scope\":");
    out.maybe_string(key.map(scope));
    out.raw(",\"trace_id\":");
    out.trace(job.trace.as_deref(), job.id);
    traceparent(job, out);
}

/// Written only where there is one.
fn traceparent(job: &Job, out: &mut Out) {
    if let Some(traceparent) = job.traceparent() {
        out.raw(",\"traceparent\":");
        out.string(traceparent);
    }
}

/// A scope as the caller gave it, or the derived one.
fn scope(key: &Idempotency) -> &str {
    key.scope.strip_prefix("scope:").unwrap_or(&key.scope)
}

fn last_failure(job: &Job, out: &mut Out) {
    let last_failure = job.last_failure.as_deref();
    out.raw(",\"error_code\":");
    match job.state.name() {
        StateName::Succeeded => out.raw("null"),
        StateName::Cancelled => out.string(cancel_code(job)),
        StateName::Queued
        | StateName::Running
        | StateName::Retrying
        | StateName::DlqPending
        | StateName::DlqRecorded
        | StateName::Failed => {
            out.maybe_string(last_failure.map(|last_failure| &*last_failure.failure.code))
        }
    }
    out.raw(",\"last_error\":");
    match last_failure {
        Some(last_failure) => {
            out.raw("{\"code\":");
            out.string(&last_failure.failure.code);
            out.raw(",\"message\":");
            out.string(&last_failure.failure.message);
            out.raw(",\"class\":\"");
            out.raw(ErrorClass::of(&last_failure.failure).as_str());
            out.raw("\",\"retryable\":");
            out.flag(last_failure.failure.retryable);
            out.raw(",\"at\":");
            out.time(last_failure.at);
            out.raw(",\"exhausted\":");
            out.flag(last_failure.is_exhausted);
            out.raw("}");
        }
        None => out.raw("null"),
    }
}

/// Why a cancelled job was.
fn cancel_code(job: &Job) -> &'static str {
    let usual = if job.has_expired() { TASK_EXPIRED } else { JOB_CANCELLED };
    job.course().and_then(|course| course.ended_by).unwrap_or(usual)
}

fn times(job: &Job, out: &mut Out) {
    out.raw(",\"run_at\":");
    out.time(job.run_at);
    out.raw(",\"created_at\":");
    out.time(job.created_at);
    out.raw(",\"updated_at\":");
    out.time(job.updated_at);
    out.raw(",\"started_at\":");
    out.maybe_time(job.started_at);
    out.raw(",\"finished_at\":");
    out.maybe_time(job.finished_at());
    out.raw(",\"next_retry_at\":");
    let is_retrying = job.state.name() == StateName::Retrying;
    out.maybe_time(job.due_at().filter(|_| is_retrying));
    out.raw(",\"expires_at\":");
    out.maybe_time(job.expires_at());
    if let Some(bounds) = job.bounds() {
        write_bounds(bounds, out);
    }
}

/// What the submission asked for in time and order.
fn write_bounds(bounds: &Bounds, out: &mut Out) {
    if let Some(at) = bounds.deadline_at {
        out.raw(",\"deadline_at\":");
        out.time(at);
    }
    if let Some(ms) = bounds.queue_timeout_ms {
        out.raw(",\"queue_timeout_ms\":");
        out.number(u64::from(ms));
    }
    let Some(After { jobs, members, condition }) = &bounds.after else { return };
    out.raw(",\"after\":[");
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 {
            out.raw(",");
        }
        out.job_id(*job);
    }
    out.raw("]");
    if *members > 0 {
        out.raw(",\"after_batch\":");
        out.number(u64::from(*members));
    }
    out.raw(",\"after_condition\":\"");
    out.raw(condition.as_str());
    out.raw("\"");
}

fn rare(job: &Job, out: &mut Out) {
    let none = Extras::default();
    let extras = job.extras.as_deref().unwrap_or(&none);
    out.raw(",\"parent_id\":");
    match extras.parent {
        Some(parent) => out.job_id(parent),
        None => out.raw("null"),
    }
    out.raw(",\"source_dlq_id\":");
    match extras.source_dlq {
        Some(item) => out.dlq_id(item),
        None => out.raw("null"),
    }
    out.raw(",\"dlq_id\":");
    match job.state.name() {
        StateName::DlqRecorded | StateName::Failed => out.dlq_id(job.id.dlq()),
        StateName::Queued
        | StateName::Running
        | StateName::Retrying
        | StateName::DlqPending
        | StateName::Succeeded
        | StateName::Cancelled => out.raw("null"),
    }
    out.raw(",\"labels\":");
    out.labels(&extras.labels);
    out.raw(",\"subject\":");
    out.maybe_string(extras.subject.as_deref());
    out.raw(",\"progress_pct\":");
    match extras.progress_pct {
        Some(pct) => out.number(u64::from(pct)),
        None => out.raw("null"),
    }
    let Some(course) = &extras.course else { return };
    if let Some(message) = &course.message {
        out.raw(",\"progress_message\":");
        out.string(message);
    }
    if course.snoozes > 0 {
        out.raw(",\"snooze_count\":");
        out.number(u64::from(course.snoozes));
    }
}

/// Writes a job as its worker gets it.
pub(super) fn grant(job: &Job, out: &mut Out) {
    let Some(lease) = job.lease() else { return out.raw("null") };
    out.raw("{\"job_id\":");
    out.job_id(job.id);
    out.raw(",\"job_type\":");
    out.string(job.job_type.as_str());
    out.raw(",\"payload\":");
    out.raw(&job.payload);
    out.raw(",\"attempt\":");
    out.number(u64::from(job.attempt()));
    out.raw(",\"retry_count\":");
    out.number(u64::from(job.retry_count));
    out.raw(",\"lease_token\":");
    out.lease_token(lease.token());
    out.raw(",\"lease_expires_at\":");
    out.time(lease.expires_at);
    out.raw(",\"deadline_at\":");
    out.time(lease.deadline_at);
    out.raw(",\"execution_key\":\"");
    job.id.push_to(&mut out.0);
    out.raw(":");
    out.number(u64::from(job.retry_count));
    out.raw("\",\"trace_id\":");
    out.trace(job.trace.as_deref(), job.id);
    traceparent(job, out);
    out.raw(",\"labels\":");
    out.labels(job.extras.as_ref().map_or(&[], |extras| &extras.labels));
    if let Some(value) = job.course().and_then(|course| course.checkpoint.as_ref()) {
        out.raw(",\"checkpoint\":");
        out.raw(value);
    }
    out.raw("}");
}

/// Writes the fields of one line of a history, without the braces around them.
pub(super) fn transition(job: JobId, step: &Transition, trace: &str, out: &mut Out) {
    out.raw("\"seq\":");
    out.number(u64::from(step.seq));
    out.raw(",\"event_id\":\"evt_");
    let start = out.0.len();
    job.push_to(&mut out.0);
    // The letters of the job's id, then the number of the move.
    out.0.drain(start..start + JobId::PREFIX.len() + 1);
    out.raw("_");
    out.number(u64::from(step.seq));
    out.raw("\",\"from_state\":");
    out.maybe_string(step.from.map(StateName::as_str));
    out.raw(",\"to_state\":\"");
    out.raw(step.to.as_str());
    out.raw("\",\"occurred_at\":");
    out.time(step.at);
    out.raw(",\"attempt\":");
    out.number(u64::from(step.attempt));
    out.raw(",\"reason_code\":");
    out.maybe_string(step.reason.as_ref().map(|reason| &*reason.code));
    out.raw(",\"reason_message\":");
    out.maybe_string(step.reason.as_ref().map(|reason| &*reason.message));
    out.raw(",\"actor\":");
    out.string(&step.actor.to_string());
    out.raw(",\"trace_id\":");
    out.string(trace);
}

#[cfg(test)]
mod tests;

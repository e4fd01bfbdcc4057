//! Jobs as this contract shows them, written straight into the answer: a list may have a thousand.
//! A test holds the text and the types of `wire.rs` together.

use crate::answer::Reply;
use crate::write::Out;
use mainspring_kernel::view::jobs::{self, CONCURRENCY_LIMIT_EXCEEDED};
use mainspring_kernel::{Job, JobId};
use serde::Serialize;

/// What is shown of a job besides itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beside {
    /// How jobs are executed here.
    pub(super) mode: &'static str,
    /// The limit that keeps it waiting: how many may run at a time.
    pub(super) limit: Option<u32>,
    /// The job that does it again.
    pub(super) retried_as: Option<JobId>,
    /// In the answer to a submission: whether it was there already.
    pub(super) is_hit: Option<bool>,
}

/// About how many bytes a job takes, for sizing buffers.
pub(super) fn job_bytes(job: &Job) -> usize {
    800 + job.payload.len() + job.result().map_or(0, |result| result.len())
}

/// An answer whose data comes next.
pub(super) fn begin(bytes: usize) -> Out {
    let mut out = Out::sized(bytes + 64);
    out.raw("{\"success\":true,\"message\":\"ok\",\"data\":");
    out
}

/// The answer, now that its data is written.
pub(super) fn end(mut out: Out) -> Reply {
    out.raw("}");
    Reply::other("application/json", out.0)
}

/// An answer with this data.
pub(super) fn data(data: &impl Serialize) -> Reply {
    let mut out = begin(512);
    out.serde(data);
    end(out)
}

/// Writes a job.
pub(super) fn job(job: &Job, beside: Beside, out: &mut Out) {
    out.raw("{\"id\":");
    out.job_id(job.id);
    out.raw(",\"taskId\":");
    out.job_id(job.id);
    out.raw(",\"userId\":");
    out.string(job.user.as_str());
    out.raw(",\"taskType\":");
    out.string(job.job_type.as_str());
    out.raw(",\"payload\":");
    out.raw(&job.payload);
    out.raw(",\"idempotencyKey\":");
    out.maybe_string(job.idempotency.as_ref().map(|key| &*key.key));
    out.raw(",\"status\":\"");
    out.raw(jobs::state(job).as_str());
    out.raw("\",\"result\":");
    out.raw(job.result().map_or("null", |result| result));
    out.raw(",\"error\":");
    error(job, beside.limit, out);
    out.raw(",\"executor\":");
    match job.dispatch_id() {
        Some(dispatch_id) => {
            out.raw("{\"name\":");
            out.string(beside.mode);
            out.raw(",\"dispatchId\":");
            out.string(&dispatch_id);
            out.raw("}");
        }
        None => out.raw("null"),
    }
    out.raw(",\"startedAt\":");
    out.maybe_time(job.started_at);
    out.raw(",\"finishedAt\":");
    out.maybe_time(job.finished_at());
    out.raw(",\"createdAt\":");
    out.time(job.created_at);
    out.raw(",\"updatedAt\":");
    out.time(job.updated_at);
    out.raw(",\"traceId\":");
    out.trace(job.trace.as_deref(), job.id);
    out.raw(",\"retryOf\":");
    let source = job.extras.as_ref().and_then(|extras| extras.source_dlq);
    maybe_job(source.map(|item| item.job()), out);
    out.raw(",\"retriedAs\":");
    maybe_job(beside.retried_as, out);
    if let Some(is_hit) = beside.is_hit {
        out.raw(",\"idempotentHit\":");
        out.flag(is_hit);
    }
    out.raw("}");
}

fn error(job: &Job, limit: Option<u32>, out: &mut Out) {
    let held;
    let (code, message) = match (jobs::error(job), limit) {
        (Some(error), _) => error,
        (None, Some(limit)) => {
            held = format!("{limit} jobs of type {} may run at a time, and do", job.job_type);
            (CONCURRENCY_LIMIT_EXCEEDED, &*held)
        }
        (None, None) => return out.raw("null"),
    };
    out.raw("{\"code\":");
    out.string(code);
    out.raw(",\"message\":");
    out.string(message);
    out.raw("}");
}

fn maybe_job(job: Option<JobId>, out: &mut Out) {
    match job {
        Some(job) => out.job_id(job),
        None => out.raw("null"),
    }
}

#[cfg(test)]
mod tests;

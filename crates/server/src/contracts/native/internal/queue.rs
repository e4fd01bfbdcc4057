//! Queues as other systems know them: a message is a job. To dequeue is to pull, so what a crashed
//! consumer has taken comes again when its lease runs out; to acknowledge is to complete, and to
//! refuse is to fail, both under the lease that the name of the message carries.

use super::super::translate::Submitter;
use super::super::wire;
use super::{ending, failing};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::json;
use crate::limits::PAGE_MAX;
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_engine::Pull;
use mainspring_kernel::command::{Complete, Fail, RunInternally};
use mainspring_kernel::job::{Failure, LeaseToken};
use mainspring_kernel::limits::LEASE_MS_DEFAULT;
use mainspring_kernel::{
    Command, Job, JobId, Principal, QueueName, Receipt, Rejection, StateName, WorkerId,
};
use serde_json::value::RawValue;
use std::time::Duration;

/// Code of a failure that a consumer gave no code for.
const NACKED: &str = "QUEUE_NACK";
/// Who takes messages unless told.
const CONSUMER: &str = "internal";

/// The name of a message: of its job, and of the delivery, if it was delivered.
pub(super) fn message_id(job: JobId, token: Option<LeaseToken>) -> String {
    let job = job.to_string();
    let letters = &job[JobId::PREFIX.len() + 1..];
    match token {
        Some(token) => format!("msg_{letters}_{token}"),
        None => format!("msg_{letters}"),
    }
}

/// The event of the submission of a job.
pub(super) fn event_id(job: JobId) -> String {
    let job = job.to_string();
    format!("evt_{}_1", &job[JobId::PREFIX.len() + 1..])
}

/// The job and the delivery that a name stands for.
fn named(text: &str) -> Option<(JobId, LeaseToken)> {
    let (letters, token) = text.strip_prefix("msg_")?.split_once('_')?;
    let job = format!("{}_{letters}", JobId::PREFIX).parse().ok()?;
    Some((job, token.parse().ok()?))
}

/// What is no name of a delivery proves nothing: the same as a lease that is over.
fn delivery(text: &str) -> Result<(JobId, LeaseToken), Refusal> {
    named(text).ok_or_else(|| Rejection::LeaseLost.into())
}

fn queue(ask: &Ask) -> Result<QueueName, Refusal> {
    QueueName::new(ask.param()).map_err(|bad| refusal::invalid("queue", bad.reason))
}

fn message(job: &Job, token: Option<LeaseToken>) -> api::internal::QueueMessage {
    let time = |at: mainspring_kernel::Timestamp| api::Time(at.0);
    let due_at = job.due_at().unwrap_or(job.run_at).max(job.created_at);
    api::internal::QueueMessage {
        message_id: message_id(job.id, token),
        event_id: event_id(job.id),
        job_id: job.id.to_string(),
        tenant_id: job.tenant.to_string(),
        trace_id: job.trace_id().to_string(),
        job_type: job.job_type.to_string(),
        queue_name: job.queue.to_string(),
        attempt: job.attempt(),
        available_at: time(due_at),
        payload: token.and_then(|_| RawValue::from_string(job.payload.to_string()).ok()),
        hidden_until: job.lease().map(|lease| time(lease.ends_at())),
    }
}

/// A message is made by submitting its job.
pub(in super::super) async fn enqueue(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let queue = queue(&ask)?;
    let wish = {
        let wish: wire::Submit<'_> = json::read(json::check(&ask.body)?)?;
        let window = ask.app.config.key_window_secs;
        let key = ask.idempotency_key()?;
        if wish.queue.as_ref().is_some_and(|named| **named != *queue.as_str()) {
            return Err(refusal::invalid("queue", "is not the queue of the path"));
        }
        let submitter = Submitter::new(&who, ask.trace.as_deref(), window);
        let mut wish = submitter.by(ask.traceparent()).submit(&wish, key)?;
        wish.queue = Some(queue);
        wish
    };
    let submitted = ask.engine().submit(wish).await??;
    let status = if submitted.is_hit { StatusCode::OK } else { StatusCode::CREATED };
    Ok(Reply::status_data(status, &message(&submitted.job, None)))
}

pub(in super::super) async fn dequeue(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let queue = queue(&ask)?;
    let wish: api::internal::Dequeue = match ask.body.is_empty() {
        true => api::internal::Dequeue::default(),
        false => json::read(json::check(&ask.body)?)?,
    };
    let most = wish.max_messages.unwrap_or(1);
    if !(1..=PAGE_MAX as u64).contains(&most) {
        return Err(refusal::invalid("max_messages", "must be between 1 and 100"));
    }
    let lease_ms = super::super::translate::lease_ms(wish.visibility_ms)
        .map_err(|_| refusal::invalid("visibility_ms", "must be between 1 and 86400000"))?;
    let worker = wish.worker_id.as_deref().unwrap_or(CONSUMER);
    let worker = WorkerId::new(worker).map_err(|bad| refusal::invalid("worker_id", bad.reason))?;
    let grants = ask.engine().pull(pull(&who, worker, queue, most as usize, lease_ms)).await?;
    let taken = |job: &Job| message(job, job.lease().map(|lease| lease.token()));
    let messages = grants.iter().map(|grant| taken(&grant.job)).collect();
    Ok(Reply::data(&api::internal::Dequeued { messages }))
}

fn pull(who: &Principal, worker: WorkerId, queue: QueueName, limit: usize, lease_ms: u32) -> Pull {
    Pull {
        tenant: Some(who.tenant.clone()),
        worker,
        token: Some(who.token),
        types: None,
        queues: Some([queue].into()),
        limit,
        wait: Duration::ZERO,
        lease_ms,
        governed: None,
    }
}

pub(in super::super) async fn ack(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::internal::AckMessage = json::read(json::check(&ask.body)?)?;
    let (job, token) = delivery(&wish.message_id)?;
    let command = Command::Complete(Complete { job, token, result: None });
    settle(&ask, &who, wish.message_id, command).await
}

pub(in super::super) async fn nack(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::internal::NackMessage = json::read(json::check(&ask.body)?)?;
    let (job, token) = delivery(&wish.message_id)?;
    let failure = Failure {
        code: NACKED.into(),
        message: "the consumer could not deal with it".into(),
        retryable: wish.requeue.unwrap_or(true),
    };
    let retry_delay_ms = wish.delay_ms;
    let (result, snooze_ms) = (None, None);
    let command = Command::Fail(Fail { job, token, failure, retry_delay_ms, snooze_ms, result });
    settle(&ask, &who, wish.message_id, command).await
}

/// Reports on a message of the queue of the path. Whoever names one of another queue or tenant has
/// taken none of those.
async fn settle(
    ask: &Ask,
    who: &Principal,
    message_id: String,
    command: Command,
) -> Result<Reply, Refusal> {
    let (queue, id) = (queue(ask)?, command.job().ok_or_else(refusal::internal)?);
    let scope = mainspring_engine::store::Scope::Tenant(who.tenant.clone());
    let found = ask.engine().job_within(id, &scope).await?.ok_or_else(refusal::denied)?;
    if found.job.queue != queue {
        return Err(Rejection::LeaseLost.into());
    }
    ask.engine().execute_one(command).await??;
    let job = ask.engine().job(id).await?.ok_or_else(refusal::job_unknown)?.job;
    Ok(Reply::data(&api::internal::MessageSettled {
        message_id,
        job_id: id.to_string(),
        status: job.state.name().as_str().to_owned(),
        attempt: job.attempt(),
    }))
}

/// Takes what waits in a queue and ends each attempt at once, as `run` does for one job.
pub(in super::super) async fn drain(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["max_messages", "force_fail", "transient_fail", "error_code"])?;
    let queue = queue(&ask)?;
    let most = query.number("max_messages")?.unwrap_or(1);
    if !(1..=PAGE_MAX as u64).contains(&most) {
        return Err(refusal::invalid("max_messages", "must be between 1 and 100"));
    }
    let ending = ending(failing(&query)?, query.get("error_code"))?;
    let worker = WorkerId::stored(CONSUMER.into());
    let wish = pull(&who, worker, queue, most as usize, LEASE_MS_DEFAULT);
    let grants = ask.engine().pull(wish).await?;
    let mut drained = api::internal::Drained::default();
    let mut commands = Vec::with_capacity(grants.len());
    for grant in &grants {
        let job = &grant.job;
        drained.message_ids.push(message_id(job.id, job.lease().map(|lease| lease.token())));
        let (by, ending) = (who.user.clone(), ending.clone());
        commands.push(Command::RunInternally(RunInternally { job: job.id, by, ending }));
    }
    drained.processed = grants.len() as u64;
    if commands.is_empty() {
        return Ok(Reply::data(&drained));
    }
    for outcome in ask.engine().execute(commands).await? {
        let state = match outcome {
            Ok(Receipt::Ran { state, .. }) => state,
            // Somebody ended it meanwhile; or it comes again when its lease runs out.
            Ok(_) | Err(_) => StateName::Running,
        };
        match state {
            StateName::Succeeded => drained.succeeded += 1,
            StateName::Retrying => drained.retrying += 1,
            StateName::Failed => drained.failed += 1,
            StateName::Queued
            | StateName::Running
            | StateName::DlqPending
            | StateName::DlqRecorded
            | StateName::Cancelled => {}
        }
    }
    drained.acked = drained.succeeded + drained.failed;
    drained.requeued = drained.retrying;
    Ok(Reply::data(&drained))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_named_after_its_job_and_its_delivery() {
        let (job, token) = (JobId(77), LeaseToken { fence: 3, secret: 9 });
        assert_eq!(named(&message_id(job, Some(token))), Some((job, token)));
        for other in ["", "msg_", "msg_x_y", &message_id(job, None), &job.to_string()] {
            assert_eq!(named(other), None, "{other}");
        }
        assert!(event_id(job).ends_with("_1"));
    }
}

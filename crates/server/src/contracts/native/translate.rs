//! From the contract's words to the kernel's, purely.

use super::wire;
use crate::auth;
use crate::limits::PULL_NAMES_MAX;
use crate::refusal::{self, Refusal};
use mainspring_api::Time;
use mainspring_engine::Pull;
use mainspring_engine::store::Scope;
use mainspring_kernel::command::{Complete, Fail, Follows, Heartbeat, Release, Submit};
use mainspring_kernel::event::TASK_EXECUTION_FAILED;
use mainspring_kernel::idempotency::Keyed;
use mainspring_kernel::job::{
    After, AfterCondition, Bounds, Failure, Idempotency, LeaseToken, ProgressNote,
};
use mainspring_kernel::limits::{
    AFTER_MAX, CHECKPOINT_BYTES_MAX, ERROR_CODE_BYTES_MAX, LEASE_MS_DEFAULT, LEASE_MS_MAX,
    PULL_MAX, SNOOZE_MS_MAX, WAIT_MS_MAX,
};
use mainspring_kernel::name::BadName;
use mainspring_kernel::traceparent;
use mainspring_kernel::{
    Command, JobId, JobType, Payload, Principal, QueueName, Rejection, Timestamp, WorkerId,
};
use std::sync::Arc;
use std::time::Duration;

/// Builds submissions of one caller; names that repeat are checked and shared once.
pub(super) struct Submitter<'a> {
    who: &'a Principal,
    trace: Option<&'a str>,
    traceparent: Option<Box<str>>,
    window_secs: Option<u32>,
    last_type: Option<JobType>,
    last_queue: Option<QueueName>,
}

impl<'a> Submitter<'a> {
    /// Submissions of `who` in the trace of the request, with keys that last `window_secs`.
    pub(super) fn new(
        who: &'a Principal,
        trace: Option<&'a str>,
        window_secs: Option<u32>,
    ) -> Self {
        Submitter { who, trace, traceparent: None, window_secs, last_type: None, last_queue: None }
    }

    /// The same, by a step of another system's trace.
    pub(super) fn by(self, traceparent: Option<Box<str>>) -> Self {
        Submitter { traceparent, ..self }
    }

    /// The command for one wish.
    pub(super) fn submit(
        &mut self,
        wish: &wire::Submit<'_>,
        header_key: Option<&str>,
    ) -> Result<Submit, Rejection> {
        let job_type = match &self.last_type {
            Some(last) if last.as_str() == &*wish.job_type => last.clone(),
            _ => JobType::new(&wish.job_type).map_err(bad_name("job_type"))?,
        };
        self.last_type = Some(job_type.clone());
        let queue = match (&self.last_queue, &wish.queue) {
            (_, None) => None,
            (Some(last), Some(name)) if last.as_str() == &**name => Some(last.clone()),
            (_, Some(name)) => Some(QueueName::new(name).map_err(bad_name("queue"))?),
        };
        if queue.is_some() {
            self.last_queue.clone_from(&queue);
        }
        let idempotency = self.idempotency(wish, &job_type, header_key)?;
        let named = after(wish)?;
        let parent = wish.parent_id.as_ref().map(|text| text.parse::<JobId>()).transpose();
        let submit = Submit {
            tenant: self.who.tenant.clone(),
            user: self.who.user.clone(),
            job_type,
            payload: Payload::from(wish.payload.get()),
            run_at: instant("run_at", wish.run_at.as_deref())?,
            delay_ms: wish.delay_ms,
            priority: wish.priority,
            queue,
            timeout_ms: wish.timeout_ms,
            max_retries: wish.max_retries,
            idempotency,
            alias: None,
            plan: None,
            trace: wish.trace_id.as_deref().or(self.trace).map(Into::into),
            // One that is none is as good as none.
            traceparent: match wish.traceparent.as_deref() {
                Some(text) => traceparent::carried(text),
                None => self.traceparent.clone(),
            },
            parent: parent.map_err(|_| field("parent_id", "must be a job id"))?,
            subject: wish.subject.as_deref().map(Into::into),
            labels: wish.labels.as_ref().map_or_else(Vec::new, |labels| labels.0.clone()),
            expires_at: instant("expires_at", wish.expires_at.as_deref())?,
            bounds: Bounds {
                deadline_at: instant("deadline_at", wish.deadline_at.as_deref())?,
                queue_timeout_ms: wish.queue_timeout_ms,
                after: named.0,
            },
            follows: named.1,
            may_name_others: !matches!(auth::scope(self.who), Scope::User(..)),
            ended: None,
            concurrency_key: wish.concurrency_key.as_deref().map(Into::into),
        };
        // A key that is taken must not hide that the rest of the wish makes no sense.
        submit.check()?;
        Ok(submit)
    }

    fn idempotency(
        &self,
        wish: &wire::Submit<'_>,
        job_type: &JobType,
        header_key: Option<&str>,
    ) -> Result<Option<Box<Idempotency>>, Rejection> {
        let key = match (wish.idempotency_key.as_deref(), header_key) {
            (Some(body), Some(header)) if body != header => {
                return Err(field("idempotency_key", "differs from the Idempotency-Key header"));
            }
            (Some(key), _) | (None, Some(key)) => key,
            (None, None) => return Ok(None),
        };
        let keyed = Keyed {
            tenant: &self.who.tenant,
            user: &self.who.user,
            key,
            scope: wish.idempotency_scope.as_deref(),
            job_type,
            payload: wish.payload.get(),
            window_secs: self.window_secs,
        };
        keyed.idempotency().map(Box::new).map(Some)
    }
}

/// The jobs that a wish names to wait for: those that there are, and those of its own batch.
fn after(wish: &wire::Submit<'_>) -> Result<(Option<After>, Option<Follows>), Rejection> {
    let condition = match wish.after_condition.as_deref() {
        None => AfterCondition::Success,
        Some(text) => {
            AfterCondition::parse(text).ok_or(field("after_condition", "must be success or end"))?
        }
    };
    let named = &wish.after;
    if named.is_empty() {
        return match wish.after_condition {
            // What follows a batch may say on what condition.
            Some(_) => Ok((Some(After { jobs: Vec::new(), members: 0, condition }), None)),
            None => Ok((None, None)),
        };
    }
    if named.len() > AFTER_MAX {
        return Err(field("after", "must name at most 100 jobs"));
    }
    let (mut jobs, mut places) = (Vec::new(), Vec::new());
    for text in named {
        match text.strip_prefix('#') {
            Some(place) => places.push(place.parse().map_err(|_| bad_after())?),
            None => jobs.push(text.parse::<JobId>().map_err(|_| bad_after())?),
        }
    }
    jobs.sort_unstable();
    jobs.dedup();
    places.sort_unstable();
    places.dedup();
    let follows = (!places.is_empty()).then_some(Follows::Some(places));
    Ok((Some(After { jobs, members: 0, condition }), follows))
}

fn bad_after() -> Rejection {
    field("after", "must name jobs by their ids, or earlier ones of the batch as #0, #1")
}

fn field(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}

fn bad_name(name: &'static str) -> impl Fn(BadName) -> Rejection {
    move |bad| field(name, bad.reason)
}

fn instant(name: &'static str, text: Option<&str>) -> Result<Option<Timestamp>, Rejection> {
    let Some(text) = text else { return Ok(None) };
    let time: Time =
        text.parse().map_err(|_| field(name, "must be an RFC 3339 instant in quotes"))?;
    Ok(Some(Timestamp(time.0)))
}

/// The engine's pull. Only an admin pulls over all tenants.
pub(super) fn pull(wish: &wire::Pull<'_>, who: &Principal) -> Result<Pull, Refusal> {
    let limit = wish.limit.unwrap_or(1);
    if !(1..=PULL_MAX as u64).contains(&limit) {
        return Err(refusal::invalid("limit", "must be between 1 and 10000"));
    }
    if wish.wait_ms.is_some_and(|wait| wait > WAIT_MS_MAX) {
        return Err(refusal::invalid("wait_ms", "must be at most 60000"));
    }
    Ok(Pull {
        tenant: (!who.is_admin()).then(|| who.tenant.clone()),
        worker: worker(&wish.worker_id)?,
        token: Some(who.token),
        types: names("types", wish.types.as_deref(), JobType::new)?,
        queues: names("queues", wish.queues.as_deref(), QueueName::new)?,
        limit: limit as usize,
        wait: Duration::from_millis(wish.wait_ms.unwrap_or(0)),
        lease_ms: lease_ms(wish.lease_ms)?,
        governed: None,
    })
}

fn names<T>(
    field: &'static str,
    texts: Option<&[wire::Text<'_>]>,
    make: impl Fn(&str) -> Result<T, BadName>,
) -> Result<Option<Arc<[T]>>, Refusal> {
    let Some(texts) = texts else { return Ok(None) };
    if texts.len() > PULL_NAMES_MAX {
        return Err(refusal::invalid(field, "must have at most 100 entries"));
    }
    let made: Result<Arc<[T]>, _> = texts.iter().map(|text| make(text)).collect();
    made.map(Some).map_err(|bad| refusal::invalid(field, bad.reason))
}

/// A worker's name.
pub(super) fn worker(text: &str) -> Result<WorkerId, Refusal> {
    WorkerId::new(text).map_err(|bad| refusal::invalid("worker_id", bad.reason))
}

/// A lease's length; the kernel has the shorter bound.
pub(super) fn lease_ms(wish: Option<u64>) -> Result<u32, Refusal> {
    match wish {
        None => Ok(LEASE_MS_DEFAULT),
        Some(ms) if ms >= 1 && ms <= u64::from(LEASE_MS_MAX) => Ok(ms as u32),
        Some(_) => Err(refusal::invalid("lease_ms", "must be between 1 and 86400000")),
    }
}

/// Which attempt a report is about. Text that is no id or token names no lease at all.
pub(super) fn attempt(job: &str, token: &str) -> Result<(JobId, LeaseToken), Rejection> {
    match (job.parse(), token.parse()) {
        (Ok(job), Ok(token)) => Ok((job, token)),
        _ => Err(Rejection::LeaseLost),
    }
}

/// One kind of report: what names its job, and the command it stands for.
pub(super) trait Report {
    fn job_id(&self) -> &str;
    fn command(&self) -> Result<Command, Rejection>;
}

impl Report for wire::Complete<'_> {
    fn job_id(&self) -> &str {
        &self.job_id
    }

    fn command(&self) -> Result<Command, Rejection> {
        let (job, token) = attempt(&self.job_id, &self.lease_token)?;
        let result = self.result.map(|result| Payload::from(result.get()));
        Ok(Command::Complete(Complete { job, token, result }))
    }
}

impl Report for wire::Fail<'_> {
    fn job_id(&self) -> &str {
        &self.job_id
    }

    fn command(&self) -> Result<Command, Rejection> {
        let (job, token) = attempt(&self.job_id, &self.lease_token)?;
        let code: Arc<str> = self.error_code.as_deref().unwrap_or(TASK_EXECUTION_FAILED).into();
        let silent = if self.snooze_ms.is_some() { "" } else { "the worker gave no message" };
        let message = self.message.as_deref().unwrap_or(silent).into();
        let failure = Failure { code, message, retryable: self.retryable.unwrap_or(true) };
        let result = self.result.map(|result| Payload::from(result.get()));
        let retry_delay_ms = self.retry_delay_ms;
        let snooze_ms = self.snooze_ms;
        if snooze_ms.is_some() && retry_delay_ms.is_some() {
            return Err(field("snooze_ms", "cannot be combined with retry_delay_ms"));
        }
        if snooze_ms.is_some_and(|ms| ms > SNOOZE_MS_MAX) {
            return Err(field("snooze_ms", "must be at most 2592000000 (thirty days)"));
        }
        Ok(Command::Fail(Fail { job, token, failure, retry_delay_ms, result, snooze_ms }))
    }
}

impl Report for wire::Release<'_> {
    fn job_id(&self) -> &str {
        &self.job_id
    }

    fn command(&self) -> Result<Command, Rejection> {
        let (job, token) = attempt(&self.job_id, &self.lease_token)?;
        Ok(Command::Release(Release { job, token, reason: self.reason.as_deref().map(Into::into) }))
    }
}

/// The command of one attempt's heartbeat.
pub(super) fn beat(wish: &wire::Beat<'_>, lease_ms: u32) -> Result<Command, Rejection> {
    let (job, token) = attempt(&wish.job_id, &wish.lease_token)?;
    let told = wish.progress.map(|raw| told(raw.get())).transpose()?;
    let (percent, note) = told.unwrap_or_default();
    let progress_pct = match percent {
        Some(progress) if !(0.0..=100.0).contains(&progress) => {
            return Err(field("progress", "must be between 0 and 100"));
        }
        progress => progress.map(|progress| progress as u8),
    };
    Ok(Command::Heartbeat(Heartbeat { job, token, lease_ms, progress_pct, note }))
}

/// What a worker says of its progress: a number, or an object.
fn told(text: &str) -> Result<(Option<f64>, Option<Box<ProgressNote>>), Rejection> {
    if let Ok(percent) = serde_json::from_str::<f64>(text) {
        return Ok((Some(percent), None));
    }
    let reason = "must be a number, or an object with percent, message and checkpoint";
    let told: wire::Told<'_> = serde_json::from_str(text).map_err(|_| field("progress", reason))?;
    let checkpoint = told.checkpoint.map(|value| Payload::from(value.get()));
    if checkpoint.as_ref().is_some_and(|value| value.len() > CHECKPOINT_BYTES_MAX) {
        return Err(field("checkpoint", "must be at most 64 KiB of JSON"));
    }
    let message = told.message.as_deref().map(Into::into);
    let has_note = message.is_some() || checkpoint.is_some();
    Ok((told.percent, has_note.then(|| Box::new(ProgressNote { message, checkpoint }))))
}

/// Whether text looks like a stable code.
pub(super) fn is_code(text: &str) -> bool {
    let is_letter = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
    (1..=ERROR_CODE_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests;

//! What other systems call workflows: the steps of the jobs of one trace, for replay; the numbers
//! of a tenant; and jobs that wait for a person. The last is the mechanism of `needs_input`
//! (`kernel/src/entity/question.rs`), with a token for whoever is to answer.

use super::super::{filters, jobs};
use super::outbox;
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::cursor;
use crate::json;
use crate::limits::{JOBS_PAGE_BYTES_MAX, OUTBOX_COUNTED_MAX};
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_engine::Most;
use mainspring_engine::store::{ItemFilter, JobFilter, Scope};
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::question::{
    self, Asked, Question, QuestionCommand, ResumeToken, Standing,
};
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::limits::{INTERRUPT_MS, NAME_BYTES_MAX, TOTAL_MAX};
use mainspring_kernel::{
    DlqState, Job, JobId, Principal, QueueSpec, Rejection, StateName, TypeSpec, UserId, text,
};
use serde_json::Value;
use std::time::Duration;

/// The steps of the jobs of one trace.
pub(in super::super) async fn checkpoints(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["limit", "cursor"])?;
    let thread = ask.param().to_owned();
    if thread.is_empty() || thread.len() > NAME_BYTES_MAX || text::has_control(&thread) {
        return Err(refusal::invalid("thread_id", "must be 1 to 200 bytes of plain text"));
    }
    let list = digest(&[b"checkpoints", who.tenant.as_str().as_bytes(), thread.as_bytes()]);
    let after = filters::before(&query, list)?.map(JobId);
    let scope = Scope::Tenant(who.tenant.clone());
    let filter = JobFilter { trace_id: Some(thread.clone()), ..JobFilter::of(scope.clone()) };
    let most = Most { jobs: query.limit()?, bytes: JOBS_PAGE_BYTES_MAX };
    let page = ask.engine().jobs_oldest_first(&[filter], after, most).await?;
    let mut items = Vec::new();
    for job in &page.items {
        let Some(found) = ask.engine().job_within(job.id, &scope).await? else { continue };
        items.extend(found.history.iter().filter_map(|step| checkpoint(job.id, &thread, step)));
    }
    let next_cursor = page.next.map(|next| cursor::write(list, next.0));
    Ok(Reply::data(&api::internal::Checkpoints { items, next_cursor }))
}

/// A step as replay knows it; some are not told of.
fn checkpoint(job: JobId, thread: &str, step: &Transition) -> Option<api::internal::Checkpoint> {
    let node = match step.to {
        StateName::Running => "job_started",
        StateName::Retrying => "job_retrying",
        StateName::Succeeded => "job_succeeded",
        StateName::Failed => "job_failed",
        StateName::Cancelled => "job_cancelled",
        StateName::Queued | StateName::DlqPending | StateName::DlqRecorded => return None,
    };
    let job_id = job.to_string();
    // A retry that is scheduled counts with the attempt that failed.
    let retries = step.attempt - u32::from(step.to != StateName::Retrying).min(step.attempt);
    let from = step.from.map_or("", StateName::as_str);
    Some(api::internal::Checkpoint {
        checkpoint_id: format!("evt_{}_{}", &job_id[JobId::PREFIX.len() + 1..], step.seq),
        thread_id: thread.to_owned(),
        job_id: job_id.clone(),
        seq: step.seq,
        node: node.to_owned(),
        status: step.to.as_str().to_owned(),
        payload: api::internal::CheckpointPayload {
            trace_id: thread.to_owned(),
            job_id,
            retry_count: retries,
            status_transition: format!("{from}->{}", step.to),
            reason_code: step.reason.as_ref().map(|reason| reason.code.to_string()),
        },
        occurred_at: api::Time(step.at.0),
    })
}

/// The numbers of the caller's tenant.
pub(in super::super) async fn summary(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let engine = ask.engine();
    let jobs = || JobFilter::of(Scope::Tenant(who.tenant.clone()));
    let count = async |filter: JobFilter| -> Result<u64, Refusal> {
        Ok(engine.count_jobs(&filter, TOTAL_MAX).await? as u64)
    };
    let of = async |state: StateName| count(JobFilter { state: Some(state), ..jobs() }).await;
    let (succeeded, failed) = (of(StateName::Succeeded).await?, of(StateName::Failed).await?);
    let queue = QueueSpec::default_name();
    let waiting =
        JobFilter { state: Some(StateName::Queued), queue: Some(queue.clone()), ..jobs() };
    let open = ItemFilter {
        state: Some(DlqState::Open.as_str().to_owned()),
        job: jobs(),
        signature: None,
        since: None,
        until: None,
    };
    let share = |part: u64, of_none: f64| match succeeded + failed {
        0 => of_none,
        ended => part as f64 / ended as f64,
    };
    let held = engine.held_by(&who.tenant).await?;
    let plain = TypeSpec::plain(mainspring_kernel::JobType::stored("plain".into()));
    let newest = engine.moves_after(i64::MAX as u64, 1, Duration::ZERO).await?.newest;
    Ok(Reply::data(&api::internal::MetricsSummary {
        api: api::internal::SummaryApi {
            total_jobs: count(jobs()).await?,
            succeeded_jobs: succeeded,
            failed_jobs: failed,
            error_rate: share(failed, 0.0),
        },
        worker: api::internal::SummaryWorker {
            retrying_jobs: of(StateName::Retrying).await?,
            dlq_open: engine.count_items(&open, TOTAL_MAX).await? as u64,
            outbox_pending: outbox::pending(&ask, &who, OUTBOX_COUNTED_MAX).await?,
            max_retries: plain.max_retries,
            retry_backoff_base_ms: plain.backoff.base_ms.into(),
            retry_backoff_max_ms: plain.backoff.max_ms.into(),
            queue_name: queue.to_string(),
            queue_pending: count(waiting).await?,
        },
        slo: api::internal::SummarySlo { success_rate: share(succeeded, 1.0) },
        observability: api::internal::SummaryObservability {
            backlog_jobs: held.jobs,
            backlog_bytes: held.bytes,
            stream_position: newest,
            counted_up_to: TOTAL_MAX as u64,
        },
    }))
}

/// Has a job wait for a person.
pub(in super::super) async fn interrupt(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::internal::Interrupt = json::read(json::check(&ask.body)?)?;
    let job = jobs::visible(&ask, &who).await?.job;
    let token = match wish.lease_token.as_deref() {
        None => None,
        Some(text) => Some(text.parse().map_err(|()| Refusal::from(Rejection::LeaseLost))?),
    };
    let asked = Asked {
        text: wish.question.into(),
        options: wish.options.into_iter().flatten().map(Into::into).collect(),
        default: None,
        deadline: Some(ask.engine().now().plus_millis(INTERRUPT_MS)),
    };
    let by = who.user.clone();
    let command = QuestionCommand::Ask { job: job.id, token, by, asked: Box::new(asked) };
    ask.engine().execute_one(command.into()).await??;
    shown(&ask, &job).await
}

/// What a job waits for.
pub(in super::super) async fn interrupted(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = jobs::visible(&ask, &who).await?.job;
    shown(&ask, &job).await
}

async fn shown(ask: &Ask, job: &Job) -> Result<Reply, Refusal> {
    let question = asked(ask, job.id).await?;
    let Some(question) = question else {
        return Err(Rejection::QuestionConflict { state: "not asked" }.into());
    };
    let reviewer = match &question.standing {
        Standing::Answered { by, .. } => Some(by.to_string()),
        Standing::Open
        | Standing::Defaulted { .. }
        | Standing::Expired { .. }
        | Standing::Withdrawn { .. } => None,
    };
    Ok(Reply::data(&api::internal::Interrupted {
        job_id: job.id.to_string(),
        status: question.state().to_owned(),
        question: question.asked.text.to_string(),
        options: question.asked.options.iter().map(ToString::to_string).collect(),
        resume_token: question.resume_token().map(|token| token.to_string()),
        expires_at: question.asked.deadline.map(|at| api::Time(at.0)),
        answer: question.answer().map(str::to_owned),
        reviewer_id: reviewer,
    }))
}

async fn asked(ask: &Ask, job: JobId) -> Result<Option<Question>, Refusal> {
    let found = ask.engine().entity(question::of_job(job)).await?;
    Ok(found.and_then(|entity| {
        if let Body::Question(question) = entity.body { Some(*question) } else { None }
    }))
}

/// Has a job go on with a person's answer. What is shown for it counts once, for this tenant.
pub(in super::super) async fn resume(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::internal::Resume = json::read(json::check(&ask.body)?)?;
    let reviewer = Some(wish.reviewer_id.trim()).filter(|it| !it.is_empty());
    let reviewer = reviewer.ok_or_else(refusal::reviewer_required)?;
    let by = UserId::new(reviewer).map_err(|bad| refusal::invalid("reviewer_id", bad.reason))?;
    let invalid = || Refusal::from(Rejection::ResumeInvalid);
    let token: ResumeToken = wish.resume_token.parse().map_err(|()| invalid())?;
    let scope = Scope::Tenant(who.tenant.clone());
    let found = ask.engine().job_within(token.job, &scope).await?;
    let Some(job) = found.map(|found| found.job) else { return Err(invalid()) };
    let note = Note {
        action: "resume_submitted",
        object_type: "job",
        object_id: job.id.to_string(),
        after: Some(Value::from(wish.answer.as_str())),
        reason: Some(format!("answered by {by}")),
        ..Note::default()
    };
    let (answer, shown_token) = (wish.answer.into(), Some(token));
    let command = QuestionCommand::Answer { job: job.id, answer, by, shown: shown_token };
    audit::change(&ask, &who, command.into(), note).await?;
    shown(&ask, &job).await
}

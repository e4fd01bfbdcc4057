//! Why a job is not running yet. Every reason has a stable code and a sentence for people.

use crate::colleagues;
use crate::engine::Shared;
use crate::governed;
use crate::limits::WAITED_FOR_SHOWN;
use mainspring_kernel::dispatch::has_room;
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::wait::Wait;
use mainspring_kernel::event::HoldCode;
use mainspring_kernel::job::AfterCondition;
use mainspring_kernel::{Job, JobId, StateName, Timestamp, Transition};
use mainspring_store::{Error, JobWithHistory, Standing};

/// What a job is doing and, if it waits, for what.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The job.
    pub job: Job,
    /// One sentence.
    pub summary: String,
    /// Everything that holds it back, the first being the one to look at.
    pub reasons: Vec<WhyWaiting>,
    /// When it may run at the earliest, if that is known.
    pub earliest: Option<Timestamp>,
}

/// One thing that holds a job back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyWaiting {
    /// A stable code.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

pub(crate) async fn explain(shared: &Shared, id: JobId) -> Result<Option<Explanation>, Error> {
    let now = shared.clock.now();
    let Some(found) = shared.store.job(id).await? else { return Ok(None) };
    let standing = shared.store.standing(id, now).await?;
    let JobWithHistory { job, history } = found;
    let held = match waits_for(shared, &job).await? {
        Some(waits) => Some(waits),
        None => match governed::held(shared, &job, &history).await? {
            Some(held) => Some(held),
            None => paused(&job, &history),
        },
    };
    let workers = colleagues::everywhere(shared).await?;
    let has_worker = workers.iter().any(|seen| seen.wants(&job.tenant, &job.job_type, &job.queue));
    let reasons = reasons(&job, (standing.as_ref(), held), has_worker, now);
    let summary = summary(&job, &reasons);
    let earliest = job.due_at().filter(|at| *at != Timestamp::NEVER || job.plan().is_some());
    Ok(Some(Explanation { job, summary, reasons, earliest }))
}

/// Who has it wait, if somebody does.
fn paused(job: &Job, history: &[Transition]) -> Option<WhyWaiting> {
    let last = history.last().filter(|_| job.due_at() == Some(Timestamp::NEVER))?;
    let reason = last.reason.as_deref().filter(|why| why.code == HoldCode::Paused.as_str())?;
    let message = format!("{} has it wait: {}", last.actor, reason.message);
    Some(WhyWaiting { code: HoldCode::Paused.as_str(), message })
}

/// The jobs that it waits for, if it does.
async fn waits_for(shared: &Shared, job: &Job) -> Result<Option<WhyWaiting>, Error> {
    if !job.waits_for_jobs() {
        return Ok(None);
    }
    let entity = shared.store.entity(Wait::id_of(job.id)).await?;
    let Some(Body::Wait(wait)) = entity.map(|entity| entity.body) else { return Ok(None) };
    let some = wait.some_left(WAITED_FOR_SHOWN);
    let named: Vec<String> = some.iter().map(JobId::to_string).collect();
    let (left, more) = (wait.left(), wait.left().saturating_sub(some.len()));
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let how = match wait.condition {
        AfterCondition::Success => "to end well",
        AfterCondition::End => "to end",
    };
    let message = format!("{left} jobs have {how} first: {}{rest}", named.join(", "));
    Ok(Some(WhyWaiting { code: "WAITS_FOR", message }))
}

fn reasons(
    job: &Job,
    (standing, held): (Option<&Standing>, Option<WhyWaiting>),
    has_worker: bool,
    now: Timestamp,
) -> Vec<WhyWaiting> {
    let is_held = held.is_some();
    let mut reasons: Vec<WhyWaiting> = held.into_iter().collect();
    let mut because = |code, message| reasons.push(WhyWaiting { code, message });
    let Some(due_at) = job.due_at() else { return reasons };
    if due_at > now && !(is_held && due_at == Timestamp::NEVER) {
        let seconds = due_at.since(now).as_secs_f64();
        if job.state.name() == StateName::Retrying {
            because("RETRY_BACKOFF", format!("retry {} is due in {seconds:.1} s", job.retry_count));
        } else {
            because("NOT_DUE", format!("run_at is {seconds:.1} s ahead"));
        }
    }
    if let Some(standing) = standing {
        if standing.is_queue_paused {
            because("QUEUE_PAUSED", format!("queue {} is paused", job.queue));
        }
        if let Some((limit, used)) = standing.limit.filter(|(limit, used)| !has_room(*used, *limit))
        {
            let message =
                format!("{used} of {limit} jobs of type {} may run at a time", job.job_type);
            because("CONCURRENCY_LIMIT_EXCEEDED", message);
        }
        if standing.ahead > 0 && due_at <= now {
            because("JOBS_AHEAD", format!("{} jobs go before it", standing.ahead));
        }
    }
    if !has_worker {
        let message =
            format!("no worker asked for type {} in queue {} lately", job.job_type, job.queue);
        because("NO_WORKER", message);
    }
    if reasons.is_empty() {
        reasons.push(WhyWaiting {
            code: "READY",
            message: "it goes to the next worker that asks".to_owned(),
        });
    }
    reasons
}

fn summary(job: &Job, reasons: &[WhyWaiting]) -> String {
    match (job.state.name(), reasons.first()) {
        (StateName::Queued | StateName::Retrying, Some(first)) => {
            format!("waiting: {}", first.message)
        }
        (StateName::Running, _) => match job.lease() {
            Some(lease) => format!("running on worker {}, attempt {}", lease.worker, job.attempt()),
            None => "running".to_owned(),
        },
        (StateName::Failed, _) => match &job.last_failure {
            Some(last_failure) => format!(
                "failed after {} attempts with {}; dead-letter item {}",
                job.attempt(),
                last_failure.failure.code,
                job.id.dlq()
            ),
            None => "failed".to_owned(),
        },
        (state, _) => format!("the job is {state}"),
    }
}

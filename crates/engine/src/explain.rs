//! Why a job is not running yet. Every reason has a stable code and a sentence for people.

use crate::colleagues;
use crate::engine::Shared;
use crate::governed;
use crate::limits::WAITED_FOR_SHOWN;
use crate::workers::WorkerSeen;
use mainspring_kernel::dispatch::{Basis, Estimate, Outlook, has_room};
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::tenant::tenant_id;
use mainspring_kernel::entity::wait::Wait;
use mainspring_kernel::event::HoldCode;
use mainspring_kernel::flow::{Held, HeldBy, Pause};
use mainspring_kernel::job::AfterCondition;
use mainspring_kernel::limits::RETRY_EVERY;
use mainspring_kernel::{Job, JobId, StateName, Timestamp, Transition};
use mainspring_store::{Error, JobWithHistory, Scope, Standing};

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
    /// When it may be expected to start, if it waits.
    pub start: Option<ExpectedStart>,
}

/// When a job may be expected to start, and what that rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedStart {
    /// When; nothing if nobody knows.
    pub at: Option<Timestamp>,
    /// One of [`Basis::ALL`].
    pub basis: &'static str,
    /// For people.
    pub message: String,
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
    let mut standing = shared.store.standing(id, now).await?;
    let JobWithHistory { job, history } = found;
    if let Some(standing) = &mut standing {
        standing.holders = own(shared, &job, &standing.holders).await?;
    }
    let held = match waits_for(shared, &job).await? {
        Some(waits) => Some(waits),
        None => match governed::held(shared, &job, &history).await? {
            Some(held) => Some(held),
            None => paused(&job, &history),
        },
    };
    let unasked = unasked(shared, &job, now).await?;
    let mut reasons = reasons(&job, (standing.as_ref(), held), unasked, now);
    if job.due_at().is_some()
        && let Some(Pause { by, .. }) = tenant_pause(shared, &job).await?
    {
        reasons.retain(|why| why.code != "READY");
        let message = format!("tenant {} was paused by {by}", job.tenant);
        reasons.insert(0, WhyWaiting { code: "TENANT_PAUSED", message });
    }
    let start = expected_start(shared, &job, standing.as_ref(), &reasons, now).await?;
    let summary = summary(&job, &reasons);
    let opens_at = standing.as_ref().and_then(|standing| standing.held?.until);
    let due_at = job.due_at().map(|at| opens_at.map_or(at, |opens_at| at.max(opens_at)));
    let earliest = due_at.filter(|at| *at != Timestamp::NEVER || job.plan().is_some());
    Ok(Some(Explanation { job, summary, reasons, earliest, start }))
}

/// Codes of what has to be done away with before anybody can say when a job starts.
const BLOCKING: &[&str] = &[
    "PAUSED",
    "QUEUE_PAUSED",
    "TYPE_PAUSED",
    "TENANT_PAUSED",
    "GATE_CLOSED",
    "OBJECT_UNCERTAIN",
    "AUTO_VERIFY_BUDGET",
    "WAITS_FOR",
    "NO_WORKER",
];

/// When a job may be expected to start, if it waits.
async fn expected_start(
    shared: &Shared,
    job: &Job,
    standing: Option<&Standing>,
    reasons: &[WhyWaiting],
    now: Timestamp,
) -> Result<Option<ExpectedStart>, Error> {
    let (Some(due_at), Some(standing)) = (job.due_at(), standing) else { return Ok(None) };
    let rate = match standing.held {
        Some(Held { by: HeldBy::Rate, .. }) => {
            let types = shared.store.types().await?;
            let spec = types.iter().find(|spec| spec.name == job.job_type);
            spec.and_then(|spec| Some(spec.flow.rate_limit.as_ref()?.per_second()))
        }
        Some(Held { by: HeldBy::Circuit, .. }) | None => None,
    };
    let blocking = reasons.iter().find(|why| BLOCKING.contains(&why.code));
    let outlook = Outlook {
        due_at,
        blocked: blocking.map(|why| why.code),
        held: standing.held,
        rate,
        ahead: standing.ahead,
        is_fresh_first: standing.is_fresh_first,
        is_full: standing.limit.is_some_and(|(limit, used)| !has_room(used, limit)),
        pace: shared.paces.of(job, now),
    };
    let Estimate { at, basis } = outlook.estimate(now);
    Ok(Some(ExpectedStart { at, basis: basis.as_str(), message: rests_on(&outlook, basis) }))
}

/// What an estimate rests on, for people.
fn rests_on(outlook: &Outlook, basis: Basis) -> String {
    match basis {
        Basis::Due => "when it is due".to_owned(),
        Basis::Refill => "when the rate limit has room for those before it and for it".to_owned(),
        Basis::Circuit => "when the circuit lets one through".to_owned(),
        Basis::NextPull => "nothing of its kind is before it: when a worker asks".to_owned(),
        Basis::Pace => {
            let (started, over) = outlook.pace.unwrap_or_default();
            let seconds = over.as_secs();
            let ahead = outlook.ahead;
            format!(
                "{ahead} before it, and this server started {started} of its kind in the last \
                 {seconds} s"
            )
        }
        Basis::Unknown(Some(code)) => format!("nobody knows: {code} comes first"),
        Basis::Unknown(None) => {
            "nobody knows: this server started none of its kind lately, or it is too far ahead"
                .to_owned()
        }
    }
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
    let jobs = if left == 1 { "1 job has".to_owned() } else { format!("{left} jobs have") };
    let message = format!("{jobs} {how} first: {}{rest}", named.join(", "));
    Ok(Some(WhyWaiting { code: "WAITS_FOR", message }))
}

/// Who paused the tenant of a job, if somebody did.
async fn tenant_pause(shared: &Shared, job: &Job) -> Result<Option<Pause>, Error> {
    let found = shared.store.entity(tenant_id(&job.tenant)).await?;
    Ok(found.and_then(|it| if let Body::Tenant(card) = it.body { card.paused } else { None }))
}

/// Those of `jobs` that belong to the tenant of `job`: the others are nobody's business.
async fn own(shared: &Shared, job: &Job, jobs: &[JobId]) -> Result<Vec<JobId>, Error> {
    let mut own = Vec::new();
    let scope = Scope::Tenant(job.tenant.clone());
    for id in jobs {
        own.extend(shared.store.job_within(*id, &scope).await?.map(|found| found.job.id));
    }
    Ok(own)
}

/// Since when no worker of any server has asked for such jobs, if none did lately.
async fn unasked(shared: &Shared, job: &Job, now: Timestamp) -> Result<Option<String>, Error> {
    let workers = colleagues::remembered(shared).await?;
    let wants = |seen: &&WorkerSeen| seen.wants(&job.tenant, &job.job_type, &job.queue);
    let last = workers.iter().filter(wants).map(|seen| seen.last_seen).max();
    if last.is_some_and(|at| now.since(at) <= shared.config.worker_memory) {
        return Ok(None);
    }
    let since = match last {
        Some(at) => format!("for {} s", now.since(at).as_secs()),
        None => {
            let seconds = now.since(shared.started_at).as_secs();
            format!("since this server started {seconds} s ago")
        }
    };
    let Job { job_type, queue, .. } = job;
    let text = format!("no worker has asked for type {job_type} in queue {queue} {since}");
    Ok(Some(text))
}

/// What a bucket or a circuit does to a job.
fn held(job: &Job, held: &Held, now: Timestamp) -> WhyWaiting {
    let seconds = held.until.map(|until| until.since(now).as_secs_f64());
    let (code, message) = match (held.by, seconds) {
        (HeldBy::Rate, seconds) => {
            let seconds = seconds.unwrap_or(0.0);
            let message =
                format!("the rate limit of type {} has room in {seconds:.1} s", job.job_type);
            ("RATE_LIMITED", message)
        }
        (HeldBy::Circuit, Some(seconds)) => {
            let name = &job.job_type;
            (
                "CIRCUIT_OPEN",
                format!("too many jobs of type {name} fail: one is tried in {seconds:.1} s"),
            )
        }
        (HeldBy::Circuit, None) => {
            let name = &job.job_type;
            ("CIRCUIT_OPEN", format!("too many jobs of type {name} failed: one is being tried"))
        }
    };
    WhyWaiting { code, message }
}

fn reasons(
    job: &Job,
    (standing, held): (Option<&Standing>, Option<WhyWaiting>),
    unasked: Option<String>,
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
        if let Some(Pause { by, .. }) = &standing.type_paused {
            because("TYPE_PAUSED", format!("type {} was paused by {by}", job.job_type));
        }
        if let Some((limit, used)) = standing.limit.filter(|(limit, used)| !has_room(*used, *limit))
        {
            because("CONCURRENCY_LIMIT_EXCEEDED", full(job, (limit, used), &standing.holders));
        }
        if let Some(found) = &standing.held {
            let WhyWaiting { code, message } = self::held(job, found, now);
            because(code, message);
        }
        if standing.is_fresh_first && due_at <= now {
            let message = format!(
                "it is a retry, and of {RETRY_EVERY} jobs that queue {} hands out one is, as long \
                 as others are ready",
                job.queue
            );
            because("RETRY_BUDGET", message);
        }
        if standing.ahead > 0 && due_at <= now {
            let message = match standing.ahead {
                1 => "1 job goes before it".to_owned(),
                ahead => format!("{ahead} jobs go before it"),
            };
            because("JOBS_AHEAD", message);
        }
    }
    if let Some(message) = unasked {
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

/// That a concurrency limit is used up, and by whom.
fn full(job: &Job, (limit, used): (u32, u32), holders: &[JobId]) -> String {
    let key = job.limit_keys().and_then(|keys| keys.concurrency.as_deref());
    let key = key.map(|key| format!(" with key {key:?}")).unwrap_or_default();
    let names: Vec<String> = holders.iter().map(ToString::to_string).collect();
    let by = match names.is_empty() {
        true => String::new(),
        false => format!("; running: {}", names.join(", ")),
    };
    format!("{used} of {limit} jobs of type {}{key} may run at a time{by}", job.job_type)
}

fn attempts(count: u32) -> String {
    if count == 1 { "1 attempt".to_owned() } else { format!("{count} attempts") }
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
                "failed after {} with {}; dead-letter item {}",
                attempts(job.attempt()),
                last_failure.failure.code,
                job.id.dlq()
            ),
            None => "failed".to_owned(),
        },
        (StateName::Succeeded, _) => "the job has succeeded".to_owned(),
        (StateName::Cancelled, _) => "the job was cancelled".to_owned(),
        (state @ (StateName::DlqPending | StateName::DlqRecorded), _) => {
            format!("the job is {state}: its failure is being recorded")
        }
        (state @ (StateName::Queued | StateName::Retrying), None) => format!("the job is {state}"),
    }
}

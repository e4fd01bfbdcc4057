//! Jobs: taking them, showing them, counting them, and what happened to them.

use super::translate;
use super::view;
use super::wire::{
    SchedulerAudits, SchedulerCounts, SchedulerEnqueue, SchedulerEnqueued, SchedulerStats,
};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::config::Shards;
use crate::json;
use crate::limits::{PAGE_MAX, SCHEDULER_LOOK_MAX};
use crate::refusal::{self, Refusal};
use crate::write::Out;
use hyper::StatusCode;
use mainspring_engine::store::{JobFilter, JobWithHistory, Scope};
use mainspring_kernel::command::Submit;
use mainspring_kernel::entity::Body;
use mainspring_kernel::governance::{
    CONTRACT_LABEL, Duty, OBJECT_LABEL, QUEUE, RiskTier, object_id, subject,
};
use mainspring_kernel::limits::TOTAL_MAX;
use mainspring_kernel::view::scheduler::{self, State};
use mainspring_kernel::{
    Command, Job, JobId, Principal, QueueName, QueueOrder, QueueSpec, StateName,
};
use serde::Serialize;
use std::cmp::Reverse;

pub(super) async fn enqueue(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish = {
        let wire: SchedulerEnqueue = json::read(json::check(&ask.body)?)?;
        translate::wish(&wire)?
    };
    ask.let_go_of_body();
    let object = object_id(&who.tenant, wish.object_type, &wish.object_id);
    let found = ask.engine().entity(object).await?.map(|entity| entity.body);
    let risk_tier =
        if let Some(Body::Object(object)) = found { object.risk_tier } else { RiskTier::Low };
    let key = wish.key.clone();
    let trace = ask.trace.clone();
    let submit = wish.submit(&who, risk_tier, (ask.app.config.shards, trace.as_deref()))?;
    let submit = Submit { traceparent: ask.traceparent(), ..submit };
    in_due_order(&ask, submit.queue.as_ref()).await?;
    let submitted = ask.engine().submit(submit).await??;
    let (status, idempotency_key) = match submitted.is_hit {
        true => (StatusCode::OK, None),
        false => (StatusCode::CREATED, Some(key)),
    };
    let enqueued = SchedulerEnqueued {
        deduplicated: submitted.is_hit,
        job_id: submitted.job.id.to_string(),
        status: scheduler::state(&submitted.job).as_str(),
        idempotency_key,
    };
    Ok(bare(status, &enqueued).with_trace(submitted.job.trace_id()))
}

/// Makes a queue of governed jobs hand out what is due first, unless somebody said otherwise.
pub(super) async fn in_due_order(ask: &Ask, queue: Option<&QueueName>) -> Result<(), Refusal> {
    let plain = || translate::queue(Shards::None, Duty::all().next().expect("there are duties"));
    let name = queue.cloned().unwrap_or_else(plain);
    if ask.app.has_due_queue(&name) {
        return Ok(());
    }
    if !ask.engine().queues().await?.iter().any(|spec| spec.name == name) {
        let spec = QueueSpec { order: QueueOrder::Due, ..QueueSpec::plain(name.clone()) };
        ask.engine().execute_one(Command::SetQueue(spec)).await??;
    }
    ask.app.knows_due_queue(name);
    Ok(())
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let found = visible(&ask, &who, &auth::scope(&who)).await?;
    let shown = view::job(&found.job).ok_or_else(|| unseen(&who))?;
    Ok(bare(StatusCode::OK, &shown))
}

/// The job of the path, if it is in `scope` and governed. Unknown and foreign ids are one case.
pub(super) async fn visible(
    ask: &Ask,
    who: &Principal,
    scope: &Scope,
) -> Result<JobWithHistory, Refusal> {
    let Ok(id) = ask.param().parse::<JobId>() else { return Err(unseen(who)) };
    let found = ask.engine().job_within(id, scope).await?;
    found.filter(|found| view::job(&found.job).is_some()).ok_or_else(|| unseen(who))
}

/// What whoever asks for a job they cannot see is told.
pub(super) fn unseen(who: &Principal) -> Refusal {
    if who.is_admin() { refusal::job_unknown() } else { refusal::denied() }
}

fn governed(who: &Principal) -> JobFilter {
    let labels = vec![(CONTRACT_LABEL.to_owned(), QUEUE.to_owned())];
    JobFilter { labels, ..JobFilter::of(Scope::Tenant(who.tenant.clone())) }
}

pub(super) async fn stats(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let mut counts = SchedulerCounts::default();
    for state in StateName::ALL {
        let filter = JobFilter { state: Some(state), ..governed(&who) };
        let count = ask.engine().count_jobs(&filter, TOTAL_MAX).await?;
        let shown = match scheduler::shown(state) {
            State::Queued => &mut counts.queued,
            State::Running => &mut counts.running,
            State::Succeeded => &mut counts.succeeded,
            State::Failed => &mut counts.failed,
            State::DeadLetter => &mut counts.dead_letter,
        };
        *shown += count;
    }
    let mut waiting = latest(&ask, &who, StateName::Queued).await?;
    waiting.extend(latest(&ask, &who, StateName::Retrying).await?);
    let running = latest(&ask, &who, StateName::Running).await?;
    let now = ask.engine().now();
    let has_expired = |job: &&Job| job.lease().is_some_and(|lease| lease.ends_at() <= now);
    let moves = |job: &Job| job.seq as usize;
    let stats = SchedulerStats {
        oldest_queued_run_at: waiting.iter().map(view::run_at).min().map(view::instant_text),
        leased_running_count: counts.running,
        expired_running_count: running.iter().filter(has_expired).count(),
        audit_event_count: waiting.iter().chain(&running).map(moves).sum(),
        counts,
    };
    Ok(bare(StatusCode::OK, &stats))
}

/// The latest jobs in a state, a bounded number of them.
async fn latest(ask: &Ask, who: &Principal, state: StateName) -> Result<Vec<Job>, Refusal> {
    let filter = JobFilter { state: Some(state), ..governed(who) };
    let (mut jobs, mut before) = (Vec::new(), None);
    loop {
        let page = ask.engine().jobs(&filter, before, PAGE_MAX).await?;
        jobs.extend(page.items);
        match page.next {
            Some(next) if jobs.len() < SCHEDULER_LOOK_MAX => before = Some(next),
            Some(_) | None => return Ok(jobs),
        }
    }
}

/// What can be asked of the list of audits.
pub(super) const AUDITS: [(&str, &str); 4] = [
    ("limit", "At most this many entries; 20 if left out."),
    ("job_id", "Of this job only."),
    ("object_type", "Of jobs on this object only, together with `object_id`."),
    ("object_id", "Of jobs on this object only, together with `object_type`."),
];

pub(super) async fn audits(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&AUDITS.map(|(name, _)| name))?;
    let limit = query.limit()?;
    let scope = Scope::Tenant(who.tenant.clone());
    let mut found = Vec::new();
    if let Some(text) = query.get("job_id") {
        let id = text.parse::<JobId>().map_err(|_| unseen(&who))?;
        found.extend(ask.engine().job_within(id, &scope).await?);
        if found.is_empty() {
            return Err(unseen(&who));
        }
    } else {
        let mut filter = governed(&who);
        match (query.get("object_type"), query.get("object_id")) {
            (Some(kind), Some(name)) => {
                let (kind, name) = translate::object(kind, name)?;
                filter.labels.push((OBJECT_LABEL.to_owned(), subject(kind, name)));
            }
            (None, None) => {}
            (Some(_), None) => return Err(refusal::invalid("object_id", "goes with object_type")),
            (None, Some(_)) => return Err(refusal::invalid("object_type", "goes with object_id")),
        }
        for job in ask.engine().jobs(&filter, None, limit).await?.items {
            found.extend(ask.engine().job_within(job.id, &scope).await?);
        }
    }
    let mut all: Vec<_> = found.iter().flat_map(view::audits).collect();
    all.sort_by_key(|(place, _)| Reverse(*place));
    let items = all.into_iter().take(limit).map(|(_, audit)| audit).collect();
    Ok(bare(StatusCode::OK, &SchedulerAudits { items }))
}

/// An answer without an envelope.
pub(super) fn bare(status: StatusCode, body: &impl Serialize) -> Reply {
    let mut out = Out::sized(1_024);
    out.serde(body);
    Reply::begun(status, out, |_, _| {})
}

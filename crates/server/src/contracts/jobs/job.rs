//! Jobs: submit, list, read, move, cancel, do again.

use super::errors;
use super::view::{self, Beside};
use super::{translate, wire};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit;
use crate::auth;
use crate::cursor;
use crate::json;
use crate::limits::{JOBS_PAGE_BYTES_MAX, JOBS_PAGE_MAX};
use crate::refusal::{self, Refusal};
use hyper::header::{HeaderName, HeaderValue};
use mainspring_engine::Most;
use mainspring_engine::store::{ItemFilter, JobFilter, Scope};
use mainspring_kernel::command::Submit;
use mainspring_kernel::executor::Mode;
use mainspring_kernel::view::jobs::{self, State};
use mainspring_kernel::{
    Command, DlqId, DlqState, Job, JobId, JobType, Principal, Receipt, Role, StateName, TypeSpec,
};
use std::collections::{HashMap, HashSet};

/// Where the next page of a list starts.
pub(super) const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// What a list can be asked for.
pub(super) const LIST: [(&str, &str); 4] = [
    ("status", "Only those in this state."),
    ("taskType", "Only those of this type."),
    ("limit", "How many entries at most, 1 to 1000; 1000 if left out."),
    ("cursor", "Where to go on: `x-next-cursor` of the page before, with the same filters."),
];

/// Roles that may move a job as a callback does. Admin alone is not one: a move forges an outcome.
const CALLBACKS: [Role; 2] = [Role::Worker, Role::Internal];

pub(super) async fn submit(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let command = {
        let wish: wire::OrchestrationSubmit = json::read(json::check(&ask.body)?)?;
        let window = ask.app.config.key_window_secs;
        let submit = translate::submit(&wish, &who, ask.trace.as_deref(), window)?;
        Submit { traceparent: ask.traceparent(), ..submit }
    };
    ask.let_go_of_body();
    let submitted = ask.engine().submit(command).await??;
    let beside = Beside { is_hit: Some(submitted.is_hit), ..beside(&ask, &submitted.job).await? };
    let trace = submitted.job.trace_id();
    Ok(answered(&submitted.job, beside).with_trace(trace))
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&LIST.map(|(name, _)| name))?;
    let state = query.get("status").map(|text| translate::state("status", text)).transpose()?;
    let of = query.get("taskType").map(translate::task_type).transpose()?;
    let limit = translate::limit(&query, JOBS_PAGE_MAX)?;
    let list = translate::list(&who, state, of.as_ref());
    let read = |text: &str| cursor::read(list, text).ok_or_else(refusal::cursor_invalid);
    let after = query.get("cursor").map(read).transpose()?.map(JobId);
    let filters = translate::own(&who, state, of.as_ref());
    let most = Most { jobs: limit, bytes: JOBS_PAGE_BYTES_MAX };
    let page = ask.engine().jobs_oldest_first(&filters, after, most).await?;
    let held = held_types(&ask, &page.items).await?;
    let again = retried(&ask, &who, of.as_ref(), &page.items).await?;
    let modes = modes(&ask, &page.items).await?;
    let mut out = view::begin(page.items.iter().map(view::job_bytes).sum());
    out.raw("[");
    for (index, job) in page.items.iter().enumerate() {
        if index > 0 {
            out.raw(",");
        }
        let limit = held.get(&job.job_type).copied().filter(|_| is_queued(job));
        let retried_as = again.get(&job.id).copied();
        let mode = modes.get(&job.job_type).copied().unwrap_or(Mode::Pull).as_str();
        view::job(job, Beside { mode, limit, retried_as, is_hit: None }, &mut out);
    }
    out.raw("]");
    let reply = view::end(out);
    let next = page.next.map(|next| cursor::write(list, next.0));
    Ok(match next.map(HeaderValue::try_from) {
        Some(Ok(next)) => reply.with_value(NEXT_CURSOR, next),
        Some(Err(_)) | None => reply,
    })
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = visible(&ask, &who, &auth::scope(&who)).await?;
    shown(&ask, &job).await
}

pub(super) async fn transition(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: wire::OrchestrationTransition = json::read(json::check(&ask.body)?)?;
    match translate::state("toStatus", &wish.to_status)? {
        State::Cancelled => cancel(ask, who).await,
        State::Queued => retry(ask, who).await,
        to @ (State::Running | State::Succeeded | State::Failed) => by_hand(&ask, &who, to).await,
    }
}

pub(super) async fn cancel(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = steerable(&ask, &who).await?.id;
    let command = Command::Cancel { job, by: who.user.clone(), reason: None };
    ask.engine().execute_one(command).await??;
    after(&ask, &who, job).await
}

/// A failed job runs again as a new one, by way of the dead-letter queue.
pub(super) async fn retry(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = steerable(&ask, &who).await?;
    // Only what has failed lies there.
    let item = ask.engine().item(job.id.dlq()).await?;
    let item = item.ok_or_else(|| errors::illegal(jobs::state(&job), State::Queued))?;
    let command = Command::RequeueItem { item: item.id, by: who.user.clone(), key: None };
    let note = audit::of_item(&command, &item, None);
    let Receipt::Requeued { job: again } = audit::change(&ask, &who, command, note).await? else {
        return Err(refusal::internal());
    };
    after(&ask, &who, again).await
}

/// What a callback does, done by hand. Whoever may not is told so before anything is looked up.
async fn by_hand(ask: &Ask, who: &Principal, to: State) -> Result<Reply, Refusal> {
    if !CALLBACKS.iter().any(|role| who.roles.has(*role)) {
        return Err(errors::callback_denied());
    }
    // Who works for a tenant gets the jobs of all its users.
    let job = visible(ask, who, &Scope::Tenant(who.tenant.clone())).await?;
    if to == State::Running && is_queued(&job) && ask.limit_reached(&job).await?.is_some() {
        return Err(refusal::limit_reached());
    }
    let command = Command::MoveShown { job: job.id, to, by: who.user.clone() };
    ask.engine().execute_one(command).await??;
    after(ask, who, job.id).await
}

/// The job as it is after it was moved.
async fn after(ask: &Ask, who: &Principal, job: JobId) -> Result<Reply, Refusal> {
    let found = ask.engine().job(job).await?.ok_or_else(|| unseen(who))?;
    shown(ask, &found.job).await
}

async fn shown(ask: &Ask, job: &Job) -> Result<Reply, Refusal> {
    Ok(answered(job, beside(ask, job).await?))
}

fn answered(job: &Job, beside: Beside) -> Reply {
    let mut out = view::begin(view::job_bytes(job));
    view::job(job, beside, &mut out);
    view::end(out)
}

async fn beside(ask: &Ask, job: &Job) -> Result<Beside, Refusal> {
    let limit = if is_queued(job) { ask.limit_reached(job).await? } else { None };
    let retried_as = match job.state.name() {
        StateName::Failed => match ask.engine().item(job.id.dlq()).await?.map(|item| item.state) {
            Some(DlqState::Requeued { job, .. }) => Some(job),
            Some(
                DlqState::Open
                | DlqState::DiscardRequested(_)
                | DlqState::Discarded { .. }
                | DlqState::GlassBroken(_),
            )
            | None => None,
        },
        StateName::Queued
        | StateName::Running
        | StateName::Retrying
        | StateName::DlqPending
        | StateName::DlqRecorded
        | StateName::Succeeded
        | StateName::Cancelled => None,
    };
    let modes = modes(ask, std::slice::from_ref(job)).await?;
    let mode = modes.get(&job.job_type).copied().unwrap_or(Mode::Pull).as_str();
    Ok(Beside { mode, limit, retried_as, is_hit: None })
}

/// How jobs of these types are executed. Only jobs that were handed out show it, and types that
/// nobody registered are pulled.
async fn modes(ask: &Ask, jobs: &[Job]) -> Result<HashMap<JobType, Mode>, Refusal> {
    let otherwise = ask.app.config.executing.mode;
    let mut wanted: HashSet<&JobType> = HashSet::new();
    wanted.extend(jobs.iter().filter(|job| job.fence > 0).map(|job| &job.job_type));
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let mut modes = HashMap::new();
    for name in &wanted {
        let built_in = TypeSpec::built_in(name).map(|spec| spec.mode(otherwise));
        modes.extend(built_in.map(|mode| ((*name).clone(), mode)));
    }
    let types = ask.engine().types().await?;
    let registered = types.into_iter().filter(|spec| wanted.contains(&spec.name));
    modes.extend(registered.map(|spec| (spec.name.clone(), spec.mode(otherwise))));
    Ok(modes)
}

fn is_queued(job: &Job) -> bool {
    job.state.name() == StateName::Queued
}

/// The types of which as many run as may, among those of some waiting jobs of one user. Whatever
/// the scope of a limit, it is the same for all of them; so one of each type is asked about.
async fn held_types(ask: &Ask, jobs: &[Job]) -> Result<HashMap<JobType, u32>, Refusal> {
    let (mut seen, mut held) = (HashSet::new(), HashMap::new());
    for job in jobs.iter().filter(|job| is_queued(job)) {
        if seen.insert(&job.job_type)
            && let Some(limit) = ask.limit_reached(job).await?
        {
            held.insert(job.job_type.clone(), limit);
        }
    }
    Ok(held)
}

/// Which of some jobs of one user, in order, were done again as which.
async fn retried(
    ask: &Ask,
    who: &Principal,
    of: Option<&JobType>,
    jobs: &[Job],
) -> Result<HashMap<JobId, JobId>, Refusal> {
    let mut failed = jobs.iter().filter(|job| job.state.name() == StateName::Failed);
    let count = failed.clone().count();
    let (Some(first), Some(last)) = (failed.next(), failed.next_back().or(jobs.last())) else {
        return Ok(HashMap::new());
    };
    // Items have the ids of their jobs, so those of a page lie together.
    let scope = Scope::User(who.tenant.clone(), who.user.clone());
    let own = JobFilter { job_type: of.cloned(), ..JobFilter::of(scope.clone()) };
    let state = Some("requeued".to_owned());
    let filter = ItemFilter { state, job: own, ..ItemFilter::of(scope) };
    let before = last.id.0.checked_add(1).map(DlqId);
    let page = ask.engine().items(&filter, before, count).await?;
    let items = page.items.into_iter().filter(|item| item.job.id >= first.id);
    Ok(items
        .filter_map(|item| match item.state {
            DlqState::Requeued { job, .. } => Some((item.job.id, job)),
            DlqState::Open
            | DlqState::DiscardRequested(_)
            | DlqState::Discarded { .. }
            | DlqState::GlassBroken(_) => None,
        })
        .collect())
}

/// The job of the path, if it is in scope. Nonsense, unknown and foreign ids are one case.
async fn visible(ask: &Ask, who: &Principal, scope: &Scope) -> Result<Job, Refusal> {
    let found = match ask.param().parse::<JobId>() {
        Ok(id) => ask.engine().job_within(id, scope).await?,
        Err(_) => None,
    };
    found.map(|found| found.job).ok_or_else(|| unseen(who))
}

async fn steerable(ask: &Ask, who: &Principal) -> Result<Job, Refusal> {
    let job = visible(ask, who, &auth::scope(who)).await?;
    match who.can_steer(&job.tenant, &job.user) {
        true => Ok(job),
        false => Err(errors::job_denied()),
    }
}

/// What whoever asks for a job they cannot see is told.
fn unseen(who: &Principal) -> Refusal {
    if who.is_admin() { refusal::job_unknown() } else { errors::job_denied() }
}

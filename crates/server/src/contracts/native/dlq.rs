//! The dead letter queue: looking, running again, dropping by two people.

use super::filters::{self, Total};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit;
use crate::auth;
use crate::cursor;
use crate::json;
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_engine::Grouped;
use mainspring_kernel::error_class::ErrorClass;
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::job::Actor;
use mainspring_kernel::signature::{Group, Signature};
use mainspring_kernel::{
    Command, DlqId, DlqItem, DlqState, Principal, Receipt, Rejection, Role, StateName,
};
use serde_json::value::RawValue;

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&filters::ITEM_FILTERS.map(|(name, _)| name))?;
    let filter = filters::items(&query, auth::scope(&who))?;
    let list = filters::item_list(&filter);
    let before = filters::before(&query, list)?.map(DlqId);
    let page = ask.engine().items(&filter, before, query.limit()?).await?;
    let whole = (before.is_none() && page.next.is_none()).then_some(page.items.len());
    let count = ask.engine().count_items(&filter, filters::COUNTED);
    let Total { exact: total, at_least: total_at_least } =
        filters::total(&ask, whole, count).await?;
    let items = page.items.iter().map(shown).collect();
    let next_cursor = page.next.map(|next| cursor::write(list, next.0));
    Ok(Reply::data(&api::Page { items, next_cursor, total, total_at_least }))
}

/// Those that wait for a decision unless another state is asked for: the others are done with.
pub(super) async fn groups(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&filters::GROUP_FILTERS.map(|(name, _)| name))?;
    let mut filter = filters::items(&query, auth::scope(&who))?;
    filter.state.get_or_insert_with(|| DlqState::Open.as_str().to_owned());
    let since = filters::time(&query, "new_since")?;
    let list = digest(&[b"groups", &filters::item_list(&filter).0]);
    let (before, limit) = (filters::before(&query, list)?, query.limit()?);
    let Grouped { groups, looked_at, is_whole } =
        ask.engine().dlq_groups(&filter, usize::MAX).await?;
    let total = groups.len() as u64;
    let behind = |group: &Group| before.is_none_or(|before| group.place() < before);
    let mut rest = groups.into_iter().filter(behind).peekable();
    let (mut items, mut last) = (Vec::new(), None);
    for group in rest.by_ref().take(limit) {
        let count = match is_whole {
            true => group.count,
            false => ask.engine().dlq_group_count(&filter, &group).await?,
        };
        last = Some(group.place());
        items.push(api::dlq::DlqGroup {
            signature: group.signature.to_string(),
            error_code: group.code.to_string(),
            pattern: group.pattern.to_string(),
            sample_message: group.sample.to_string(),
            count,
            first_at: api::Time(group.first_at.0),
            last_at: api::Time(group.last_at.0),
            new_since: since.map(|since| group.first_at >= since),
            job_types: group.types.iter().map(ToString::to_string).collect(),
        });
    }
    let next_cursor = rest.peek().and(last).map(|place| cursor::write(list, place));
    let complete = is_whole;
    Ok(Reply::data(&api::dlq::DlqGroups { items, next_cursor, total, looked_at, complete }))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let item = visible(&ask, &who).await?;
    let mut answer = shown(&item);
    answer.payload_snapshot = RawValue::from_string(item.job.payload.to_string()).ok();
    let history = ask.engine().job(item.job.id).await?.map(|found| found.history);
    answer.context_snapshot = Some(context(&item, &history.unwrap_or_default()));
    Ok(Reply::data(&answer))
}

pub(super) async fn requeue(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let item = steerable(&ask, &who).await?;
    let key = ask.idempotency_key()?.map(Into::into);
    let command = Command::RequeueItem { item: item.id, by: who.user.clone(), key };
    let note = audit::of_item(&command, &item, None);
    let Receipt::Requeued { job } = audit::change(&ask, &who, command, note).await? else {
        return Err(refusal::internal());
    };
    let answer = api::dlq::Requeued {
        dlq_id: item.id.to_string(),
        job_id: job.to_string(),
        status: "queued".to_owned(),
    };
    Ok(Reply::status_data(StatusCode::ACCEPTED, &answer))
}

/// One person asks; the form that names two reviewers at once is for the internal role.
pub(super) async fn discard(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::dlq::Discard = json::read(json::check(&ask.body)?)?;
    let is_reviewed = wish.reviewer_id.is_some() || wish.reviewer_id_2.is_some();
    let may =
        if is_reviewed { who.roles.has(Role::Internal) } else { who.roles.any(&[Role::Operator]) };
    if !may {
        return Err(refusal::denied());
    }
    // What the request lacks is told before whether the item exists.
    if wish.reason.trim().is_empty() {
        return Err(Rejection::ApprovalRequired { reason: "a discard needs a reason" }.into());
    }
    let (asking, why) = (who.clone(), wish.reason.clone());
    let command = if is_reviewed {
        let (one, two) = (wish.reviewer_id.as_deref(), wish.reviewer_id_2.as_deref());
        let (one, two) = (one.unwrap_or("").trim(), two.unwrap_or("").trim());
        if one.is_empty() || two.is_empty() || one == two {
            let reason = "a discard needs two different reviewers";
            return Err(Rejection::ApprovalRequired { reason }.into());
        }
        Command::DiscardReviewed {
            item: visible(&ask, &who).await?.id,
            by: Box::new(who),
            reason: wish.reason.into(),
            reviewer: one.into(),
            reviewer_2: two.into(),
        }
    } else {
        Command::RequestDiscard {
            item: steerable(&ask, &who).await?.id,
            by: Box::new(who),
            reason: wish.reason.into(),
        }
    };
    step(&ask, &asking, command, Some(why)).await
}

pub(super) async fn approve(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::dlq::Approve = json::read(json::check(&ask.body)?)?;
    let item = visible(&ask, &who).await?.id;
    let by = Box::new(who.clone());
    step(&ask, &who, Command::ApproveDiscard { item, by, version: wish.version }, None).await
}

/// One person alone: for admins, with a reason, and never silently.
pub(super) async fn break_glass(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::dlq::BreakGlass = json::read(json::check(&ask.body)?)?;
    let item = visible(&ask, &who).await?.id;
    let (by, token) = (who.user.to_string(), who.token.to_string());
    let reason: Box<str> = wish.reason.trim().into();
    let command = Command::BreakGlass { item, by: Box::new(who.clone()), reason: reason.clone() };
    let reply = step(&ask, &who, command, Some(reason.to_string())).await?;
    tracing::warn!(%item, by, token, ?reason, "break-glass: a dead letter was dropped by one person");
    Ok(reply)
}

pub(super) async fn reject(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let item = visible(&ask, &who).await?.id;
    let command = Command::RejectDiscard { item, by: who.user.clone() };
    step(&ask, &who, command, None).await
}

async fn step(
    ask: &Ask,
    who: &Principal,
    command: Command,
    reason: Option<String>,
) -> Result<Reply, Refusal> {
    let item = command.item();
    let found = match item {
        Some(item) => ask.engine().item(item).await?,
        None => None,
    };
    let note = match &found {
        Some(found) => audit::of_item(&command, found, reason),
        None => return Err(refusal::internal()),
    };
    match (audit::change(ask, who, command, note).await?, item) {
        (Receipt::Item { state }, Some(item)) => Ok(Reply::data(&api::dlq::DlqStanding {
            dlq_id: item.to_string(),
            status: state.to_owned(),
        })),
        _ => Err(refusal::internal()),
    }
}

/// The item of the path, if the caller may see it. Nonsense, unknown and foreign ids are one case.
async fn visible(ask: &Ask, who: &Principal) -> Result<DlqItem, Refusal> {
    let found = match ask.param().parse::<DlqId>() {
        Ok(id) => ask.engine().item_within(id, &auth::scope(who)).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| if who.is_admin() { refusal::item_unknown() } else { refusal::denied() })
}

async fn steerable(ask: &Ask, who: &Principal) -> Result<DlqItem, Refusal> {
    let item = visible(ask, who).await?;
    if !who.can_steer(&item.job.tenant, &item.job.user) {
        return Err(refusal::denied());
    }
    Ok(item)
}

pub(crate) fn shown(item: &DlqItem) -> api::dlq::DlqItem {
    let job = &item.job;
    let failure = job.last_failure.as_ref().map(|last_failure| &last_failure.failure);
    let mut answer = api::dlq::DlqItem {
        dlq_id: item.id.to_string(),
        tenant_id: job.tenant.to_string(),
        job_id: job.id.to_string(),
        job_type: job.job_type.to_string(),
        error_class: failure.map_or("permanent", |f| ErrorClass::of(f).as_str()).to_owned(),
        error_code: failure.map_or_else(String::new, |failure| failure.code.to_string()),
        error_message: failure.map_or_else(String::new, |failure| failure.message.to_string()),
        signature: Signature::of_item(item).to_string(),
        payload_snapshot: None,
        context_snapshot: None,
        status: item.state.as_str().to_owned(),
        reason: None,
        requested_by: None,
        approved_by: None,
        break_glass: None,
        requeued_job_id: None,
        created_at: api::Time(item.created_at.0),
        updated_at: api::Time(item.updated_at.0),
        version: item.version,
    };
    let (proposal, approved_by) = match &item.state {
        DlqState::Open => (None, None),
        DlqState::Requeued { job, by, .. } => {
            answer.requeued_job_id = Some(job.to_string());
            answer.requested_by = Some(by.to_string());
            (None, None)
        }
        DlqState::DiscardRequested(proposal) => (Some(proposal), None),
        DlqState::Discarded { proposal, approved_by } => (Some(proposal), Some(approved_by)),
        DlqState::GlassBroken(mark) => {
            answer.break_glass = Some(api::dlq::BrokenGlass {
                by: mark.by.to_string(),
                reason: mark.reason.to_string(),
                at: api::Time(mark.at.0),
            });
            (Some(mark), None)
        }
    };
    if let Some(proposal) = proposal {
        answer.reason = Some(proposal.reason.to_string());
        answer.requested_by = Some(proposal.by.to_string());
    }
    answer.approved_by = approved_by.map(ToString::to_string);
    answer
}

fn context(item: &DlqItem, history: &[Transition]) -> api::dlq::DlqContext {
    let job = &item.job;
    let extras = job.extras.as_deref();
    let labels = extras.map_or(&[][..], |extras| &extras.labels);
    api::dlq::DlqContext {
        user_id: job.user.to_string(),
        worker_id: last_worker(history),
        execution_key: format!("{}:{}", job.id, job.retry_count),
        retry_count: job.retry_count,
        attempt: job.attempt(),
        max_retries: job.max_retries,
        trace_id: job.trace_id(),
        queue: job.queue.to_string(),
        priority: job.priority,
        timeout_ms: job.timeout_ms,
        labels: labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        subject: extras.and_then(|extras| extras.subject.as_deref()).map(str::to_owned),
        parent_id: extras.and_then(|extras| extras.parent).map(|parent| parent.to_string()),
        submitted_at: api::Time(job.created_at.0),
        started_at: job.started_at.map(|at| api::Time(at.0)),
        failed_at: job.last_failure.as_ref().map(|last_failure| api::Time(last_failure.at.0)),
    }
}

/// Who had the job last; whoever moves jobs by hand is no worker.
fn last_worker(history: &[Transition]) -> Option<String> {
    let start = history.iter().rfind(|step| step.to == StateName::Running)?;
    if let Actor::Worker(worker) = &start.actor { Some(worker.to_string()) } else { None }
}

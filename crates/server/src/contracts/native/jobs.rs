//! Jobs: submit, list, read, explain, cancel.

use super::filters;
use super::translate::Submitter;
use super::{view, wire};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::auth;
use crate::cursor;
use crate::json;
use crate::refusal::{self, Refusal};
use crate::write::Out;
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_engine::store::JobWithHistory;
use mainspring_kernel::command::{Follows, Submit};
use mainspring_kernel::{Command, Job, JobId, Principal, Receipt, Rejection};
use std::time::Duration;

pub(super) async fn submit(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["wait_ms"])?;
    let wait_ms = query.wait_ms()?;
    let command = {
        let text = json::check(&ask.body)?;
        let wish: wire::Submit<'_> = json::read(text)?;
        let window = ask.app.config.key_window_secs;
        let key = ask.idempotency_key()?;
        if ask.app.config.is_key_required && key.is_none() && wish.idempotency_key.is_none() {
            return Err(refusal::idempotency_missing());
        }
        let submitter = Submitter::new(&who, ask.trace.as_deref(), window);
        alone(submitter.by(ask.traceparent()).submit(&wish, key)?)?
    };
    ask.let_go_of_body();
    // Before the job exists: whoever is refused can send the same again.
    let _place = if wait_ms > 0 { Some(ask.place_to_wait(&who)?) } else { None };
    let mut submitted = ask.engine().submit(command).await?.map_err(refused)?;
    if wait_ms > 0 {
        let ended = ask.engine().job_ended(submitted.job.id, Duration::from_millis(wait_ms));
        // Whose token ends meanwhile learns that the job was accepted, and nothing more.
        if let Some(Some(ended)) = ask.while_live(&who, ended).await.transpose()? {
            *submitted.job = ended.job;
        }
    }
    // Keys may be shared further than jobs: who may not read the job learns only that it is there.
    if submitted.is_hit && !who.can_see_job(&submitted.job) {
        let mut out = Out::data(128);
        view::hit(submitted.job.id, Some(submitted.job.state.name()), &mut out);
        return Ok(Reply::json(StatusCode::OK, out));
    }
    let status = if submitted.is_hit { StatusCode::OK } else { StatusCode::CREATED };
    let mut out = Out::data(view::job_bytes(&submitted.job));
    view::job(&submitted.job, Some(submitted.is_hit), &mut out);
    Ok(Reply::json(status, out).with_trace(submitted.job.trace_id()))
}

/// A job that is submitted by itself can follow no other of its batch.
fn alone(mut wish: Submit) -> Result<Submit, Refusal> {
    if wish.follows.is_some() {
        return Err(refusal::invalid("after", "can name jobs by # only within a batch"));
    }
    wish.bounds.after = wish.bounds.after.filter(|after| !after.jobs.is_empty());
    Ok(wish)
}

/// What a submission is refused with. A job that it names and its user cannot see is as good as
/// none, wherever it is named.
fn refused(rejection: Rejection) -> Refusal {
    if rejection == Rejection::JobUnknown { refusal::denied() } else { rejection.into() }
}

pub(super) async fn submit_batch(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let (mut wishes, then, refused_items) = {
        let text = json::check(&ask.body)?;
        let (items, then) = wire::batch(text)?;
        let window = ask.app.config.key_window_secs;
        let submitter = Submitter::new(&who, ask.trace.as_deref(), window);
        let mut submitter = submitter.by(ask.traceparent());
        let is_key_required = ask.app.config.is_key_required;
        let mut wishes = Vec::with_capacity(items.len());
        let mut refused: Vec<(usize, Refusal)> = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let checked = item.and_then(|wish| {
                if is_key_required && wish.idempotency_key.is_none() {
                    return Err(refusal::idempotency_missing());
                }
                Ok(submitter.submit(&wish, None)?)
            });
            match checked {
                Ok(wish) => wishes.push(wish),
                Err(refusal) => refused.push((index, refusal)),
            }
        }
        let then = match then {
            Some(wish) if is_key_required && wish.idempotency_key.is_none() => {
                return Err(refusal::idempotency_missing());
            }
            Some(wish) => Some(submitter.submit(&wish, None)?),
            None => None,
        };
        (wishes, then, refused)
    };
    if then.is_some() || wishes.iter().any(|wish| wish.follows.is_some()) {
        return submit_together(&ask, wishes, then, refused_items).await;
    }
    for wish in &mut wishes {
        wish.bounds.after = wish.bounds.after.take().filter(|after| !after.jobs.is_empty());
    }
    let refused = refused_items;
    let total = wishes.len() + refused.len();
    let (outcomes, untaken) = ask.engine().submit_many(wishes).await?;
    let untaken = untaken.map(Refusal::from);
    let mut out = Out::data(100 * total + 32);
    out.raw("{\"items\":[");
    let (mut outcomes, mut refused) = (outcomes.into_iter(), refused.into_iter().peekable());
    for index in 0..total {
        if index > 0 {
            out.raw(",");
        }
        if let Some((_, refusal)) = refused.next_if(|(at, _)| *at == index) {
            item_error(refusal.code, &refusal.message, &mut out);
        } else if let Some(outcome) = outcomes.next() {
            submitted_item(&outcome, &mut out);
        } else if let Some(refusal) = &untaken {
            item_error(refusal.code, &refusal.message, &mut out);
        }
    }
    out.raw("]}");
    Ok(Reply::json(StatusCode::OK, out))
}

/// Jobs of which some wait for others of the same batch: all are taken or none.
async fn submit_together(
    ask: &Ask,
    mut wishes: Vec<Submit>,
    then: Option<Submit>,
    wrong: Vec<(usize, Refusal)>,
) -> Result<Reply, Refusal> {
    if let Some((index, mut refusal)) = wrong.into_iter().next() {
        refusal.message = format!("job {index} of the batch: {}", refusal.message).into();
        return Err(refusal);
    }
    if let Some(mut then) = then {
        if then.follows.is_some() {
            return Err(refusal::invalid("then", "follows all jobs of the batch: leave out #"));
        }
        then.follows = Some(Follows::All);
        wishes.push(then);
    }
    let receipts = ask.engine().submit_together(wishes).await?.map_err(refused)?;
    let mut out = Out::data(100 * receipts.len() + 32);
    out.raw("{\"items\":[");
    for (index, receipt) in receipts.into_iter().enumerate() {
        if index > 0 {
            out.raw(",");
        }
        submitted_item(&Ok(receipt), &mut out);
    }
    out.raw("]}");
    Ok(Reply::json(StatusCode::OK, out))
}

fn submitted_item(outcome: &Result<Receipt, Rejection>, out: &mut Out) {
    match outcome {
        Ok(Receipt::Submitted { job }) => {
            out.raw("{\"job_id\":");
            out.job_id(*job);
            out.raw(",\"status\":\"queued\",\"idempotent_hit\":false}");
        }
        Ok(Receipt::Existing { job, state }) => view::hit(*job, *state, out),
        Ok(_) => item_error("INTERNAL_ERROR", "an unexpected receipt", out),
        Err(Rejection::JobUnknown) => {
            let denied = refusal::denied();
            item_error(denied.code, &denied.message, out);
        }
        Err(rejection) => item_error(rejection.code(), &rejection.to_string(), out),
    }
}

/// `{"error":{"code","message"}}`.
fn item_error(code: &str, message: &str, out: &mut Out) {
    out.raw("{");
    view::refused(code, message, out);
    out.raw("}");
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&filters::job_names())?;
    let filter = filters::jobs(&query, auth::scope(&who))?;
    let list = filters::job_list(&filter);
    let before = filters::before(&query, list)?.map(JobId);
    let page = ask.engine().jobs(&filter, before, query.limit()?).await?;
    // A page that is all there is need not be counted.
    let whole = (before.is_none() && page.next.is_none()).then_some(page.items.len());
    let count = ask.engine().count_jobs(&filter, filters::COUNTED);
    let total = filters::total(&ask, whole, count).await?;
    let mut out = Out::data(page.items.iter().map(view::job_bytes).sum());
    out.raw("{\"items\":[");
    for (index, job) in page.items.iter().enumerate() {
        if index > 0 {
            out.raw(",");
        }
        view::job(job, None, &mut out);
    }
    out.raw("],\"next_cursor\":");
    out.maybe_string(page.next.map(|next| cursor::write(list, next.0)).as_deref());
    out.raw(",\"total\":");
    match total.exact {
        Some(total) => out.number(total),
        None => out.raw("null"),
    }
    if let Some(least) = total.at_least {
        out.raw(",\"total_at_least\":");
        out.number(least);
    }
    out.raw("}");
    Ok(Reply::json(StatusCode::OK, out))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wait_ms = ask.query(&["wait_ms"])?.wait_ms()?;
    let mut found = visible(&ask, &who).await?;
    if wait_ms > 0 && !found.job.state.name().is_terminal() {
        let _place = ask.place_to_wait(&who)?;
        let ended = ask.engine().job_ended(found.job.id, Duration::from_millis(wait_ms));
        let ended = ask.while_live(&who, ended).await.ok_or_else(refusal::unauthorized)??;
        found = ended.ok_or_else(|| unseen(&who))?;
    }
    Ok(shown(StatusCode::OK, &found.job))
}

pub(super) async fn history(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let found = visible(&ask, &who).await?;
    let trace = found.job.trace_id();
    let mut out = Out::data(320 * found.history.len() + 64);
    out.raw("{\"items\":[");
    for (index, step) in found.history.iter().enumerate() {
        out.raw(if index > 0 { ",{" } else { "{" });
        view::transition(found.job.id, step, &trace, &mut out);
        out.raw("}");
    }
    out.raw("]}");
    Ok(Reply::json(StatusCode::OK, out))
}

pub(super) async fn explain(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let id = visible(&ask, &who).await?.job.id;
    let told = ask.engine().explain(id).await?.ok_or_else(|| unseen(&who))?;
    let reason = |why: mainspring_engine::WhyWaiting| api::ErrorCode {
        code: why.code.to_owned(),
        message: why.message,
    };
    Ok(Reply::data(&api::job::Explanation {
        job_id: id.to_string(),
        status: told.job.state.name().as_str().to_owned(),
        summary: told.summary,
        reasons: told.reasons.into_iter().map(reason).collect(),
        earliest_at: told.earliest.map(|at| api::Time(at.0)),
        estimated_start: told.start.map(|start| api::job::EstimatedStart {
            at: start.at.map(|at| api::Time(at.0)),
            basis: start.basis.to_owned(),
            message: start.message,
        }),
    }))
}

pub(super) async fn cancel(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::job::Cancel = if ask.body.is_empty() {
        api::job::Cancel::default()
    } else {
        json::read(json::check(&ask.body)?)?
    };
    let found = visible(&ask, &who).await?;
    if !who.can_steer(&found.job.tenant, &found.job.user) {
        return Err(refusal::denied());
    }
    let command = Command::Cancel {
        job: found.job.id,
        by: who.user.clone(),
        reason: wish.reason.map(Into::into),
    };
    ask.engine().execute_one(command).await??;
    let after = ask.engine().job(found.job.id).await?.ok_or_else(|| unseen(&who))?;
    Ok(shown(StatusCode::ACCEPTED, &after.job))
}

fn shown(status: StatusCode, job: &Job) -> Reply {
    let mut out = Out::data(view::job_bytes(job));
    view::job(job, None, &mut out);
    Reply::json(status, out)
}

/// The job of the path, if the caller may see it. Nonsense, unknown and foreign ids are one case.
pub(crate) async fn visible(ask: &Ask, who: &Principal) -> Result<JobWithHistory, Refusal> {
    let found = match ask.param().parse::<JobId>() {
        Ok(id) => ask.engine().job_within(id, &auth::scope(who)).await?,
        Err(_) => None,
    };
    found.ok_or_else(|| unseen(who))
}

/// What whoever asks for a job they cannot see is told.
pub(crate) fn unseen(who: &Principal) -> Refusal {
    if who.is_admin() { refusal::job_unknown() } else { refusal::denied() }
}

//! What workers do: pull, report, stay alive, commit effects. A lease token is proof enough for
//! everything but a pull.

use super::translate::{self, Report};
use super::{view, wire};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit;
use crate::auth;
use crate::json;
use crate::limits::LEASE_ITEMS_MAX;
use crate::refusal::{self, Refusal};
use crate::route::table::PULLERS;
use crate::write::Out;
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_engine::{Grant, Pull};
use mainspring_kernel::command::CommitEffect;
use mainspring_kernel::job::LeaseToken;
use mainspring_kernel::{Command, JobId, Payload, Principal, Receipt, Rejection};
use serde::Deserialize;
use std::time::Duration;
use subtle::ConstantTimeEq;

pub(super) async fn pull(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let pull = {
        let wish: wire::Pull<'_> = json::read(json::check(&ask.body)?)?;
        translate::pull(&wish, &who)?
    };
    ask.let_go_of_body();
    let grants = work(&ask, Vec::new(), Some((pull, who))).await?.grants;
    let mut out = Out::data(grants_bytes(&grants));
    out.raw("{\"jobs\":[");
    write_grants(&grants, &mut out);
    out.raw("]}");
    Ok(Reply::json(StatusCode::OK, out))
}

/// A worker is about to stop: its waiting pulls are answered at once.
pub(super) async fn leave(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::work::Leave = json::read(json::check(&ask.body)?)?;
    let worker = translate::worker(&wish.worker_id)?;
    ask.engine().leave((!who.is_admin()).then(|| who.tenant.clone()), worker);
    Ok(Reply::data(&api::work::Left { worker_id: wish.worker_id }))
}

pub(super) async fn complete(ask: Ask) -> Result<Reply, Refusal> {
    let read = read_reports::<wire::Complete<'_>>(json::check(&ask.body)?)?;
    report(&ask, read).await
}

pub(super) async fn fail(ask: Ask) -> Result<Reply, Refusal> {
    let read = read_reports::<wire::Fail<'_>>(json::check(&ask.body)?)?;
    report(&ask, read).await
}

pub(super) async fn release(ask: Ask) -> Result<Reply, Refusal> {
    let read = read_reports::<wire::Release<'_>>(json::check(&ask.body)?)?;
    report(&ask, read).await
}

/// One item of a request on its way: the job as the caller named it, and its command or refusal.
struct Line {
    /// Empty where the command names the job.
    job_text: String,
    refusal: Option<Refusal>,
    job: JobId,
}

/// Reports of one kind, ready to be decided.
struct Reports<'a> {
    commands: Vec<Command>,
    lines: Vec<Line>,
    pull: Option<wire::Pull<'a>>,
}

fn read_reports<'a, T>(text: &'a str) -> Result<Reports<'a>, Refusal>
where
    T: Report + Deserialize<'a>,
{
    let (items, pull) = wire::reports::<T>(text)?;
    let mut commands = Vec::with_capacity(items.len());
    let mut lines = Vec::with_capacity(items.len());
    for item in items {
        lines.push(match item {
            Ok(item) => line(item.job_id(), item.command(), &mut commands),
            Err(refusal) => Line::refused("", refusal),
        });
    }
    Ok(Reports { commands, lines, pull })
}

/// Puts a command on the list, or keeps why it is none.
fn line(named: &str, command: Result<Command, Rejection>, commands: &mut Vec<Command>) -> Line {
    match command {
        Ok(command) => {
            let job = command.job().unwrap_or(JobId(0));
            commands.push(command);
            Line { job_text: String::new(), refusal: None, job }
        }
        Err(rejection) => Line::refused(named, rejection.into()),
    }
}

impl Line {
    /// An item that nothing is asked of, and the job as it was named.
    fn refused(named: &str, refusal: Refusal) -> Self {
        Line { job_text: named.to_owned(), refusal: Some(refusal), job: JobId(0) }
    }

    /// `{"job_id":...`, to be gone on with.
    fn begin(&self, out: &mut Out) {
        out.raw("{\"job_id\":");
        if self.refusal.is_none() {
            out.job_id(self.job);
        } else {
            out.string(&self.job_text);
        }
    }
}

/// Reports and pulls. A pull that may have to wait needs a place for it, and waits no longer than
/// its token works; one that comes along with reports does not wait.
async fn work(
    ask: &Ask,
    commands: Vec<Command>,
    pull: Option<(Pull, Principal)>,
) -> Result<mainspring_engine::Reply, Refusal> {
    match pull {
        Some((pull, who)) if commands.is_empty() && !pull.wait.is_zero() => {
            let _place = ask.place_to_wait(&who)?;
            let served = ask.while_live(&who, ask.engine().work(commands, Some(pull))).await;
            let mut reply = served.ok_or_else(refusal::unauthorized)??;
            ask.engine().bring_checkpoints(&mut reply.grants).await?;
            Ok(reply)
        }
        None if commands.is_empty() => Ok(mainspring_engine::Reply::default()),
        pull => {
            let mut reply = ask.engine().work(commands, pull.map(|(pull, _)| pull)).await?;
            // The reports are taken: their answer must not be lost by this.
            if ask.engine().bring_checkpoints(&mut reply.grants).await.is_err() {
                reply.grants.clear();
            }
            Ok(reply)
        }
    }
}

/// Whether a report was refused because only the job's contract may take it.
fn is_governed(outcome: &Result<Receipt, Rejection>) -> bool {
    matches!(outcome, Err(Rejection::JobGoverned))
}

async fn report(ask: &Ask, read: Reports<'_>) -> Result<Reply, Refusal> {
    let Reports { commands, lines, pull } = read;
    few_or_known(ask, lines.len())?;
    let pull = match pull {
        Some(wish) => {
            let who = ask.who.clone().ok_or_else(refusal::unauthorized)?;
            if !who.roles.any(PULLERS) {
                return Err(refusal::denied());
            }
            let who = auth::in_named_tenant(who, &ask.headers)?;
            let mut pull = translate::pull(&wish, &who)?;
            if !lines.is_empty() {
                // The answer to the reports does not wait, even if none of them made sense.
                pull.wait = Duration::ZERO;
            }
            Some((pull, who))
        }
        None => None,
    };
    let has_pull = pull.is_some();
    let reply = work(ask, commands, pull).await?;
    let asked = lines.iter().filter(|line| line.refusal.is_none());
    let governed = asked.zip(&reply.outcomes).find(|(_, it)| is_governed(it));
    let governed = governed.map(|(line, _)| line.job.to_string());
    if let (Some(job), Some(who)) = (governed, &ask.who) {
        let no = Rejection::JobGoverned.into();
        audit::attempted(&ask.app, who, ("job", job), &no).await;
    }
    let mut out = Out::data(64 * lines.len() + grants_bytes(&reply.grants));
    out.raw("{\"items\":[");
    let mut outcomes = reply.outcomes.into_iter();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.raw(",");
        }
        line.begin(&mut out);
        match line.refusal.as_ref().map_or_else(|| outcomes.next(), |_| None) {
            Some(Ok(Receipt::Moved { state })) => {
                out.raw(",\"status\":\"");
                out.raw(state.as_str());
                out.raw("\"}");
            }
            Some(Err(rejection)) => error(rejection.code(), &rejection.to_string(), &mut out),
            Some(Ok(_)) => error("INTERNAL_ERROR", "an unexpected receipt", &mut out),
            None => match &line.refusal {
                Some(refusal) => error(refusal.code, &refusal.message, &mut out),
                None => error("INTERNAL_ERROR", "no receipt", &mut out),
            },
        }
    }
    out.raw("]");
    if has_pull {
        out.raw(",\"jobs\":[");
        write_grants(&reply.grants, &mut out);
        out.raw("]");
    }
    out.raw("}");
    Ok(Reply::json(StatusCode::OK, out))
}

/// A lease token is proof enough for a few items; many are taken from whoever has a token.
fn few_or_known(ask: &Ask, items: usize) -> Result<(), Refusal> {
    match ask.who.is_none() && items > LEASE_ITEMS_MAX {
        true => Err(refusal::lease_batch_too_large(LEASE_ITEMS_MAX)),
        false => Ok(()),
    }
}

/// `,"error":{...}}`.
fn error(code: &str, message: &str, out: &mut Out) {
    out.raw(",");
    view::refused(code, message, out);
    out.raw("}");
}

fn grants_bytes(grants: &[Grant]) -> usize {
    let left = |grant: &Grant| {
        let checkpoint = grant.job.course().and_then(|course| course.checkpoint.as_ref());
        checkpoint.map_or(0, |value| value.len())
    };
    let bytes = |grant: &Grant| 480 + grant.job.payload.len() + left(grant);
    grants.iter().map(bytes).sum::<usize>() + 32
}

fn write_grants(grants: &[Grant], out: &mut Out) {
    for (index, grant) in grants.iter().enumerate() {
        if index > 0 {
            out.raw(",");
        }
        view::grant(&grant.job, out);
    }
}

pub(super) async fn heartbeat(ask: Ask) -> Result<Reply, Refusal> {
    let (worker, commands, lines) = {
        let (worker, lease_ms, items) = wire::beats(json::check(&ask.body)?)?;
        let lease_ms = translate::lease_ms(lease_ms)?;
        let mut commands = Vec::with_capacity(items.len());
        let mut lines = Vec::with_capacity(items.len());
        for item in items {
            lines.push(match item {
                Ok(beat) => line(&beat.job_id, translate::beat(&beat, lease_ms), &mut commands),
                Err(refusal) => Line::refused("", refusal),
            });
        }
        (translate::worker(&worker)?, commands, lines)
    };
    few_or_known(&ask, lines.len())?;
    let outcomes =
        if commands.is_empty() { Vec::new() } else { ask.engine().execute(commands).await? };
    // Anybody can say a worker's name; a lease that was renewed proves that there is one.
    if outcomes.iter().any(|outcome| matches!(outcome, Ok(Receipt::Renewed { .. }))) {
        ask.engine().worker_seen(&worker);
    }
    let mut out = Out::data(90 * lines.len() + 32);
    out.raw("{\"items\":[");
    let mut outcomes = outcomes.into_iter();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.raw(",");
        }
        line.begin(&mut out);
        let outcome = line.refusal.as_ref().map_or_else(|| outcomes.next(), |_| None);
        match (outcome, &line.refusal) {
            (Some(Ok(Receipt::Renewed { expires_at })), _) => {
                out.raw(",\"lease_expires_at\":");
                out.time(expires_at);
                out.raw("}");
            }
            (Some(Ok(Receipt::CancelledMeanwhile)), _) => out.raw(",\"cancelled\":true}"),
            (Some(Err(rejection @ Rejection::FieldInvalid { .. })), _) => {
                error(rejection.code(), &rejection.to_string(), &mut out);
            }
            (None, Some(refusal)) if refusal.code != Rejection::LeaseLost.code() => {
                error(refusal.code, &refusal.message, &mut out);
            }
            _ => out.raw(",\"lost\":true}"),
        }
    }
    out.raw("]}");
    Ok(Reply::json(StatusCode::OK, out))
}

pub(super) async fn put_effect(ask: Ask) -> Result<Reply, Refusal> {
    let wish: api::work::CommitEffect = json::read(json::check(&ask.body)?)?;
    let token = wish.lease_token.as_deref().or_else(|| ask.header(api::LEASE_HEADER));
    let (job, token) = translate::attempt(ask.param(), token.unwrap_or(""))?;
    let name = effect_name(&ask);
    let command = Command::CommitEffect(CommitEffect {
        job,
        token,
        name: name.into(),
        value: Payload::from(wish.value.get()),
    });
    let Receipt::Effect { value, is_first } = ask.engine().execute_one(command).await?? else {
        return Err(refusal::internal());
    };
    Ok(effect(job, name, &value, is_first))
}

/// Reads a committed effect: for the holder of the lease, or for whoever may see the job.
pub(super) async fn get_effect(ask: Ask) -> Result<Reply, Refusal> {
    let id = ask.param().parse::<JobId>().ok();
    let found = match id {
        Some(id) => ask.engine().job(id).await?,
        None => None,
    };
    let may_see = match ask.header(api::LEASE_HEADER) {
        Some(token) => {
            let token = token.parse::<LeaseToken>().map_err(|()| Rejection::LeaseLost)?;
            let lease = found.as_ref().and_then(|found| found.job.lease());
            let holds = lease.is_some_and(|lease| {
                let secret = lease.secret.to_be_bytes();
                lease.fence == token.fence
                    && lease.is_live(ask.engine().now())
                    && bool::from(secret.ct_eq(&token.secret.to_be_bytes()))
            });
            if !holds {
                return Err(Rejection::LeaseLost.into());
            }
            true
        }
        None => {
            let who = ask.who.clone().ok_or_else(refusal::unauthorized)?;
            let who = auth::in_named_tenant(who, &ask.headers)?;
            if found.is_none() && who.is_admin() {
                return Err(refusal::job_unknown());
            }
            found.as_ref().is_some_and(|found| who.can_see_job(&found.job))
        }
    };
    let found = found.filter(|_| may_see).ok_or_else(refusal::denied)?;
    let name = effect_name(&ask);
    let known = ask.engine().effect(found.job.id, name).await?;
    let known = known.ok_or_else(refusal::effect_unknown)?;
    Ok(effect(found.job.id, name, &known.value, false))
}

fn effect_name(ask: &Ask) -> &str {
    ask.params.get(1).map_or("", String::as_str)
}

fn effect(job: JobId, name: &str, value: &str, is_first: bool) -> Reply {
    let mut out = Out::data(128 + value.len());
    out.raw("{\"job_id\":");
    out.job_id(job);
    out.raw(",\"name\":");
    out.string(name);
    out.raw(",\"value\":");
    out.raw(value);
    out.raw(",\"is_first\":");
    out.flag(is_first);
    out.raw("}");
    Reply::json(StatusCode::OK, out)
}

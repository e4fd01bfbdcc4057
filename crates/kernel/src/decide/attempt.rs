//! What the holder of a lease may say: complete, fail, release, heartbeat.
//!
//! A stale, foreign or expired token changes nothing. The repeat of an accepted report is answered
//! again, because the worker may never have seen the first answer.

use super::{Decision, MoveChain, Receipt, dead_letter};
use crate::agent;
use crate::command::{Complete, Fail, Heartbeat, Release};
use crate::event::{Change, Event, Hold, HoldCode, SNOOZES_EXHAUSTED, TASK_EXECUTION_FAILED};
use crate::facts::Facts;
use crate::fingerprint::{Digest, digest};
use crate::job::{
    AcceptedReport, Actor, Failure, Job, Lease, LeaseToken, Payload, ProgressNote, Settled,
    StateName,
};
use crate::limits::{
    CHECKPOINT_BYTES_MAX, ERROR_CODE_BYTES_MAX, LEASE_MS_MAX, LEASE_MS_MIN, MESSAGE_BYTES_MAX,
    PAYLOAD_BYTES_MAX, PROGRESS_MESSAGE_BYTES_MAX, RETRY_DELAY_MS_MAX, SNOOZE_MS_MAX, SNOOZES_MAX,
};
use crate::registry::TypeSpec;
use crate::rejection::Rejection;
use crate::retry::{Backoff, delay_ms};
use crate::text::{cleaned, is_code_letter};
use crate::time::Timestamp;

pub(super) fn complete(report: &Complete, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let result = within_bounds(report.result.as_ref())?;
    let said = digest(&[b"complete", result.as_bytes()]);
    let (job, lease) = match holder(report.token, said, facts)? {
        Reporter::Holds(job, lease) => (job, lease),
        Reporter::Repeats(decision) => return Ok(decision),
    };
    let mut moves = MoveChain::of(job, facts, Actor::Worker(lease.worker.clone()));
    moves.push(Change::Succeeded {
        result: report.result.clone(),
        report: accepted(report.token, said),
    });
    Ok(moves.into_state(StateName::Succeeded))
}

pub(super) fn fail(report: &Fail, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    if let Some(ms) = report.snooze_ms {
        return snooze(report, ms, facts);
    }
    let Failure { code, message, retryable } = &report.failure;
    let result = within_bounds(report.result.as_ref())?;
    let is_retryable = [u8::from(*retryable)];
    let mut parts = vec![&b"fail"[..], code.as_bytes(), message.as_bytes(), &is_retryable];
    // Without a result a report has the digest it had before there were any.
    parts.extend(report.result.is_some().then_some(result.as_bytes()));
    let said = digest(&parts);
    let (job, lease) = match holder(report.token, said, facts)? {
        Reporter::Holds(job, lease) => (job, lease),
        Reporter::Repeats(decision) => return Ok(decision),
    };
    let moves = MoveChain::of(job, facts, Actor::Worker(lease.worker.clone()));
    let delay = report.retry_delay_ms.map(|ms| ms.min(RETRY_DELAY_MS_MAX));
    let due_at = delay.map(|ms| chosen_due_at(lease, ms, moves.at));
    let failed = Failed {
        failure: kept(&report.failure),
        report: accepted(report.token, said),
        result: report.result.clone(),
    };
    Ok(end_attempt(job, failed, due_at, moves, facts))
}

/// When the next try is due if its worker chose the delay: counted from when this one was due,
/// where that is kept, unless that is past already.
fn chosen_due_at(lease: &Lease, delay_ms: u64, at: Timestamp) -> Timestamp {
    let from_due = lease.due_at.map(|due_at| due_at.plus_millis(delay_ms));
    from_due.filter(|due_at| *due_at > at).unwrap_or_else(|| at.plus_millis(delay_ms))
}

/// The worker puts the job off. No try is used up, so there is a bound on how often.
fn snooze(report: &Fail, ms: u64, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let said = digest(&[b"snooze", &ms.to_be_bytes()]);
    let (job, lease) = match holder(report.token, said, facts)? {
        Reporter::Holds(job, lease) => (job, lease),
        Reporter::Repeats(decision) => return Ok(decision),
    };
    let mut moves = MoveChain::of(job, facts, Actor::Worker(lease.worker.clone()));
    if job.course().is_some_and(|course| course.snoozes >= SNOOZES_MAX) {
        let message = format!("its workers put the job off {SNOOZES_MAX} times").into();
        let failure = Failure { code: SNOOZES_EXHAUSTED.into(), message, retryable: false };
        let report = accepted(report.token, said);
        let failed = Failed { failure, report, result: None };
        return Ok(dead_letter::bury(job, failed, false, moves));
    }
    let until = moves.at.plus_millis(ms.min(SNOOZE_MS_MAX));
    let reason = Some(&*report.failure.message).filter(|text| !text.is_empty());
    moves.push(Change::Released {
        reason: Some(reason.map_or_else(|| "its worker put it off".into(), cut)),
        report: Box::new(AcceptedReport { token: report.token, digest: said }),
        due_at: None,
        hold: Some(Hold { code: HoldCode::Snoozed, until }),
    });
    Ok(moves.into_state(StateName::Retrying))
}

pub(super) fn release(report: &Release, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let said = digest(&[b"release"]);
    let (job, lease) = match holder(report.token, said, facts)? {
        Reporter::Holds(job, lease) => (job, lease),
        Reporter::Repeats(decision) => return Ok(decision),
    };
    let mut moves = MoveChain::of(job, facts, Actor::Worker(lease.worker.clone()));
    moves.push(Change::Released {
        reason: report.reason.as_deref().map(cut),
        report: Box::new(AcceptedReport { token: report.token, digest: said }),
        due_at: None,
        hold: None,
    });
    Ok(moves.into_state(StateName::Retrying))
}

pub(super) fn heartbeat(beat: &Heartbeat, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let job = facts.job.ok_or(Rejection::LeaseLost)?;
    let lease = match live_lease(job, beat.token, facts) {
        Some(lease) => lease,
        None if was_cancelled_under(job, beat.token) => {
            return Ok(Decision { events: Vec::new(), receipt: Receipt::CancelledMeanwhile });
        }
        None => return Err(Rejection::LeaseLost),
    };
    let note = beat.note.as_deref().map(kept_note).transpose()?;
    let lease_ms = beat.lease_ms.clamp(LEASE_MS_MIN, LEASE_MS_MAX);
    let settled = settled(lease, facts);
    let (promised, deadline_at) =
        settled.map_or((lease.expires_at, lease.deadline_at), |it| (it.expires_at, it.deadline_at));
    // A heartbeat never shortens what was promised, and never outlives the attempt's deadline.
    let expires_at = facts.now.plus_millis(u64::from(lease_ms)).max(promised);
    Ok(Decision {
        events: vec![Event::LeaseRenewed {
            job: job.id,
            fence: lease.fence,
            expires_at,
            progress_pct: beat.progress_pct.map(|pct| pct.min(100)),
            note,
            settled: settled.map(|it| (it.deadline_at, it.at)),
        }],
        receipt: Receipt::Renewed { expires_at: expires_at.min(deadline_at) },
    })
}

/// What a worker says about its progress as it is kept.
fn kept_note(note: &ProgressNote) -> Result<Box<ProgressNote>, Rejection> {
    if note.checkpoint.as_ref().is_some_and(|value| value.len() > CHECKPOINT_BYTES_MAX) {
        let reason = "must be at most 64 KiB of JSON";
        return Err(Rejection::FieldInvalid { field: "checkpoint", reason });
    }
    let message = note.message.as_deref().map(|it| kept_text(it, PROGRESS_MESSAGE_BYTES_MAX));
    Ok(Box::new(ProgressNote { message, checkpoint: note.checkpoint.clone() }))
}

/// How an attempt failed, and what came with the report of it.
pub(super) struct Failed {
    pub(super) failure: Failure,
    /// The report, unless the server itself ended the attempt.
    pub(super) report: Option<Box<AcceptedReport>>,
    /// What the worker had to show all the same.
    pub(super) result: Option<Payload>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Failed { failure, report: None, result: None }
    }
}

/// Ends the running attempt of `job` as it failed: a retry if one is left, else the DLQ. What there
/// was to show of an attempt that is tried again is not kept: a job holds one result at most, and
/// none while it waits.
pub(super) fn end_attempt(
    job: &Job,
    failed: Failed,
    chosen_due_at: Option<Timestamp>,
    mut moves: MoveChain,
    facts: &Facts<'_>,
) -> Decision {
    let is_retryable = failed.failure.retryable;
    if !is_retryable || job.retry_count >= job.max_retries {
        return dead_letter::bury(job, failed, is_retryable, moves);
    }
    let Failed { failure, report, .. } = failed;
    let due_at = chosen_due_at.unwrap_or_else(|| {
        let by_rule = || delay_ms(backoff(job, facts), job.id, job.retry_count + 1);
        moves.at.plus_millis(agent::backoff_ms(job).unwrap_or_else(by_rule))
    });
    moves.push(Change::RetryScheduled { failure, due_at, report });
    moves.into_state(StateName::Retrying)
}

/// A result that is not too large, or nothing.
fn within_bounds(result: Option<&Payload>) -> Result<&str, Rejection> {
    match result.map_or("", |result| &**result) {
        result if result.len() <= PAYLOAD_BYTES_MAX => Ok(result),
        _ => Err(Rejection::FieldInvalid {
            field: "result",
            reason: "must be at most 1 MiB of JSON",
        }),
    }
}

/// Refuses a result that is too large.
pub(super) fn check_result(result: Option<&Payload>) -> Result<(), Rejection> {
    within_bounds(result).map(|_| ())
}

/// How long `job` waits between tries: what its type says, registered or not.
pub(super) fn backoff(job: &Job, facts: &Facts<'_>) -> Backoff {
    match facts.job_type {
        Some(spec) => spec.backoff,
        None => TypeSpec::built_in(&job.job_type).map_or(Backoff::DEFAULT, |spec| spec.backoff),
    }
}

pub(super) enum Reporter<'a> {
    /// The token is the live lease.
    Holds(&'a Job, &'a Lease),
    /// The report was accepted before; this is its answer.
    Repeats(Decision),
}

pub(super) fn holder<'a>(
    token: LeaseToken,
    said: Digest,
    facts: &Facts<'a>,
) -> Result<Reporter<'a>, Rejection> {
    // An unknown job and a foreign token get the same answer: a report reveals nothing.
    let job = facts.job.ok_or(Rejection::LeaseLost)?;
    if let Some(lease) = live_lease(job, token, facts) {
        return Ok(Reporter::Holds(job, lease));
    }
    match &job.last_report {
        Some(last) if last.token == token && last.digest == said => {
            Ok(Reporter::Repeats(Decision {
                events: Vec::new(),
                receipt: Receipt::Moved { state: job.state.name() },
            }))
        }
        Some(last) if last.token == token && !was_cancelled_under(job, token) => {
            Err(Rejection::ReportConflict)
        }
        _ => Err(Rejection::LeaseLost),
    }
}

/// The lease of `job` if `token` names it and it has not run out.
pub(super) fn live_lease<'a>(
    job: &'a Job,
    token: LeaseToken,
    facts: &Facts<'_>,
) -> Option<&'a Lease> {
    job.lease().filter(|lease| lease.token() == token && is_live(lease, facts))
}

/// The lease with jumps of the clock and silences counted in, if that changes anything.
pub(super) fn settled(lease: &Lease, facts: &Facts<'_>) -> Option<Settled> {
    lease.settled(facts.jumps, facts.silences, facts.now)
}

/// Whether a lease counts, with all that counted in.
pub(super) fn is_live(lease: &Lease, facts: &Facts<'_>) -> bool {
    match settled(lease, facts) {
        Some(settled) => facts.now < settled.expires_at.min(settled.deadline_at),
        None => lease.is_live(facts.now),
    }
}

fn was_cancelled_under(job: &Job, token: LeaseToken) -> bool {
    job.state.name() == StateName::Cancelled
        && job.last_report.as_ref().is_some_and(|last| last.token == token)
}

fn accepted(token: LeaseToken, digest: Digest) -> Option<Box<AcceptedReport>> {
    Some(Box::new(AcceptedReport { token, digest }))
}

/// A failure as it is kept: within bounds, and never without a code.
pub(super) fn kept(failure: &Failure) -> Failure {
    let Failure { code, message, retryable } = failure;
    let code = match code.trim() {
        "" => TASK_EXECUTION_FAILED.into(),
        code if code.chars().all(is_code_letter) => cut_to(code, ERROR_CODE_BYTES_MAX).into(),
        // What a worker says about a failure is never a reason to refuse the report.
        code => {
            let plain = code.chars().map(|c| if is_code_letter(c) { c } else { '_' });
            plain.take(ERROR_CODE_BYTES_MAX).collect::<String>().into()
        }
    };
    Failure { code, message: cut(message), retryable: *retryable }
}

/// Text for people as it is kept: without stray control characters, and not more than so much.
pub(super) fn cut(text: &str) -> Box<str> {
    kept_text(text, MESSAGE_BYTES_MAX)
}

fn kept_text<T: for<'a> From<&'a str>>(text: &str, bytes_max: usize) -> T {
    // Cut before, so that only what is kept is looked through; and after, because what is put in
    // place of a control character is longer.
    cut_to(&cleaned(cut_to(text, bytes_max)), bytes_max).into()
}

/// The beginning of `text`, cut at a character boundary.
fn cut_to(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

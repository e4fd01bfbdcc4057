//! Applying what happened. The same function serves live operation, recovery and tests.

use crate::event::{
    Change, DEPENDENCIES_MET, HoldCode, INTERNAL_TRANSITION, JOB_CANCELLED, JobEvent, RELEASED,
    TASK_EXPIRED, TASK_RETRY_EXHAUSTED,
};
use crate::fingerprint::digest;
use crate::job::{AcceptedReport, Actor, Effect, Job, LastFailure, ProgressNote, State, StateName};
use crate::time::Timestamp;
use std::borrow::Cow;
use std::fmt;

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// 1, 2, 3… without gaps.
    pub seq: u32,
    /// The state before; `None` for the submission.
    pub from: Option<StateName>,
    /// The state after.
    pub to: StateName,
    /// When.
    pub at: Timestamp,
    /// Which attempt it belongs to, counted from one.
    pub attempt: u32,
    /// Why.
    pub reason: Option<Box<Reason>>,
    /// Who.
    pub actor: Actor,
}

/// Why a job moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// A stable code.
    pub code: Cow<'static, str>,
    /// For people.
    pub message: Box<str>,
}

impl Transition {
    /// The first line of the history of `job`.
    pub fn submitted(job: &Job) -> Transition {
        Transition {
            seq: 1,
            from: None,
            to: StateName::Queued,
            at: job.created_at,
            attempt: 1,
            reason: None,
            actor: Actor::User(job.user.clone()),
        }
    }
}

/// An event that does not fit the job it is applied to: a damaged history, or a bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What was expected and what came.
    pub text: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Mismatch {}

/// Applies `event` to `job` and says how the history goes on.
///
/// # Errors
/// If the event is not the next one of this job or the table has no such move. This cannot happen
/// for an event that [`crate::decide`] produced from this very job; the job is then unchanged.
pub fn evolve(job: &mut Job, event: &JobEvent) -> Result<Transition, Mismatch> {
    let from = job.state.name();
    let to = target(&event.change, from);
    // A job that is hastened stays where it is: it waits for less long.
    let is_legal = match event.change {
        Change::Hastened => matches!(from, StateName::Queued | StateName::Retrying),
        Change::Unblocked { .. } => from == StateName::Queued,
        Change::Claimed(_)
        | Change::Succeeded { .. }
        | Change::RetryScheduled { .. }
        | Change::Released { .. }
        | Change::DeadLettered { .. }
        | Change::DlqRecorded
        | Change::Failed
        | Change::Cancelled { .. } => from.may_become(to),
    };
    if event.job != job.id || event.seq != job.seq + 1 || !is_legal {
        return Err(Mismatch {
            text: format!(
                "event {} of {} ({from} to {to}) does not follow event {} of {}",
                event.seq, event.job, job.seq, job.id
            ),
        });
    }
    let attempt = job.attempt();
    let reason = match (&event.change, from) {
        (Change::Hastened, StateName::Retrying) => {
            let message = "nothing holds it any more".into();
            Some(Box::new(Reason { code: RELEASED.into(), message }))
        }
        (change, _) => reason(change),
    };
    apply(job, event);
    job.seq = event.seq;
    job.updated_at = event.at;
    Ok(Transition {
        seq: event.seq,
        from: Some(from),
        to,
        at: event.at,
        attempt,
        reason,
        actor: event.actor.clone(),
    })
}

/// Applies the renewal of a lease. Not a move: nothing but the lease and the progress change. What
/// was promised is never shortened, so renewals may be applied again, in any order.
///
/// # Errors
/// If the lease of that fence is not the one `job` runs under; the job is then unchanged.
pub fn renew(
    job: &mut Job,
    fence: u32,
    expires_at: Timestamp,
    (progress_pct, note): (Option<u8>, Option<&ProgressNote>),
    settled: Option<(Timestamp, Timestamp)>,
) -> Result<(), Mismatch> {
    let (id, state) = (job.id, job.state.name());
    match &mut job.state {
        State::Running(lease) if lease.fence == fence => {
            lease.expires_at = expires_at.max(lease.expires_at);
            if let Some((deadline_at, at)) = settled {
                lease.deadline_at = deadline_at.max(lease.deadline_at);
                lease.settled_at = lease.settled_at.max(Some(at));
            }
        }
        State::Running(_)
        | State::Queued
        | State::Retrying { .. }
        | State::DlqPending
        | State::DlqRecorded
        | State::Succeeded { .. }
        | State::Failed { .. }
        | State::Cancelled { .. } => {
            let text = format!("{id} is {state} and has no lease {fence} to renew");
            return Err(Mismatch { text });
        }
    }
    if progress_pct.is_some() {
        job.extras_mut().progress_pct = progress_pct;
    }
    if let Some(ProgressNote { message, checkpoint }) = note {
        let course = job.course_mut();
        if message.is_some() {
            course.message.clone_from(message);
        }
        if checkpoint.is_some() {
            course.checkpoint.clone_from(checkpoint);
            course.is_checkpoint_elsewhere = false;
        }
    }
    Ok(())
}

/// Applies the commit of a side effect.
///
/// # Errors
/// If the job has an effect of that name; the job is then unchanged.
pub fn keep_effect(job: &mut Job, effect: &Effect) -> Result<(), Mismatch> {
    if job.effect(&effect.name).is_some() {
        let text = format!("{} has committed the effect {:?} already", job.id, effect.name);
        return Err(Mismatch { text });
    }
    job.extras_mut().effects.push(effect.clone());
    Ok(())
}

fn target(change: &Change, from: StateName) -> StateName {
    match change {
        Change::Claimed(_) => StateName::Running,
        Change::Hastened | Change::Unblocked { .. } => from,
        Change::Succeeded { .. } => StateName::Succeeded,
        Change::RetryScheduled { .. } | Change::Released { .. } => StateName::Retrying,
        Change::DeadLettered { .. } => StateName::DlqPending,
        Change::DlqRecorded => StateName::DlqRecorded,
        Change::Failed => StateName::Failed,
        Change::Cancelled { .. } => StateName::Cancelled,
    }
}

fn apply(job: &mut Job, event: &JobEvent) {
    let at = event.at;
    match &event.change {
        Change::Claimed(lease) => {
            job.fence = lease.fence;
            job.started_at = Some(lease.granted_at);
            job.state = State::Running(lease.clone());
        }
        Change::Succeeded { result, report } => {
            job.last_report.clone_from(report);
            job.forget_checkpoint();
            job.state = State::Succeeded { finished_at: at, result: result.clone() };
        }
        Change::RetryScheduled { failure, due_at, report } => {
            job.retry_count += 1;
            job.last_report.clone_from(report);
            let failure = failure.clone();
            let last_failure = LastFailure { failure, at, is_exhausted: false, result: None };
            job.last_failure = Some(Box::new(last_failure));
            job.state = State::Retrying { due_at: *due_at };
        }
        Change::Released { report, due_at, hold, .. } => {
            job.last_report = Some(report.clone());
            let due_at = hold.map_or(due_at.unwrap_or(at), |hold| hold.until);
            if hold.is_some_and(|hold| hold.code == HoldCode::Snoozed) {
                let course = job.course_mut();
                course.snoozes = course.snoozes.saturating_add(1);
            }
            job.state = State::Retrying { due_at };
        }
        Change::DeadLettered { failure, is_exhausted, report, result } => {
            job.last_report.clone_from(report);
            let (failure, result) = (failure.clone(), result.clone());
            let last_failure = LastFailure { failure, at, is_exhausted: *is_exhausted, result };
            job.last_failure = Some(Box::new(last_failure));
            job.forget_checkpoint();
            job.state = State::DlqPending;
        }
        Change::Hastened if matches!(job.state, State::Retrying { .. }) => {
            job.state = State::Retrying { due_at: at };
        }
        // It has waited, if only for an instant: views tell by it that it was pending.
        Change::Hastened => job.run_at = at.max(Timestamp(job.created_at.0 + 1)),
        Change::Unblocked { run_at } => {
            job.run_at = (*run_at).max(at).max(Timestamp(job.created_at.0 + 1));
        }
        Change::DlqRecorded => job.state = State::DlqRecorded,
        Change::Failed => job.state = State::Failed { finished_at: at },
        Change::Cancelled { code, .. } => {
            job.forget_checkpoint();
            if *code != JOB_CANCELLED && *code != TASK_EXPIRED {
                job.course_mut().ended_by = Some(code);
            }
            // The holder's next heartbeat must be recognised, to tell it to stop.
            if let Some(lease) = job.lease() {
                let digest = digest(&[JOB_CANCELLED.as_bytes()]);
                let report = AcceptedReport { token: lease.token(), digest };
                job.last_report = Some(Box::new(report));
            }
            job.state = State::Cancelled { finished_at: at };
        }
    }
}

fn reason(change: &Change) -> Option<Box<Reason>> {
    let (code, message): (Cow<'static, str>, Box<str>) = match change {
        Change::Claimed(_) | Change::Succeeded { .. } | Change::DlqRecorded | Change::Failed => {
            return None;
        }
        Change::RetryScheduled { failure, .. } => {
            (failure.code.to_string().into(), failure.message.clone())
        }
        Change::Hastened => (INTERNAL_TRANSITION.into(), "made ready by hand".into()),
        Change::Unblocked { .. } => {
            (DEPENDENCIES_MET.into(), "the jobs that it waited for are done".into())
        }
        Change::Released { reason, hold, .. } => {
            let code = hold.map_or(RELEASED, |hold| hold.code.as_str());
            (code.into(), reason.clone().unwrap_or_else(|| "given back unused".into()))
        }
        Change::DeadLettered { failure, is_exhausted: true, .. } => (
            TASK_RETRY_EXHAUSTED.into(),
            format!("no retry left after {}: {}", failure.code, failure.message).into(),
        ),
        Change::DeadLettered { failure, is_exhausted: false, .. } => {
            (failure.code.to_string().into(), failure.message.clone())
        }
        Change::Cancelled { code, reason } => {
            ((*code).into(), reason.clone().unwrap_or_else(|| "cancelled by request".into()))
        }
    };
    Some(Box::new(Reason { code, message }))
}

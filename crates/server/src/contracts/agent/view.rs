//! Jobs as the agent contract shows them, purely. A job of its types that another contract made is
//! a run, too: its payload is its prompt.

use super::translate::{RESULT_TYPES, kind};
use super::wire::{AgentPlan, AgentResult, AgentRun, AgentSnapshot, AgentStatus};
use mainspring_api::Time;
use mainspring_kernel::agent::{
    self, NAMESPACE, PARENT_LABEL, Purpose, TRIGGER_LABEL, TRIGGERED_LABEL, id_of, label,
};
use mainspring_kernel::entity::question::{Question, Standing};
use mainspring_kernel::job::State;
use mainspring_kernel::view::agent as shown;
use mainspring_kernel::{Job, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What is written and read.
pub(super) const SCHEMA_VERSION: u32 = 2;

/// The status of a plan that waits for an answer.
pub(super) const NEEDS_INPUT: &str = "needs_input";

/// What the payload of a run tells.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    prompt: Option<String>,
    timeout: Option<u32>,
    defer_until: Option<Time>,
    created_at: Option<Time>,
    attempts: u32,
    started_at: Option<Time>,
    completed_at: Option<Time>,
    duration_ms: Option<i64>,
}

impl Kept {
    fn of(job: &Job) -> Kept {
        let kept: Option<Kept> = serde_json::from_str(&job.payload).ok();
        let kept = kept.filter(|kept| kept.prompt.is_some()).unwrap_or_default();
        // What happened elsewhere is told by this contract alone: names are its own to give.
        match job.alias().is_some_and(|alias| &*alias.scope == NAMESPACE) {
            true => kept,
            false => Kept {
                prompt: kept.prompt,
                timeout: kept.timeout,
                defer_until: kept.defer_until,
                ..Kept::default()
            },
        }
    }

    fn prompt(self, job: &Job) -> String {
        self.prompt.unwrap_or_else(|| job.payload.to_string())
    }

    fn created_at(&self, job: &Job) -> Time {
        self.created_at.unwrap_or(Time(job.created_at.0))
    }

    /// Attempts are counted on from those that were made elsewhere.
    fn attempts(&self, job: &Job) -> u32 {
        match (shown::attempts(job), self.attempts) {
            (0, before) => before,
            (now, 0) => now,
            (now, before) => before.saturating_sub(1).saturating_add(now),
        }
    }
}

/// A run or plan as it stands.
pub(super) fn run(job: &Job) -> AgentRun {
    let kept = Kept::of(job);
    AgentRun {
        schema_version: SCHEMA_VERSION,
        id: id_of(job),
        kind: Purpose::of(&job.job_type).map_or("oneshot", kind),
        trace_id: job.trace_id(),
        parent_task_id: label(job, PARENT_LABEL).map(str::to_owned),
        priority: job.priority,
        created_at: kept.created_at(job),
        attempts: kept.attempts(job),
        timeout: kept.timeout,
        defer_until: defer_until(job, &kept),
        source_trigger_id: label(job, TRIGGER_LABEL).map(str::to_owned),
        triggered_at: triggered_at(job),
        status: shown::state(job).as_str(),
        job_id: job.id.to_string(),
        lease_token: None,
        lease_expires_at: None,
        idempotent_hit: false,
        question: None,
        answer: None,
        prompt: kept.prompt(job),
    }
}

/// The same for the worker that it is handed to.
pub(super) fn granted(job: &Job) -> AgentRun {
    let lease = job.lease();
    AgentRun {
        lease_token: lease.map(|lease| lease.token().to_string()),
        lease_expires_at: lease.map(|lease| Time(lease.ends_at().0)),
        ..run(job)
    }
}

/// Until when a run is not handed out: as it was asked for, or until its next try.
fn defer_until(job: &Job, kept: &Kept) -> Option<Time> {
    match job.state {
        State::Retrying { due_at } => {
            let waits = agent::backoff_ms(job).is_some_and(|wait| wait > 0);
            waits.then_some(Time(due_at.0))
        }
        State::Queued
        | State::Running(_)
        | State::DlqPending
        | State::DlqRecorded
        | State::Succeeded { .. }
        | State::Failed { .. }
        | State::Cancelled { .. } => kept.defer_until,
    }
}

fn triggered_at(job: &Job) -> Option<Time> {
    label(job, TRIGGERED_LABEL).and_then(|text| text.parse().ok())
}

/// What is kept of a result that this contract was told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Told<'a> {
    result_type: &'a str,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// The result of a run or plan; `None` before its end.
pub(super) fn result(job: &Job) -> Option<AgentResult> {
    let finished_at = job.finished_at()?;
    let kept = Kept::of(job);
    let (result_type, result) = told(job);
    let reason = shown::failure_reason(job);
    let run = run(job);
    let is_past = kept.completed_at.is_some();
    let duration = job.started_at.map(|at| finished_at.since(at).as_millis() as i64);
    Some(AgentResult {
        schema_version: SCHEMA_VERSION,
        status: shown::state(job).as_str(),
        result_type,
        result,
        error: error(job),
        failure_reason: reason.map(shown::FailureReason::as_str),
        attempts: kept.attempts(job),
        trace_id: run.trace_id.clone(),
        source_trigger_id: run.source_trigger_id.clone(),
        started_at: if is_past { kept.started_at } else { job.started_at.map(time) },
        completed_at: completed_at(&kept, finished_at),
        duration_ms: if is_past { kept.duration_ms } else { duration },
        id: run.id,
        task: AgentSnapshot {
            prompt: run.prompt,
            priority: run.priority,
            created_at: run.created_at,
            timeout: run.timeout,
            trace_id: run.trace_id,
            parent_task_id: run.parent_task_id,
            source_trigger_id: run.source_trigger_id,
            triggered_at: run.triggered_at,
        },
    })
}

/// When it ended: here, or before it came here.
fn completed_at(kept: &Kept, finished_at: Timestamp) -> Time {
    kept.completed_at.unwrap_or(time(finished_at))
}

/// Its line in the index of what has ended; `None` before its end.
pub(super) fn status(job: &Job) -> Option<AgentStatus> {
    let id = id_of(job);
    Some(AgentStatus {
        schema_version: SCHEMA_VERSION,
        status: shown::state(job).as_str(),
        completed_at: completed_at(&Kept::of(job), job.finished_at()?),
        result_id: id.clone(),
        source_trigger_id: label(job, TRIGGER_LABEL).map(str::to_owned),
        failure_reason: shown::failure_reason(job).map(shown::FailureReason::as_str),
        trace_id: job.trace_id(),
        id,
    })
}

/// What there is to show, and of which type it is. What a worker of another contract answered is
/// text.
fn told(job: &Job) -> (&'static str, Box<RawValue>) {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap_or_default();
    let Some(kept) = job.result() else { return (RESULT_TYPES[0], raw("\"\"")) };
    let known = |told: &Told<'_>| RESULT_TYPES.into_iter().find(|it| *it == told.result_type);
    let told = serde_json::from_str::<Told<'_>>(kept).ok();
    match told.as_ref().and_then(|told| Some((known(told)?, told.result))) {
        Some((result_type, result)) => (result_type, result.to_owned()),
        None => (RESULT_TYPES[0], raw(kept)),
    }
}

/// What went wrong, if the end is a failure.
fn error(job: &Job) -> Option<String> {
    shown::failure_reason(job)?;
    match (&job.state, &job.last_failure) {
        (State::Cancelled { .. }, _) if job.has_expired() => Some("not started in time".to_owned()),
        (State::Cancelled { .. }, _) => Some("cancelled".to_owned()),
        (_, failure) => failure.as_ref().map(|last| last.failure.message.to_string()),
    }
}

/// What is kept of the result of a plan.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PlanKept {
    /// The names of the runs that it made.
    pub(super) tasks: Vec<String>,
    /// The names of the triggers that it made.
    pub(super) triggers: Vec<String>,
    /// How many entries had no prompt and were passed over.
    pub(super) skipped: usize,
}

/// A plan as it stands; `question` is what it asked last.
pub(super) fn plan(job: &Job, question: Option<&Question>) -> AgentPlan {
    let kept = job.result().and_then(|kept| serde_json::from_str::<PlanKept>(kept).ok());
    let PlanKept { tasks, triggers, skipped } = kept.unwrap_or_default();
    let waits = question.is_some_and(Question::is_open) && !job.state.name().is_terminal();
    let by = question.and_then(|question| match &question.standing {
        Standing::Answered { by, .. } => Some(by.to_string()),
        Standing::Open
        | Standing::Defaulted { .. }
        | Standing::Expired { .. }
        | Standing::Withdrawn { .. } => None,
    });
    let answered_at = question.and_then(|question| match question.standing {
        Standing::Answered { at, .. } | Standing::Defaulted { at } => Some(time(at)),
        Standing::Open | Standing::Expired { .. } | Standing::Withdrawn { .. } => None,
    });
    let run = asked(run(job), question);
    AgentPlan {
        run: AgentRun { status: if waits { NEEDS_INPUT } else { run.status }, ..run },
        tasks,
        triggers,
        skipped,
        error: error(job),
        failure_reason: shown::failure_reason(job).map(shown::FailureReason::as_str),
        completed_at: job.finished_at().map(|at| completed_at(&Kept::of(job), at)),
        options: question.map_or_else(Vec::new, |question| {
            question.asked.options.iter().map(|option| option.to_string()).collect()
        }),
        default: question.and_then(|question| question.asked.default.as_deref().map(Into::into)),
        deadline: question.and_then(|question| question.asked.deadline).map(time),
        answered_by: by,
        answered_at,
    }
}

/// A run with what it asked last, and the answer.
pub(super) fn asked(run: AgentRun, question: Option<&Question>) -> AgentRun {
    AgentRun {
        question: question.map(|question| question.asked.text.to_string()),
        answer: question.and_then(|question| question.answer().map(str::to_owned)),
        ..run
    }
}

pub(super) fn time(at: Timestamp) -> Time {
    Time(at.0)
}

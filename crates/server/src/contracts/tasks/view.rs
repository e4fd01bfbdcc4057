//! Jobs and their moves as the task contract shows them, purely. A job that another contract made
//! is a task, too: it goes by its job id.

use super::NAMESPACE;
use super::wire::{Task, TaskEvent, TaskEventMeta, TaskEventPayload, TaskSnapshot};
use mainspring_api::Time;
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::view::tasks;
use mainspring_kernel::{Job, JobId, Timestamp};
use serde_json::value::RawValue;

/// The label that tells a worker which task it has.
pub(super) const TASK_LABEL: &str = "task_id";
/// The label that keeps what was asked for: a time that is past counts as now for the job.
pub(super) const AT_LABEL: &str = "scheduled_at";
/// Stands before the scope of a key of this contract, so that none can pass for another's.
pub(crate) const SCOPE_PREFIX: &str = "task:";

/// What the events of a task tell besides its moves. Small: followers remember many.
#[derive(Debug, Clone)]
pub(super) struct Named {
    task_id: String,
    created_at: Timestamp,
    run_at: Timestamp,
}

/// The name of a task: the one its caller chose, or its job id.
pub(super) fn task_id(job: &Job) -> String {
    match job.alias().filter(|alias| &*alias.scope == NAMESPACE) {
        Some(alias) => alias.key.to_string(),
        None => job.id.to_string(),
    }
}

/// When the task was to start, as its caller said.
pub(super) fn scheduled_at(job: &Job) -> Timestamp {
    // Labels are anybody's to choose, unless this contract made the job.
    let is_ours = job.alias().is_some_and(|alias| &*alias.scope == NAMESPACE);
    let labels = job.extras.iter().flat_map(|extras| &extras.labels).filter(|_| is_ours);
    let said = labels.into_iter().find(|(name, _)| &**name == AT_LABEL);
    let said = said.and_then(|(_, text)| text.parse::<Time>().ok());
    said.map_or(job.run_at, |time| Timestamp(time.0))
}

/// A task as it stands at `now`.
pub(super) fn snapshot(job: &Job, now: Timestamp) -> TaskSnapshot {
    let last_failure = job.last_failure.as_deref();
    TaskSnapshot {
        task_id: task_id(job),
        schedule_type: "at",
        state: tasks::state(job, now).as_str(),
        attempt: tasks::attempt(job),
        max_retries: job.max_retries,
        timeout_ms: job.timeout_ms,
        idempotency_key: job.idempotency.as_ref().map(|key| key.key.to_string()),
        last_error_code: tasks::last_error_code(job).map(str::to_owned),
        last_error_reason: last_failure.map(|last| last.failure.message.to_string()),
        created_at: time(job.created_at),
        updated_at: time(job.updated_at),
        started_at: job.started_at.map(time),
        finished_at: job.finished_at().map(time),
    }
}

/// A task with everything there is to say about it.
pub(super) fn task(job: &Job, now: Timestamp) -> Task {
    let scope = job.idempotency.as_ref().map(|key| &*key.scope);
    Task {
        snapshot: snapshot(job, now),
        job_id: job.id.to_string(),
        max_attempts: tasks::max_attempts(job),
        scheduled_at: time(scheduled_at(job)),
        idempotency_scope: scope.and_then(scope_shown).map(str::to_owned),
        payload: RawValue::from_string(job.payload.to_string()).unwrap_or_default(),
        schedule_id: None,
        fire_time: None,
    }
}

/// A scope as the caller gave it; none for the scope of those who gave none.
fn scope_shown(scope: &str) -> Option<&str> {
    let given = scope.strip_prefix(SCOPE_PREFIX).unwrap_or(scope);
    Some(given).filter(|given| !given.is_empty())
}

impl Named {
    pub(super) fn of(job: &Job) -> Self {
        Named { task_id: task_id(job), created_at: job.created_at, run_at: job.run_at }
    }
}

/// What one native move of a job shows: nothing, one event, or two.
pub(super) fn events(job: JobId, named: &Named, step: &Transition) -> Vec<TaskEvent> {
    let last = tasks::last_shown_of(named.created_at, named.run_at, step);
    let moves: Vec<_> = tasks::moves(last, step, named.run_at).into_iter().collect();
    let count = moves.len();
    let shown = moves.into_iter().enumerate();
    shown
        .map(|(index, shown)| {
            let is_implied = index + 1 < count;
            let is_by_clock = (shown.from, shown.to)
                == (tasks::State::Pending, tasks::State::Ready)
                && is_implied;
            // No move marked the instant at which the time had come, but it is known.
            let at = if is_by_clock { named.run_at.min(step.at) } else { step.at };
            let reason = step.reason.as_deref().filter(|_| !is_implied);
            event(
                Shown { job, named, step, from: shown.from, to: shown.to, at, is_implied },
                reason,
            )
        })
        .collect()
}

struct Shown<'a> {
    job: JobId,
    named: &'a Named,
    step: &'a Transition,
    from: tasks::State,
    to: tasks::State,
    at: Timestamp,
    /// Whether the move only leads to the one that happened.
    is_implied: bool,
}

const KIND: &str = "task_state_changed";
const SOURCE: &str = "gateway.scheduler";
const SESSION_KEY: &str = "scheduler:default";

fn event(shown: Shown<'_>, reason: Option<&mainspring_kernel::evolve::Reason>) -> TaskEvent {
    let Shown { job, named, step, from, to, at, is_implied } = shown;
    let letters = job.to_string().split_off(JobId::PREFIX.len() + 1);
    let event_id = match is_implied {
        true => format!("evt_{letters}_{}_{to}", step.seq),
        false => format!("evt_{letters}_{}", step.seq),
    };
    let mut ets_keys = vec![named.task_id.clone(), from.to_string(), to.to_string()];
    ets_keys.extend([KIND, SOURCE, SESSION_KEY].map(str::to_owned));
    ets_keys.push(event_id.clone());
    TaskEvent {
        kind: KIND,
        source: SOURCE,
        session_key: SESSION_KEY,
        event_id,
        payload: TaskEventPayload {
            task_id: named.task_id.clone(),
            from_state: from.as_str(),
            to_state: to.as_str(),
            occurred_at: time(at),
            attempt: step.attempt,
            reason_code: reason.map(|reason| reason.code.to_string()),
            reason_message: reason.map(|reason| reason.message.to_string()),
            idempotent_hit: false,
            schedule_id: None,
            fire_time: None,
        },
        version: u64::from(step.seq) * 2 - u64::from(is_implied),
        ets_keys,
        ts: at.as_millis(),
        meta: TaskEventMeta { audit: true, replayable: true },
    }
}

fn time(at: Timestamp) -> Time {
    Time(at.0)
}

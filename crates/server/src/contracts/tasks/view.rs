//! Jobs and their moves as the task contract shows them, purely. A job that another contract made
//! is a task, too: it goes by its job id.

use super::NAMESPACE;
use super::wire::{Task, TaskEvent, TaskEventMeta, TaskEventPayload, TaskSnapshot};
use mainspring_api::Time;
use mainspring_kernel::calendar::{Cron, Rhythm, Zone};
use mainspring_kernel::entity::schedule::Schedule;
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::firing::{self, TASK_LABEL};
use mainspring_kernel::idempotency::TASK_SCOPE_PREFIX;
use mainspring_kernel::view::tasks;
use mainspring_kernel::{Job, JobId, Timestamp};
use serde_json::value::RawValue;

/// The label that keeps what was asked for: a time that is past counts as now for the job.
pub(super) const AT_LABEL: &str = "scheduled_at";
/// Labels that keep which run of a plan of the caller's own a task is.
pub(super) const SCHEDULE_LABEL: &str = "schedule_id";
pub(super) const FIRE_LABEL: &str = "fire_time";

/// What the events of a task tell besides its moves. Small: followers remember many.
#[derive(Debug, Clone)]
pub(super) struct Named {
    task_id: String,
    created_at: Timestamp,
    run_at: Timestamp,
    firing: Option<Firing>,
}

/// Which run of which plan a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Firing {
    /// The plan: the name of one of ours, or what the caller calls it.
    pub(super) schedule_id: String,
    /// For which of its times.
    pub(super) fire_time: Timestamp,
}

/// Whether this contract made the job: labels are anybody's to choose otherwise.
fn is_ours(job: &Job) -> bool {
    job.alias().is_some_and(|alias| &*alias.scope == NAMESPACE)
}

fn label<'a>(job: &'a Job, name: &str) -> Option<&'a str> {
    let labels = &job.extras.as_ref()?.labels;
    labels.iter().find(|(known, _)| &**known == name).map(|(_, value)| &**value)
}

/// The instant for which a plan of this contract made the job, if one did.
fn fired_at(job: &Job) -> Option<Timestamp> {
    firing::origin(job).filter(|origin| origin.is_task).map(|origin| origin.at)
}

/// The name of a task: the one its caller chose, or that of its plan and instant, or its job id.
pub(super) fn task_id(job: &Job) -> String {
    let fired = || fired_at(job).and_then(|_| label(job, TASK_LABEL)).map(str::to_owned);
    match job.alias().filter(|_| is_ours(job)) {
        Some(alias) => alias.key.to_string(),
        None => fired().unwrap_or_else(|| job.id.to_string()),
    }
}

/// Which run of which plan a task is, if it is one.
fn firing(job: &Job) -> Option<Firing> {
    if let Some(fire_time) = fired_at(job) {
        let (schedule_id, _) = label(job, TASK_LABEL)?.rsplit_once('@')?;
        return Some(Firing { schedule_id: schedule_id.to_owned(), fire_time });
    }
    let ours = Some(job).filter(|job| is_ours(job))?;
    let schedule_id = label(ours, SCHEDULE_LABEL)?.to_owned();
    let fire_time = label(ours, FIRE_LABEL)?.parse::<Time>().ok()?;
    Some(Firing { schedule_id, fire_time: Timestamp(fire_time.0) })
}

/// When the task was to start, as its caller said. A plan has no such time.
pub(super) fn scheduled_at(job: &Job) -> Option<Timestamp> {
    let said = label(job, AT_LABEL).filter(|_| is_ours(job));
    let said = said.and_then(|text| text.parse::<Time>().ok()).map(|time| Timestamp(time.0));
    match job.plan() {
        Some(_) => None,
        None => said.or_else(|| fired_at(job)).or(Some(job.run_at)),
    }
}

/// A task as it stands at `now`.
pub(super) fn snapshot(job: &Job, now: Timestamp) -> TaskSnapshot {
    let last_failure = job.last_failure.as_deref();
    // The key of a firing is ours, not a caller's.
    let key = job.idempotency.as_ref().filter(|_| firing::origin(job).is_none());
    TaskSnapshot {
        task_id: task_id(job),
        schedule_type: if job.plan().is_some() { "cron" } else { "at" },
        state: tasks::state(job, now).as_str(),
        attempt: tasks::attempt(job),
        max_retries: job.max_retries,
        timeout_ms: job.timeout_ms,
        idempotency_key: key.map(|key| key.key.to_string()),
        last_error_code: tasks::last_error_code(job).map(str::to_owned),
        last_error_reason: last_failure.map(|last| last.failure.message.to_string()),
        created_at: time(job.created_at),
        updated_at: time(job.updated_at),
        started_at: job.started_at.map(time),
        finished_at: job.finished_at().map(time),
    }
}

/// A task with everything there is to say about it; `plan` is the schedule of one that is a plan.
pub(super) fn task(job: &Job, plan: Option<&Schedule>, now: Timestamp) -> Task {
    let key = job.idempotency.as_ref().filter(|_| firing::origin(job).is_none());
    let (cron_expr, timezone) = plan.and_then(rhythm).unzip();
    let next = plan.and_then(Schedule::next_fire_at);
    let (schedule_id, fire_time) =
        firing(job).map(|firing| (firing.schedule_id, time(firing.fire_time))).unzip();
    Task {
        snapshot: snapshot(job, now),
        job_id: job.id.to_string(),
        max_attempts: tasks::max_attempts(job),
        scheduled_at: scheduled_at(job).map(time),
        cron_expr: cron_expr.map(|cron| cron.as_str().to_owned()),
        timezone: timezone.map(|zone| zone.name().to_owned()),
        // Its schedule hears of the end of a plan a moment later.
        next_run_at: next.filter(|_| !job.state.name().is_terminal()).map(time),
        last_run_at: plan.and_then(|plan| plan.last_fire_at).map(time),
        idempotency_scope: key.and_then(|key| scope_shown(&key.scope)).map(str::to_owned),
        payload: RawValue::from_string(job.payload.to_string()).unwrap_or_default(),
        schedule_id,
        fire_time,
    }
}

/// The pattern and the zone of a plan.
pub(super) fn rhythm(plan: &Schedule) -> Option<(&Cron, &Zone)> {
    match &plan.spec.rhythm {
        Rhythm::Cron { cron, zone, .. } => Some((cron, zone)),
        Rhythm::At(_) | Rhythm::Interval { .. } => None,
    }
}

/// A scope as the caller gave it; none for the scope of those who gave none.
fn scope_shown(scope: &str) -> Option<&str> {
    let given = scope.strip_prefix(TASK_SCOPE_PREFIX).unwrap_or(scope);
    Some(given).filter(|given| !given.is_empty())
}

impl Named {
    pub(super) fn of(job: &Job) -> Self {
        Named {
            task_id: task_id(job),
            created_at: job.created_at,
            run_at: job.run_at,
            firing: firing(job),
        }
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
    let firing = named.firing.as_ref();
    let mut ets_keys = vec![named.task_id.clone(), from.to_string(), to.to_string()];
    if let Some(firing) = firing {
        ets_keys.extend([firing.schedule_id.clone(), time(firing.fire_time).to_string()]);
    }
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
            schedule_id: firing.map(|firing| firing.schedule_id.clone()),
            fire_time: firing.map(|firing| time(firing.fire_time)),
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

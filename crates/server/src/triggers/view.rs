//! Triggers as contracts show them.

use super::condition::{self, Spelling};
use mainspring_api as api;
use mainspring_api::Time;
use mainspring_api::trigger::{
    TriggerEvaluation, TriggerEvaluations, TriggerExplanation, TriggerLeaf, TriggerPause,
    TriggerSchedule, TriggerState,
};
use mainspring_kernel::Timestamp;
use mainspring_kernel::entity::Entity;
use mainspring_kernel::entity::trigger::{
    Condition, Evaluated, Evaluation, Finding, Outcome, Status, Trigger, TriggerType, Why,
};
use serde_json::json;

fn time(at: Timestamp) -> Time {
    Time(at.0)
}

/// A trigger as it stands at `now`.
pub(crate) fn trigger(
    entity: &Entity,
    trigger: &Trigger,
    spelling: Spelling,
    now: Timestamp,
) -> api::trigger::Trigger {
    let spec = &trigger.spec;
    let paused = match &trigger.status {
        Status::Active => None,
        Status::Paused(pause) => Some(TriggerPause {
            by: pause.by.as_ref().map(ToString::to_string),
            at: time(pause.at),
            note: pause.note.as_deref().map(str::to_owned),
        }),
    };
    api::trigger::Trigger {
        id: spec.name.to_string(),
        kind: spec.kind.as_str().to_owned(),
        status: trigger.state().to_owned(),
        user_id: entity.owner.to_string(),
        version: entity.version,
        prompt: spec.prompt.to_string(),
        priority: spec.priority,
        timeout: spec.timeout_secs,
        trace_id: spec.trace.as_deref().map(str::to_owned),
        parent_task_id: spec.parent_task_id.as_deref().map(str::to_owned),
        created_at: time(trigger.made_elsewhere_at.unwrap_or(entity.created_at)),
        updated_at: time(entity.updated_at),
        schedule: schedule(trigger),
        condition: spec.condition.as_ref().map(|it| condition::show(it, spelling)),
        cooldown: spec.cooldown_secs,
        fired_count: trigger.fired,
        paused,
        state: state(trigger, now),
    }
}

fn schedule(trigger: &Trigger) -> Option<TriggerSchedule> {
    let spec = &trigger.spec;
    let is_recurring = spec.kind == TriggerType::Recurring;
    (spec.interval_secs.is_some() || spec.run_at.is_some()).then(|| TriggerSchedule {
        interval: spec.interval_secs,
        run_at: spec.run_at.map(time),
        last_run_at: trigger.last_triggered_at.filter(|_| is_recurring).map(time),
        next_run_at: trigger.next_run_at.filter(|_| is_recurring).map(time),
    })
}

fn state(trigger: &Trigger, now: Timestamp) -> TriggerState {
    TriggerState {
        last_triggered_at: trigger.last_triggered_at.map(time),
        last_eval_at: trigger.last_eval_at.map(time),
        last_seen_result_id: trigger.last_seen_result_id().map(str::to_owned),
        last_mtime: trigger.last_mtime().map(|at| json!(time(at))),
        initialized: Some(trigger.is_initialized()),
        running_at: trigger.running_at().map(time),
        last_status: trigger.last_status.map(|status| status.as_str().to_owned()),
        last_error: trigger.last_error.as_deref().map(str::to_owned),
        last_duration_ms: trigger.last_duration_ms,
        next_run_at: trigger.next_shown(now).map(time),
    }
}

/// What was decided about a trigger lately, the latest first.
pub(crate) fn evaluations(trigger: &Trigger) -> TriggerEvaluations {
    let items = trigger.log.iter().rev().map(|line| evaluation(trigger, line)).collect();
    TriggerEvaluations { items }
}

fn evaluation(trigger: &Trigger, line: &Evaluation) -> TriggerEvaluation {
    TriggerEvaluation {
        at: time(line.at),
        outcome: line.outcome.as_str().to_owned(),
        reason: line.outcome.reason(),
        leaves: leaves(trigger, &line.findings),
        job_id: line.job.map(|job| job.to_string()),
        next_at: line.next_at.map(time),
    }
}

fn leaves(trigger: &Trigger, findings: &[Finding]) -> Vec<TriggerLeaf> {
    let shapes = trigger.spec.watched_condition().map_or(Vec::new(), Condition::leaves);
    let leaf = |(shape, finding): (&&Condition, &Finding)| {
        let (at, job) = match finding.why {
            Why::Changed(at) | Why::Unsettled(at) => (Some(time(at)), None),
            Why::Ended(job) => (None, Some(job.to_string())),
            Why::Unchanged
            | Why::Exists
            | Why::Missing
            | Why::NoResult
            | Why::Unanswered
            | Why::Yes
            | Why::No => (None, None),
        };
        TriggerLeaf {
            kind: shape.as_str().to_owned(),
            about: about(shape).to_owned(),
            truth: finding.truth.as_str().to_owned(),
            reason: finding.why.as_str().to_owned(),
            at,
            job_id: job,
            way: None,
        }
    };
    shapes.iter().zip(findings).map(leaf).collect()
}

fn about(leaf: &Condition) -> &str {
    match leaf {
        Condition::FileChanged { path, .. } | Condition::FileExists { path } => path,
        Condition::TaskDone { task } | Condition::TaskFailed { task } => task,
        Condition::LlmEval { prompt } => prompt,
        Condition::And(_) | Condition::Or(_) => "",
    }
}

/// A look at a trigger that changes nothing.
pub(super) struct Look {
    pub(super) found: Option<Evaluated>,
    pub(super) outcome: Outcome,
    /// How each leaf is looked at.
    pub(super) ways: Vec<String>,
    pub(super) at: Timestamp,
}

/// What a look at a trigger says.
pub(super) fn explanation(entity: &Entity, trigger: &Trigger, look: Look) -> TriggerExplanation {
    let is_paused = trigger.status != Status::Active;
    let findings = look.found.map_or(Vec::new(), |found| found.findings);
    let mut leaves = leaves(trigger, &findings);
    for (leaf, way) in leaves.iter_mut().zip(look.ways) {
        leaf.way = Some(way);
    }
    let is_by_clock = trigger.spec.kind != TriggerType::Conditional;
    let (outcome, reason) = match (&look.outcome, is_paused) {
        (_, true) => ("paused", "it is paused".to_owned()),
        (Outcome::NotYet, false) if is_by_clock => {
            (Outcome::NotYet.as_str(), "it is not time yet".to_owned())
        }
        (outcome, false) => (outcome.as_str(), outcome.reason()),
    };
    TriggerExplanation {
        id: trigger.spec.name.to_string(),
        status: entity.state().to_owned(),
        would_fire: !is_paused && look.outcome == Outcome::Due,
        outcome: outcome.to_owned(),
        reason,
        evaluated_at: time(look.at),
        leaves,
        next_run_at: trigger.next_shown(look.at).map(time),
        cooldown_until: trigger.cooldown_until(look.at).map(time),
        running_at: trigger.running_at().map(time),
        running_job_id: trigger.outstanding.map(|it| it.job.to_string()),
        last_evaluation: trigger.log.last().map(|line| evaluation(trigger, line)),
    }
}

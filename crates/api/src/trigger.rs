//! Triggers: making them, reading them, and what was decided about them.

use crate::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The wish for a trigger.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetTrigger {
    /// Its name, unique in the tenant; one is made if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `recurring`, `scheduled` or `conditional`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What its runs are to do.
    pub prompt: String,
    /// The priority of its runs, 0 to 10; 5 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Seconds that one attempt of a run may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// The trace of its runs; if left out, that of the task it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The parent of its runs; if left out, that of the task it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<String>,
    /// When it was made, if that was before and elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// When; for `recurring` and `scheduled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<TriggerSchedule>,
    /// On which condition, `{"type", "params"}`; for `conditional`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub condition: Option<Value>,
    /// Seconds that must lie between two runs; for `conditional`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<u64>,
    /// What it brings along from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TriggerState>,
}

/// When a trigger fires.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerSchedule {
    /// Seconds from one run to the next; for `recurring`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<u64>,
    /// When; for `scheduled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Time>,
    /// When it last fired; for `recurring`.
    #[serde(default)]
    pub last_run_at: Option<Time>,
    /// When it fires next; for `recurring`.
    #[serde(default)]
    pub next_run_at: Option<Time>,
}

/// What a trigger knows of itself and of the world.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerState {
    /// When it last fired.
    #[serde(default)]
    pub last_triggered_at: Option<Time>,
    /// When its condition was last looked at with an outcome.
    #[serde(default)]
    pub last_eval_at: Option<Time>,
    /// The last task whose result it fired for.
    #[serde(default)]
    pub last_seen_result_id: Option<String>,
    /// The change of the newest file that it fired for, or began with. Milliseconds since 1970 are
    /// read, too.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub last_mtime: Option<Value>,
    /// Whether it has begun to look at files.
    #[serde(default)]
    pub initialized: Option<bool>,
    /// Since when a run, or a question, of it has not ended.
    #[serde(default)]
    pub running_at: Option<Time>,
    /// How its last run ended: `ok`, `error`, or `skipped` if it was refused.
    #[serde(default)]
    pub last_status: Option<String>,
    /// What that run had to say.
    #[serde(default)]
    pub last_error: Option<String>,
    /// How long it took.
    #[serde(default)]
    pub last_duration_ms: Option<u64>,
    /// When something is due for it by the clock.
    #[serde(default)]
    pub next_run_at: Option<Time>,
}

/// A trigger.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Trigger {
    /// Its name.
    pub id: String,
    /// `recurring`, `scheduled` or `conditional`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `active` or `paused`.
    pub status: String,
    /// Whose it is.
    pub user_id: String,
    /// Grows with every change.
    pub version: u32,
    /// What its runs are to do.
    pub prompt: String,
    /// The priority of its runs.
    pub priority: u8,
    /// Seconds that one attempt of a run may take.
    pub timeout: Option<u32>,
    /// The trace of its runs.
    pub trace_id: Option<String>,
    /// The parent of its runs.
    pub parent_task_id: Option<String>,
    /// When it was made.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// When; of a conditional one nothing.
    pub schedule: Option<TriggerSchedule>,
    /// On which condition.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub condition: Option<Value>,
    /// Seconds that must lie between two runs.
    pub cooldown: u64,
    /// How many runs it has made.
    pub fired_count: u32,
    /// Who paused it, when and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<TriggerPause>,
    /// What it knows of itself and of the world.
    pub state: TriggerState,
}

/// Why a trigger is paused.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerPause {
    /// Who did it.
    pub by: Option<String>,
    /// When.
    pub at: Time,
    /// Why.
    pub note: Option<String>,
}

/// The wish to pause a trigger.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseTrigger {
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A trigger that was taken away.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemovedTrigger {
    /// Its name.
    pub id: String,
    /// `deleted`.
    pub status: String,
}

/// What was decided about a trigger lately, the latest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerEvaluations {
    /// Every look at it that changed or decided something.
    pub items: Vec<TriggerEvaluation>,
}

/// One look at a trigger.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerEvaluation {
    /// When.
    pub at: Time,
    /// What came of it: `fired`, `asked`, `due`, `cooldown`, `running`, `not_yet`, `undecided`,
    /// `refused` or `stuck`.
    pub outcome: String,
    /// The same in words.
    pub reason: String,
    /// What was found at each leaf of the condition.
    pub leaves: Vec<TriggerLeaf>,
    /// The run or question that was made.
    pub job_id: Option<String>,
    /// When it is looked at next by the clock, if so.
    pub next_at: Option<Time>,
}

/// What was found at a leaf of a condition.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerLeaf {
    /// Of which type it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it asks for: a path, a task or a question.
    pub about: String,
    /// Whether it holds: `true`, `false` or `undecided`.
    pub truth: String,
    /// Why.
    pub reason: String,
    /// When the file changed that this is about, or will have settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The job that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// How this server looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
}

/// Why a trigger does not fire, or that it would: a look at it that changes nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerExplanation {
    /// Its name.
    pub id: String,
    /// `active` or `paused`.
    pub status: String,
    /// Whether it would fire now.
    pub would_fire: bool,
    /// What this look comes to, in the words of an evaluation; `paused` besides.
    pub outcome: String,
    /// The same in words.
    pub reason: String,
    /// When this look was.
    pub evaluated_at: Time,
    /// What was found at each leaf of the condition.
    pub leaves: Vec<TriggerLeaf>,
    /// When something is due for it by the clock.
    pub next_run_at: Option<Time>,
    /// Until when it waits for its cooldown to end.
    pub cooldown_until: Option<Time>,
    /// Since when a run, or a question, of it has not ended.
    pub running_at: Option<Time>,
    /// That run or question.
    pub running_job_id: Option<String>,
    /// The last look at it that changed or decided something.
    pub last_evaluation: Option<TriggerEvaluation>,
}

//! What comes in and goes out, field by field as the contract's document has it. No logic.

use mainspring_api::Time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The wish for a task. Times are RFC 3339 in UTC.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateTask {
    /// The name of the task, unique in the tenant.
    pub(super) task_id: String,
    /// `at`, `cron`, or `daily`, which is `cron`.
    pub(super) schedule_type: Option<String>,
    /// Not before this; for `at`.
    pub(super) scheduled_at: Option<String>,
    /// When, as a cron expression of five or six fields; for `cron`.
    pub(super) cron_expr: Option<String>,
    /// The IANA time zone of the expression; for `cron`.
    pub(super) timezone: Option<String>,
    /// The first run as the caller sees it; for `cron`. The server computes its own.
    pub(super) next_run_at: Option<String>,
    /// The last run as the caller sees it; for `cron`. The server keeps its own.
    pub(super) last_run_at: Option<String>,
    /// The plan of the caller's that this is a run of; for `at`, together with `fire_time`.
    pub(super) schedule_id: Option<String>,
    /// For which of its times; for `at`, together with `schedule_id`.
    pub(super) fire_time: Option<String>,
    /// How long one attempt may run.
    pub(super) timeout_ms: Option<u32>,
    /// Extra tries.
    pub(super) max_retries: Option<u16>,
    /// The same key in the same scope is the same task.
    pub(super) idempotency_key: Option<String>,
    /// The space in which the key is unique.
    pub(super) idempotency_scope: Option<String>,
    /// What the worker gets, kept byte for byte.
    #[schema(value_type = Option<Object>, required = false)]
    pub(super) payload: Option<Box<RawValue>>,
}

/// A move by hand.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveTask {
    /// Where to.
    pub(super) to_state: String,
}

/// A task as it stands: what an idempotent hit answers.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(super) struct TaskSnapshot {
    /// The name of the task.
    pub(super) task_id: String,
    /// `at` or `cron`.
    pub(super) schedule_type: &'static str,
    /// Where it stands.
    pub(super) state: &'static str,
    /// Which execution this is or will be, from 1.
    pub(super) attempt: u32,
    /// Extra tries.
    pub(super) max_retries: u16,
    /// How long one attempt may run.
    pub(super) timeout_ms: u32,
    /// The key it was created under.
    pub(super) idempotency_key: Option<String>,
    /// What ended the last failed execution.
    pub(super) last_error_code: Option<String>,
    /// The same for people.
    pub(super) last_error_reason: Option<String>,
    /// When it was accepted.
    pub(super) created_at: Time,
    /// When it last changed.
    pub(super) updated_at: Time,
    /// Start of the latest execution.
    pub(super) started_at: Option<Time>,
    /// When it ended.
    pub(super) finished_at: Option<Time>,
}

/// A task with everything there is to say about it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Task {
    /// As it stands.
    #[serde(flatten)]
    pub(super) snapshot: TaskSnapshot,
    /// The job that it is, in the native contract.
    pub(super) job_id: String,
    /// How many executions it may have.
    pub(super) max_attempts: u32,
    /// Not before this; of a task that runs once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scheduled_at: Option<Time>,
    /// When it fires; of a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cron_expr: Option<String>,
    /// In which time zone; of a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timezone: Option<String>,
    /// When it fires next; of a plan that will.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_run_at: Option<Time>,
    /// For when it fired last; of a plan that has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_run_at: Option<Time>,
    /// The scope of the key.
    pub(super) idempotency_scope: Option<String>,
    /// What the worker gets.
    #[schema(value_type = Value)]
    pub(super) payload: Box<RawValue>,
    /// The plan that this is a run of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schedule_id: Option<String>,
    /// For which of its times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fire_time: Option<Time>,
}

/// The answer to the wish for a task that is new.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CreatedTask {
    /// `false`.
    pub(super) idempotent_hit: bool,
    /// The task.
    pub(super) task: Task,
}

/// The answer to the wish for a task that there is already.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HitTask {
    /// `true`.
    pub(super) idempotent_hit: bool,
    /// The task.
    pub(super) task: TaskSnapshot,
}

/// What whoever may not read a task learns from hitting its key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HitUnseen {
    /// `true`.
    pub(super) idempotent_hit: bool,
    /// The task.
    pub(super) task: UnseenTask,
}

/// A task that is not the caller's to read.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UnseenTask {
    /// The name of the task.
    pub(super) task_id: String,
    /// Where it stands.
    pub(super) state: &'static str,
}

/// A task moved.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskEvent {
    /// `task_state_changed`.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// `gateway.scheduler`.
    pub(super) source: &'static str,
    /// `scheduler:default`.
    pub(super) session_key: &'static str,
    /// Names the event for good.
    pub(super) event_id: String,
    /// What happened.
    pub(super) payload: TaskEventPayload,
    /// Grows from event to event of one task.
    pub(super) version: u64,
    /// What tells the event from others.
    pub(super) ets_keys: Vec<String>,
    /// When, in milliseconds since 1970.
    pub(super) ts: i64,
    /// What may be done with the event.
    pub(super) meta: TaskEventMeta,
}

/// How a task moved.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskEventPayload {
    /// Which task.
    pub(super) task_id: String,
    /// The state before.
    pub(super) from_state: &'static str,
    /// The state after.
    pub(super) to_state: &'static str,
    /// When.
    pub(super) occurred_at: Time,
    /// Which execution it belongs to, from 1.
    pub(super) attempt: u32,
    /// Why: a stable code.
    pub(super) reason_code: Option<String>,
    /// Why, for people.
    pub(super) reason_message: Option<String>,
    /// `false`: a hit moves nothing.
    pub(super) idempotent_hit: bool,
    /// The plan that the task is a run of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schedule_id: Option<String>,
    /// For which of its times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fire_time: Option<Time>,
}

/// What may be done with an event.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskEventMeta {
    /// `true`: it belongs in a record of what happened.
    pub(super) audit: bool,
    /// `true`: taking it twice does no harm.
    pub(super) replayable: bool,
}

/// The events of one task, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskEvents {
    /// The events.
    pub(super) items: Vec<TaskEvent>,
}

/// A refusal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskFailure {
    /// What went wrong.
    pub(super) error: TaskError,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskError {
    /// A stable code.
    pub(super) code: &'static str,
    /// For people.
    pub(super) message: String,
    /// Whether the same request may succeed later.
    pub(super) retryable: bool,
    /// The field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
    /// From which state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from_state: Option<&'static str>,
    /// To which state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to_state: Option<&'static str>,
    /// Why a repeat is not the same wish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Which fields differ from the task's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) conflict_fields: Option<Vec<String>>,
    /// The task that there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TaskSnapshot>)]
    pub(super) task: Option<serde_json::Value>,
}

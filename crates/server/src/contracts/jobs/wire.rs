//! What comes in and goes out. Requests are read into these types; answers are written by `view.rs`
//! and `system.rs`, and these types say to the OpenAPI document, and to a test, what they look
//! like.

use mainspring_api::{Json, Time};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A task to be done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrchestrationSubmit {
    /// A registered type.
    pub(super) task_type: String,
    /// What the worker gets: an object, empty if left out or null.
    #[serde(default)]
    #[schema(value_type = Option<Object>, required = false)]
    pub(super) payload: Option<Json>,
    /// Names this intention: the same key again is the same task.
    pub(super) idempotency_key: String,
}

/// Where a task is to move.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrchestrationTransition {
    /// A state.
    pub(super) to_status: String,
}

/// A task.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrchestrationJob {
    /// Its id.
    pub(super) id: String,
    /// The same.
    pub(super) task_id: String,
    /// Who submitted it.
    pub(super) user_id: String,
    /// Its type.
    pub(super) task_type: String,
    /// What the worker gets.
    #[schema(value_type = Value)]
    pub(super) payload: Json,
    /// The key it was submitted under.
    pub(super) idempotency_key: Option<String>,
    /// Where it stands.
    pub(super) status: String,
    /// What came of it; of a failed one, what there is to show all the same.
    #[schema(value_type = Value, required = false)]
    pub(super) result: Option<Json>,
    /// Why it has no good end, or why it waits.
    pub(super) error: Option<OrchestrationError>,
    /// Who has it, or had it last.
    pub(super) executor: Option<OrchestrationExecutor>,
    /// Start of its latest attempt.
    #[schema(value_type = Option<String>)]
    pub(super) started_at: Option<Time>,
    /// When it ended.
    #[schema(value_type = Option<String>)]
    pub(super) finished_at: Option<Time>,
    /// When it was accepted.
    #[schema(value_type = String)]
    pub(super) created_at: Time,
    /// When it last changed.
    #[schema(value_type = String)]
    pub(super) updated_at: Time,
    /// The trace it belongs to.
    pub(super) trace_id: String,
    /// The failed task that this one does again.
    pub(super) retry_of: Option<String>,
    /// The task that does this failed one again.
    pub(super) retried_as: Option<String>,
    /// Whether the key named a task that was there already; in the answer to a submission only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idempotent_hit: Option<bool>,
}

/// Why a task has no good end, or why a request was refused.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrchestrationError {
    /// A stable code.
    pub(super) code: String,
    /// For people.
    pub(super) message: String,
}

/// Who executes a task.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrchestrationExecutor {
    /// How tasks are executed here.
    pub(super) name: String,
    /// Names this hand-over: execution key and fence.
    pub(super) dispatch_id: Option<String>,
}

/// A type.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrchestrationTaskType {
    /// Its name.
    pub(super) task_type: String,
    /// The part of the business it belongs to.
    pub(super) domain: String,
    /// Whether schedules may make such tasks.
    pub(super) schedulable: bool,
    /// Higher is sooner.
    pub(super) priority: u8,
    /// How long one attempt may run.
    pub(super) timeout_seconds: u32,
    /// Extra tries.
    pub(super) max_retries: u16,
    /// How many may run at a time; any number if null.
    pub(super) concurrency_limit: Option<u32>,
}

/// How the server is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrchestrationRuntime {
    /// How tasks are executed.
    pub(super) executor: RuntimeExecutor,
    /// What makes tasks at set times.
    pub(super) scheduler: RuntimeScheduler,
    /// What this process has executed since it started; for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) execution: Option<RuntimeExecution>,
    /// The schedules of templates; for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) system_schedules: Option<RuntimeSystemSchedules>,
    /// What was there when it started; for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) recovery: Option<RuntimeRecovery>,
}

/// How tasks are executed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct RuntimeExecutor {
    /// The mode.
    pub(super) name: String,
    /// The same.
    pub(super) mode: String,
}

/// What makes tasks at set times.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct RuntimeScheduler {
    /// Whether it runs.
    pub(super) running: bool,
}

/// What this process has executed since it started.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuntimeExecution {
    /// Attempts started.
    pub(super) dispatched: u64,
    /// Tasks that ended well.
    pub(super) succeeded: u64,
    /// Tasks that ended badly.
    pub(super) failed: u64,
    /// When the last attempt started.
    #[schema(value_type = Option<String>)]
    pub(super) last_dispatched_at: Option<Time>,
    /// When the last task ended, well or badly.
    #[schema(value_type = Option<String>)]
    pub(super) last_finished_at: Option<Time>,
    /// Why the last one that ended badly did.
    pub(super) last_error_code: Option<String>,
}

/// The schedules of templates.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct RuntimeSystemSchedules {
    /// How many there are.
    pub(super) total: u64,
    /// How many of them fire.
    pub(super) active: u64,
}

/// What was there when the server started.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuntimeRecovery {
    /// Tasks that workers held; they go on.
    pub(super) recovered_running_jobs: u64,
    /// Schedules that fired; they go on.
    pub(super) recovered_schedules: u64,
    /// Templates whose schedule was there.
    pub(super) recovered_system_templates: u64,
    /// When it started.
    #[schema(value_type = String)]
    pub(super) recovered_at: Time,
}

/// A refusal.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct OrchestrationFailure {
    /// False.
    pub(super) success: bool,
    /// What went wrong.
    pub(super) error: OrchestrationError,
}

/// A schedule that makes tasks every so often.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrchestrationInterval {
    /// A registered type that schedules may make.
    pub(super) task_type: String,
    /// Seconds from one task to the next.
    pub(super) every_seconds: u64,
}

/// A schedule that makes tasks by a cron expression.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrchestrationCron {
    /// A registered type that schedules may make.
    pub(super) task_type: String,
    /// Five fields, in UTC.
    pub(super) cron_expr: String,
}

/// A schedule.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrchestrationSchedule {
    /// Its id.
    pub(super) id: String,
    /// Whose it is.
    pub(super) user_id: String,
    /// `user:` and the user, or `system`.
    pub(super) namespace: String,
    /// The type of its tasks.
    pub(super) task_type: String,
    /// `interval` or `cron`; `at` for one that was made elsewhere.
    pub(super) schedule_type: String,
    /// Seconds, or the cron expression.
    pub(super) expression: String,
    /// `active`, or `stopped` if it makes no more tasks.
    pub(super) status: String,
    /// When it was made.
    #[schema(value_type = String)]
    pub(super) created_at: Time,
    /// When it last changed.
    #[schema(value_type = String)]
    pub(super) updated_at: Time,
}

/// One's own schedules.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct OrchestrationSchedules {
    /// The schedules, newest first.
    pub(super) items: Vec<OrchestrationSchedule>,
    /// How the server is.
    pub(super) runtime: OrchestrationRuntime,
}

/// A template of the configuration, and its schedule.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrchestrationTemplate {
    /// Its name.
    pub(super) template_id: String,
    /// The type of its tasks.
    pub(super) task_type: String,
    /// `interval` or `cron`.
    pub(super) schedule_type: String,
    /// Seconds, or the cron expression.
    pub(super) expression: String,
    /// Whether its schedule is there.
    pub(super) registered: bool,
    /// Its schedule.
    pub(super) schedule_id: Option<String>,
    /// `active` or `stopped`.
    pub(super) schedule_status: Option<String>,
}

/// The templates of the configuration.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct OrchestrationTemplates {
    /// The templates, by name.
    pub(super) items: Vec<OrchestrationTemplate>,
    /// How the server is.
    pub(super) runtime: OrchestrationRuntime,
}

/// What became of a template.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrchestrationRecovered {
    /// Its name.
    pub(super) template_id: String,
    /// Its schedule.
    pub(super) schedule_id: String,
    /// `created`, or `deduplicated` if it was there.
    pub(super) status: String,
}

/// What became of the templates.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct OrchestrationRecoverySummary {
    /// How many there are.
    pub(super) total: u64,
    /// How many schedules were made.
    pub(super) created: u64,
    /// How many were there.
    pub(super) deduplicated: u64,
    /// Each of them.
    pub(super) items: Vec<OrchestrationRecovered>,
}

/// What became of the templates, and how the server is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct OrchestrationRecovery {
    /// What became of them.
    pub(super) summary: OrchestrationRecoverySummary,
    /// How the server is.
    pub(super) runtime: OrchestrationRuntime,
}

//! What comes in and goes out, field by field as the contract's document has it. No logic.

use mainspring_api::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The wish for a run or a plan. Times are RFC 3339 in UTC.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CreateRun {
    /// 1 or 2; 1 if left out. What is shown is always 2.
    pub(super) schema_version: Option<u32>,
    /// The name, unique in the tenant; one is made if it is left out.
    pub(super) id: Option<String>,
    /// `oneshot` for a run, `plan` for a plan; may be left out.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    /// The trace it belongs to.
    pub(super) trace_id: Option<String>,
    /// The task it is made for.
    pub(super) parent_task_id: Option<String>,
    /// What is to be done.
    pub(super) prompt: String,
    /// 0 to 10, higher is sooner; 5 if left out.
    pub(super) priority: Option<u8>,
    /// When it was made, if that was before; now if left out.
    pub(super) created_at: Option<String>,
    /// The number of the attempt that comes next, of a run that waits for another try; else 0.
    pub(super) attempts: Option<u16>,
    /// Seconds that one attempt may take; ten minutes if left out.
    pub(super) timeout: Option<u32>,
    /// Not before this.
    pub(super) defer_until: Option<String>,
    /// The trigger that made it.
    pub(super) source_trigger_id: Option<String>,
    /// For which instant.
    pub(super) triggered_at: Option<String>,
    /// How many attempts it may have; as configured if left out. A plan has one.
    pub(super) max_attempts: Option<u16>,
    /// The wait before a retry; as configured if left out.
    pub(super) backoff_ms: Option<u64>,
}

/// A run or a plan.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentRun {
    /// 2.
    pub(super) schema_version: u32,
    /// Its name.
    pub(super) id: String,
    /// `oneshot` for a run, `plan` for a plan, `evaluation` for a question of a trigger.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// The trace it belongs to.
    pub(super) trace_id: String,
    /// The task it was made for.
    pub(super) parent_task_id: Option<String>,
    /// What is to be done.
    pub(super) prompt: String,
    /// 0 to 10, higher is sooner.
    pub(super) priority: u8,
    /// When it was made.
    pub(super) created_at: Time,
    /// 0 while it waits for its first attempt, then the number of the attempt that runs or is next.
    pub(super) attempts: u32,
    /// Seconds that one attempt may take; `null` if that was left open.
    pub(super) timeout: Option<u32>,
    /// Not before this.
    pub(super) defer_until: Option<Time>,
    /// The trigger that made it.
    pub(super) source_trigger_id: Option<String>,
    /// For which instant.
    pub(super) triggered_at: Option<Time>,
    /// `queue`, `running`, `done` or `failed`; of a plan also `needs_input`.
    pub(super) status: &'static str,
    /// The job that it is, in the native contract.
    pub(super) job_id: String,
    /// Proof that the run is the worker's to report on; only in the answer to a pull.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease_token: Option<String>,
    /// Until when, unless it is renewed; only in the answer to a pull.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease_expires_at: Option<Time>,
    /// `true` if it was there before it was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) idempotent_hit: bool,
    /// What a plan asked a person last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<String>,
    /// The answer that counts: somebody's, or the default once the deadline has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<String>,
}

/// A plan with everything there is to say about it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentPlan {
    /// As it stands; `status` is `needs_input` while it waits for an answer.
    #[serde(flatten)]
    pub(super) run: AgentRun,
    /// The names of the runs that it made.
    pub(super) tasks: Vec<String>,
    /// The names of the triggers that it made.
    pub(super) triggers: Vec<String>,
    /// How many entries had no prompt and were passed over.
    pub(super) skipped: usize,
    /// What went wrong.
    pub(super) error: Option<String>,
    /// `timeout`, `error` or `killed`.
    pub(super) failure_reason: Option<&'static str>,
    /// When it ended.
    pub(super) completed_at: Option<Time>,
    /// Answers to choose from; any will do if there are none.
    pub(super) options: Vec<String>,
    /// The answer that counts if nobody gives one in time.
    pub(super) default: Option<String>,
    /// Until when an answer is waited for.
    pub(super) deadline: Option<Time>,
    /// Who gave the answer; `null` if it is the default.
    pub(super) answered_by: Option<String>,
    /// When there was one.
    pub(super) answered_at: Option<Time>,
}

/// A page of plans, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentPlans {
    /// They.
    pub(super) items: Vec<AgentPlan>,
    /// Where the next page starts.
    pub(super) next_cursor: Option<String>,
    /// How many there are; `null` if more than are counted.
    pub(super) total: Option<u64>,
    /// In place of a total: there are more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_at_least: Option<u64>,
}

/// What came of a plan.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[expect(dead_code, reason = "what the server keeps itself may come along, unread")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ReportPlan {
    /// `done`, `needs_input` or `failed`.
    pub(super) status: String,
    /// For `done`: runs and triggers to be made, each as if it were sent alone. An entry whose type
    /// is `recurring`, `scheduled` or `conditional` is a trigger. One without a prompt is passed
    /// over.
    #[schema(value_type = Option<Vec<Value>>, required = false)]
    pub(super) tasks: Option<Vec<Value>>,
    /// For `done`: more triggers to be made.
    #[schema(value_type = Option<Vec<Value>>, required = false)]
    pub(super) triggers: Option<Vec<Value>>,
    /// For `needs_input`: what a person is asked.
    pub(super) question: Option<String>,
    /// For `needs_input`: answers to choose from.
    pub(super) options: Option<Vec<String>>,
    /// For `needs_input`: the answer that counts if nobody gives one in time.
    pub(super) default: Option<String>,
    /// For `needs_input`: until when an answer is waited for; an hour if left out.
    pub(super) deadline: Option<String>,
    /// For `failed`: what went wrong.
    pub(super) error: Option<String>,
    /// Proof that the plan is the caller's to report on; needed once it was handed out.
    pub(super) lease_token: Option<String>,
    /// Not looked at.
    pub(super) schema_version: Option<u32>,
    /// Not looked at.
    pub(super) id: Option<String>,
    /// Not looked at.
    pub(super) attempts: Option<u32>,
    /// Not looked at.
    pub(super) trace_id: Option<String>,
    /// Not looked at.
    pub(super) completed_at: Option<String>,
}

/// The answer to a question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerPlan {
    /// It.
    pub(super) answer: String,
}

/// A line of the index of what has ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentStatus {
    /// 2.
    pub(super) schema_version: u32,
    /// The name of the run or plan.
    pub(super) id: String,
    /// `done` or `failed`.
    pub(super) status: &'static str,
    /// When it ended.
    pub(super) completed_at: Time,
    /// The name of its result: the same.
    pub(super) result_id: String,
    /// The trigger that made it.
    pub(super) source_trigger_id: Option<String>,
    /// `timeout`, `error` or `killed`.
    pub(super) failure_reason: Option<&'static str>,
    /// The trace.
    pub(super) trace_id: String,
}

/// A page of the index, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentStatuses {
    /// Its lines.
    pub(super) items: Vec<AgentStatus>,
    /// Where the next page starts.
    pub(super) next_cursor: Option<String>,
    /// How many there are; `null` if more than are counted.
    pub(super) total: Option<u64>,
    /// In place of a total: there are more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_at_least: Option<u64>,
}

/// Records of a directory in the document's layout, all of one kind.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportRecords {
    /// `queue`, `running`, `results`, `planner_queue`, `planner_running`, `planner_results` or
    /// `task_status`: where they were found.
    pub(super) place: String,
    /// They, as they were found; of version 1 or 2.
    #[schema(value_type = Vec<Value>)]
    pub(super) items: Vec<Value>,
}

/// What became of the records.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ImportedRecords {
    /// Of each, in their order.
    pub(super) items: Vec<ImportedRecord>,
}

/// What became of one record.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ImportedRecord {
    /// Its name, if it has one.
    pub(super) id: Option<String>,
    /// `imported`, `present` if it was there already, or `skipped`.
    pub(super) outcome: &'static str,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// What whoever may not read a run learns from hitting its name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnseenRun {
    /// Its name.
    pub(super) id: String,
    /// Where it stands.
    pub(super) status: &'static str,
    /// `true`.
    pub(super) idempotent_hit: bool,
}

/// A page of runs or plans, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentRuns {
    /// They.
    pub(super) items: Vec<AgentRun>,
    /// Where the next page starts.
    pub(super) next_cursor: Option<String>,
    /// How many there are; `null` if more than are counted.
    pub(super) total: Option<u64>,
    /// In place of a total: there are more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_at_least: Option<u64>,
}

/// A worker's request for runs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PullRuns {
    /// Who asks.
    pub(super) worker_id: String,
    /// At most this many; 1 if left out.
    pub(super) limit: Option<u64>,
    /// How long to wait for the first one.
    pub(super) wait_ms: Option<u64>,
    /// For how long each is leased.
    pub(super) lease_ms: Option<u64>,
    /// `run`, `plan` or `evaluation`; runs and plans if left out.
    pub(super) purpose: Option<String>,
}

/// What a worker gets.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PulledRuns {
    /// Runs and plans, each with its lease token.
    pub(super) runs: Vec<AgentRun>,
}

/// How an attempt ended. The fields of a result that the server keeps itself may come along; they
/// are not looked at.
#[derive(Debug, Deserialize, ToSchema)]
#[expect(dead_code, reason = "what the server keeps itself may come along, unread")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ReportRun {
    /// `done` or `failed`.
    pub(super) status: String,
    /// `text`, `code_change`, `analysis` or `summary`; `text` if left out.
    pub(super) result_type: Option<String>,
    /// What there is to show.
    #[schema(value_type = Option<Value>, required = false)]
    pub(super) result: Option<Box<RawValue>>,
    /// What went wrong, for people.
    pub(super) error: Option<String>,
    /// `timeout`, `error` or `killed`; `error` if left out.
    pub(super) failure_reason: Option<String>,
    /// Proof that the run is the worker's.
    pub(super) lease_token: String,
    /// Not looked at.
    pub(super) schema_version: Option<u32>,
    /// Not looked at.
    pub(super) id: Option<String>,
    /// Not looked at.
    pub(super) attempts: Option<u32>,
    /// Not looked at.
    pub(super) trace_id: Option<String>,
    /// Not looked at.
    pub(super) source_trigger_id: Option<String>,
    /// Not looked at.
    pub(super) started_at: Option<String>,
    /// Not looked at.
    pub(super) completed_at: Option<String>,
    /// Not looked at.
    pub(super) duration_ms: Option<u64>,
    /// Not looked at.
    #[schema(value_type = Option<Value>)]
    pub(super) task: Option<Value>,
}

/// What became of a report or a cancellation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportedRun {
    /// `true`.
    pub(super) success: bool,
    /// Which run.
    pub(super) id: String,
    /// Where it stands now.
    pub(super) status: &'static str,
    /// As of a run.
    pub(super) attempts: u32,
}

/// The result of a run or plan that has ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentResult {
    /// 2.
    pub(super) schema_version: u32,
    /// The name of the run.
    pub(super) id: String,
    /// `done` or `failed`.
    pub(super) status: &'static str,
    /// `text`, `code_change`, `analysis` or `summary`.
    pub(super) result_type: &'static str,
    /// What there is to show.
    #[schema(value_type = Value)]
    pub(super) result: Box<RawValue>,
    /// What went wrong.
    pub(super) error: Option<String>,
    /// `timeout`, `error` or `killed`.
    pub(super) failure_reason: Option<&'static str>,
    /// How many attempts there were.
    pub(super) attempts: u32,
    /// The trace.
    pub(super) trace_id: String,
    /// The trigger that made the run.
    pub(super) source_trigger_id: Option<String>,
    /// Start of the last attempt.
    pub(super) started_at: Option<Time>,
    /// When it ended.
    pub(super) completed_at: Time,
    /// How long the last attempt took.
    pub(super) duration_ms: Option<i64>,
    /// The run as it was asked for: for retry and audit, never a new input.
    pub(super) task: AgentSnapshot,
}

/// A run as it was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentSnapshot {
    /// What was to be done.
    pub(super) prompt: String,
    /// 0 to 10.
    pub(super) priority: u8,
    /// When it was made.
    pub(super) created_at: Time,
    /// Seconds that one attempt could take.
    pub(super) timeout: Option<u32>,
    /// The trace.
    pub(super) trace_id: String,
    /// The task it was made for.
    pub(super) parent_task_id: Option<String>,
    /// The trigger that made it.
    pub(super) source_trigger_id: Option<String>,
    /// For which instant.
    pub(super) triggered_at: Option<Time>,
}

/// A refusal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AgentFailure {
    /// What went wrong, for people.
    pub(super) error: String,
    /// A stable code.
    pub(super) code: &'static str,
    /// Whether the same request may succeed later.
    pub(super) retryable: bool,
    /// The field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
}

//! Where which values belong: every field of a request, every parameter, and the words of answers.
//! A test fails when a request has a field that is not told of here.

mod agent;
mod desk;
mod internal;
mod subscriptions;
mod together;
mod triggers;

pub(super) use together::together;

use super::values::{Allowed, label, no_control, padded, unpadded};
use super::{INTERNAL_HEADER, KEY_HEADER};
use crate::cursor;
use crate::limits::{
    JOBS_PAGE_MAX, PAGE_MAX, POSITION_MAX, PREVIEW_MAX, PULL_NAMES_MAX, SCHEDULER_PULL_MAX,
    TARGET_BYTES_MAX, TASK_ID_BYTES_MAX, TOKEN_OVERLAP_SECS_MAX, TRACE_BYTES_MAX,
};
use mainspring_api::{TENANT_HEADER, TRACE_HEADER};
use mainspring_kernel::calendar::{Fold, Gap};
use mainspring_kernel::dispatch::Basis;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::entity::gate::GateState;
use mainspring_kernel::entity::object::{Epistemic, Status as ObjectStatus, UnknownType};
use mainspring_kernel::entity::schedule::{Misfire, OutcomeKind, Overlap, Status};
use mainspring_kernel::executor::Mode;
use mainspring_kernel::governance::{Action, Gate, ObjectType, RiskTier};
use mainspring_kernel::idempotency::{SCOPE_PREFIX, TASK_SCOPE_PREFIX};
use mainspring_kernel::job::AfterCondition;
use mainspring_kernel::limits::{
    AFTER_MAX, BACKFILL_MAX, BATCH_MAX, CIRCUIT_CALLS_MAX, CIRCUIT_OPEN_SECS_MAX, CRON_BYTES_MAX,
    ERROR_CODE_BYTES_MAX, EXCLUSIONS_MAX, EXECUTOR_ARGS_MAX, EXECUTOR_BYTES_MAX,
    EXECUTOR_KILL_MS_MAX, EXECUTOR_URL_BYTES_MAX, EXECUTOR_VARIABLES_MAX, JITTER_SECS_MAX,
    KEY_BYTES_MAX, LABELS_MAX, LABELS_WANTED_MAX, LEASE_MS_MAX, MESSAGE_BYTES_MAX,
    MISFIRE_LIMIT_MAX, NAME_BYTES_MAX, OBJECT_ID_BYTES_MAX, PULL_MAX, QUEUE_TIMEOUT_MS_MAX,
    RATE_BURST_MAX, RATE_NANOS_MIN, RATE_PER_SECOND_MAX, RETRIES_MAX, RUN_AHEAD_MS_MAX,
    RUN_ID_BYTES_MAX, SCHEDULE_INTERVAL_SECS_MAX, SLA_MS_MIN, SNOOZE_MS_MAX, TENANT_WEIGHT_MAX,
    TIMEOUT_MS_MAX, TIMEOUT_MS_MIN, WAIT_MS_MAX,
};
use mainspring_kernel::registry::ConcurrencyScope;
use mainspring_kernel::view::{jobs, tasks};
use mainspring_kernel::{DlqId, DlqState, JobId, QueueOrder, Role, StateName, TokenId};

fn text(least: usize, most: usize, pattern: impl Into<Option<String>>) -> Allowed {
    Allowed::Text { least, most, pattern: pattern.into() }
}

fn whole(least: u64, most: u64) -> Allowed {
    Allowed::Whole { least, most }
}

fn name() -> Allowed {
    text(1, NAME_BYTES_MAX, unpadded())
}

fn id(prefix: &str) -> Allowed {
    let pattern = format!("^{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$");
    let bytes = prefix.len() + 27;
    text(bytes, bytes, pattern)
}

/// A job by its id, or one of the same batch by its place.
fn dependency() -> String {
    let place = "#(0|[1-9][0-9]{0,3})";
    format!("^({}_[0-7][0-9a-hjkmnp-tv-z]{{25}}|{place})$", JobId::PREFIX)
}

fn job_states() -> Allowed {
    Allowed::Words(StateName::ALL.map(StateName::as_str).to_vec())
}

fn task_states() -> Allowed {
    Allowed::Words(tasks::State::ALL.iter().map(|state| state.as_str()).collect())
}

fn orchestration_states() -> Allowed {
    Allowed::Words(jobs::State::ALL.iter().map(|state| state.as_str()).collect())
}

fn item_states() -> Allowed {
    Allowed::Words(DlqState::NAMES.to_vec())
}

fn roles() -> Allowed {
    Allowed::Words(Role::ALL.map(Role::as_str).to_vec())
}

fn scopes() -> Allowed {
    Allowed::Words(ConcurrencyScope::ALL.map(ConcurrencyScope::as_str).to_vec())
}

fn orders() -> Allowed {
    Allowed::Words(QueueOrder::ALL.map(QueueOrder::as_str).to_vec())
}

fn schedule_states() -> Allowed {
    Allowed::Words(Status::NAMES.to_vec())
}

/// Of a schedule, asked for or shown.
fn schedule_field(of: &str, field: &str) -> Option<Allowed> {
    let interval_max = SCHEDULE_INTERVAL_SECS_MAX;
    Some(match (of, field) {
        ("SetSchedule" | "Schedule", "kind") => Allowed::Words(vec!["at", "interval", "cron"]),
        ("SetSchedule" | "Schedule", "dst_gap") => Allowed::Words(Gap::ALL.map(Gap::as_str).into()),
        ("SetSchedule" | "Schedule", "dst_fold") => {
            Allowed::Words(Fold::ALL.map(Fold::as_str).into())
        }
        ("SetSchedule" | "Schedule", "misfire") => {
            Allowed::Words(Misfire::ALL.map(Misfire::as_str).into())
        }
        ("SetSchedule" | "Schedule", "overlap") => {
            Allowed::Words(Overlap::ALL.map(Overlap::as_str).into())
        }
        ("SetSchedule" | "Schedule", "exclude") => Allowed::Dates { most: EXCLUSIONS_MAX },
        ("Schedule", "status") => schedule_states(),
        ("ScheduleOutcome", "outcome") => {
            Allowed::Words(OutcomeKind::ALL.map(OutcomeKind::as_str).into())
        }
        ("BackfilledItem", "outcome") => Allowed::Words(vec!["backfilled", "existing", "refused"]),
        ("SetSchedule", "job_type" | "queue") => name(),
        ("SetSchedule", "name") => text(1, NAME_BYTES_MAX, no_control()),
        ("SetSchedule", "payload" | "at" | "start_at" | "end_at") => Allowed::Any,
        ("SetSchedule", "interval_seconds") => whole(1, interval_max),
        ("SetSchedule", "phase_seconds") => whole(0, interval_max - 1),
        ("SetSchedule", "cron") => text(1, CRON_BYTES_MAX, no_control()),
        ("SetSchedule", "timezone") => {
            text(1, NAME_BYTES_MAX, Some("^[A-Za-z0-9_+/-]+$".to_owned()))
        }
        ("SetSchedule", "misfire_limit") => whole(1, MISFIRE_LIMIT_MAX.into()),
        ("SetSchedule", "jitter_seconds") => whole(0, JITTER_SECS_MAX.into()),
        ("SetSchedule", "max_runs" | "pause_after_failures") => whole(1, u32::MAX.into()),
        ("SetSchedule", "priority") => whole(0, u8::MAX.into()),
        ("SetSchedule", "timeout_ms") => whole(TIMEOUT_MS_MIN.into(), TIMEOUT_MS_MAX.into()),
        ("SetSchedule", "max_retries") => whole(0, RETRIES_MAX.into()),
        ("SetSchedule", "labels") => {
            Allowed::Labels { most: LABELS_MAX - 1, bytes: NAME_BYTES_MAX }
        }
        ("PauseSchedule", "note") => text(0, MESSAGE_BYTES_MAX, no_control()),
        ("Backfill", "from" | "to") => Allowed::Any,
        ("Backfill", "limit") => whole(1, BACKFILL_MAX as u64),
        ("OrchestrationInterval" | "OrchestrationCron", "taskType") => name(),
        ("OrchestrationInterval", "everySeconds") => whole(1, interval_max),
        ("OrchestrationCron", "cronExpr") => text(1, CRON_BYTES_MAX, no_control()),
        ("OrchestrationSchedule", "status") => Allowed::Words(vec!["active", "stopped"]),
        ("OrchestrationSchedule", "scheduleType") => Allowed::Words(vec!["at", "interval", "cron"]),
        ("OrchestrationTemplate", "scheduleType") => Allowed::Words(vec!["interval", "cron"]),
        ("OrchestrationRecovered", "status") => Allowed::Words(vec!["created", "deduplicated"]),
        _ => return None,
    })
}

/// Of the contract `/scheduler`, and of objects and gates.
fn governed_field(of: &str, field: &str) -> Option<Allowed> {
    let secs_max = u64::from(LEASE_MS_MAX / 1000);
    Some(match (of, field) {
        ("SchedulerEnqueue", "object_type") => governed_words(ObjectType::ALL, ObjectType::as_str),
        ("SchedulerEnqueue", "object_id") => text(1, OBJECT_ID_BYTES_MAX, unpadded()),
        ("SchedulerEnqueue", "action") => governed_words(Action::ALL, Action::as_str),
        ("SchedulerEnqueue", "priority") => Allowed::Words(vec!["low", "medium", "high"]),
        ("SchedulerEnqueue", "max_attempts") => whole(1, u64::from(RETRIES_MAX) + 1),
        ("SchedulerEnqueue", "idempotency_key") => text(0, KEY_BYTES_MAX, no_control()),
        ("SchedulerEnqueue", "correlation_id") => text(1, NAME_BYTES_MAX, no_control()),
        ("SchedulerPull", "limit") => whole(1, SCHEDULER_PULL_MAX as u64),
        ("SchedulerPull", "worker_id") => name(),
        ("SchedulerPull", "lease_sec") | ("SchedulerRenew", "extend_sec") => whole(1, secs_max),
        ("SchedulerPull", "actions") => {
            governed_words(Action::ALL, Action::as_str).each(0, PULL_NAMES_MAX)
        }
        ("SchedulerPull", "object_types") => {
            governed_words(ObjectType::ALL, ObjectType::as_str).each(0, PULL_NAMES_MAX)
        }
        ("SchedulerPull", "risk_tiers") => {
            governed_words(RiskTier::ALL, RiskTier::as_str).each(0, PULL_NAMES_MAX)
        }
        ("SchedulerAck", "audit_event_id") => text(1, NAME_BYTES_MAX, no_control()),
        ("SchedulerFail", "retry_delay_sec") => whole(0, u64::MAX),
        ("SchedulerEnqueue", "run_at")
        | ("SchedulerPull", "now")
        | ("SchedulerAck" | "PutGovernedObject", "next_action_at")
        | ("GovernedSignals", "last_reinforced_at" | "stale_since") => Allowed::Instant,
        ("SchedulerAck", "result")
        | ("SchedulerFail", "error")
        | ("SchedulerAck" | "SchedulerFail" | "SchedulerRenew", "worker_id" | "lease_token") => {
            Allowed::Any
        }
        ("PutGovernedObject", "risk_tier") => governed_words(RiskTier::ALL, RiskTier::as_str),
        ("PutGovernedObject", "epistemic") => governed_words(Epistemic::ALL, Epistemic::as_str),
        ("PutGovernedObject", "unknown_type") => {
            governed_words(UnknownType::ALL, UnknownType::as_str)
        }
        ("PutGovernedObject", "status") => governed_words(ObjectStatus::ALL, ObjectStatus::as_str),
        ("PutGovernedObject", "next_action") => {
            let mut words: Vec<_> = Action::ALL.iter().map(|it| it.as_str()).collect();
            words.push("none");
            Allowed::Words(words)
        }
        ("PutGovernedObject", "auto_verify_budget")
        | ("GovernedSignals", "reinforcement_count" | "new_evidence_count") => {
            whole(0, u32::MAX.into())
        }
        ("PutGovernedObject", "uncertainty_ttl") => text(1, NAME_BYTES_MAX, no_control()),
        ("PutGovernedObject", "signals") => Allowed::Any,
        ("GovernedSignals", "reinstate_signal") => Allowed::Any,
        ("GovernedSignals", "confidence") => Allowed::Share,
        ("SetGovernedGate", "state") => governed_words(GateState::ALL, GateState::as_str),
        ("SetGovernedGate", "reason") => text(0, MESSAGE_BYTES_MAX, no_control()),
        _ => return None,
    })
}

fn governed_words<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> Allowed {
    Allowed::Words(all.iter().map(|it| name(*it)).collect())
}

/// The name of a label, or a JSON pointer.
fn key_source() -> Allowed {
    let pattern =
        r"^(/([^~\x00-\x1f\x7f-\x9f]|~0|~1)*|[^/\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*)$";
    text(1, NAME_BYTES_MAX, Some(pattern.to_owned()))
}

/// Of how a type is executed, asked for or shown.
fn executor_field(field: &str) -> Option<Allowed> {
    let no_nul = || Some("^[^\\x00]*$".to_owned());
    let variable = "^[A-Za-z_][A-Za-z0-9_]*(=[^\\x00]*)?$".to_owned();
    let host = r"^https?://[^/?#\\@ \x00-\x1f\x7f-\x9f]+([/?#\\][^ \x00-\x1f\x7f-\x9f]*)?$";
    Some(match field {
        "mode" => Allowed::Words(Mode::ALL.map(Mode::as_str).to_vec()),
        "command" => text(1, EXECUTOR_BYTES_MAX, no_nul()),
        "args" => text(0, EXECUTOR_BYTES_MAX, no_nul()).each(0, EXECUTOR_ARGS_MAX),
        "cwd" => text(1, EXECUTOR_BYTES_MAX, format!("^/{}", &no_control()[1..])),
        "env" => text(1, EXECUTOR_BYTES_MAX, variable).each(0, EXECUTOR_VARIABLES_MAX),
        "shell" => Allowed::Any,
        "kill_grace_ms" => whole(0, EXECUTOR_KILL_MS_MAX.into()),
        "url" => text(1, EXECUTOR_URL_BYTES_MAX, host.to_owned()),
        "timeout_ms" => whole(1, TIMEOUT_MS_MAX.into()),
        _ => return None,
    })
}

/// What a field of a type may hold; `None` for one that nothing is said about.
#[expect(clippy::too_many_lines, reason = "a flat table")]
pub(super) fn field(of: &str, field: &str) -> Option<Allowed> {
    Some(match (of, field) {
        ("Submit", "job_type") => name(),
        ("Submit" | "SetType", "queue") => name(),
        ("Submit", "delay_ms") => whole(0, RUN_AHEAD_MS_MAX),
        ("Submit" | "SetType", "priority") => whole(0, u8::MAX.into()),
        ("Submit", "timeout_ms") => whole(TIMEOUT_MS_MIN.into(), TIMEOUT_MS_MAX.into()),
        ("Submit" | "SetType", "max_retries") => whole(0, RETRIES_MAX.into()),
        ("Submit", "idempotency_key") => text(1, KEY_BYTES_MAX, no_control()),
        ("Submit", "idempotency_scope") => {
            text(0, KEY_BYTES_MAX - SCOPE_PREFIX.len(), no_control())
        }
        ("Submit", "trace_id") => text(1, NAME_BYTES_MAX, no_control()),
        // What is malformed is ignored.
        ("Submit", "traceparent") => Allowed::Any,
        ("Submit", "parent_id") => id(JobId::PREFIX),
        ("Submit", "labels") => Allowed::Labels { most: LABELS_MAX, bytes: NAME_BYTES_MAX },
        ("Submit", "subject") => text(0, NAME_BYTES_MAX, no_control()),
        ("Submit", "payload" | "run_at" | "expires_at" | "deadline_at") => Allowed::Any,
        ("SubmitBatch", "jobs") => Allowed::Items { most: BATCH_MAX },
        ("SubmitBatch", "then") => Allowed::Any,
        ("Submit" | "Job", "queue_timeout_ms") => whole(1, QUEUE_TIMEOUT_MS_MAX.into()),
        ("Submit", "after") => text(2, JobId::PREFIX.len() + 27, dependency()).each(0, AFTER_MAX),
        ("Submit" | "Job", "after_condition") => {
            Allowed::Words(AfterCondition::ALL.iter().map(|it| it.as_str()).collect())
        }
        ("Cancel", "reason") => Allowed::Any,

        ("Pull" | "Leave" | "Heartbeat", "worker_id") => name(),
        ("Pull", "types" | "queues") => name().each(0, PULL_NAMES_MAX),
        ("Pull", "limit") => whole(1, PULL_MAX as u64),
        ("Pull", "wait_ms") => whole(0, WAIT_MS_MAX),
        ("Pull" | "Heartbeat", "lease_ms") => whole(1, LEASE_MS_MAX.into()),
        ("Complete" | "Fail" | "Release" | "Heartbeat", "items") => {
            Allowed::Items { most: BATCH_MAX }
        }
        ("Complete" | "Fail" | "Release", "pull") => Allowed::Any,
        // A text that is no id or token names no lease: the item is answered so.
        ("CompleteItem" | "FailItem" | "ReleaseItem" | "HeartbeatItem", "job_id") => Allowed::Any,
        ("CompleteItem" | "FailItem" | "ReleaseItem" | "HeartbeatItem", "lease_token") => {
            Allowed::Any
        }
        ("CompleteItem" | "FailItem", "result") => Allowed::Any,
        ("FailItem", "error_code" | "message" | "retryable") => Allowed::Any,
        ("FailItem", "retry_delay_ms") => whole(0, u64::MAX),
        ("ReleaseItem", "reason") => Allowed::Any,
        ("HeartbeatItem", "progress") => Allowed::Any,
        ("ProgressTold", "percent") => whole(0, 100),
        ("ProgressTold", "message" | "checkpoint") => Allowed::Any,
        ("FailItem", "snooze_ms") => whole(0, SNOOZE_MS_MAX),
        ("CommitEffect", "lease_token" | "value") => Allowed::Any,

        ("Discard" | "BreakGlass", "reason") => Allowed::Said,
        ("Discard", "reviewer_id" | "reviewer_id_2") => text(1, NAME_BYTES_MAX, padded()),
        ("Approve", "version") => whole(0, u32::MAX.into()),

        ("SetType", "domain") => text(1, NAME_BYTES_MAX, no_control()),
        ("SetType", "schedulable") => Allowed::Any,
        ("SetType", "timeout_seconds") => whole(1, (TIMEOUT_MS_MAX / 1000).into()),
        ("SetType", "concurrency_limit" | "backoff_base_ms" | "backoff_max_ms") => {
            whole(0, u32::MAX.into())
        }
        ("SetType" | "Type", "concurrency_scope") => scopes(),
        ("SetType", "executor" | "rate_limit" | "circuit" | "sla") => Allowed::Any,
        ("Submit", "concurrency_key") => text(1, NAME_BYTES_MAX, no_control()),
        ("SetType", "concurrency_key") | ("TypeRateLimit", "key") => key_source(),
        ("TypeRateLimit", "per_second") => {
            Allowed::Number { least: RATE_NANOS_MIN as f64 / 1e9, most: RATE_PER_SECOND_MAX.into() }
        }
        ("TypeRateLimit", "burst") => whole(1, RATE_BURST_MAX.into()),
        ("TypeCircuit", "failure_ratio") => Allowed::Number { least: 0.001, most: 1.0 },
        ("TypeCircuit", "min_calls") => whole(1, CIRCUIT_CALLS_MAX.into()),
        ("TypeCircuit", "open_seconds") => whole(1, CIRCUIT_OPEN_SECS_MAX.into()),
        ("TypeCircuitState", "state") => Allowed::Words(vec!["closed", "open", "half_open"]),
        ("TypeSla", _) => whole(SLA_MS_MIN.into(), TIMEOUT_MS_MAX.into()),
        ("TypeExecutor", field) => return executor_field(field),
        ("SetTenant", "weight") => whole(1, TENANT_WEIGHT_MAX.into()),
        ("SetTenant", "backlog_max" | "backlog_bytes_max") => whole(0, u64::MAX),
        ("SetTenant", "paused") => Allowed::Any,
        ("SetQueue" | "Queue", "order") => orders(),
        ("IssueToken", "tenant_id" | "user_id") => name(),
        ("IssueToken" | "Token" | "Caller", "roles") => roles().each(1, None),
        ("IssueToken", "expires_at") => Allowed::Any,
        ("RotateToken", "overlap_seconds") => whole(0, TOKEN_OVERLAP_SECS_MAX),
        ("Transition", "new_status") => job_states(),
        ("SchedulerEnqueue", _)
        | ("SchedulerPull", _)
        | ("SchedulerAck", _)
        | ("SchedulerFail", _)
        | ("SchedulerRenew", _)
        | ("PutGovernedObject", _)
        | ("GovernedSignals", _)
        | ("SetGovernedGate", _) => return governed_field(of, field),
        ("CreateTask", "task_id" | "schedule_id") => text(1, TASK_ID_BYTES_MAX, unpadded()),
        ("CreateTask", "schedule_type") => Allowed::Words(vec!["at", "cron", "daily"]),
        ("CreateTask", "scheduled_at" | "next_run_at" | "last_run_at" | "fire_time") => {
            Allowed::Instant
        }
        ("CreateTask", "cron_expr" | "timezone" | "payload") => Allowed::Any,
        ("CreateTask", "timeout_ms") => whole(TIMEOUT_MS_MIN.into(), TIMEOUT_MS_MAX.into()),
        ("CreateTask", "max_retries") => whole(0, RETRIES_MAX.into()),
        ("CreateTask", "idempotency_key") => text(0, KEY_BYTES_MAX, no_control()),
        ("CreateTask", "idempotency_scope") => {
            text(0, KEY_BYTES_MAX - TASK_SCOPE_PREFIX.len(), no_control())
        }
        ("MoveTask", "to_state")
        | ("TaskSnapshot" | "UnseenTask", "state")
        | ("TaskEventPayload" | "TaskError", "from_state" | "to_state") => task_states(),

        ("Job" | "Explanation" | "SubmittedItem" | "ReportedItem" | "Moved", "status")
        | ("Ran", "final_status")
        | ("JobEvent" | "JobMoved", "from_state" | "to_state") => job_states(),
        ("DlqItem" | "DlqStanding", "status") => item_states(),
        ("EstimatedStart", "basis") => Allowed::Words(Basis::ALL.to_vec()),

        ("OrchestrationSubmit", "taskType") => name(),
        ("OrchestrationSubmit", "idempotencyKey") => text(1, KEY_BYTES_MAX, no_control()),
        ("OrchestrationSubmit", "payload") => Allowed::Any,
        ("OrchestrationTransition", "toStatus") | ("OrchestrationJob", "status") => {
            orchestration_states()
        }
        _ => {
            let found = schedule_field(of, field).or_else(|| agent::field(of, field));
            let found = found.or_else(|| desk::field(of, field));
            let found = found.or_else(|| internal::field(of, field));
            let found = found.or_else(|| triggers::field(of, field));
            return found.or_else(|| subscriptions::field(of, field));
        }
    })
}

/// Fields that must be there, although a request without them is read and told what it lacks.
pub(super) fn required(of: &str) -> &'static [&'static str] {
    match of {
        "Discard" | "BreakGlass" | "CreateBulk" => &["reason"],
        "Resume" => &["reviewer_id"],
        _ => &[],
    }
}

/// What a part of a path may be.
pub(super) fn path_value(path: &str, part: &str) -> Allowed {
    if let Some(value) = internal::path_value(part) {
        return value;
    }
    match part {
        "job_id" | "taskId" => id(JobId::PREFIX),
        "dlq_id" => id(DlqId::PREFIX),
        "object_type" => governed_words(ObjectType::ALL, ObjectType::as_str),
        "object_id" => text(1, OBJECT_ID_BYTES_MAX, unpadded()),
        "gate" => governed_words(Gate::ALL, Gate::as_str),
        "token_id" => id(TokenId::PREFIX),
        "alert_id" => id(Kind::Alert.prefix()),
        "bulk_id" => id(Kind::Bulk.prefix()),
        "schedule_id" | "scheduleId" => id(Kind::Schedule.prefix()),
        "subscription_id" => id(Kind::Subscription.prefix()),
        "trigger_id" | "id" if path.contains("/triggers") => text(1, RUN_ID_BYTES_MAX, unpadded()),
        _ if path.contains("/effects/") => text(1, NAME_BYTES_MAX, no_control()),
        _ => name(),
    }
}

/// What a header may be.
pub(super) fn header_value(header: &str) -> Allowed {
    let line = || Some("^[!-~]([ -~]*[!-~])?$".to_owned());
    match header {
        KEY_HEADER => text(1, KEY_BYTES_MAX, line()),
        TENANT_HEADER => text(1, NAME_BYTES_MAX, line()),
        TRACE_HEADER => text(1, TRACE_BYTES_MAX, Some("^[!-~]+$".to_owned())),
        INTERNAL_HEADER => Allowed::Words(vec!["true"]),
        "Last-Event-ID" => {
            let digits = POSITION_MAX.to_string().len();
            text(1, digits, format!("^[0-9]{{1,{digits}}}$"))
        }
        // Whatever it is: what says nothing of a language that we speak means English.
        "Accept-Language" => Allowed::Any,
        _ => text(0, TARGET_BYTES_MAX, Some("^[!-~]*$".to_owned())),
    }
}

/// What a parameter may be. Names mean the same on every route but for the words of a list.
pub(super) fn query_value(path: &str, parameter: &str) -> Allowed {
    if let Some(value) = internal::query_value(path, parameter) {
        return value;
    }
    match parameter {
        "state" | "rule" if path.contains("/alerts") => desk::alert_word(parameter),
        "status" if path.contains("/bulk") => desk::bulk_states(),
        "status" if path.contains("/dlq/") => item_states(),
        "status" if path.starts_with("/jobs") => orchestration_states(),
        "status" if path.contains("/triggers") => triggers::states(),
        "status" if path.contains("/subscriptions") => subscriptions::states(),
        "status" if path.starts_with("/agent") => agent::statuses(path),
        "traceId" | "sourceTriggerId" | "parentTaskId" => text(1, NAME_BYTES_MAX, no_control()),
        "status" if path.contains("/schedules") => schedule_states(),
        "type" if path.contains("/triggers") => triggers::types(),
        "job_type" | "owner" => name(),
        "job_id" => id(JobId::PREFIX),
        "object_type" | "object_id" | "action" | "actor" if path == "/api/v1/audit" => {
            text(1, NAME_BYTES_MAX, no_control())
        }
        "object_type" => governed_words(ObjectType::ALL, ObjectType::as_str),
        "object_id" => text(1, OBJECT_ID_BYTES_MAX, unpadded()),
        "count" => whole(1, PREVIEW_MAX as u64),
        "from" => Allowed::Instant,
        "status" => job_states(),
        "taskType" => name(),
        "type" | "queue" | "user_id" => name(),
        "trace_id" => text(1, NAME_BYTES_MAX, no_control()),
        "parent_id" => id(JobId::PREFIX),
        "label" => {
            let most = 2 * NAME_BYTES_MAX + 1;
            text(2, most, label()).each(0, LABELS_WANTED_MAX)
        }
        "created_after" | "created_before" | "new_since" => Allowed::Instant,
        "signature" => text(16, 16, Some("^[0-9a-f]{16}$".to_owned())),
        "limit" if path.starts_with("/jobs") => whole(1, JOBS_PAGE_MAX as u64),
        "limit" => whole(1, PAGE_MAX as u64),
        "cursor" => text(1, cursor::BYTES_MAX, Some("^[0-9a-f]+$".to_owned())),
        "wait_ms" => whole(0, WAIT_MS_MAX),
        "after" | "before" => whole(0, POSITION_MAX),
        "force_fail" | "transient_fail" => Allowed::Flag,
        "error_code" if path.contains("/internal/") => {
            text(1, ERROR_CODE_BYTES_MAX, Some("^[A-Z0-9_]+$".to_owned()))
        }
        "error_code" => text(1, ERROR_CODE_BYTES_MAX, Some("^[0-9A-Za-z_.:-]+$".to_owned())),
        other => unreachable!("the parameter {other} has no values"),
    }
}

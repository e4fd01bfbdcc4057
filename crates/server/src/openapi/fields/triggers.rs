//! Values of the fields of triggers, in either spelling.

use super::super::values::{Allowed, no_control, not_blank, unpadded};
use super::{text, whole};
use mainspring_kernel::entity::trigger::{LastStatus, Status, TriggerType};
use mainspring_kernel::limits::{
    MESSAGE_BYTES_MAX, NAME_BYTES_MAX, RUN_ID_BYTES_MAX, RUN_PRIORITY_MAX,
    SCHEDULE_INTERVAL_SECS_MAX, TIMEOUT_MS_MAX, TRIGGER_PROMPT_BYTES_MAX,
};

pub(super) fn types() -> Allowed {
    Allowed::Words(TriggerType::ALL.map(TriggerType::as_str).into())
}

pub(super) fn states() -> Allowed {
    Allowed::Words(Status::NAMES.into())
}

/// What a field of a trigger may hold.
pub(super) fn field(of: &str, field: &str) -> Option<Allowed> {
    Some(match (of, field) {
        ("SetTrigger" | "CreateTrigger" | "Trigger" | "AgentTrigger", "type") => types(),
        ("Trigger" | "TriggerExplanation", "status") => states(),
        ("SetTrigger" | "CreateTrigger", "id") => text(1, RUN_ID_BYTES_MAX, unpadded()),
        ("SetTrigger" | "CreateTrigger", "prompt") => {
            text(1, TRIGGER_PROMPT_BYTES_MAX, not_blank())
        }
        ("SetTrigger" | "CreateTrigger", "priority") => whole(0, RUN_PRIORITY_MAX.into()),
        ("SetTrigger" | "CreateTrigger", "timeout") => whole(1, (TIMEOUT_MS_MAX / 1_000).into()),
        ("SetTrigger" | "CreateTrigger", "cooldown") => whole(0, SCHEDULE_INTERVAL_SECS_MAX),
        ("SetTrigger", "trace_id" | "parent_task_id")
        | ("CreateTrigger", "traceId" | "parentTaskId") => text(1, NAME_BYTES_MAX, no_control()),
        ("SetTrigger", "created_at" | "schedule" | "condition" | "state")
        | ("CreateTrigger", "createdAt" | "schedule" | "condition" | "state") => Allowed::Any,
        ("CreateTrigger", "schemaVersion") => whole(1, 2),
        ("TriggerSchedule" | "AgentTriggerSchedule", "interval") => {
            whole(1, SCHEDULE_INTERVAL_SECS_MAX)
        }
        ("TriggerSchedule", "run_at" | "last_run_at" | "next_run_at")
        | ("AgentTriggerSchedule", "runAt" | "lastRunAt" | "nextRunAt") => Allowed::Any,
        ("TriggerState", "last_status") | ("AgentTriggerState", "lastStatus") => {
            Allowed::Words(LastStatus::ALL.map(LastStatus::as_str).into())
        }
        ("TriggerState", "last_seen_result_id") | ("AgentTriggerState", "lastSeenResultId") => {
            text(0, NAME_BYTES_MAX, None::<String>)
        }
        ("TriggerState" | "AgentTriggerState", _) => Allowed::Any,
        ("PauseTrigger", "note") => text(0, MESSAGE_BYTES_MAX, no_control()),
        ("TriggerLeaf", "truth") => Allowed::Words(vec!["true", "false", "undecided"]),
        ("TriggerEvaluation", "outcome") => Allowed::Words(OUTCOMES.into()),
        _ => return None,
    })
}

const OUTCOMES: [&str; 9] =
    ["fired", "asked", "due", "cooldown", "running", "not_yet", "undecided", "refused", "stuck"];

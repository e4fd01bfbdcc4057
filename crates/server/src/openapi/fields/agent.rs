//! The values of the agent contract.

use super::super::values::{Allowed, no_control, unpadded};
use super::{name, text, whole};
use crate::limits::IMPORT_MAX;
use mainspring_kernel::agent::Purpose;
use mainspring_kernel::limits::{
    LEASE_MS_MAX, NAME_BYTES_MAX, PULL_MAX, RETRIES_MAX, RETRY_DELAY_MS_MAX, RUN_ID_BYTES_MAX,
    RUN_PRIORITY_MAX, TIMEOUT_MS_MAX, WAIT_MS_MAX,
};
use mainspring_kernel::view::agent::{FailureReason, IMPORT_PLACES, State};

/// What a field of a type may hold; `None` for one that nothing is said about.
pub(super) fn field(of: &str, field: &str) -> Option<Allowed> {
    Some(match (of, field) {
        ("CreateRun" | "ReportRun" | "ReportPlan", "schemaVersion") => whole(1, 2),
        ("CreateRun", "id" | "parentTaskId" | "sourceTriggerId") => {
            text(1, RUN_ID_BYTES_MAX, unpadded())
        }
        ("CreateRun", "traceId") => text(1, NAME_BYTES_MAX, no_control()),
        ("CreateRun", "prompt") | ("AnswerPlan", "answer") => Allowed::Said,
        ("CreateRun", "priority") => whole(0, RUN_PRIORITY_MAX.into()),
        ("CreateRun", "timeout") => whole(1, (TIMEOUT_MS_MAX / 1000).into()),
        ("CreateRun", "attempts") => whole(0, RETRIES_MAX.into()),
        ("CreateRun", "maxAttempts") => whole(1, RETRIES_MAX.into()),
        ("CreateRun", "backoffMs") => whole(0, RETRY_DELAY_MS_MAX),
        ("CreateRun", "createdAt" | "deferUntil" | "triggeredAt") | ("ReportPlan", "deadline") => {
            Allowed::Instant
        }
        ("CreateRun", "type") => Allowed::Any,
        ("PullRuns", "worker_id") => name(),
        ("PullRuns", "limit") => whole(1, PULL_MAX as u64),
        ("PullRuns", "wait_ms") => whole(0, WAIT_MS_MAX),
        ("PullRuns", "lease_ms") => whole(1, LEASE_MS_MAX.into()),
        ("PullRuns", "purpose") => Allowed::Words(Purpose::ALL.map(Purpose::as_str).to_vec()),
        ("ReportRun", "status") => Allowed::Words(vec!["done", "failed"]),
        ("ReportRun", "resultType") => {
            Allowed::Words(vec!["text", "code_change", "analysis", "summary"])
        }
        ("ReportRun", "failureReason") => {
            Allowed::Words(FailureReason::ALL.iter().map(|reason| reason.as_str()).collect())
        }
        ("ReportPlan", "status") => Allowed::Words(vec!["done", "needs_input", "failed"]),
        ("ImportRecords", "place") => Allowed::Words(IMPORT_PLACES.to_vec()),
        // Each is answered for itself.
        ("ImportRecords", "items") => Allowed::Any.each(0, IMPORT_MAX),
        ("ReportRun" | "ReportPlan", _) => Allowed::Any,
        ("AgentRun" | "UnseenRun" | "ReportedRun", "status") => {
            let mut words = states();
            words.push("needs_input");
            Allowed::Words(words)
        }
        _ => return None,
    })
}

/// What a list can be asked for.
pub(super) fn statuses(path: &str) -> Allowed {
    let mut words = states();
    match path {
        "/agent/task-status" => words.retain(|word| matches!(*word, "done" | "failed")),
        "/agent/plans" => words.push("needs_input"),
        _ => {}
    }
    Allowed::Words(words)
}

fn states() -> Vec<&'static str> {
    State::ALL.iter().map(|state| state.as_str()).collect()
}

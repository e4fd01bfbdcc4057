//! How the task contract says no: a bare `error` object, and codes of its own for what its document
//! names. The only place that chooses its statuses.

use super::wire::{TaskError, TaskFailure};
use crate::answer::{Body, refused};
use crate::app::Ids;
use crate::contracts::errors;
use crate::refusal::{Kind, Refusal};
use hyper::{Response, StatusCode};
use mainspring_kernel::view::tasks;
use mainspring_kernel::{Rejection, Timestamp};
use serde_json::{Value, json};

const INVALID_SCHEDULE: &str = "TASK_INVALID_SCHEDULE";
const INVALID_FIELD: &str = "TASK_INVALID_FIELD";
const INVALID_TRANSITION: &str = "TASK_INVALID_TRANSITION";
const DUPLICATE: &str = "TASK_DUPLICATE";

/// Codes that only this contract has.
pub(super) const CODES: &[&str] = &[INVALID_FIELD, INVALID_SCHEDULE];

/// Fields that say when.
const SCHEDULE: &[&str] = &[
    "schedule_type",
    "scheduled_at",
    "cron_expr",
    "timezone",
    "next_run_at",
    "last_run_at",
    "schedule_id",
    "fire_time",
];

/// A field that says when is missing or makes no sense.
pub(super) fn schedule(field: &'static str, reason: &str) -> Refusal {
    Refusal::new(Kind::Wrong, INVALID_SCHEDULE, format!("{field} {reason}")).at(field)
}

/// Another field makes no sense.
pub(super) fn field(field: &'static str, reason: &str) -> Refusal {
    Refusal::new(Kind::Wrong, INVALID_FIELD, format!("{field} {reason}")).at(field)
}

/// There is such a task, and it is another one than was asked for.
pub(super) fn duplicate(conflicts: &[&'static str], task: Option<Value>) -> Refusal {
    let reason = if task.is_some() {
        "the task that there is differs in fields that cannot be changed"
    } else {
        "there is such a task, and it differs"
    };
    let mut refusal = Refusal::new(Kind::Conflict, DUPLICATE, reason);
    // Who may not read the task does not learn how it differs either.
    let conflicts = if task.is_some() { conflicts } else { &[] };
    let details = json!({ "reason": reason, "conflict_fields": conflicts, "task": task });
    refusal.details = Some(Box::new(details));
    refusal
}

/// The answer to a request that is refused.
pub(super) fn word(refusal: &Refusal, ids: &Ids) -> Response<Body> {
    let (status, error) = error(refusal);
    let body = serde_json::to_vec(&TaskFailure { error }).expect("our own shapes are JSON");
    refused(status, body, refusal, ids)
}

fn error(refusal: &Refusal) -> (StatusCode, TaskError) {
    let mut error = TaskError {
        code: refusal.code,
        message: refusal.message.to_string(),
        retryable: refusal.retryable,
        field: refusal.field.as_deref().filter(|field| !field.is_empty()).map(str::to_owned),
        from_state: None,
        to_state: None,
        reason: None,
        conflict_fields: None,
        task: None,
    };
    match refusal.rejection.as_deref() {
        Some(Rejection::IllegalTaskMove { from, to }) => {
            (error.from_state, error.to_state) = (Some(from.as_str()), Some(to.as_str()));
        }
        // Only what has ended cannot be cancelled, and that looks the same at any time.
        Some(Rejection::CancelConflict { state }) => {
            let from = tasks::shown(*state, Timestamp::EPOCH, Timestamp::EPOCH);
            let to = tasks::State::Cancelled;
            error.code = INVALID_TRANSITION;
            error.message = Rejection::IllegalTaskMove { from, to }.to_string();
            (error.from_state, error.to_state) = (Some(from.as_str()), Some(to.as_str()));
        }
        // The kernel calls it by its own name.
        Some(Rejection::FieldInvalid { field: "run_at", reason }) => {
            error.field = Some("scheduled_at".to_owned());
            error.message = format!("scheduled_at {reason}");
        }
        Some(Rejection::FieldInvalid { field: "cron", reason }) => {
            error.field = Some("cron_expr".to_owned());
            error.message = format!("cron_expr {reason}");
        }
        Some(Rejection::FieldInvalid { field: "id", reason }) => {
            error.field = Some("task_id".to_owned());
            error.message = format!("task_id {reason}");
        }
        _ => {}
    }
    if error.code == "REQ_VALIDATION_FAILED" {
        let is_schedule = error.field.as_deref().is_some_and(|field| SCHEDULE.contains(&field));
        error.code = if is_schedule { INVALID_SCHEDULE } else { INVALID_FIELD };
    }
    if let Some(details) = &refusal.details {
        let texts = |value: &Value| {
            let list = value.as_array()?;
            Some(list.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect())
        };
        error.reason = details["reason"].as_str().map(str::to_owned);
        error.conflict_fields = texts(&details["conflict_fields"]);
        error.task = Some(details["task"].clone()).filter(|task| !task.is_null());
    }
    (status(refusal.kind, error.code), error)
}

fn status(kind: Kind, code: &str) -> StatusCode {
    match code {
        INVALID_FIELD | INVALID_SCHEDULE => StatusCode::UNPROCESSABLE_ENTITY,
        _ => errors::status(kind),
    }
}

//! How the job orchestration contract says no: its own codes, and the status of each.

use crate::answer::{Body, refused};
use crate::app::Ids;
use crate::contracts::{self, errors};
use crate::refusal::{Kind, Refusal};
use crate::write::Out;
use hyper::{Response, StatusCode};
use mainspring_kernel::Rejection;
use mainspring_kernel::calendar::BadCron;
use mainspring_kernel::view::jobs::{State, shown};

/// Codes of this contract alone.
pub(super) const CODES: &[&str] = &[
    "ADMIN_REQUIRED",
    "EXECUTION_FAILED",
    "INVALID_ARGUMENT",
    "INVALID_TRANSITION",
    "JOB_ACCESS_DENIED",
    "SCHEDULE_ACCESS_DENIED",
    "UNAUTHORIZED",
    "VALIDATION_ERROR",
];

/// The answer to a request that is refused.
pub(super) fn word(refusal: &Refusal, ids: &Ids) -> Response<Body> {
    let (status, code) = told(refusal);
    let mut out = Out::sized(256);
    out.raw("{\"success\":false,\"error\":{\"code\":\"");
    out.raw(code);
    out.raw("\",\"message\":");
    out.string(&message(refusal));
    out.raw("}}");
    refused(status, out.0, refusal, ids)
}

/// Status and code of a refusal.
fn told(refusal: &Refusal) -> (StatusCode, &'static str) {
    let (kind, code) = (refusal.kind, refusal.code);
    // What is well formed and names something that is not there.
    let is_unfit = matches!(code, "TYPE_UNKNOWN" | "INVALID_ARGUMENT") || is_unfit(refusal);
    if kind == Kind::Wrong && !is_unfit {
        return (StatusCode::UNPROCESSABLE_ENTITY, "VALIDATION_ERROR");
    }
    let told_as = match code {
        _ if kind == Kind::Wrong => "INVALID_ARGUMENT",
        _ if kind == Kind::Unproven => "UNAUTHORIZED",
        "AUTH_FORBIDDEN" => "JOB_ACCESS_DENIED",
        "WF_STATE_TRANSITION_INVALID" | "JOB_CANCEL_CONFLICT" | "DLQ_REQUEUE_CONFLICT" => {
            "INVALID_TRANSITION"
        }
        _ => code,
    };
    (errors::status(kind), told_as)
}

/// Whether it names a type that no schedule may have, or a rhythm that never comes.
fn is_unfit(refusal: &Refusal) -> bool {
    matches!(
        refusal.rejection.as_deref(),
        Some(Rejection::FieldInvalid { field: "job_type" | "cron", .. })
    )
}

/// What is said for people, in the words of this contract.
fn message(refusal: &Refusal) -> String {
    match refusal.rejection.as_deref() {
        Some(Rejection::FieldInvalid { field, reason }) => format!("{} {reason}", camel(field)),
        Some(Rejection::IllegalMove { from, to }) => cannot_move(shown(*from), shown(*to)),
        Some(Rejection::CancelConflict { state }) => cannot_move(shown(*state), State::Cancelled),
        Some(Rejection::RequeueConflict { .. }) => {
            "this job was retried already, or is about to be discarded".to_owned()
        }
        _ => refusal.message.to_string(),
    }
}

fn cannot_move(from: State, to: State) -> String {
    format!("a job cannot move from {from} to {to}")
}

/// A field of ours as this contract spells it.
fn camel(field: &str) -> String {
    contracts::camel(match field {
        "job_type" => "task_type",
        "interval_seconds" => "every_seconds",
        "cron" => "cron_expr",
        other => other,
    })
}

/// The one answer about jobs that are not the caller's, or not there: it tells neither apart.
pub(super) fn job_denied() -> Refusal {
    let message = "this job is not yours to see or steer, or it does not exist";
    Refusal::new(Kind::Denied, "JOB_ACCESS_DENIED", message)
}

/// What moves a job as a callback does is not its owner's to do.
pub(super) fn callback_denied() -> Refusal {
    let message = "only a worker may say that a job runs, or how it ended";
    Refusal::new(Kind::Denied, "JOB_ACCESS_DENIED", message)
}

/// The one answer about schedules that are not the caller's, or not there.
pub(super) fn schedule_denied() -> Refusal {
    let message = "this schedule is not yours to see or steer, or it does not exist";
    Refusal::new(Kind::Denied, "SCHEDULE_ACCESS_DENIED", message)
}

/// A cron expression that means nothing.
pub(super) fn bad_cron(bad: &BadCron) -> Refusal {
    Refusal::new(Kind::Wrong, "INVALID_ARGUMENT", format!("cronExpr {bad}"))
}

pub(super) fn admin_required() -> Refusal {
    Refusal::new(Kind::Denied, "ADMIN_REQUIRED", "this is for admins only")
}

/// Nothing leads from `from` to `to`.
pub(super) fn illegal(from: State, to: State) -> Refusal {
    Rejection::IllegalMove { from: from.native(), to: to.native() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::StateName;

    #[test]
    fn refusals_have_this_contracts_codes() {
        let unknown = Rejection::TypeUnknown { name: "x".into() };
        let bad = Rejection::FieldInvalid { field: "idempotency_key", reason: "is bad" };
        let illegal = Rejection::IllegalMove { from: StateName::Retrying, to: StateName::Queued };
        for (refusal, status, code, told_as) in [
            (unknown.into(), 400, "INVALID_ARGUMENT", "job type \"x\" is not registered"),
            (bad.into(), 422, "VALIDATION_ERROR", "idempotencyKey is bad"),
            (illegal.into(), 409, "INVALID_TRANSITION", "a job cannot move from running to queued"),
            (crate::refusal::unauthorized(), 401, "UNAUTHORIZED", "a valid access token"),
            (crate::refusal::denied(), 403, "JOB_ACCESS_DENIED", "this is not yours"),
            (admin_required(), 403, "ADMIN_REQUIRED", "this is for admins only"),
            (Rejection::IdempotencyConflict.into(), 409, "IDEMPOTENCY_CONFLICT", "this idem"),
            (crate::refusal::internal(), 500, "INTERNAL_ERROR", "something went wrong"),
        ] {
            let refusal: Refusal = refusal;
            assert_eq!(told(&refusal), (StatusCode::from_u16(status).unwrap(), code));
            assert!(message(&refusal).starts_with(told_as), "{}", message(&refusal));
        }
    }

    #[test]
    fn fields_are_camel_case() {
        for (ours, theirs) in [("payload", "payload"), ("job_type", "taskType"), ("a_b_c", "aBC")] {
            assert_eq!(camel(ours), theirs);
        }
    }
}

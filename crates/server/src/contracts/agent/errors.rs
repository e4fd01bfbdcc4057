//! How the agent contract says no: `error` is a text, as its document has it, and beside it stands
//! a stable code. The only place that chooses its statuses.

use super::wire::AgentFailure;
use crate::answer::{Body, refused};
use crate::app::Ids;
use crate::contracts::camel;
use crate::refusal::{Kind, Refusal};
use hyper::{Response, StatusCode};
use mainspring_kernel::Rejection;

const NOT_ENDED: &str = "RUN_NOT_ENDED";

/// Codes that only this contract has.
pub(super) const CODES: &[&str] = &[NOT_ENDED];

/// There is no result before the end.
pub(super) fn not_ended(status: &'static str) -> Refusal {
    let message = format!("there is no result yet: the status is {status}");
    Refusal::new(Kind::Conflict, NOT_ENDED, message)
}

/// The answer to a request that is refused.
pub(super) fn word(refusal: &Refusal, ids: &Ids) -> Response<Body> {
    let failure = failure(refusal);
    let body = serde_json::to_vec(&failure).expect("our own shapes are JSON");
    refused(status(refusal.kind), body, refusal, ids)
}

fn failure(refusal: &Refusal) -> AgentFailure {
    let (field, error) = match refusal.rejection.as_deref() {
        // The kernel calls it by its own name.
        Some(Rejection::FieldInvalid { field, reason }) => {
            let field = spelt(field);
            (Some(field.clone()), format!("{field} {reason}"))
        }
        Some(Rejection::IdempotencyConflict) => {
            let error = "there is a run or plan of that id already, and it differs".to_owned();
            (Some("id".to_owned()), error)
        }
        _ => (refusal.field.as_deref().map(str::to_owned), refusal.message.to_string()),
    };
    AgentFailure {
        error,
        code: refusal.code,
        retryable: refusal.retryable,
        field: field.filter(|field| !field.is_empty()),
    }
}

/// A field of ours as this contract spells it.
fn spelt(field: &str) -> String {
    match field {
        "run_at" => "deferUntil".to_owned(),
        "timeout_ms" => "timeout".to_owned(),
        "payload" => "prompt".to_owned(),
        other => camel(other),
    }
}

fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Wrong => StatusCode::BAD_REQUEST,
        Kind::Unproven => StatusCode::UNAUTHORIZED,
        Kind::Denied => StatusCode::FORBIDDEN,
        Kind::Unknown => StatusCode::NOT_FOUND,
        Kind::Method => StatusCode::METHOD_NOT_ALLOWED,
        Kind::Slow => StatusCode::REQUEST_TIMEOUT,
        Kind::Conflict => StatusCode::CONFLICT,
        Kind::Large => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Form => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Kind::Elsewhere => StatusCode::MISDIRECTED_REQUEST,
        Kind::Share => StatusCode::TOO_MANY_REQUESTS,
        Kind::Room => StatusCode::INSUFFICIENT_STORAGE,
        Kind::Away => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Broken => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

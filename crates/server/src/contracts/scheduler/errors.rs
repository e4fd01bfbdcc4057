//! How this contract says no: a bare `error` object. The only place that chooses its statuses.

use super::wire::{SchedulerError, SchedulerFailure};
use crate::answer::{Body, refused};
use crate::app::Ids;
use crate::contracts::errors;
use crate::refusal::Refusal;
use hyper::{Response, StatusCode};

/// Codes that only this contract has.
pub(super) const CODES: &[&str] = &[];

/// The answer to a request that is refused.
pub(super) fn word(refusal: &Refusal, ids: &Ids) -> Response<Body> {
    let error = SchedulerError {
        code: refusal.code,
        message: refusal.message.to_string(),
        retryable: refusal.retryable,
        field: refusal.field.as_deref().filter(|field| !field.is_empty()).map(str::to_owned),
    };
    let body = serde_json::to_vec(&SchedulerFailure { error }).expect("our own shapes are JSON");
    refused(status(refusal), body, refusal, ids)
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal.code {
        "REQ_VALIDATION_FAILED" => StatusCode::UNPROCESSABLE_ENTITY,
        _ => errors::status(refusal.kind),
    }
}

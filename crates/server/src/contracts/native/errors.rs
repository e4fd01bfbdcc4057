//! How the native contract says no: its envelope, and a status. The kind of a refusal decides it,
//! but for those of the two-person rule.

use crate::answer::Body;
use crate::app::Ids;
use crate::envelope;
use crate::refusal::{Kind, Refusal};
use hyper::{Response, StatusCode};
use mainspring_kernel::Rejection;

/// The answer to a request that is refused.
pub(super) fn word(refusal: &Refusal, ids: &Ids) -> Response<Body> {
    envelope::refused(status(refusal), refusal, ids)
}

fn status(refusal: &Refusal) -> StatusCode {
    // Wrong by its kind, like a request that lacks a reason; but here it is well formed, and it is
    // the people who do not suffice.
    let are_wrong_people = matches!(
        refusal.rejection.as_deref(),
        Some(
            Rejection::SamePerson
                | Rejection::NotIndependent
                | Rejection::TokenTooNew
                | Rejection::NoSecondPerson
        )
    );
    match refusal.kind {
        Kind::Wrong if are_wrong_people => StatusCode::CONFLICT,
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

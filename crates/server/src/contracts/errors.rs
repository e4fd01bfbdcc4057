//! What the contracts agree on when they say no: the status of each kind of refusal. A contract
//! that words some of them otherwise says so in its own `errors.rs` and leaves the rest to this
//! table.

use crate::refusal::Kind;
use hyper::StatusCode;

/// The status of a refusal of that kind, unless a contract has its own.
pub(crate) fn status(kind: Kind) -> StatusCode {
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

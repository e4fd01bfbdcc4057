//! How the native contract says no: its envelope, and a status. The kind of a refusal decides it,
//! but for those of the two-person rule.

use crate::answer::Body;
use crate::app::Ids;
use crate::contracts::errors;
use crate::envelope;
use crate::refusal::Refusal;
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
                | Rejection::RequestExpired
                | Rejection::NoSecondPerson
        )
    );
    match are_wrong_people {
        true => StatusCode::CONFLICT,
        false => errors::status(refusal.kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal;
    use crate::shares::Full;
    use mainspring_engine::Error;
    use std::time::Duration;

    /// What a caller sees of a refusal: status, code, and how many seconds to wait.
    fn told(refusal: &Refusal) -> (u16, &'static str, Option<u64>) {
        let after = refusal.retry_after.as_ref().map(Duration::as_secs);
        assert_eq!(refusal.retryable, after.is_some(), "{refusal:?}");
        (status(refusal).as_u16(), refusal.code, after)
    }

    #[test]
    fn what_the_store_fails_at_has_its_status() {
        let why = || "why".into();
        for (error, expected) in [
            (Error::NoRoom, (507, "DISK_FULL", Some(30))),
            (Error::Stopped, (503, "SHUTTING_DOWN", Some(2))),
            (Error::Busy, (503, "STORE_UNAVAILABLE", Some(1))),
            (Error::Away(why()), (503, "STORE_UNAVAILABLE", Some(5))),
            (Error::Failed(why()), (503, "STORE_UNAVAILABLE", Some(5))),
            (Error::Refused(why()), (400, "STORE_REFUSED", None)),
            (Error::Broken(why()), (500, "INTERNAL_ERROR", None)),
            (Error::Unreadable(why()), (500, "JOB_UNREADABLE", None)),
        ] {
            assert_eq!(told(&error.into()), expected);
        }
    }

    #[test]
    fn what_the_rules_refuse_has_its_status() {
        for (rejection, expected) in [
            (Rejection::TypeUnknown { name: "x".into() }, (400, "TYPE_UNKNOWN", None)),
            (Rejection::ApprovalRequired { reason: "x" }, (400, "APPROVAL_REQUIRED", None)),
            (Rejection::SamePerson, (409, "APPROVAL_SAME_PERSON", None)),
            (Rejection::NoSecondPerson, (409, "APPROVAL_NO_SECOND_PERSON", None)),
            (Rejection::JobUnknown, (404, "JOB_NOT_FOUND", None)),
            (Rejection::LeaseLost, (409, "LEASE_LOST", None)),
            (Rejection::IdempotencyConflict, (409, "IDEMPOTENCY_CONFLICT", None)),
            (Rejection::TenantBacklogFull, (429, "TENANT_BACKLOG_FULL", Some(5))),
            (Rejection::BacklogFull, (507, "BACKLOG_FULL", Some(30))),
        ] {
            assert_eq!(told(&rejection.into()), expected);
        }
    }

    #[test]
    fn what_the_shell_refuses_has_its_status() {
        for (refusal, expected) in [
            (refusal::too_many_waits(Full::Own), (429, "TOO_MANY_WAITS", Some(1))),
            (refusal::too_many_streams(Full::All), (429, "TOO_MANY_STREAMS", Some(5))),
            (refusal::too_many_bodies(Full::Own), (429, "TOO_MANY_BODIES", Some(1))),
            (refusal::too_many_bodies(Full::All), (503, "TOO_MANY_BODIES", Some(1))),
            (refusal::too_many_own_connections(), (429, "TOO_MANY_CONNECTIONS", Some(1))),
            (refusal::too_many_connections(), (503, "TOO_MANY_CONNECTIONS", Some(1))),
            (refusal::host_unknown(), (421, "HOST_UNKNOWN", None)),
            (refusal::body_timeout(), (408, "BODY_TIMEOUT", None)),
            (refusal::body_too_large(1), (413, "BODY_TOO_LARGE", None)),
            (refusal::content_type(), (415, "CONTENT_TYPE_UNSUPPORTED", None)),
            (refusal::too_many_schedules(1), (409, "TOO_MANY_SCHEDULES", None)),
            (refusal::too_many_triggers(1), (409, "TOO_MANY_TRIGGERS", None)),
        ] {
            assert_eq!(told(&refusal), expected);
        }
    }
}

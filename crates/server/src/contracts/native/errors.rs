//! Everything that can go wrong, as an answer: the only place where status codes are chosen.

use crate::shares::Full;
use crate::write::Out;
use hyper::StatusCode;
use mainspring_engine::Error;
use mainspring_kernel::Rejection;
use mainspring_kernel::rejection::Class;
use std::borrow::Cow;

/// An answer that went wrong.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
    class: &'static str,
    is_retryable: bool,
    /// Which field, as `jobs[3].priority`.
    path: Option<String>,
    /// For `Retry-After`.
    pub(crate) retry_after_secs: Option<u32>,
    /// For `Allow`.
    pub(crate) allow: Option<String>,
    /// Whether the connection must not be used again, because its body was not read.
    pub(crate) closes: bool,
}

const VALIDATION: &str = "validation";
const BUSINESS: &str = "business_rule";
const TRANSIENT: &str = "transient";
const SECURITY: &str = "security_sensitive";
const PERMANENT: &str = "permanent";

/// Codes that the server makes itself; the others are the kernel's.
pub const CODES: &[&str] = &[
    "AUTH_FORBIDDEN",
    "AUTH_UNAUTHORIZED",
    "BATCH_TOO_LARGE",
    "BODY_TIMEOUT",
    "BODY_TOO_LARGE",
    "CONTENT_ENCODING_UNSUPPORTED",
    "CONTENT_TYPE_UNSUPPORTED",
    "CURSOR_INVALID",
    "DISK_FULL",
    "EFFECT_NOT_FOUND",
    "HOST_UNKNOWN",
    "IDEMPOTENCY_MISSING",
    "INTERNAL_ERROR",
    "JSON_DUPLICATE_KEY",
    "JSON_INVALID",
    "JSON_NOT_UTF8",
    "JSON_TOO_DEEP",
    "METHOD_NOT_ALLOWED",
    "QUEUE_NOT_FOUND",
    "REQ_NOT_FOUND",
    "SHUTTING_DOWN",
    "STORE_REFUSED",
    "STORE_UNAVAILABLE",
    "TENANT_SCOPE_VIOLATION",
    "TOO_MANY_BODIES",
    "TOO_MANY_CONNECTIONS",
    "TOO_MANY_STREAMS",
    "TOO_MANY_WAITS",
    "TRACE_ID_REQUIRED",
    "TYPE_NOT_FOUND",
];

impl Fault {
    fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        debug_assert!(
            CODES.contains(&code) || Rejection::CODES.contains(&code),
            "{code} has no page"
        );
        Fault {
            status,
            code,
            message: message.into(),
            class: VALIDATION,
            is_retryable: false,
            path: None,
            retry_after_secs: None,
            allow: None,
            closes: false,
        }
    }

    fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }

    fn retryable(mut self, after_secs: u32) -> Self {
        self.is_retryable = true;
        self.class = TRANSIENT;
        self.retry_after_secs = Some(after_secs);
        self
    }

    fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    /// The same for a request whose body was not read.
    pub(crate) fn closed(self) -> Self {
        self.closing()
    }

    /// Whether it is the store's fault, which has its own lines in the log.
    pub(crate) fn tells_of_the_store(&self) -> bool {
        self.code == "STORE_UNAVAILABLE"
    }

    /// Names the field that is wrong.
    pub(crate) fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The `error` object.
    pub(crate) fn write(&self, out: &mut Out) {
        out.raw("{\"code\":\"");
        out.raw(self.code);
        out.raw("\",\"message\":");
        out.string(&self.message);
        out.raw(",\"class\":\"");
        out.raw(self.class);
        out.raw("\",\"retryable\":");
        out.flag(self.is_retryable);
        out.raw(",\"details\":");
        match &self.path {
            Some(path) => {
                out.raw("{\"path\":");
                out.string(path);
                out.raw("}");
            }
            None => out.raw("null"),
        }
        out.raw("}");
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::NoRoom => Fault::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "DISK_FULL",
                "the disk is almost full: new work is refused until there is room",
            )
            .retryable(30),
            Error::Stopped => shutting_down(),
            Error::Busy => Fault::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "STORE_UNAVAILABLE",
                "another process holds what this request needs",
            )
            .retryable(1),
            Error::Refused(cause) => {
                tracing::warn!(%cause, "the store refuses a request");
                Fault::new(
                    StatusCode::BAD_REQUEST,
                    "STORE_REFUSED",
                    "the store cannot keep what this request carries; the log has the cause",
                )
            }
            Error::Broken(cause) => {
                tracing::error!(%cause, "the store cannot do what a request needs");
                internal_in_store()
            }
            // An outage: the store has told the log of it.
            Error::Away(_) => store_unavailable(),
            Error::Unreadable(cause) => {
                tracing::error!(%cause, "a job cannot be read");
                Rejection::JobUnreadable.into()
            }
            Error::Failed(cause) => {
                tracing::error!(%cause, "the store failed");
                store_unavailable()
            }
        }
    }
}

impl From<Rejection> for Fault {
    fn from(rejection: Rejection) -> Self {
        let (status, class) = match rejection.class() {
            Class::Validation | Class::Approval => (StatusCode::BAD_REQUEST, VALIDATION),
            Class::Unknown => (StatusCode::NOT_FOUND, BUSINESS),
            Class::Conflict | Class::Lease => (StatusCode::CONFLICT, BUSINESS),
            Class::Damage => (StatusCode::INTERNAL_SERVER_ERROR, PERMANENT),
            Class::Share => (StatusCode::TOO_MANY_REQUESTS, TRANSIENT),
            Class::Room => (StatusCode::INSUFFICIENT_STORAGE, TRANSIENT),
        };
        let retry_after = match rejection.class() {
            Class::Share => Some(5),
            Class::Room => Some(30),
            Class::Validation
            | Class::Approval
            | Class::Unknown
            | Class::Conflict
            | Class::Lease
            | Class::Damage => None,
        };
        // The request is well formed; it is the people who do not suffice.
        let are_wrong_people = matches!(
            rejection,
            Rejection::SamePerson
                | Rejection::NotIndependent
                | Rejection::TokenTooNew
                | Rejection::NoSecondPerson
        );
        let status = if are_wrong_people { StatusCode::CONFLICT } else { status };
        let fault = Fault::new(status, rejection.code(), rejection.to_string()).class(class);
        let fault = match retry_after {
            Some(seconds) => fault.retryable(seconds),
            None => fault,
        };
        if let Rejection::FieldInvalid { field, .. } = rejection {
            fault.at(field)
        } else if let Rejection::TypeUnknown { .. } = rejection {
            fault.at("job_type")
        } else {
            fault
        }
    }
}

/// The one answer to whoever may not, and about whatever is not there: it tells neither apart.
pub(crate) fn denied() -> Fault {
    let message = "this is not yours to see or do, or it does not exist";
    Fault::new(StatusCode::FORBIDDEN, "AUTH_FORBIDDEN", message).class(SECURITY)
}

/// The one answer to every token that does not work, for whatever reason.
pub(crate) fn unauthorized() -> Fault {
    let message = "a valid access token is needed: Authorization: Bearer <token>";
    Fault::new(StatusCode::UNAUTHORIZED, "AUTH_UNAUTHORIZED", message).class(SECURITY)
}

/// A field or parameter has a value that is not allowed.
pub(crate) fn invalid(path: impl Into<String>, reason: impl std::fmt::Display) -> Fault {
    let path = path.into();
    let message = format!("{path} {reason}");
    Fault::new(StatusCode::BAD_REQUEST, "REQ_VALIDATION_FAILED", message).at(path)
}

/// A cursor that was not given for this list.
pub(crate) fn cursor_invalid() -> Fault {
    let message = "cursor is not one that was given for this list and these filters";
    Fault::new(StatusCode::BAD_REQUEST, "CURSOR_INVALID", message).at("cursor".to_owned())
}

/// A body of the wrong shape.
pub(crate) fn misshapen(path: String, message: String) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, "REQ_VALIDATION_FAILED", message).at(path)
}

/// A request that makes no sense as a whole.
pub(crate) fn bad_request(message: &'static str) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, "REQ_VALIDATION_FAILED", message).closing()
}

pub(crate) fn json_invalid(message: String) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, "JSON_INVALID", message)
}

pub(crate) fn json_not_utf8(at: usize) -> Fault {
    let message = format!("the body is not UTF-8: byte {at} is wrong");
    Fault::new(StatusCode::BAD_REQUEST, "JSON_NOT_UTF8", message)
}

pub(crate) fn json_too_deep() -> Fault {
    let message = "the body nests arrays and objects more than 64 deep";
    Fault::new(StatusCode::BAD_REQUEST, "JSON_TOO_DEEP", message)
}

pub(crate) fn json_duplicate_key(key: &str) -> Fault {
    let shown: String = key.chars().take(80).collect();
    let message = format!("the key {shown:?} comes twice in one object");
    Fault::new(StatusCode::BAD_REQUEST, "JSON_DUPLICATE_KEY", message)
}

pub(crate) fn body_too_large(max: usize) -> Fault {
    let message = format!("the body must be at most {max} bytes");
    Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", message).closing()
}

/// Without an access token only little is read.
pub(crate) fn lease_body_too_large(max: usize) -> Fault {
    let message = format!(
        "without an access token the body must be at most {max} bytes; send your token along"
    );
    Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", message).closing()
}

/// Without an access token only a few items are taken.
pub(crate) fn lease_batch_too_large(max: usize) -> Fault {
    let message = format!(
        "without an access token a call may carry at most {max} items; send your token along"
    );
    Fault::new(StatusCode::BAD_REQUEST, "BATCH_TOO_LARGE", message)
}

pub(crate) fn body_timeout() -> Fault {
    let message = "the body did not arrive in time";
    Fault::new(StatusCode::REQUEST_TIMEOUT, "BODY_TIMEOUT", message).class(TRANSIENT).closing()
}

pub(crate) fn content_type() -> Fault {
    let message = "the body must be JSON: Content-Type: application/json";
    Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "CONTENT_TYPE_UNSUPPORTED", message).closing()
}

pub(crate) fn content_encoding() -> Fault {
    let message = "the body must not be compressed";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Fault::new(status, "CONTENT_ENCODING_UNSUPPORTED", message).closing()
}

pub(crate) fn batch_too_large() -> Fault {
    let message = "a call may carry at most 10000 items";
    Fault::new(StatusCode::BAD_REQUEST, "BATCH_TOO_LARGE", message)
}

pub(crate) fn path_unknown() -> Fault {
    Fault::new(StatusCode::NOT_FOUND, "REQ_NOT_FOUND", "there is nothing at this path").closing()
}

pub(crate) fn method_not_allowed(allow: String) -> Fault {
    let message = format!("this path knows only {allow}");
    let mut fault =
        Fault::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message).closing();
    fault.allow = Some(allow);
    fault
}

pub(crate) fn host_unknown() -> Fault {
    let message = "this server is not known under that host name; see [server] hosts";
    Fault::new(StatusCode::MISDIRECTED_REQUEST, "HOST_UNKNOWN", message).class(SECURITY).closing()
}

pub(crate) fn job_unknown() -> Fault {
    Rejection::JobUnknown.into()
}

pub(crate) fn item_unknown() -> Fault {
    Rejection::ItemUnknown.into()
}

pub(crate) fn type_unknown() -> Fault {
    Fault::new(StatusCode::NOT_FOUND, "TYPE_NOT_FOUND", "no such type").class(BUSINESS)
}

pub(crate) fn queue_unknown() -> Fault {
    let message = "no such queue: nobody configured it, no type names it and no job is in it";
    Fault::new(StatusCode::NOT_FOUND, "QUEUE_NOT_FOUND", message).class(BUSINESS)
}

pub(crate) fn idempotency_missing() -> Fault {
    let message = "this server takes this request with an idempotency key only";
    Fault::new(StatusCode::BAD_REQUEST, "IDEMPOTENCY_MISSING", message).at("Idempotency-Key")
}

pub(crate) fn trace_required() -> Fault {
    let message = "this server takes requests with an x-trace-id header only";
    Fault::new(StatusCode::BAD_REQUEST, "TRACE_ID_REQUIRED", message).at("x-trace-id").closing()
}

/// The token belongs to another tenant than the header names.
pub(crate) fn tenant_violation() -> Fault {
    let message = "x-tenant-id names another tenant than the access token's";
    Fault::new(StatusCode::FORBIDDEN, "TENANT_SCOPE_VIOLATION", message).class(SECURITY)
}

pub(crate) fn effect_unknown() -> Fault {
    let message = "this job has no effect of that name";
    Fault::new(StatusCode::NOT_FOUND, "EFFECT_NOT_FOUND", message).class(BUSINESS)
}

pub(crate) fn too_many_streams(full: Full) -> Fault {
    match full {
        Full::Own => greedy("TOO_MANY_STREAMS", "your share of the event streams is open", 5),
        Full::All => greedy("TOO_MANY_STREAMS", "too many event streams are open", 5),
    }
}

pub(crate) fn too_many_waits(full: Full) -> Fault {
    match full {
        Full::Own => {
            greedy("TOO_MANY_WAITS", "your share of the calls that may wait is waiting", 1)
        }
        Full::All => greedy("TOO_MANY_WAITS", "too many calls are waiting", 1),
    }
}

pub(crate) fn too_many_bodies(full: Full) -> Fault {
    match full {
        Full::Own => greedy("TOO_MANY_BODIES", "your share of the room for bodies is in use", 1),
        Full::All => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let message = "too many bytes of bodies are being read";
            Fault::new(status, "TOO_MANY_BODIES", message).retryable(1)
        }
    }
    .closing()
}

/// The caller's own share of a connection's room is used up.
pub(crate) fn too_many_own_connections() -> Fault {
    greedy("TOO_MANY_CONNECTIONS", "your share of the connections is open", 1).closing()
}

pub(crate) fn too_many_connections() -> Fault {
    let message = "too many connections are open";
    let status = StatusCode::SERVICE_UNAVAILABLE;
    Fault::new(status, "TOO_MANY_CONNECTIONS", message).retryable(1).closing()
}

fn greedy(code: &'static str, message: &'static str, after_secs: u32) -> Fault {
    Fault::new(StatusCode::TOO_MANY_REQUESTS, code, message).retryable(after_secs)
}

pub(crate) fn shutting_down() -> Fault {
    let message = "the server is stopping";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, "SHUTTING_DOWN", message).retryable(2).closing()
}

fn store_unavailable() -> Fault {
    let message = "the store cannot be read or written";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, "STORE_UNAVAILABLE", message).retryable(5)
}

fn internal_in_store() -> Fault {
    let message = "the store holds something that cannot be read or written; its log has the cause";
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message).class(PERMANENT)
}

pub(crate) fn internal() -> Fault {
    let message = "something went wrong that should not; the server's log knows the request id";
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
        .class(PERMANENT)
        .closing()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_code_has_a_page() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        for code in CODES {
            assert!(pages.join(format!("{code}.md")).is_file(), "docs/errors/{code}.md is missing");
        }
    }

    #[test]
    fn an_error_is_json_whatever_it_says() {
        let mut out = Out::default();
        invalid("a\"b", "is \\ wrong").write(&mut out);
        let body: mainspring_api::ErrorBody = serde_json::from_slice(&out.0).unwrap();
        assert_eq!(body.code, "REQ_VALIDATION_FAILED");
        assert_eq!(body.details.unwrap().get(), r#"{"path":"a\"b"}"#);
    }
}

//! What was refused and why, without a status and without anybody's wording: both are a contract's.
//! The shell and the handlers of every contract refuse by these; see `contracts/*/errors.rs` for
//! what becomes of them.

use crate::contracts;
use crate::limits::JSON_DEPTH_MAX;
use crate::shares::Full;
use mainspring_engine::Error;
use mainspring_kernel::Rejection;
use mainspring_kernel::error_class::ErrorClass;
use mainspring_kernel::limits::BATCH_MAX;
use mainspring_kernel::rejection::Class;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

/// What kind of refusal it is; a contract chooses its status by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request itself is wrong.
    Wrong,
    /// Nobody has proven who asks.
    Unproven,
    /// It is not the caller's to see or do, or it does not exist.
    Denied,
    /// There is no such thing.
    Unknown,
    /// The path is there, but not for this method.
    Method,
    /// The request took too long to arrive.
    Slow,
    /// The thing is not in a state that allows this.
    Conflict,
    /// The body is too large.
    Large,
    /// The body is in a form that is not read here.
    Form,
    /// The request is meant for another server.
    Elsewhere,
    /// The caller gets no more now: its own share is used up, or all streams or waits are taken.
    Share,
    /// There is no room for anybody.
    Room,
    /// The server, or what it needs, cannot do it now.
    Away,
    /// Something broke.
    Broken,
}

/// A request, or an item of one, that is refused.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) kind: Kind,
    /// The stable code; a contract may have its own word for it.
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
    pub(crate) class: ErrorClass,
    /// Whether the same request may succeed later.
    pub(crate) retryable: bool,
    /// Which field, as `jobs[3].priority`.
    pub(crate) field: Option<Box<str>>,
    /// What else there is to say, as a contract wants it said.
    pub(crate) details: Option<Box<Value>>,
    /// How long to wait before asking again.
    pub(crate) retry_after: Option<Duration>,
    /// The methods that the path has.
    pub(crate) allow: Option<Box<str>>,
    /// Whether the connection must not be used again, because its body was not read.
    pub(crate) closes: bool,
    /// What the kernel said, if it was the kernel.
    pub(crate) rejection: Option<Box<Rejection>>,
}

/// Codes that the server makes itself; the others are the kernel's or a contract's own.
pub(crate) const CODES: &[&str] = &[
    "AUDIT_INTEGRITY_BROKEN",
    "AUTH_FORBIDDEN",
    "AUTH_UNAUTHORIZED",
    "BATCH_TOO_LARGE",
    "BODY_TIMEOUT",
    "BODY_TOO_LARGE",
    "CONCURRENCY_LIMIT_EXCEEDED",
    "CONTENT_ENCODING_UNSUPPORTED",
    "CONTENT_TYPE_UNSUPPORTED",
    "CURSOR_INVALID",
    "DISK_FULL",
    "EFFECT_NOT_FOUND",
    "FORM_FOREIGN",
    "HOST_UNKNOWN",
    "IDEMPOTENCY_MISSING",
    "INTERNAL_ERROR",
    "JSON_DUPLICATE_KEY",
    "JSON_INVALID",
    "JSON_NOT_UTF8",
    "JSON_TOO_DEEP",
    "METHOD_NOT_ALLOWED",
    "OUTBOX_EVENT_NOT_FOUND",
    "QUEUE_NOT_FOUND",
    "REQ_NOT_FOUND",
    "SHUTTING_DOWN",
    "STORE_REFUSED",
    "STORE_UNAVAILABLE",
    "TENANT_SCOPE_VIOLATION",
    "TLS_REQUIRED",
    "TOO_MANY_BODIES",
    "TOO_MANY_BULKS",
    "TOO_MANY_CONNECTIONS",
    "TOO_MANY_OBJECTS",
    "TOO_MANY_SCHEDULES",
    "TOO_MANY_SUBSCRIPTIONS",
    "TOO_MANY_TRIGGERS",
    "TOO_MANY_STREAMS",
    "TOO_MANY_WAITS",
    "TRACE_ID_REQUIRED",
    "TYPE_NOT_FOUND",
    "WF_INTERRUPT_REVIEWER_REQUIRED",
];

impl Refusal {
    /// A refusal of this kind. Its class is the kind's, and nothing about it will pass by itself.
    pub(crate) fn new(
        kind: Kind,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        debug_assert!(contracts::has_page(code), "{code} has no page");
        Refusal {
            kind,
            code,
            message: message.into(),
            class: class_of(kind),
            retryable: false,
            field: None,
            details: None,
            retry_after: None,
            allow: None,
            closes: false,
            rejection: None,
        }
    }

    /// The same for what may pass by itself within `secs` seconds or so.
    fn retryable(mut self, secs: u64) -> Self {
        self.retryable = true;
        self.class = ErrorClass::Transient;
        self.retry_after = Some(Duration::from_secs(secs));
        self
    }

    /// The same for a request whose body was not read.
    pub(crate) fn closed(mut self) -> Self {
        self.closes = true;
        self
    }

    /// Names the field that is wrong.
    pub(crate) fn at(mut self, field: impl Into<Box<str>>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Whether whoever filled in a form can do something about it, so that it is told on the form's
    /// page. What is nobody's to do, and what broke, has a page of its own.
    pub(crate) fn is_for_the_form(&self) -> bool {
        match self.kind {
            Kind::Wrong | Kind::Conflict | Kind::Unknown | Kind::Share | Kind::Room => true,
            Kind::Unproven
            | Kind::Denied
            | Kind::Method
            | Kind::Slow
            | Kind::Large
            | Kind::Form
            | Kind::Elsewhere
            | Kind::Away
            | Kind::Broken => false,
        }
    }

    /// Whether the store could not be had: an outage has its own lines in the log, and that
    /// somebody else held what was needed is no news.
    pub(crate) fn tells_of_the_store(&self) -> bool {
        self.code == "STORE_UNAVAILABLE"
    }
}

/// The class of a kind, where nothing else is said.
fn class_of(kind: Kind) -> ErrorClass {
    match kind {
        Kind::Wrong | Kind::Method | Kind::Large | Kind::Form => ErrorClass::Validation,
        Kind::Unproven | Kind::Denied | Kind::Elsewhere => ErrorClass::SecuritySensitive,
        Kind::Unknown | Kind::Conflict => ErrorClass::BusinessRule,
        Kind::Slow | Kind::Share | Kind::Room | Kind::Away => ErrorClass::Transient,
        Kind::Broken => ErrorClass::Permanent,
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::NoRoom => {
                let message = "the disk is almost full: new work is refused until there is room";
                Refusal::new(Kind::Room, "DISK_FULL", message).retryable(30)
            }
            Error::Stopped => shutting_down(),
            Error::Busy => {
                let message = "another process holds what this request needs";
                Refusal::new(Kind::Away, "STORE_UNAVAILABLE", message).retryable(1)
            }
            Error::Refused(cause) => {
                tracing::warn!(%cause, "the store refuses a request");
                let message =
                    "the store cannot keep what this request carries; the log has the cause";
                Refusal::new(Kind::Wrong, "STORE_REFUSED", message)
            }
            Error::Broken(cause) => {
                tracing::error!(%cause, "the store cannot do what a request needs");
                let message = "the store holds something that cannot be read or written; \
                               its log has the cause";
                Refusal::new(Kind::Broken, "INTERNAL_ERROR", message)
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

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        let (kind, retry_after) = match rejection.class() {
            Class::Validation | Class::Approval => (Kind::Wrong, None),
            Class::Unknown => (Kind::Unknown, None),
            Class::Conflict | Class::Lease => (Kind::Conflict, None),
            Class::Damage => (Kind::Broken, None),
            Class::Share => (Kind::Share, Some(5)),
            Class::Room => (Kind::Room, Some(30)),
        };
        let mut refusal = Refusal::new(kind, rejection.code(), rejection.to_string());
        if let Some(secs) = retry_after {
            refusal = refusal.retryable(secs);
        }
        if let Rejection::FieldInvalid { field, .. } = rejection {
            refusal = refusal.at(field);
        } else if let Rejection::TypeUnknown { .. } = rejection {
            refusal = refusal.at("job_type");
        }
        refusal.rejection = Some(Box::new(rejection));
        refusal
    }
}

/// The one answer to whoever may not, and about whatever is not there: it tells neither apart. Only
/// those who may see everything are told that something is not there.
pub(crate) fn denied() -> Refusal {
    let message = "this is not yours to see or do, or it does not exist";
    Refusal::new(Kind::Denied, "AUTH_FORBIDDEN", message)
}

/// The one answer to every token that does not work, for whatever reason.
pub(crate) fn unauthorized() -> Refusal {
    let message = "a valid access token is needed: Authorization: Bearer <token>";
    Refusal::new(Kind::Unproven, "AUTH_UNAUTHORIZED", message)
}

/// A field or parameter has a value that is not allowed.
pub(crate) fn invalid(field: impl Into<Box<str>>, reason: impl Display) -> Refusal {
    let field = field.into();
    misshapen(format!("{field} {reason}"), field)
}

/// A body of the wrong shape.
pub(crate) fn misshapen(message: String, field: impl Into<Box<str>>) -> Refusal {
    Refusal::new(Kind::Wrong, "REQ_VALIDATION_FAILED", message).at(field)
}

/// A request that makes no sense as a whole.
pub(crate) fn bad_request(message: &'static str) -> Refusal {
    Refusal::new(Kind::Wrong, "REQ_VALIDATION_FAILED", message).closed()
}

/// A cursor that was not given for this list.
pub(crate) fn cursor_invalid() -> Refusal {
    let message = "cursor is not one that was given for this list and these filters";
    Refusal::new(Kind::Wrong, "CURSOR_INVALID", message).at("cursor")
}

pub(crate) fn json_invalid(message: String) -> Refusal {
    Refusal::new(Kind::Wrong, "JSON_INVALID", message)
}

pub(crate) fn json_not_utf8(at: usize) -> Refusal {
    let message = format!("the body is not UTF-8: byte {at} is wrong");
    Refusal::new(Kind::Wrong, "JSON_NOT_UTF8", message)
}

pub(crate) fn json_too_deep() -> Refusal {
    let message = format!("the body nests arrays and objects more than {JSON_DEPTH_MAX} deep");
    Refusal::new(Kind::Wrong, "JSON_TOO_DEEP", message)
}

pub(crate) fn json_duplicate_key(key: &str) -> Refusal {
    let shown: String = key.chars().take(80).collect();
    let message = format!("the key {shown:?} comes twice in one object");
    Refusal::new(Kind::Wrong, "JSON_DUPLICATE_KEY", message)
}

pub(crate) fn body_too_large(max: usize) -> Refusal {
    let message = format!("the body must be at most {max} bytes");
    Refusal::new(Kind::Large, "BODY_TOO_LARGE", message).closed()
}

/// Without an access token only little is read.
pub(crate) fn lease_body_too_large(max: usize) -> Refusal {
    let message = format!(
        "without an access token the body must be at most {max} bytes; send your token along"
    );
    Refusal::new(Kind::Large, "BODY_TOO_LARGE", message).closed()
}

pub(crate) fn batch_too_large() -> Refusal {
    let message = format!("a call may carry at most {BATCH_MAX} items");
    Refusal::new(Kind::Wrong, "BATCH_TOO_LARGE", message)
}

/// Without an access token only a few items are taken.
pub(crate) fn lease_batch_too_large(max: usize) -> Refusal {
    let message = format!(
        "without an access token a call may carry at most {max} items; send your token along"
    );
    Refusal::new(Kind::Wrong, "BATCH_TOO_LARGE", message)
}

pub(crate) fn body_timeout() -> Refusal {
    Refusal::new(Kind::Slow, "BODY_TIMEOUT", "the body did not arrive in time").closed()
}

pub(crate) fn content_type() -> Refusal {
    let message = "the body must be JSON: Content-Type: application/json";
    Refusal::new(Kind::Form, "CONTENT_TYPE_UNSUPPORTED", message).closed()
}

pub(crate) fn content_encoding() -> Refusal {
    let message = "the body must not be compressed";
    Refusal::new(Kind::Form, "CONTENT_ENCODING_UNSUPPORTED", message).closed()
}

pub(crate) fn path_unknown() -> Refusal {
    let refusal = Refusal::new(Kind::Unknown, "REQ_NOT_FOUND", "there is nothing at this path");
    Refusal { class: ErrorClass::Validation, ..refusal }.closed()
}

/// A form that is not one of our own pages', or of a session that is over.
pub(crate) fn form_foreign() -> Refusal {
    let message = "this form was not sent from a page of this session; go back, reload, try again";
    Refusal::new(Kind::Denied, "FORM_FOREIGN", message)
}

/// The path has only the methods of `allow`.
pub(crate) fn method_not_allowed(allow: String) -> Refusal {
    let message = format!("this path knows only {allow}");
    let refusal = Refusal::new(Kind::Method, "METHOD_NOT_ALLOWED", message).closed();
    Refusal { allow: Some(allow.into()), ..refusal }
}

pub(crate) fn host_unknown() -> Refusal {
    let message = "this server is not known under that host name; see [server] hosts";
    Refusal::new(Kind::Elsewhere, "HOST_UNKNOWN", message).closed()
}

pub(crate) fn job_unknown() -> Refusal {
    Rejection::JobUnknown.into()
}

pub(crate) fn item_unknown() -> Refusal {
    Rejection::ItemUnknown.into()
}

pub(crate) fn type_unknown() -> Refusal {
    Refusal::new(Kind::Unknown, "TYPE_NOT_FOUND", "no such type")
}

pub(crate) fn queue_unknown() -> Refusal {
    let message = "no such queue: nobody configured it, no type names it and no job is in it";
    Refusal::new(Kind::Unknown, "QUEUE_NOT_FOUND", message)
}

pub(crate) fn outbox_event_unknown() -> Refusal {
    Refusal::new(Kind::Unknown, "OUTBOX_EVENT_NOT_FOUND", "no such event")
}

pub(crate) fn reviewer_required() -> Refusal {
    let message = "whoever answers must be named";
    Refusal::new(Kind::Wrong, "WF_INTERRUPT_REVIEWER_REQUIRED", message).at("reviewer_id")
}

pub(crate) fn effect_unknown() -> Refusal {
    Refusal::new(Kind::Unknown, "EFFECT_NOT_FOUND", "this job has no effect of that name")
}

pub(crate) fn idempotency_missing() -> Refusal {
    let message = "this server takes this request with an idempotency key only";
    Refusal::new(Kind::Wrong, "IDEMPOTENCY_MISSING", message).at("Idempotency-Key")
}

pub(crate) fn trace_required() -> Refusal {
    let message = "this server takes requests with an x-trace-id header only";
    Refusal::new(Kind::Wrong, "TRACE_ID_REQUIRED", message).at("x-trace-id").closed()
}

/// The token belongs to another tenant than the header names.
pub(crate) fn tenant_violation() -> Refusal {
    let message = "x-tenant-id names another tenant than the access token's";
    Refusal::new(Kind::Denied, "TENANT_SCOPE_VIOLATION", message)
}

pub(crate) fn too_many_streams(full: Full) -> Refusal {
    match full {
        Full::Own => greedy("TOO_MANY_STREAMS", "your share of the event streams is open", 5),
        Full::All => greedy("TOO_MANY_STREAMS", "too many event streams are open", 5),
    }
}

pub(crate) fn too_many_waits(full: Full) -> Refusal {
    match full {
        Full::Own => {
            greedy("TOO_MANY_WAITS", "your share of the calls that may wait is waiting", 1)
        }
        Full::All => greedy("TOO_MANY_WAITS", "too many calls are waiting", 1),
    }
}

/// There is no room for one more job of this type at a time.
pub(crate) fn limit_reached() -> Refusal {
    let message = "as many jobs of this type run as may run at a time";
    Refusal::new(Kind::Conflict, "CONCURRENCY_LIMIT_EXCEEDED", message)
}

/// A tenant has as many schedules as it may have.
pub(crate) fn too_many_schedules(most: usize) -> Refusal {
    let message = format!("a tenant may have at most {most} schedules; delete some");
    Refusal::new(Kind::Conflict, "TOO_MANY_SCHEDULES", message)
}

/// A tenant has as many triggers as it may have.
pub(crate) fn too_many_triggers(most: usize) -> Refusal {
    let message = format!("a tenant may have at most {most} triggers; delete some");
    Refusal::new(Kind::Conflict, "TOO_MANY_TRIGGERS", message)
}

/// A tenant has as many bulk operations as are kept.
pub(crate) fn too_many_bulks(most: usize) -> Refusal {
    let message = format!("a tenant may have at most {most} bulk operations; old ones go");
    Refusal::new(Kind::Conflict, "TOO_MANY_BULKS", message)
}

/// A tenant has as many subscriptions as it may have.
pub(crate) fn too_many_subscriptions(most: usize) -> Refusal {
    let message = format!("a tenant may have at most {most} subscriptions; delete some");
    Refusal::new(Kind::Conflict, "TOO_MANY_SUBSCRIPTIONS", message)
}

/// A line of the audit trail was changed, moved or taken away.
pub(crate) fn audit_broken(checked: u64, seq: u64) -> Refusal {
    let message = format!("the audit trail is not whole: line {seq} is wrong or missing");
    let mut refusal = Refusal::new(Kind::Conflict, "AUDIT_INTEGRITY_BROKEN", message);
    let details = serde_json::json!({
        "valid": false, "checked": checked, "first_bad_seq": seq,
    });
    refusal.details = Some(Box::new(details));
    refusal
}

/// Moves of jobs are not what was sealed.
pub(crate) fn history_broken(checked: u64, (after, to): (u64, u64)) -> Refusal {
    let from = after + 1;
    let message = format!("moves {from} to {to} of jobs are not what was sealed");
    let mut refusal = Refusal::new(Kind::Conflict, "AUDIT_INTEGRITY_BROKEN", message);
    let details = serde_json::json!({
        "valid": false, "checked": checked, "first_bad_seq": null,
        "history": { "from": from, "to": to },
    });
    refusal.details = Some(Box::new(details));
    refusal
}

/// A tenant has as many governed objects as it may have.
pub(crate) fn too_many_objects(most: usize) -> Refusal {
    let message = format!("a tenant may have at most {most} governed objects");
    Refusal::new(Kind::Conflict, "TOO_MANY_OBJECTS", message)
}

pub(crate) fn too_many_bodies(full: Full) -> Refusal {
    match full {
        Full::Own => greedy("TOO_MANY_BODIES", "your share of the room for bodies is in use", 1),
        Full::All => {
            let message = "too many bytes of bodies are being read";
            Refusal::new(Kind::Away, "TOO_MANY_BODIES", message).retryable(1)
        }
    }
    .closed()
}

/// The caller's own share of the connections is used up.
pub(crate) fn too_many_own_connections() -> Refusal {
    greedy("TOO_MANY_CONNECTIONS", "your share of the connections is open", 1).closed()
}

pub(crate) fn too_many_connections() -> Refusal {
    let message = "too many connections are open";
    Refusal::new(Kind::Away, "TOO_MANY_CONNECTIONS", message).retryable(1).closed()
}

/// Somebody speaks plain HTTP where everything is encrypted.
pub(crate) fn tls_required() -> Refusal {
    let message = "this address speaks https only; write https:// instead of http://";
    Refusal::new(Kind::Wrong, "TLS_REQUIRED", message).closed()
}

fn greedy(code: &'static str, message: &'static str, after_secs: u64) -> Refusal {
    Refusal::new(Kind::Share, code, message).retryable(after_secs)
}

pub(crate) fn shutting_down() -> Refusal {
    Refusal::new(Kind::Away, "SHUTTING_DOWN", "the server is stopping").retryable(2).closed()
}

fn store_unavailable() -> Refusal {
    let message = "the store cannot be read or written";
    Refusal::new(Kind::Away, "STORE_UNAVAILABLE", message).retryable(5)
}

pub(crate) fn internal() -> Refusal {
    let message = "something went wrong that should not; the server's log knows the request id";
    Refusal::new(Kind::Broken, "INTERNAL_ERROR", message).closed()
}

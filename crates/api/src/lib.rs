//! Wire types of the native contract, under `/api/v1`: what is sent and what comes back.
//!
//! Only shapes live here, no rules. Requests refuse unknown fields; answers may grow new ones, so
//! readers ignore what they do not know. Payloads, results and effect values are raw JSON text and
//! keep the exact bytes the other side wrote. Read `envelope.rs` first: every answer is wrapped in
//! it, except the streams, `/metrics` and the health probes.

pub mod envelope;
pub mod time;

pub mod alert;
pub mod audit;
pub mod bulk;
pub mod dlq;
pub mod event;
pub mod internal;
pub mod job;
pub mod registry;
pub mod runtime;
pub mod schedule;
pub mod subscription;
pub mod token;
pub mod trigger;
pub mod work;

pub use envelope::{Answer, ErrorBody, ErrorCode, Failure, Meta, Page, Success};
pub use time::Time;

/// JSON text that is passed on byte for byte.
pub type Json = Box<serde_json::value::RawValue>;

/// Names a request's trace; taken from the caller or made by the server, on every answer.
pub const TRACE_HEADER: &str = "x-trace-id";
/// Names the step of another system's trace that asks, by W3C Trace Context.
pub const TRACEPARENT_HEADER: &str = "traceparent";
/// Names one request; made by the server, on every answer.
pub const REQUEST_HEADER: &str = "x-request-id";
/// The idempotency key of a submission or requeue, as an alternative to the body's field.
pub const IDEMPOTENCY_HEADER: &str = "idempotency-key";
/// The tenant to act in: the token's own, or any for those who may act in every tenant.
pub const TENANT_HEADER: &str = "x-tenant-id";
/// The lease token of a request that has no body to put it in.
pub const LEASE_HEADER: &str = "x-lease-token";

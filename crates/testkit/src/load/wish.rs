//! What is asked for, as text on the wire and as a call in the record.

use crate::history::Call;
use serde_json::{Value, json};

/// A job to be submitted. The payload is compact JSON with sorted keys, so that it reads back as
/// the same text whoever wrote it.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The type.
    pub job_type: String,
    /// The payload; unique.
    pub payload: String,
    /// The idempotency key.
    pub key: Option<String>,
    /// How long it must wait.
    pub delay_ms: u64,
}

/// What a worker says about one attempt.
#[derive(Debug, Clone)]
pub enum Report {
    /// It succeeded, with this result (compact JSON).
    Complete(String),
    /// It failed.
    Fail {
        /// The code.
        code: String,
        /// Whether trying again may help.
        retryable: bool,
        /// When to try again.
        delay_ms: Option<u64>,
    },
    /// It is given back.
    Release,
}

/// What a pull asks for.
#[derive(Debug, Clone)]
pub struct Pull {
    /// The worker's name.
    pub worker: String,
    /// At most this many.
    pub limit: u64,
    /// How long to wait for the first.
    pub wait_ms: u64,
    /// For how long each is leased.
    pub lease_ms: u64,
}

impl Wish {
    pub(super) fn body(&self) -> Value {
        let payload: Value = serde_json::from_str(&self.payload).expect("payloads are JSON");
        let mut body = json!({ "job_type": self.job_type, "payload": payload });
        if let Some(key) = &self.key {
            body["idempotency_key"] = json!(key);
        }
        if self.delay_ms > 0 {
            body["delay_ms"] = json!(self.delay_ms);
        }
        body
    }
}

impl Pull {
    pub(super) fn body(&self) -> Value {
        json!({ "worker_id": self.worker, "limit": self.limit, "wait_ms": self.wait_ms,
            "lease_ms": self.lease_ms })
    }
}

impl Report {
    pub(super) fn path(&self) -> &'static str {
        match self {
            Report::Complete(_) => "/api/v1/work/complete",
            Report::Fail { .. } => "/api/v1/work/fail",
            Report::Release => "/api/v1/work/release",
        }
    }

    pub(super) fn body(&self, job: &str, token: &str) -> Value {
        let mut body = json!({ "job_id": job, "lease_token": token });
        match self {
            Report::Complete(result) => {
                body["result"] = serde_json::from_str(result).expect("results are JSON");
            }
            Report::Fail { code, retryable, delay_ms } => {
                body["error_code"] = json!(code);
                body["message"] = json!("as told");
                body["retryable"] = json!(retryable);
                if let Some(delay) = delay_ms {
                    body["retry_delay_ms"] = json!(delay);
                }
            }
            Report::Release => {}
        }
        body
    }

    pub(super) fn call(&self, job: &str, token: &str) -> Call {
        let (job, token) = (job.to_owned(), token.to_owned());
        match self.clone() {
            Report::Complete(result) => Call::Complete { job, token, result },
            Report::Fail { code, retryable, delay_ms } => {
                Call::Fail { job, token, code, retryable, delay_ms }
            }
            Report::Release => Call::Release { job, token },
        }
    }
}

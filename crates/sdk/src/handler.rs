//! What a handler sees of its job, and how it says that it failed.

use crate::client::Client;
use crate::error::Error;
use mainspring_api::Json;
use mainspring_api::work::PulledJob;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a handler gives back: the result as JSON, or why not.
pub(crate) type Outcome = Result<Option<Json>, Failure>;
/// A handler as the worker keeps it.
pub(crate) type BoxHandler =
    Arc<dyn Fn(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

/// Why an attempt did not succeed.
///
/// Any error becomes a retryable failure through `?`; say more when you know more.
///
/// ```
/// use mainspring_sdk::Failure;
///
/// fn parse(text: &str) -> Result<u32, Failure> {
///     text.parse().map_err(|error| Failure::permanent("BAD_NUMBER", format!("{error}")))
/// }
/// assert!(!parse("x").unwrap_err().retryable);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A stable code of capitals, digits and `_`.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether trying again can help.
    pub retryable: bool,
    /// Your own wish for the next delay.
    pub retry_delay: Option<Duration>,
    /// Give the attempt back unused instead of failing it.
    pub(crate) is_release: bool,
}

/// The code of failures that do not have their own.
const CODE_DEFAULT: &str = "TASK_EXECUTION_FAILED";

impl Failure {
    /// A failure that may pass.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Failure {
            code: code.into(),
            message: message.into(),
            retryable: true,
            retry_delay: None,
            is_release: false,
        }
    }

    /// A failure that will not pass: the job goes to the dead letter queue.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Failure { retryable: false, ..Self::retryable(code, message) }
    }

    /// No failure at all: the job goes back to its queue and no try is used.
    pub fn release(reason: impl Into<String>) -> Self {
        Failure { is_release: true, ..Self::retryable(CODE_DEFAULT, reason) }
    }

    /// Asks for this delay before the next try.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.retry_delay = Some(delay);
        self
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Failure::retryable(CODE_DEFAULT, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody cancelled the job.
    Cancelled,
    /// The lease is no longer ours: the job may run elsewhere already.
    LeaseLost,
    /// The time of the attempt is over.
    TimedOut,
    /// The worker is shutting down and its grace is over.
    Draining,
}

/// A running attempt, as its handler sees it.
#[derive(Clone)]
pub struct Context {
    pub(crate) inner: Arc<Attempt>,
}

pub(crate) struct Attempt {
    pub(crate) job: PulledJob,
    /// When the lease was granted, in microseconds of the server's clock.
    pub(crate) granted_at: i64,
    pub(crate) client: Client,
    pub(crate) stop: CancellationToken,
    pub(crate) stop_reason: OnceLock<StopReason>,
    /// Percent as the bits of an `f64`; all ones is "nothing said".
    progress: AtomicU64,
}

impl Context {
    pub(crate) fn new(job: PulledJob, client: Client, lease: Duration) -> Self {
        let lease = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX);
        let attempt = Attempt {
            granted_at: job.lease_expires_at.0.saturating_sub(lease),
            job,
            client,
            stop: CancellationToken::new(),
            stop_reason: OnceLock::new(),
            progress: AtomicU64::new(u64::MAX),
        };
        Context { inner: Arc::new(attempt) }
    }

    /// The job as it was pulled.
    pub fn job(&self) -> &PulledJob {
        &self.inner.job
    }

    /// The payload as a type of yours. One that does not fit is a failure that retrying will not
    /// mend.
    ///
    /// # Errors
    /// If the payload does not fit.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(self.inner.job.payload.get())
            .map_err(|error| Failure::permanent("PAYLOAD_INVALID", error.to_string()))
    }

    /// The client of the worker, for submitting more jobs.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// Tells how far the work is, in percent; sent with the next heartbeat.
    pub fn progress(&self, percent: f64) {
        let bits = percent.clamp(0.0, 100.0).to_bits();
        self.inner.progress.store(bits, Ordering::Relaxed);
    }

    pub(crate) fn last_progress(&self) -> Option<f64> {
        let bits = self.inner.progress.load(Ordering::Relaxed);
        Some(bits).filter(|bits| *bits != u64::MAX).map(f64::from_bits).filter(|p| p.is_finite())
    }

    /// Ready when the handler should stop. One that does not is dropped after a while.
    pub async fn stopped(&self) {
        self.inner.stop.cancelled().await;
    }

    /// Why the handler should stop, once it should.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.inner.stop_reason.get().copied()
    }

    pub(crate) fn tell_to_stop(&self, reason: StopReason) {
        // The first reason stands.
        let _ = self.inner.stop_reason.set(reason);
        self.inner.stop.cancel();
    }

    /// Does something once per job, however often the job is tried: the first value that is
    /// recorded under `name` is what every later try gets, without running `work` again.
    ///
    /// If the worker dies between the work and its record, the next try runs the work again; pass
    /// [`PulledJob::execution_key`] or the job id to systems that can tell repeats apart.
    ///
    /// ```no_run
    /// # use mainspring_sdk::{Context, Failure};
    /// # async fn charge() -> Result<String, Failure> { Ok("receipt".into()) }
    /// async fn handler(ctx: Context) -> Result<String, Failure> {
    ///     let receipt = ctx.step("charge", || async { charge().await }).await?;
    ///     Ok(receipt)
    /// }
    /// ```
    ///
    /// # Errors
    /// What `work` answers, or a retryable failure if the ledger cannot be reached.
    pub async fn step<T, F, Fut>(&self, name: &str, work: F) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, Failure>>,
    {
        let PulledJob { job_id, lease_token, .. } = &self.inner.job;
        let client = &self.inner.client;
        if let Some(effect) = client.effect(job_id, name, lease_token).await.map_err(ledger)? {
            return read_effect(&effect.value);
        }
        let value = work().await?;
        let raw = serde_json::value::to_raw_value(&value)
            .map_err(|error| Failure::permanent("EFFECT_INVALID", error.to_string()))?;
        let effect = client.commit_effect(job_id, name, lease_token, raw).await.map_err(ledger)?;
        if effect.is_first { Ok(value) } else { read_effect(&effect.value) }
    }
}

fn read_effect<T: DeserializeOwned>(value: &Json) -> Result<T, Failure> {
    serde_json::from_str(value.get())
        .map_err(|error| Failure::permanent("EFFECT_INVALID", error.to_string()))
}

fn ledger(error: Error) -> Failure {
    if error.is_retryable() || error.code() == Some("LEASE_LOST") {
        return Failure::retryable("EFFECT_LEDGER_UNREACHABLE", error.to_string());
    }
    Failure::permanent("EFFECT_REFUSED", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_is_a_retryable_failure_with_its_causes() {
        let cause = "x".parse::<u32>().unwrap_err();
        let failure = Failure::from(cause);
        assert!(failure.retryable && failure.code == CODE_DEFAULT);
        assert_eq!(failure.message, "invalid digit found in string");
    }

    #[test]
    fn the_first_reason_to_stop_stands() {
        let client = Client::new("http://127.0.0.1:1", None).unwrap();
        let job = r#"{"job_id":"j","job_type":"t","payload":{"n":1},"attempt":1,"retry_count":0,
            "lease_token":"l","lease_expires_at":"2026-01-01T00:00:00Z",
            "deadline_at":"2026-01-01T00:00:00Z","execution_key":"j:0","trace_id":"t","labels":{}}"#;
        let ctx = Context::new(serde_json::from_str(job).unwrap(), client, Duration::ZERO);
        assert_eq!((ctx.stop_reason(), ctx.last_progress()), (None, None));
        ctx.tell_to_stop(StopReason::Cancelled);
        ctx.tell_to_stop(StopReason::Draining);
        ctx.progress(250.0);
        assert_eq!(ctx.stop_reason(), Some(StopReason::Cancelled));
        assert_eq!(ctx.last_progress(), Some(100.0));
        assert!(!ctx.payload::<u32>().unwrap_err().retryable);
    }
}

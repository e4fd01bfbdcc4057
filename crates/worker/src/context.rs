//! What a handler sees of its job.

use crate::ask::{ask, pause};
use crate::employer::{Beat, Employer, Job, Renewal, Sign};
use crate::error::Error;
use crate::failure::Failure;
use crate::limits::{ANSWER_WAIT_MAX, CHECKPOINT_BYTES_MAX, EFFECT_TRIES_MAX};
use mainspring_api::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a handler gives back: the result as JSON, or why not.
pub type Outcome = Result<Option<Json>, Failure>;
/// A handler as the worker keeps it.
pub type BoxHandler =
    Arc<dyn Fn(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

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
    inner: Arc<Attempt>,
}

struct Attempt {
    job: Job,
    employer: Arc<dyn Employer>,
    stop: CancellationToken,
    stop_reason: OnceLock<StopReason>,
    /// How the worker calls itself.
    worker_id: Arc<str>,
    /// Percent as the bits of an `f64`; all ones is "nothing said".
    progress: AtomicU64,
    /// What was said beside.
    message: Mutex<Option<String>>,
}

impl Context {
    pub(crate) fn new(job: Job, employer: Arc<dyn Employer>, worker_id: Arc<str>) -> Self {
        let attempt = Attempt {
            job,
            employer,
            stop: CancellationToken::new(),
            stop_reason: OnceLock::new(),
            worker_id,
            progress: AtomicU64::new(u64::MAX),
            message: Mutex::default(),
        };
        Context { inner: Arc::new(attempt) }
    }

    /// The job as it was handed out.
    pub fn job(&self) -> &Job {
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

    /// Tells how far the work is, in percent; sent with the next heartbeat.
    pub fn progress(&self, percent: f64) {
        let bits = percent.clamp(0.0, 100.0).to_bits();
        self.inner.progress.store(bits, Ordering::Relaxed);
    }

    /// The same with a word for people.
    pub fn progress_with(&self, percent: f64, message: impl Into<String>) {
        self.progress(percent);
        *self.inner.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.into());
    }

    pub(crate) fn last_message(&self) -> Option<String> {
        self.inner.message.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Leaves a value for the next try, in place of what was left before; at most 64 KiB of JSON.
    /// It is kept once this returns. The next try finds it with [`Context::left`].
    ///
    /// # Errors
    /// If it cannot be kept: the lease is lost, the job was cancelled, or the value is refused.
    pub async fn checkpoint<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let Attempt { job, employer, worker_id, .. } = &*self.inner;
        let invalid = |text: String| Failure::permanent("CHECKPOINT_INVALID", text);
        let raw =
            serde_json::value::to_raw_value(value).map_err(|error| invalid(error.to_string()))?;
        if raw.get().len() > CHECKPOINT_BYTES_MAX {
            return Err(invalid("it is over 64 KiB of JSON".to_owned()));
        }
        let sign = Sign {
            job_id: job.job_id.clone(),
            lease_token: job.lease_token.clone(),
            progress: self.last_progress(),
            message: self.last_message(),
            checkpoint: Some(raw),
        };
        // What was promised is never shortened.
        let lease = Duration::from_secs(1);
        let beat = Beat { worker_id: worker_id.clone(), lease, signs: vec![sign] };
        let renewed = patiently("checkpoint", || employer.heartbeat(&beat)).await?;
        match renewed.first() {
            Some(Renewal::Renewed) => Ok(()),
            Some(Renewal::Cancelled) => Err(Failure::permanent("JOB_CANCELLED", "cancelled")),
            Some(Renewal::Lost | Renewal::Unknown) | None => {
                Err(Failure::retryable("LEASE_LOST", "the checkpoint was not kept"))
            }
        }
    }

    /// What an earlier try left, as a type of yours.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn left<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let read = |value: &Json| serde_json::from_str(value.get());
        let left = self.inner.job.checkpoint.as_ref().map(read).transpose();
        left.map_err(|error| Failure::permanent("CHECKPOINT_INVALID", error.to_string()))
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
    /// [`Job::execution_key`] or the job id to systems that can tell repeats apart.
    ///
    /// ```no_run
    /// # use mainspring_worker::{Context, Failure};
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
        let Attempt { job, employer, .. } = &*self.inner;
        let known = patiently("effect", || employer.effect(job, name)).await?;
        if let Some(known) = known {
            return read_effect(&known);
        }
        let value = work().await?;
        let raw = serde_json::value::to_raw_value(&value)
            .map_err(|error| Failure::permanent("EFFECT_INVALID", error.to_string()))?;
        let recorded = patiently("record", || employer.record(job, name, raw.clone())).await?;
        if recorded.is_first { Ok(value) } else { read_effect(&recorded.value) }
    }
}

/// Asks the ledger, a few times if it must be. Both of its questions can be repeated.
async fn patiently<T, Fut>(name: &'static str, call: impl Fn() -> Fut) -> Result<T, Failure>
where
    Fut: Future<Output = Result<T, Error>>,
{
    let mut tries = 0;
    loop {
        let error = match ask(name, ANSWER_WAIT_MAX, async { call().await }).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        tries += 1;
        if !error.is_retryable() || tries >= EFFECT_TRIES_MAX {
            return Err(ledger(&error));
        }
        tokio::time::sleep(pause(tries, &error)).await;
    }
}

fn read_effect<T: DeserializeOwned>(value: &Json) -> Result<T, Failure> {
    serde_json::from_str(value.get())
        .map_err(|error| Failure::permanent("EFFECT_INVALID", error.to_string()))
}

/// Only what the ledger refuses for itself is the handler's own fault.
fn ledger(error: &Error) -> Failure {
    match error {
        Error::Refused { code, .. } if code.as_deref() != Some("LEASE_LOST") => {
            Failure::permanent("EFFECT_REFUSED", error.to_string())
        }
        Error::Refused { .. }
        | Error::NotNow { .. }
        | Error::Gone { .. }
        | Error::Late { .. }
        | Error::Garbled { .. }
        | Error::Panicked { .. } => {
            Failure::retryable("EFFECT_LEDGER_UNREACHABLE", error.to_string())
        }
    }
}

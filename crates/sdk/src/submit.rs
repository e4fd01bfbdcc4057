//! Building submissions without touching raw JSON.

use mainspring_api::job;
use serde::Serialize;
use std::time::Duration;

/// The wish for a job: [`mainspring_api::job::Submit`] with a few words to build it.
///
/// ```
/// use mainspring_sdk::Submit;
/// use std::time::Duration;
///
/// let wish = Submit::job("send_mail", &serde_json::json!({"to": "ada@example.org"}))?
///     .key("welcome-42")
///     .delay(Duration::from_secs(60))
///     .label("campaign", "welcome");
/// assert_eq!(wish.wish.delay_ms, Some(60_000));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Submit {
    /// What goes over the wire; set here what has no word below.
    pub wish: job::Submit,
}

impl Submit {
    /// A job of `job_type` with `payload`, everything else as the type says.
    ///
    /// # Errors
    /// If the payload cannot be written as JSON.
    pub fn job(
        job_type: impl Into<String>,
        payload: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        let payload = serde_json::value::to_raw_value(payload)?;
        Ok(Submit { wish: job::Submit::new(job_type, payload) })
    }

    /// The same key again returns the same job; it also lets the client repeat the call safely.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.wish.idempotency_key = Some(key.into());
        self
    }

    /// Not before this long from now.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.wish.delay_ms = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Higher is sooner.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.wish.priority = Some(priority);
        self
    }

    /// The queue to wait in.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.wish.queue = Some(queue.into());
        self
    }

    /// Extra tries.
    #[must_use]
    pub fn max_retries(mut self, retries: u16) -> Self {
        self.wish.max_retries = Some(retries);
        self
    }

    /// A free label.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.wish.labels.insert(name.into(), value.into());
        self
    }
}

impl From<job::Submit> for Submit {
    fn from(wish: job::Submit) -> Self {
        Submit { wish }
    }
}

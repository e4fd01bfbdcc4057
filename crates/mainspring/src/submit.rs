//! A job on its way in.

use crate::error::Error;
use crate::job::Job;
use crate::spring::Mainspring;
use crate::task::Task;
use mainspring_kernel::command::Submit;
use mainspring_kernel::idempotency::Keyed;
use mainspring_kernel::limits::KEY_WINDOW_SECS_DEFAULT;
use mainspring_kernel::{JobId, JobType, QueueName, Receipt, Rejection};
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

/// A job that is submitted when it is awaited.
#[must_use = "nothing is submitted until it is awaited"]
pub struct Submission<'a, T> {
    spring: &'a Mainspring,
    task: &'a T,
    key: Option<String>,
    delay: Option<Duration>,
    priority: Option<u8>,
    queue: Option<String>,
    max_retries: Option<u16>,
    timeout: Option<Duration>,
    labels: Vec<(Box<str>, Box<str>)>,
}

impl<'a, T: Task> Submission<'a, T> {
    pub(crate) fn new(spring: &'a Mainspring, task: &'a T) -> Self {
        Submission {
            spring,
            task,
            key: None,
            delay: None,
            priority: None,
            queue: None,
            max_retries: None,
            timeout: None,
            labels: Vec::new(),
        }
    }

    /// The same key again finds the same job, for a day after it has ended. With another payload it
    /// is refused.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Not before this long from now.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Higher is sooner.
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The queue to wait in.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Extra tries.
    pub fn max_retries(mut self, retries: u16) -> Self {
        self.max_retries = Some(retries);
        self
    }

    /// How long one try may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A free label.
    pub fn label(mut self, name: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }

    /// The wish in the kernel's words.
    pub(crate) fn wish(self) -> Result<Submit, Error> {
        let payload = serde_json::to_string(self.task)
            .map_err(|cause| Error::Json { what: "the payload", cause })?;
        let (tenant, user) = (self.spring.tenant(), self.spring.user());
        let job_type = JobType::new(T::TYPE)?;
        let keyed = |key: &String| {
            let window_secs = Some(KEY_WINDOW_SECS_DEFAULT);
            let (scope, job_type, payload) = (None, &job_type, payload.as_str());
            Keyed { tenant, user, key, scope, job_type, payload, window_secs }.idempotency()
        };
        let idempotency = self.key.as_ref().map(keyed).transpose()?.map(Box::new);
        let plain = Submit::plain(tenant.clone(), user.clone(), job_type);
        Ok(Submit {
            payload: payload.into(),
            delay_ms: self.delay.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            priority: self.priority,
            queue: self.queue.as_deref().map(QueueName::new).transpose()?,
            timeout_ms: self.timeout.map(|it| u32::try_from(it.as_millis()).unwrap_or(u32::MAX)),
            max_retries: self.max_retries,
            idempotency,
            labels: self.labels,
            ..plain
        })
    }

    async fn send(self) -> Result<Job<T>, Error> {
        let spring = self.spring;
        let submitted = spring.engine().submit(self.wish()?).await??;
        Ok(Job::new(spring.clone(), submitted.job.id, submitted.is_hit))
    }
}

impl<'a, T: Task> IntoFuture for Submission<'a, T> {
    type Output = Result<Job<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The job that a receipt tells of.
#[expect(clippy::wildcard_enum_match_arm, reason = "two receipts answer a submission")]
pub(crate) fn job_of(receipt: &Receipt) -> Result<JobId, Rejection> {
    match receipt {
        Receipt::Submitted { job } | Receipt::Existing { job, .. } => Ok(*job),
        _ => Err(Rejection::JobUnknown),
    }
}

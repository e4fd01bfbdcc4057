//! Who hands out the work, and the words in which a worker and its employer speak. Plain values: no
//! HTTP, no types of the kernel.
//!
//! A job that is put off is said to have failed, with [`Failure::snoozed_for`].

use crate::error::Error;
use crate::failure::Failure;
use futures_util::future::BoxFuture;
use mainspring_api::{Json, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What an employer answers, in time.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Hands out jobs and hears what became of them.
///
/// Every call may be given up by dropping it. Only [`Employer::pull`], and the pull that comes with
/// a report, must not be repeated by the employer itself: an answer that got lost may hold jobs.
pub trait Employer: Send + Sync + 'static {
    /// Hands out jobs, waiting for the first one as long as the wish says.
    fn pull(&self, wish: Wish) -> Answer<'_, Vec<Job>>;

    /// Renews leases; answers one renewal per sign, in order.
    fn heartbeat<'a>(&'a self, beat: &'a Beat) -> Answer<'a, Vec<Renewal>>;

    /// Takes reports, all of one [`Kind`], and hands out more jobs at once if there is a wish. A
    /// repeated report is answered like the first time.
    fn report<'a>(&'a self, reports: &'a [Report], wish: Option<Wish>) -> Answer<'a, Reported>;

    /// What is recorded under `name` for the job of this attempt, if anything is.
    fn effect<'a>(&'a self, job: &'a Job, name: &'a str) -> Answer<'a, Option<Json>>;

    /// Records a value under `name` unless there is one; answers the one that stands.
    fn record<'a>(&'a self, job: &'a Job, name: &'a str, value: Json) -> Answer<'a, Recorded>;

    /// The worker is about to stop: its waiting pulls are answered at once.
    fn leave<'a>(&'a self, worker_id: &'a str) -> Answer<'a, ()>;
}

/// What a worker would like to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// How the worker calls itself.
    pub worker_id: Arc<str>,
    /// Only these types.
    pub types: Arc<[String]>,
    /// Only these queues.
    pub queues: Option<Arc<[String]>>,
    /// At most this many.
    pub limit: usize,
    /// How long to wait for the first one.
    pub wait: Duration,
    /// For how long each is leased.
    pub lease: Duration,
}

/// A job as its worker gets it: one attempt.
#[derive(Debug, Clone)]
pub struct Job {
    /// The job.
    pub job_id: String,
    /// The kind of work.
    pub job_type: String,
    /// What to work on.
    pub payload: Json,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Retries scheduled so far.
    pub retry_count: u16,
    /// Proof that the holder may report on this attempt.
    pub lease_token: String,
    /// When the first lease ends unless renewed, by the employer's clock.
    pub lease_expires_at: Time,
    /// When the attempt is over whatever the worker does, by the employer's clock.
    pub deadline_at: Time,
    /// How long the attempt may take. Clocks may differ; this does not depend on them.
    pub time_allowed: Duration,
    /// Names this attempt in other systems.
    pub execution_key: String,
    /// The trace of the job.
    pub trace_id: String,
    /// The step of another system's trace that submitted it (W3C Trace Context): the parent of
    /// whatever spans the work makes.
    pub traceparent: Option<String>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// What an earlier try left with [`crate::Context::checkpoint`], the last of it.
    pub checkpoint: Option<Json>,
}

impl Job {
    /// Names this hand-over: the execution key, and the number that the lease token begins with.
    pub fn dispatch_id(&self) -> String {
        let fence = self.lease_token.split('.').next().unwrap_or_default();
        format!("{}:{fence}", self.execution_key)
    }
}

/// A worker's sign of life for some of its attempts.
#[derive(Debug, Clone)]
pub struct Beat {
    /// How the worker calls itself.
    pub worker_id: Arc<str>,
    /// For how long each lease is renewed.
    pub lease: Duration,
    /// One per attempt.
    pub signs: Vec<Sign>,
}

/// The sign of life of one attempt.
#[derive(Debug, Clone)]
pub struct Sign {
    /// The job.
    pub job_id: String,
    /// Its lease token.
    pub lease_token: String,
    /// How far the work is, 0 to 100.
    pub progress: Option<f64>,
    /// How far it is, for people.
    pub message: Option<String>,
    /// What to leave for the next try.
    pub checkpoint: Option<Json>,
}

/// What became of one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// It goes on.
    Renewed,
    /// It is no longer this worker's.
    Lost,
    /// Somebody cancelled the job.
    Cancelled,
    /// It was not renewed this time, and nothing else is known.
    Unknown,
}

/// The last word on one attempt.
#[derive(Debug, Clone)]
pub struct Report {
    /// The job.
    pub job_id: String,
    /// Its lease token.
    pub lease_token: String,
    /// What is said.
    pub said: Said,
}

/// What is said about an attempt.
#[derive(Debug, Clone)]
pub enum Said {
    /// It succeeded, perhaps with a result.
    Complete(Option<Json>),
    /// It failed.
    Fail(Failure),
    /// It is given back unused, for this reason.
    Release(String),
    /// Somebody else goes on with it under the same lease, which is to hold this long from now.
    HandOver(Duration),
}

/// The kinds of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Said::Complete`].
    Complete,
    /// [`Said::Fail`].
    Fail,
    /// [`Said::Release`].
    Release,
    /// [`Said::HandOver`].
    HandOver,
}

impl Report {
    /// Which kind of report it is.
    pub fn kind(&self) -> Kind {
        match self.said {
            Said::Complete(_) => Kind::Complete,
            Said::Fail(_) => Kind::Fail,
            Said::Release(_) => Kind::Release,
            Said::HandOver(_) => Kind::HandOver,
        }
    }
}

/// What became of reports.
#[derive(Debug, Clone, Default)]
pub struct Reported {
    /// One per report, in order.
    pub items: Vec<Result<(), Refusal>>,
    /// What the wish brought.
    pub jobs: Vec<Job>,
}

/// Why one report was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A stable code with a page in the documentation.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A recorded effect.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The value that stands: the first one.
    pub value: Json,
    /// Whether it was recorded by this call.
    pub is_first: bool,
}

//! Writes a run down as it happens.

use crate::history::{Answer, Call, History, Injected, Operation, Outcome, Streamed, Work};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Real time, for what happens in other processes.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    #[expect(clippy::disallowed_methods, reason = "other processes live in real time")]
    pub fn start() -> Self {
        Stopwatch(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The record of a run, shared by everybody in it.
#[derive(Debug)]
pub struct Recorder {
    start: Stopwatch,
    history: Mutex<History>,
    acknowledged: AtomicU64,
    granted: AtomicU64,
    unanswered: AtomicU64,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder {
            start: Stopwatch::start(),
            history: Mutex::default(),
            acknowledged: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
        }
    }
}

impl Recorder {
    /// Microseconds since the run began.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that has ended, or been given up.
    pub fn call(&self, invoked_at: u64, call: Call, outcome: Outcome) {
        let is_change = match &outcome {
            Outcome::Ok(Answer::Grants(grants)) => {
                self.granted.fetch_add(grants.len() as u64, Ordering::Relaxed);
                !grants.is_empty()
            }
            Outcome::Ok(Answer::Seen(_) | Answer::Listed(_))
            | Outcome::Fail(_)
            | Outcome::Info
            | Outcome::Gone => false,
            Outcome::Ok(_) => true,
        };
        self.acknowledged.fetch_add(u64::from(is_change), Ordering::Relaxed);
        let is_unanswered = matches!(outcome, Outcome::Info);
        self.unanswered.fetch_add(u64::from(is_unanswered), Ordering::Relaxed);
        let ended_at = (outcome != Outcome::Info).then(|| self.now());
        self.lock().operations.push(Operation { invoked_at, ended_at, call, outcome });
    }

    /// A line of a worker's ledger.
    pub fn work(&self, worker: &str, job: &str, token: &str, is_end: bool) {
        let (worker, job, token) = (worker.to_owned(), job.to_owned(), token.to_owned());
        let at = self.now();
        self.lock().ledger.push(Work { at, worker, job, token, is_end });
    }

    /// A move as a subscriber got it.
    pub fn streamed(&self, moved: Streamed) {
        self.lock().stream.push(moved);
    }

    /// Something that goes wrong on purpose.
    pub fn fault(&self, kind: &str) {
        let at = self.now();
        self.lock().faults.push(Injected { at, kind: kind.to_owned() });
    }

    /// Changes that were acknowledged so far: calls that only read, or got nothing, do not count.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Calls that reached a server and got no answer, or none but that it cannot, so far.
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// Jobs that were handed out so far.
    pub fn granted(&self) -> u64 {
        self.granted.load(Ordering::Relaxed)
    }

    /// The record so far, in the order in which the calls began.
    pub fn take(&self) -> History {
        let mut history = std::mem::take(&mut *self.lock());
        history.operations.sort_by_key(|operation| operation.invoked_at);
        history
    }
}

//! What survives a crash of the server: the recorder, the clients' memory, and the seed's streams
//! of chance. Every actor holds it; it is never held across a wait.

use super::time::SimTime;
use super::triggers::{FILES, SimFile};
use crate::history::{Answer, Call, Grant, History, Injected, Operation, Outcome, Work, lines};
use crate::rng::Rng;
use mainspring_kernel::fingerprint::{Digest, digest};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One simulated world.
pub(super) struct World {
    pub(super) time: Arc<SimTime>,
    inner: Mutex<Memory>,
}

/// What the world remembers.
pub(super) struct Memory {
    pub(super) history: History,
    pub(super) rng: Rng,
    /// Jobs clients know of.
    pub(super) jobs: Vec<String>,
    /// Dead-letter items people know of.
    pub(super) items: Vec<String>,
    /// Grants whose holders have not reported.
    pub(super) held: Vec<Grant>,
    /// Tokens that are over.
    pub(super) stale: Vec<Grant>,
    /// The stream's last position.
    pub(super) position: u64,
    /// The subscriber was told of a gap and has got nothing since.
    pub(super) is_reset: bool,
    /// Whether faults are over and everybody behaves.
    pub(super) is_quiet: bool,
    /// Whether the server lives.
    pub(super) is_up: bool,
    /// Whether commits may come to grief.
    pub(super) is_unlucky: bool,
    /// Whether the disk was told to fail in this life.
    pub(super) has_bad_disk: bool,
    /// Files that triggers go by.
    pub(super) files: [SimFile; FILES],
    /// Submissions so far.
    pub(super) submitted: u64,
    hash: Digest,
    trace: Option<Vec<String>>,
}

impl World {
    pub(super) fn new(seed: u64, is_verbose: bool) -> Self {
        World {
            time: Arc::new(SimTime::new()),
            inner: Mutex::new(Memory {
                history: History { is_simulated: true, ..History::default() },
                rng: Rng::new(seed, 11),
                jobs: Vec::new(),
                items: Vec::new(),
                held: Vec::new(),
                stale: Vec::new(),
                position: 0,
                is_reset: false,
                is_quiet: false,
                is_up: false,
                is_unlucky: false,
                has_bad_disk: false,
                files: [SimFile::default(); FILES],
                submitted: 0,
                hash: digest(&[&seed.to_le_bytes()]),
                trace: is_verbose.then(Vec::new),
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server lives, on a disk that is good so far.
    pub(super) fn start(&self) {
        let mut memory = self.lock();
        (memory.is_up, memory.has_bad_disk) = (true, false);
    }

    /// The server is gone.
    pub(super) fn stop(&self) {
        let mut memory = self.lock();
        (memory.is_up, memory.is_unlucky) = (false, false);
    }

    /// Notes that a call begins; the number names it when it ends.
    pub(super) fn invoke(&self, call: Call) -> usize {
        let at = self.time.mono();
        let mut memory = self.lock();
        let id = memory.history.operations.len();
        memory.note(&lines::invoke(id as u64, at, &call));
        let (ended_at, outcome) = (None, Outcome::Info);
        memory.history.operations.push(Operation { invoked_at: at, ended_at, call, outcome });
        id
    }

    /// Notes how call `id` ended.
    pub(super) fn end(&self, id: usize, outcome: &Outcome) {
        let at = self.time.mono();
        let mut memory = self.lock();
        memory.note(&lines::end(id as u64, at, outcome));
        if let Outcome::Ok(Answer::Submitted { job, .. } | Answer::Requeued { job }) = outcome {
            memory.jobs.push(job.clone());
        }
        let operation = &mut memory.history.operations[id];
        operation.ended_at = Some(at);
        operation.outcome = outcome.clone();
    }

    /// Notes a fault, a restart, or whatever else belongs into the trace.
    pub(super) fn fault(&self, kind: &str) {
        let fault = Injected { at: self.time.mono(), kind: kind.to_owned() };
        let mut memory = self.lock();
        memory.note(&lines::fault(&fault));
        memory.history.faults.push(fault);
    }

    /// Notes a line of a worker's ledger.
    pub(super) fn work(&self, worker: &str, grant: &Grant, is_end: bool) {
        let work = Work {
            at: self.time.mono(),
            worker: worker.to_owned(),
            job: grant.job.clone(),
            token: grant.token.clone(),
            is_end,
        };
        let mut memory = self.lock();
        memory.note(&lines::work(&work));
        memory.history.ledger.push(work);
    }

    /// A number below `end`.
    pub(super) fn below(&self, end: u64) -> u64 {
        self.lock().rng.below(end)
    }

    /// Yes in `percent` of the cases.
    pub(super) fn chance(&self, percent: u64) -> bool {
        self.lock().rng.chance(percent)
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.lock().is_quiet
    }

    /// The history, the trace and its hash.
    pub(super) fn finish(self) -> (History, Digest, Vec<String>) {
        let memory = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        (memory.history, memory.hash, memory.trace.unwrap_or_default())
    }
}

impl Memory {
    /// Whether the trace is kept.
    pub(super) fn is_verbose(&self) -> bool {
        self.trace.is_some()
    }

    /// Adds a line to the trace.
    pub(super) fn note(&mut self, line: &str) {
        self.hash = digest(&[&self.hash.0, line.as_bytes()]);
        if let Some(trace) = &mut self.trace {
            trace.push(line.to_owned());
        }
    }
}

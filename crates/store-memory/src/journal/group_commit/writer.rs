//! The side of group commit that owns the log: stage a batch, flush once, settle the callbacks.
//!
//! Runs on the journal thread, on that of a caller who syncs, or inside `flush` in inline mode. A full disk is waited out: the
//! frames stay staged and their callbacks silent until there is room. Must never hold the queue's
//! lock while it writes or calls back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Done, Entry, OnFatal, SharedQueue, State};
use crate::journal::{JournalError, Log, Lsn};

/// How often a full disk is looked at again while nothing is appended.
pub(super) const SPACE_RETRY: Duration = Duration::from_millis(100);

/// More than this is taken in several batches, each acknowledged by itself: a block of the log is
/// not larger either, and the staging buffer stays small after a stall.
const BATCH_BYTES_MAX: usize = 4 << 20;

pub(super) struct Writer {
    log: Log,
    pub(super) shared: Arc<SharedQueue>,
    waiting: VecDeque<Waiting>,
    on_fatal: Option<OnFatal>,
    failure: Option<Arc<JournalError>>,
}

struct Waiting {
    lsn: Lsn,
    bytes: usize,
    done: Done,
}

/// Callbacks whose outcome is known.
pub(super) struct Settled {
    outcomes: Vec<(Waiting, Result<Lsn, Arc<JournalError>>)>,
}

impl Settled {
    /// Calls back in log order, and only then tells those who wait for the queue.
    pub(super) fn run(self, shared: &SharedQueue) {
        let Some((last, _)) = self.outcomes.last() else { return };
        let lsn = last.lsn;
        let mut bytes = 0;
        for (waiting, outcome) in self.outcomes {
            bytes += waiting.bytes;
            (waiting.done)(outcome);
        }
        let mut queue = shared.lock();
        queue.bytes -= bytes;
        queue.settled_lsn = lsn;
        drop(queue);
        shared.settled.notify_all();
    }
}

impl Writer {
    pub(super) fn new(log: Log, shared: Arc<SharedQueue>, on_fatal: OnFatal) -> Self {
        let waiting = VecDeque::new();
        Self { log, shared, waiting, on_fatal: Some(on_fatal), failure: None }
    }

    /// A turn of the journal thread; says whether it was the last one.
    pub(super) fn turn(&mut self) -> bool {
        let (entries, is_closing) = self.take_batch();
        let result = self.commit(entries);
        if is_closing {
            self.fail_if_refused();
        }
        if let (true, Err(error)) = (is_closing, result) {
            // Nobody will flush again: what did not fit has failed.
            self.failure.get_or_insert(error);
        }
        self.settle().run(&self.shared);
        is_closing || self.failure.is_some()
    }

    /// A turn of somebody else, who leaves it to the thread to end.
    pub(super) fn turn_here(&mut self) {
        let (entries, _) = self.take_batch();
        if !entries.is_empty() {
            // A failure is in `failure`, and what there is no room for waits.
            let _ = self.commit(entries);
            self.settle().run(&self.shared);
        }
    }

    /// The frames of the next block, and whether the journal is to end behind them.
    fn take_batch(&self) -> (VecDeque<Entry>, bool) {
        let mut queue = self.shared.lock();
        let batch = if queue.bytes <= BATCH_BYTES_MAX {
            std::mem::take(&mut queue.entries)
        } else {
            let mut bytes = 0;
            let mut fits = |entry: &Entry| {
                bytes += entry.body.len();
                bytes <= BATCH_BYTES_MAX
            };
            let count = queue.entries.iter().take_while(|entry| fits(entry)).count();
            let count = count.max(1).min(queue.entries.len());
            queue.entries.drain(..count).collect()
        };
        let is_closing = queue.state != State::Running && queue.entries.is_empty();
        (batch, is_closing)
    }

    /// One batch: one block, one sync (more only when it crosses a segment or 4 MiB).
    pub(super) fn commit(&mut self, entries: VecDeque<Entry>) -> Result<(), Arc<JournalError>> {
        let mut result = Ok(());
        for Entry { lsn, body, done } in entries {
            if result.is_ok() {
                result = self.log.stage(&body).map(|staged| debug_assert_eq!(staged, lsn));
            }
            self.waiting.push_back(Waiting { lsn, bytes: body.len(), done });
        }
        let result = result.and_then(|()| self.log.flush()).map_err(Arc::new);
        self.shared.publish(&self.log);
        let is_behind = matches!(&result, Err(error) if matches!(**error, JournalError::NoSpace));
        self.shared.is_behind.store(is_behind, Ordering::Release);
        match result {
            Ok(_) => Ok(()),
            Err(error) => {
                if !matches!(*error, JournalError::NoSpace) {
                    self.fail(Arc::clone(&error));
                }
                Err(error)
            }
        }
    }

    /// Stops for good if a frame was refused that its owner relies on.
    pub(super) fn fail_if_refused(&mut self) {
        let refused = self.shared.lock().refused.take();
        if let Some(error) = refused {
            self.fail(error);
        }
    }

    /// Stops for good: nothing is accepted any more and everything undecided has failed.
    pub(super) fn fail(&mut self, error: Arc<JournalError>) {
        let mut queue = self.shared.lock();
        queue.state = State::Failed;
        for Entry { lsn, body, done } in std::mem::take(&mut queue.entries) {
            self.waiting.push_back(Waiting { lsn, bytes: body.len(), done });
        }
        drop(queue);
        self.failure.get_or_insert(Arc::clone(&error));
        if let Some(on_fatal) = self.on_fatal.take() {
            on_fatal(error);
        }
        self.shared.settled.notify_all();
    }

    /// Takes the callbacks that can be decided now.
    pub(super) fn settle(&mut self) -> Settled {
        let durable = self.log.durable_lsn();
        let mut outcomes = Vec::new();
        while let Some(waiting) = self.waiting.pop_front() {
            if waiting.lsn <= durable {
                let lsn = waiting.lsn;
                outcomes.push((waiting, Ok(lsn)));
            } else if let Some(failure) = &self.failure {
                outcomes.push((waiting, Err(Arc::clone(failure))));
            } else {
                self.waiting.push_front(waiting);
                break;
            }
        }
        Settled { outcomes }
    }
}

//! How far the journal has synced, and who waits for it.

use mainspring_store::{Error, Promise};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// The durable end of the journal.
pub(super) struct Settled {
    /// Frames handed to the journal.
    staged: AtomicU64,
    /// Frames that survive a crash.
    durable: AtomicU64,
    /// Rung when they have become more, or never will. Wakes in the order of arrival, which a
    /// `watch` does not, so that a simulated run can be repeated.
    moved: Notify,
    /// Position of the newest move that survives a crash.
    moves: AtomicU64,
    /// Commits that wrote nothing but saw frames that are not durable yet.
    waiting: Mutex<Vec<(u64, Promise)>>,
    is_broken: AtomicBool,
}

impl Settled {
    pub(super) fn new(frame: u64, newest_move: u64) -> Self {
        Settled {
            staged: AtomicU64::new(frame),
            durable: AtomicU64::new(frame),
            moved: Notify::new(),
            moves: AtomicU64::new(newest_move),
            waiting: Mutex::new(Vec::new()),
            is_broken: AtomicBool::new(false),
        }
    }

    /// The last frame handed to the journal; exact while the state's lock is held.
    pub(super) fn staged(&self) -> u64 {
        self.staged.load(Ordering::Acquire)
    }

    pub(super) fn stage(&self, frame: u64) {
        self.staged.store(frame, Ordering::Release);
    }

    /// Position of the newest durable move.
    pub(super) fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    /// Everything up to `frame` is durable, and with it moves up to `newest_move`.
    pub(super) fn advance(&self, frame: u64, newest_move: u64) {
        self.moves.fetch_max(newest_move, Ordering::AcqRel);
        self.durable.fetch_max(frame, Ordering::AcqRel);
        self.moved.notify_waiters();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_empty() {
            return;
        }
        let ready: Vec<_> = waiting.extract_if(.., |(wanted, _)| *wanted <= frame).collect();
        drop(waiting);
        for (_, promise) in ready {
            promise.keep(Ok(()));
        }
    }

    /// Nothing more becomes durable: everybody who waits is told.
    pub(super) fn give_up(&self) {
        self.is_broken.store(true, Ordering::Release);
        self.moved.notify_waiters();
        // Dropped promises fail their tickets.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps `promise` once `frame` is durable.
    pub(super) fn keep_at(&self, frame: u64, promise: Promise) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Checked under the lock: `advance` publishes before it takes the lock.
        if self.durable.load(Ordering::Acquire) >= frame {
            drop(waiting);
            promise.keep(Ok(()));
        } else if !self.is_broken() {
            waiting.push((frame, promise));
        }
    }

    /// Waits until `frame` is durable.
    pub(super) async fn reached(&self, frame: u64) -> Result<(), Error> {
        loop {
            // Enlisted before the look, so that no ring in between is missed.
            let mut rung = pin!(self.moved.notified());
            rung.as_mut().enable();
            if self.durable.load(Ordering::Acquire) >= frame {
                return Ok(());
            }
            if self.is_broken() {
                return Err(Error::Stopped);
            }
            rung.await;
        }
    }
}

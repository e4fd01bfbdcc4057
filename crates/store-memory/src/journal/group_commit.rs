//! Many callers, one log: whatever is queued when the thread wakes becomes one write and one sync,
//! or several, if it is more than 4 MiB or more than the segment has room for.
//!
//! Callers never wait for the disk, only for room in the queue; their callbacks run in log order on
//! the journal thread, so they must be short and must not call [`GroupCommit::flush`]. A caller that
//! has nothing else to do says so ([`Syncs::Caller`]) and syncs itself, which saves waking a thread
//! on another core and being woken by it. In inline mode there is no thread and the owner calls
//! `flush`, which keeps simulations deterministic. Whoever holds the writer takes frames from the
//! queue and calls back before letting go, so the order of the log is that of the queue.
//! Must never run a success callback before its frame is durable, nor any success after a failure.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

use super::{FRAME_BYTES_MAX, JournalError, Log, Lsn};
use crate::disk::Disk;
use mainspring_store::fatal::text_of;
use mainspring_store::{Histogram, Readout};

mod writer;

use writer::{SPACE_RETRY, Writer};

/// Told exactly once what became of a frame (unless a callback before it panics).
pub type Done = Box<dyn FnOnce(Result<Lsn, Arc<JournalError>>) + Send>;

/// Told once, before the callbacks, that the journal stopped for good.
pub type OnFatal = Box<dyn FnOnce(Arc<JournalError>) + Send>;

/// The shared front of a [`Log`].
pub struct GroupCommit {
    shared: Arc<SharedQueue>,
    writer: Arc<Seat>,
    runner: Runner,
}

/// The one writer, whoever uses it; empty when the thread has ended, and with it the log.
type Seat = Mutex<Option<Writer>>;

enum Runner {
    Thread(Mutex<Option<JoinHandle<()>>>),
    Inline,
}

/// Who syncs a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncs {
    /// The journal thread, which is woken if it sleeps.
    Thread,
    /// Whoever appends it, by calling [`GroupCommit::flush_here`] right after; or somebody who is
    /// at it earlier.
    Caller,
}

struct SharedQueue {
    disk: Arc<dyn Disk>,
    queue: Mutex<Queue>,
    work: Condvar,
    settled: Condvar,
    queue_bytes_max: usize,
    durable_lsn: AtomicU64,
    headroom: AtomicU64,
    current_segment: AtomicU64,
    is_low_on_space: AtomicBool,
    /// Whether frames wait for room on the disk: the thread looks again and again.
    is_behind: AtomicBool,
    sync_times: Arc<Histogram>,
}

struct Queue {
    entries: VecDeque<Entry>,
    /// Bytes of all frames not settled yet, including those being written.
    bytes: usize,
    next_lsn: Lsn,
    settled_lsn: Lsn,
    state: State,
    /// A frame that can never be written: what was queued before it still is, then all ends.
    refused: Option<Arc<JournalError>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Closing,
    Failed,
}

struct Entry {
    lsn: Lsn,
    body: Vec<u8>,
    done: Done,
}

impl GroupCommit {
    /// Starts the journal thread. More than `queue_bytes_max` of unsettled frames make `append`
    /// wait.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        log: Log,
        disk: Arc<dyn Disk>,
        queue_bytes_max: usize,
        on_fatal: OnFatal,
    ) -> Result<Self, JournalError> {
        let shared = SharedQueue::new(&log, disk, queue_bytes_max);
        let writer = Writer::new(log, Arc::clone(&shared), on_fatal);
        let writer = Arc::new(Mutex::new(Some(writer)));
        let life = (Arc::clone(&shared), Arc::clone(&writer));
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let (shared, seat) = life;
                loop {
                    shared.wait_for_work();
                    let mut seat = lock(&seat);
                    let turned = seat.as_mut().and_then(|writer| guarded(writer, Writer::turn));
                    if turned.is_none_or(|is_over| is_over) {
                        *seat = None;
                        return;
                    }
                }
            })
            .map_err(|source| JournalError::io("start a thread for", "the journal", source))?;
        Ok(Self { shared, writer, runner: Runner::Thread(Mutex::new(Some(thread))) })
    }

    /// No thread: frames wait until [`GroupCommit::flush`]. The queue is not bounded.
    pub fn inline(log: Log, disk: Arc<dyn Disk>, on_fatal: OnFatal) -> Self {
        let shared = SharedQueue::new(&log, disk, usize::MAX);
        let writer = Writer::new(log, Arc::clone(&shared), on_fatal);
        Self { shared, writer: Arc::new(Mutex::new(Some(writer))), runner: Runner::Inline }
    }

    /// Queues a frame. The order of calls is the order of the log. `None` means that the frame was
    /// refused and `done` has already been told why. A frame that is too large stops the journal
    /// for good: its owner has acted on it already, so nothing may follow it.
    pub fn append(&self, body: Vec<u8>, done: Done) -> Option<Lsn> {
        self.append_for(Syncs::Thread, body, done)
    }

    /// As [`GroupCommit::append`], to be synced by `syncs`.
    pub fn append_for(&self, syncs: Syncs, body: Vec<u8>, done: Done) -> Option<Lsn> {
        let bytes = body.len();
        if bytes > FRAME_BYTES_MAX {
            let error = Arc::new(JournalError::FrameTooLarge { bytes });
            self.refuse(Arc::clone(&error));
            done(Err(error));
            return None;
        }
        let mut queue = self.shared.lock();
        while queue.state == State::Running
            && queue.bytes > 0
            && queue.bytes.saturating_add(bytes) > self.shared.queue_bytes_max
        {
            // Whoever promised to sync what is there may be the one who waits here.
            self.shared.work.notify_one();
            queue = wait(&self.shared.settled, queue);
        }
        if queue.state != State::Running {
            let error = match queue.state {
                State::Failed => JournalError::Poisoned,
                State::Running | State::Closing => JournalError::ShutDown,
            };
            drop(queue);
            done(Err(Arc::new(error)));
            return None;
        }
        let lsn = queue.next_lsn;
        queue.next_lsn += 1;
        queue.bytes += bytes;
        queue.entries.push_back(Entry { lsn, body, done });
        let is_first = queue.entries.len() == 1;
        drop(queue);
        // The thread sleeps only on an empty queue, so one wake per batch is enough.
        if is_first && syncs == Syncs::Thread {
            self.shared.work.notify_one();
        }
        Some(lsn)
    }

    /// Syncs what is queued on the thread that calls, unless somebody is at it already, who will
    /// not rest before it is done. The callbacks run here.
    pub fn flush_here(&self) {
        let seat = match self.writer.try_lock() {
            Ok(seat) => Some(seat),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut seat) = seat
            && let Some(writer) = seat.as_mut()
            && !self.shared.is_behind.load(Ordering::Acquire)
        {
            guarded(writer, Writer::turn_here);
        }
        // What came meanwhile, did not fit, or failed is the thread's.
        let queue = self.shared.lock();
        let is_left = !queue.entries.is_empty() || queue.state != State::Running;
        if is_left || self.shared.is_behind.load(Ordering::Acquire) {
            drop(queue);
            self.shared.work.notify_one();
        }
    }

    fn refuse(&self, error: Arc<JournalError>) {
        let mut queue = self.shared.lock();
        queue.refused.get_or_insert(error);
        if queue.state == State::Running {
            queue.state = State::Failed;
        }
        drop(queue);
        self.shared.work.notify_one();
        self.shared.settled.notify_all();
    }

    /// Settles everything appended so far: inline by doing it, otherwise by waiting for it.
    ///
    /// # Errors
    /// The failure that stopped the journal, or (inline) `NoSpace`, after which the frames stay
    /// queued.
    pub fn flush(&self) -> Result<Lsn, Arc<JournalError>> {
        if let Runner::Inline = &self.runner {
            let mut seat = lock(&self.writer);
            let writer = seat.as_mut().expect("without a thread nobody takes it away");
            let entries = std::mem::take(&mut self.shared.lock().entries);
            let result = writer.commit(entries);
            writer.fail_if_refused();
            let settled = writer.settle();
            drop(seat);
            settled.run(&self.shared);
            return result.map(|()| self.durable_lsn());
        }
        let mut queue = self.shared.lock();
        let target = queue.next_lsn - 1;
        self.shared.work.notify_one();
        while queue.settled_lsn < target && queue.state != State::Failed {
            queue = wait(&self.shared.settled, queue);
        }
        let lsn = self.durable_lsn();
        if lsn >= target { Ok(lsn) } else { Err(Arc::new(JournalError::Poisoned)) }
    }

    /// Flushes, ends the thread and refuses later appends.
    ///
    /// # Errors
    /// When something appended earlier could not be made durable.
    pub fn shutdown(&self) -> Result<Lsn, Arc<JournalError>> {
        let inline = match &self.runner {
            Runner::Inline => self.flush().map(|_| ()),
            Runner::Thread(_) => Ok(()),
        };
        let mut queue = self.shared.lock();
        let target = queue.next_lsn - 1;
        if queue.state == State::Running {
            queue.state = State::Closing;
        }
        drop(queue);
        self.shared.work.notify_one();
        self.shared.settled.notify_all();
        if let Runner::Thread(thread) = &self.runner {
            let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(thread) = thread {
                // The thread catches panics itself and marks the journal as failed.
                let _ = thread.join();
            }
        }
        inline?;
        let lsn = self.durable_lsn();
        if lsn >= target { Ok(lsn) } else { Err(Arc::new(JournalError::Poisoned)) }
    }

    /// Deletes the segments before `before`, never the current one; returns their numbers.
    ///
    /// # Errors
    /// When a file cannot be removed; the journal goes on.
    pub fn trim(&self, before: u64) -> Result<Vec<u64>, JournalError> {
        super::trim(&self.shared.disk, before.min(self.current_segment()))
    }

    /// Last position that survives a crash.
    pub fn durable_lsn(&self) -> Lsn {
        self.shared.durable_lsn.load(Ordering::Acquire)
    }

    /// Position the next append will get.
    pub fn next_lsn(&self) -> Lsn {
        self.shared.lock().next_lsn
    }

    /// Bytes appended and not settled yet.
    pub fn queued_bytes(&self) -> usize {
        self.shared.lock().bytes
    }

    /// The segment being written, as of the last flush. Frames not durable yet are here or later,
    /// so a snapshot reads this first and the lsn it starts from second, never the other way round.
    pub fn current_segment(&self) -> u64 {
        self.shared.current_segment.load(Ordering::Acquire)
    }

    /// See [`Log::headroom`].
    pub fn headroom(&self) -> u64 {
        self.shared.headroom.load(Ordering::Acquire)
    }

    /// How long syncs took.
    pub fn sync_times(&self) -> Readout {
        self.shared.sync_times.readout()
    }

    /// See [`Log::is_low_on_space`].
    pub fn is_low_on_space(&self) -> bool {
        self.shared.is_low_on_space.load(Ordering::Acquire)
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        // The outcome was available through the callbacks.
        let _ = self.shutdown();
    }
}

impl std::fmt::Debug for GroupCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCommit").field("durable_lsn", &self.durable_lsn()).finish()
    }
}

impl SharedQueue {
    fn new(log: &Log, disk: Arc<dyn Disk>, queue_bytes_max: usize) -> Arc<Self> {
        let queue = Queue {
            entries: VecDeque::new(),
            bytes: 0,
            next_lsn: log.next_lsn(),
            settled_lsn: log.durable_lsn(),
            state: State::Running,
            refused: None,
        };
        let shared = Self {
            disk,
            queue: Mutex::new(queue),
            work: Condvar::new(),
            settled: Condvar::new(),
            queue_bytes_max,
            durable_lsn: AtomicU64::new(log.durable_lsn()),
            headroom: AtomicU64::new(0),
            current_segment: AtomicU64::new(log.current_segment()),
            is_low_on_space: AtomicBool::new(false),
            is_behind: AtomicBool::new(false),
            sync_times: Arc::clone(&log.sync_times),
        };
        shared.publish(log);
        Arc::new(shared)
    }

    fn publish(&self, log: &Log) {
        self.headroom.store(log.headroom(), Ordering::Release);
        self.current_segment.store(log.current_segment(), Ordering::Release);
        self.is_low_on_space.store(log.is_low_on_space(), Ordering::Release);
        self.durable_lsn.store(log.durable_lsn(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until there is something to do, or a full disk is to be looked at again.
    fn wait_for_work(&self) {
        let mut queue = self.lock();
        while queue.entries.is_empty() && queue.state == State::Running {
            let is_behind = self.is_behind.load(Ordering::Acquire);
            if !is_behind && !self.is_low_on_space.load(Ordering::Acquire) {
                queue = wait(&self.work, queue);
                continue;
            }
            let (woken, timeout) =
                self.work.wait_timeout(queue, SPACE_RETRY).unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            if timeout.timed_out() {
                return;
            }
        }
    }
}

fn lock(seat: &Seat) -> MutexGuard<'_, Option<Writer>> {
    seat.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `work` comes to. A callback that panics must not leave callers waiting: the journal stops
/// for good.
fn guarded<T>(writer: &mut Writer, work: impl FnOnce(&mut Writer) -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(|| work(writer))) {
        Ok(done) => Some(done),
        Err(panic) => {
            let words = text_of(&*panic).to_owned();
            writer.fail(Arc::new(JournalError::Died { thread: "its thread", words }));
            writer.settle().run(&writer.shared);
            None
        }
    }
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

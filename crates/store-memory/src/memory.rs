//! The store itself: one state behind a lock, one journal behind the state, one keeper that tidies
//! up. A commit changes the state at once and answers when the journal has synced; reads wait for
//! the sync of what they saw, so nobody ever learns of something that a crash could take back.
//! Read next: `memory/desk.rs` (a commit), `memory/open.rs` (recovery), `memory/keeper.rs`.

mod desk;
mod keeper;
mod list;
mod open;
mod settled;
mod store;
mod stream;

pub use open::OpenError;

use crate::archive::Archive;
use crate::disk::{DirLock, Disk};
use crate::error::FileError;
use crate::journal::{GroupCommit, JournalError};
use crate::limits::MOVES_WRITTEN_FROM;
use crate::state::State;
use keeper::Keeper;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meters;
use mainspring_kernel::{JobId, Timestamp};
use mainspring_store::record::{BadRecord, Names, Record, decode_job, job_owner};
use mainspring_store::{Error, Fatal, JobWithHistory, Recovery, Scope};
use settled::Settled;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use stream::Pieces;

/// How a store keeps its files.
#[derive(Clone)]
pub struct MemoryConfig {
    /// Size of a journal segment.
    pub segment_bytes: u64,
    /// A snapshot is taken when the journal has grown by this much, or by twice the last
    /// snapshot, whichever is more.
    pub snapshot_bytes_min: u64,
    /// Finished jobs are moved to the archive when they take this much RAM.
    pub finished_bytes_max: usize,
    /// How long finished jobs stay readable.
    pub keep_finished: Duration,
    /// How long dead-letter items stay readable.
    pub keep_items: Duration,
    /// How long streams can be read back.
    pub keep_stream: Duration,
    /// Whether threads sync the journal and tidy up, or the owner does by calling
    /// [`MemoryStore::flush`] and [`MemoryStore::tidy`]: deterministic, for simulation.
    pub has_threads: bool,
    /// Random for every start; see [`crate::journal::Config`].
    pub segment_id_seed: u64,
    /// Struck when a write fails or one of the store's threads dies. Once it is struck, by
    /// whomever, the store takes nothing more.
    pub fatal: Fatal,
}

impl MemoryConfig {
    /// What `mainspring serve` goes by where nobody says otherwise.
    pub fn standard(segment_id_seed: u64) -> Self {
        MemoryConfig {
            segment_bytes: crate::journal::Config::SEGMENT_BYTES,
            snapshot_bytes_min: 256 << 20,
            finished_bytes_max: 16 << 20,
            keep_finished: Duration::from_secs(7 * 24 * 3600),
            keep_items: Duration::from_secs(90 * 24 * 3600),
            keep_stream: Duration::from_secs(24 * 3600),
            has_threads: true,
            segment_id_seed,
            fatal: Fatal::default(),
        }
    }
}

/// The memory store.
pub struct MemoryStore {
    memory: Arc<Memory>,
    keeper: Keeper,
}

/// What the store, the journal's callbacks and the keeper share.
struct Memory {
    state: RwLock<State>,
    archive: RwLock<Archive>,
    /// The stream behind what is in RAM.
    pieces: RwLock<Pieces>,
    /// `None` for a store that forgets everything when it stops.
    journal: Option<GroupCommit>,
    disk: Option<Arc<dyn Disk>>,
    settled: Arc<Settled>,
    config: MemoryConfig,
    recovery: Recovery,
    opening_ms: AtomicU64,
    /// Journal bytes since the last snapshot.
    journal_bytes: AtomicU64,
    /// Room the next frame starts with.
    frame_bytes: AtomicUsize,
    /// Size of the last snapshot.
    snapshot_bytes: AtomicU64,
    /// Postings and blocks that lists have looked at.
    looked_at: AtomicU64,
    /// The number of the newest archive run. No number is ever used twice: the file of a run that
    /// was dropped may still be there, and is removed later.
    run_number: AtomicU64,
    is_closed: AtomicBool,
    /// Held until the store is closed.
    lock: Mutex<Option<DirLock>>,
}

impl Memory {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A cheap copy of the archive, to read without holding anybody up.
    fn archive(&self) -> Archive {
        self.archive.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn last_snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes.load(Ordering::Relaxed)
    }

    /// A finished job that has left RAM.
    fn archived(&self, id: JobId) -> Result<Option<JobWithHistory>, Error> {
        let record = self.archive().get(&id.0.to_be_bytes()).map_err(|error| unread(&error))?;
        record.map(|record| thawed(&record.value)).transpose()
    }

    /// The same if it is in scope: who owns it is read before the rest.
    fn archived_within(&self, id: JobId, scope: &Scope) -> Result<Option<JobWithHistory>, Error> {
        let (archive, key) = (self.archive(), id.0.to_be_bytes());
        // Asked for by the asker's own term, a stranger's job is as little there as an unknown one.
        if let Some(term) = scope.term()
            && !archive.may_have(&key, term.number()).map_err(|error| unread(&error))?
        {
            return Ok(None);
        }
        let record = archive.get(&key).map_err(|error| unread(&error))?;
        let Some(record) = record else { return Ok(None) };
        let (tenant, user) =
            job_owner(&record.value, &mut Names::default()).map_err(|bad| failed(&bad))?;
        scope.covers(&tenant, &user).then(|| thawed(&record.value)).transpose()
    }
}

/// A job from the archive's bytes.
fn thawed(bytes: &[u8]) -> Result<JobWithHistory, Error> {
    let mut names = Names::default();
    decode_job(bytes, &mut names).map_err(|bad: BadRecord| failed(&bad))
}

/// The same for a file of finished jobs: damage concerns what is in it and nothing else.
fn unread(error: &FileError) -> Error {
    if error.is_damage() { Error::Unreadable(chain(error).into()) } else { failed(error) }
}

/// An error with its causes, as the store reports it.
fn failed(error: &dyn std::error::Error) -> Error {
    Error::Failed(chain(error).into())
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

fn journal_failed(error: &JournalError) -> Error {
    match error {
        JournalError::Poisoned | JournalError::ShutDown => Error::Stopped,
        JournalError::File(_)
        | JournalError::NoSpace
        | JournalError::FrameTooLarge { .. }
        | JournalError::Died { .. }
        | JournalError::Replay { .. } => failed(error),
    }
}

impl MemoryStore {
    /// Settles everything committed so far, for stores without threads.
    ///
    /// # Errors
    /// If the journal failed.
    pub fn flush(&self) -> Result<(), Error> {
        match &self.memory.journal {
            Some(journal) => journal.flush().map(|_| ()).map_err(|error| journal_failed(&error)),
            None => Ok(()),
        }
    }

    /// Does the keeper's work now, for stores without threads.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn tidy(&self, now: Timestamp) -> Result<(), Error> {
        keeper::turn(&self.memory, now)
    }

    /// Takes a snapshot now, whatever the journal's size.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn take_snapshot(&self, now: Timestamp) -> Result<(), Error> {
        keeper::snapshot(&self.memory, now)
    }

    /// How many postings and blocks lists have looked at since the store was opened: what a list
    /// costs, whatever the machine.
    pub fn looked_at(&self) -> u64 {
        self.memory.looked_at.load(Ordering::Relaxed)
    }

    /// Notes how long opening took, for [`mainspring_store::Health`].
    pub fn note_opening(&self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.memory.opening_ms.store(millis, Ordering::Relaxed);
    }

    /// The same, with `between` called wherever the lock is let go, so that a test can commit while
    /// the snapshot is being taken. The walk then goes job by job.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn take_snapshot_with(
        &self,
        now: Timestamp,
        between: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        keeper::snapshot_by(&self.memory, now, 1, between)
    }

    /// Puts in what another store had. Only before anything else happened here, and durable only
    /// after [`MemoryStore::take_snapshot`].
    ///
    /// # Errors
    /// If finished jobs cannot be written to the archive.
    pub(crate) fn restore(&self, records: Vec<Record>) -> Result<(), Error> {
        let (is_full, newest_move, waiting) = {
            let mut state = self.memory.write();
            records.into_iter().for_each(|record| state.restore(record));
            let is_full = state.finished.bytes() >= self.memory.config.finished_bytes_max;
            (is_full, state.moves.newest(), state.moves.unwritten())
        };
        let Some(disk) = &self.memory.disk else { return Ok(()) };
        if waiting >= MOVES_WRITTEN_FROM {
            stream::write_until(&self.memory, disk, newest_move)?;
        }
        if is_full { keeper::archive_finished(&self.memory, disk) } else { Ok(()) }
    }

    /// Buckets and circuits.
    pub(crate) fn meters(&self) -> Meters {
        self.memory.read().index.meters.clone()
    }

    /// Idempotency keys and totals, which no read of a store tells.
    pub(crate) fn inner(&self) -> (Vec<(Digest, KeyHolder)>, Vec<u64>) {
        let state = self.memory.read();
        let mut counters = state.totals.to_array().to_vec();
        counters.push(state.moves.newest());
        (state.keys.all(), counters)
    }

    fn is_broken(&self) -> bool {
        self.memory.settled.is_broken()
            || self.memory.is_closed.load(Ordering::Acquire)
            || self.memory.config.fatal.reason().is_some()
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.keeper.stop();
    }
}

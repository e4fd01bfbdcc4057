//! Opening a data directory: lock, manifest, snapshot, journal. Either everything that was ever
//! acknowledged is there, or the store refuses to open and names the file and the place.

use super::keeper::Keeper;
use super::settled::Settled;
use super::stream::Pieces;
use super::{Memory, MemoryConfig, MemoryStore};
use crate::archive::Archive;
use crate::disk::{Disk, is_out_of_space};
use crate::error::FileError;
use crate::journal::{self, GroupCommit, JournalError, Log, Preparation, RecoverySummary, Start};
use crate::limits::QUEUE_BYTES_MAX;
use crate::manifest::Manifest;
use crate::snapshot::SnapshotReader;
use crate::state::{Loader, State};
use mainspring_kernel::Timestamp;
use mainspring_store::Recovery;
use mainspring_store::record::{Names, Record, events_of, records_of};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, RwLock};

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses it.
    #[error("another process uses this data directory")]
    Locked,
    /// The directory could not be used at all.
    #[error("cannot use the data directory")]
    Directory(#[source] io::Error),
    /// Nothing can be written in it: the first commit would be the last.
    #[error("cannot write in the data directory")]
    Unwritable(#[source] io::Error),
    /// The journal could not be read, or is damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Another file could not be read, or is damaged.
    #[error(transparent)]
    File(#[from] FileError),
    /// The files are whole but do not fit together.
    #[error("the snapshot and the journal do not fit together, {0}")]
    Mismatch(String),
}

/// Made, written, synced and removed at every opening.
const PROBE: &str = "probe.tmp";

impl MemoryStore {
    /// A store without files: everything is gone when it stops.
    pub fn ephemeral(config: MemoryConfig) -> Self {
        let mut parts = Parts::default();
        parts.state.moves.written_to(u64::MAX);
        Self::assemble(config, None, None, None, parts, Recovery::default())
    }

    /// Opens or makes the store on `disk` and brings it to its last acknowledged state.
    ///
    /// # Errors
    /// If the directory is in use, unreadable or damaged.
    pub fn open(
        disk: Arc<dyn Disk>,
        config: MemoryConfig,
        now: Timestamp,
    ) -> Result<Self, OpenError> {
        let lock = disk.try_lock().map_err(OpenError::Directory)?.ok_or(OpenError::Locked)?;
        probe(disk.as_ref())?;
        let manifest = Manifest::load(disk.as_ref())?;
        let start = match &manifest {
            Some(manifest) => Start::Segment(manifest.first_segment),
            None => Start::MayBeNew,
        };
        let runs = manifest.as_ref().map(|manifest| manifest.runs.clone()).unwrap_or_default();
        let archive = Archive::open(disk.as_ref(), &runs)?;
        let mut names = Names::default();
        let mut loader = Loader::default();
        let mut pieces = Pieces::open(disk.as_ref())?;
        loader.moves_written_to(pieces.last());
        let span = match manifest.as_ref().and_then(|manifest| manifest.snapshot.as_ref()) {
            Some(name) => load_snapshot(disk.as_ref(), name, &mut loader, &mut names)?,
            None => Span::default(),
        };
        let log_config = journal::Config {
            segment_bytes: config.segment_bytes,
            segment_id_seed: config.segment_id_seed,
            preparation: match config.has_threads {
                true => Preparation::HelperThread,
                false => Preparation::Inline,
            },
        };
        let (mut frames, mut journal_bytes) = (0, 0);
        let mut replay = |lsn: u64, body: &[u8]| {
            if lsn < span.start {
                return Ok(());
            }
            frames += 1;
            journal_bytes += body.len() as u64;
            for event in events_of(body, &mut names) {
                loader.replay(event.map_err(|bad| bad.to_string())?, lsn)?;
            }
            Ok(())
        };
        let (log, found) = Log::open(disk.clone(), log_config, start, &mut replay)?;
        if found.last_lsn < span.end {
            let text = format!("the journal ends at {} before {}", found.last_lsn, span.end);
            return Err(OpenError::Mismatch(text));
        }
        let state = loader.finish(now).map_err(OpenError::Mismatch)?;
        pieces.forget_after(disk.as_ref(), state.moves.newest())?;
        let run_number = run_number(disk.as_ref())?;
        remove_strays(disk.as_ref(), manifest.as_ref())?;
        let recovery = Recovery { frames, journal_bytes, ..summary(&state, found) };
        let parts = Parts {
            state,
            archive,
            pieces,
            at: found.last_lsn,
            journal_bytes,
            snapshot_bytes: span.bytes,
            run_number,
        };
        let store = Self::assemble(config, Some(disk), Some(log), Some(lock), parts, recovery);
        Ok(store)
    }

    fn assemble(
        config: MemoryConfig,
        disk: Option<Arc<dyn Disk>>,
        log: Option<Log>,
        lock: Option<crate::disk::DirLock>,
        parts: Parts,
        recovery: Recovery,
    ) -> Self {
        let settled = Arc::new(Settled::new(parts.at, parts.state.moves.newest()));
        let journal = disk.clone().zip(log).map(|(disk, log)| {
            let (settled, fatal) = (settled.clone(), config.fatal.clone());
            let fatal: journal::OnFatal = Box::new(move |error| {
                settled.give_up();
                fatal.strike(format!("the journal failed ({})", super::failed(&*error)));
            });
            if config.has_threads {
                GroupCommit::start(log, disk, QUEUE_BYTES_MAX, fatal)
                    .expect("the operating system has room for a thread")
            } else {
                GroupCommit::inline(log, disk, fatal)
            }
        });
        let has_keeper = config.has_threads && journal.is_some();
        let memory = Arc::new(Memory {
            state: RwLock::new(parts.state),
            archive: RwLock::new(parts.archive),
            pieces: RwLock::new(parts.pieces),
            journal,
            disk,
            settled,
            config,
            recovery,
            opening_ms: AtomicU64::new(0),
            journal_bytes: AtomicU64::new(parts.journal_bytes),
            snapshot_bytes: AtomicU64::new(parts.snapshot_bytes),
            run_number: AtomicU64::new(parts.run_number),
            frame_bytes: AtomicUsize::new(0),
            looked_at: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            lock: Mutex::new(lock),
        });
        let keeper = Keeper::new(has_keeper.then(|| memory.clone()));
        MemoryStore { memory, keeper }
    }
}

/// What was read from the files.
#[derive(Default)]
struct Parts {
    state: State,
    archive: Archive,
    pieces: Pieces,
    at: u64,
    /// Journal behind the snapshot: counted on, or a server that restarts often would never take
    /// one.
    journal_bytes: u64,
    snapshot_bytes: u64,
    run_number: u64,
}

/// The stretch of the journal over which a snapshot was taken.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u64,
    end: u64,
    /// Size of what it holds.
    bytes: u64,
}

fn load_snapshot(
    disk: &dyn Disk,
    name: &str,
    loader: &mut Loader,
    names: &mut Names,
) -> Result<Span, OpenError> {
    let mut reader = SnapshotReader::open(disk, name)?;
    let start = reader.start_lsn();
    let mut counters = None;
    let mut bytes = 0;
    while let Some(chunk) = reader.next_chunk()? {
        bytes += chunk.len() as u64;
        for record in records_of(chunk, names) {
            let record = record.map_err(|bad| OpenError::Mismatch(format!("{name}: {bad}")))?;
            match record {
                Record::Job(found) => loader.job(found.job, found.history),
                Record::Item(item) => loader.item(*item),
                Record::Entity(entity) => loader.entity(*entity),
                Record::Type(spec) => loader.job_type(*spec),
                Record::Queue(spec) => loader.queue(spec),
                Record::Token(token) => loader.token(*token),
                Record::Key { hash, holder } => loader.key(hash, holder),
                Record::Counters(found) => counters = Some(found),
                Record::Meter { key, meter } => loader.meter(key, meter),
                // They are in files of their own.
                Record::Moves(_) => {}
            }
        }
    }
    let end = reader.end_lsn().ok_or_else(|| OpenError::Mismatch(format!("{name} has no end")))?;
    let counters = counters.filter(|counters| counters.len() >= 8);
    let counters = counters.ok_or_else(|| OpenError::Mismatch(format!("{name} has no totals")))?;
    let mut totals = [0; 7];
    totals.copy_from_slice(&counters[..7]);
    loader.totals(totals, counters[7], end);
    Ok(Span { start, end, bytes })
}

/// Whether the directory takes writes at all. A full disk is another matter: it heals, and what is
/// there already can be worked on meanwhile.
fn probe(disk: &dyn Disk) -> Result<(), OpenError> {
    let written = disk.create(PROBE).and_then(|file| {
        file.write_at(0, b"can this be written?")?;
        file.sync_data()
    });
    let removed = disk.remove(PROBE);
    match written.and(removed) {
        Err(error) if !is_out_of_space(&error) => Err(OpenError::Unwritable(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The greatest number of a run that was ever begun here.
fn run_number(disk: &dyn Disk) -> Result<u64, OpenError> {
    let names = disk.list().map_err(OpenError::Directory)?;
    let number =
        |name: &String| u64::from_str_radix(name.strip_prefix("run-")?.get(..16)?, 16).ok();
    Ok(names.iter().filter_map(number).max().unwrap_or(0))
}

/// Removes what a crash left behind: files that no manifest names.
fn remove_strays(disk: &dyn Disk, manifest: Option<&Manifest>) -> Result<(), OpenError> {
    let is_named = |name: &String| {
        manifest.is_some_and(|manifest| {
            manifest.snapshot.as_ref() == Some(name) || manifest.runs.contains(name)
        })
    };
    for name in disk.list().map_err(OpenError::Directory)? {
        let is_ours = name.starts_with("snapshot-") || name.starts_with("run-");
        let is_known = is_ours || name.starts_with("MANIFEST") || name.starts_with("stream-");
        let is_temporary = name == PROBE || (name.ends_with(".tmp") && is_known);
        if is_temporary || (is_ours && !is_named(&name)) {
            disk.remove(&name).map_err(OpenError::Directory)?;
        }
    }
    Ok(())
}

fn summary(state: &State, found: RecoverySummary) -> Recovery {
    let (jobs, running) = Loader::tally(state);
    Recovery {
        jobs,
        running,
        entities: state.entities.len() as u64,
        torn_bytes: found.torn_bytes_cut,
        ..Recovery::default()
    }
}

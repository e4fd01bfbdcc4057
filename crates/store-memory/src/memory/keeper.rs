//! Tidying up beside the writer: finished jobs into archive files, snapshots so that the journal
//! can be cut, merges, and retention. Nothing here is on the path of a commit; the state is locked
//! only for moments, however much there is to write.

mod terms;

use super::{Memory, failed, journal_failed, stream, thawed};
use crate::archive::{Pair, Record, Run, write_run_with_terms};
use crate::disk::Disk;
use crate::limits::CHUNK_BYTES;
use crate::manifest::Manifest;
use crate::snapshot::SnapshotWriter;
use crate::state::{Batch, State};
use mainspring_kernel::{DlqId, EntityId, Job, Timestamp};
use mainspring_store::Error;
use mainspring_store::record::{
    encode_counters, encode_entity, encode_item, encode_job, encode_key, encode_meter,
    encode_queue, encode_token, encode_type,
};
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use terms::{TermNumbers, term_numbers};

/// Entries encoded under one hold of the lock: about a tenth of a millisecond.
const STRIDE: usize = 256;
/// Runs of one size class before they are merged.
const RUNS_MAX: usize = 8;
/// Idempotency keys forgotten under one hold of the lock.
const KEYS_MAX: usize = 10_000;

/// The thread, if there is one.
pub(super) struct Keeper {
    inbox: Arc<Inbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Inbox {
    wish: Mutex<Wish>,
    rung: Condvar,
}

#[derive(Default)]
struct Wish {
    now: Option<Timestamp>,
    is_over: bool,
}

impl Keeper {
    pub(super) fn new(memory: Option<Arc<Memory>>) -> Self {
        let inbox = Arc::new(Inbox::default());
        let thread = memory.map(|memory| {
            let inbox = inbox.clone();
            std::thread::Builder::new()
                .name("keeper".to_owned())
                .spawn(move || memory.config.fatal.guard("the keeper", || run(&memory, &inbox)))
                .expect("the operating system has room for a thread")
        });
        Keeper { inbox, thread: Mutex::new(thread) }
    }

    /// Asks for a turn; one that is still under way is not interrupted.
    pub(super) fn nudge(&self, now: Timestamp) {
        self.inbox.wish.lock().unwrap_or_else(PoisonError::into_inner).now = Some(now);
        self.inbox.rung.notify_one();
    }

    /// Ends the thread after its present turn.
    pub(super) fn stop(&self) {
        self.inbox.wish.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.inbox.rung.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A keeper that panicked has said so, and left the files as they were.
            let _ = thread.join();
        }
    }
}

fn run(memory: &Arc<Memory>, inbox: &Inbox) {
    loop {
        let now = {
            let mut wish = inbox.wish.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                if wish.is_over {
                    return;
                }
                if let Some(now) = wish.now.take() {
                    break now;
                }
                wish = inbox.rung.wait(wish).unwrap_or_else(PoisonError::into_inner);
            }
        };
        if let Err(error) = turn(memory, now) {
            tracing::warn!(%error, "tidying up failed; it is tried again");
        }
    }
}

/// Does whatever is due.
pub(super) fn turn(memory: &Arc<Memory>, now: Timestamp) -> Result<(), Error> {
    memory.write().keys.forget_free(now, KEYS_MAX);
    let Some(disk) = &memory.disk else { return Ok(()) };
    stream::keep(memory, disk, now)?;
    if memory.read().finished.bytes() >= memory.config.finished_bytes_max {
        archive_finished(memory, disk)?;
    }
    let last = memory.last_snapshot_bytes();
    let threshold = memory.config.snapshot_bytes_min.max(2 * last);
    if memory.journal_bytes.load(Ordering::Relaxed) >= threshold {
        snapshot(memory, now)?;
    }
    merge_runs(memory, disk, now)?;
    Ok(())
}

/// Moves finished jobs from RAM to the archive.
pub(super) fn archive_finished(memory: &Arc<Memory>, disk: &Arc<dyn Disk>) -> Result<(), Error> {
    let batches = memory.write().finished.seal();
    for batch in batches {
        let run = write_batch(disk, &batch, &next_run_name(memory))?;
        // No run may know of an ending that a crash could still undo: the job would be archived
        // and live, without its key or its dead-letter item.
        settle(memory)?;
        let Some(run) = run else { continue };
        let mut archive = memory.archive.write().unwrap_or_else(PoisonError::into_inner);
        archive.push(run);
        drop(archive);
        // Listed in the archive before it leaves RAM: a reader always finds it in one of them.
        let jobs: Vec<&Job> = batch.values().map(|ended| &ended.job).collect();
        for some in jobs.chunks(STRIDE) {
            memory.write().unlist(some.iter().copied());
        }
        memory.write().finished.archived(&batch);
    }
    write_manifest(memory, disk, None)
}

/// Waits until everything committed so far is durable.
fn settle(memory: &Memory) -> Result<(), Error> {
    let Some(journal) = &memory.journal else { return Ok(()) };
    journal.flush().map(drop).map_err(|error| journal_failed(&error))
}

fn write_batch(disk: &Arc<dyn Disk>, batch: &Batch, name: &str) -> Result<Option<Run>, Error> {
    let records = batch.iter().map(|(id, ended)| {
        let mut value = Vec::with_capacity(512);
        encode_job(&ended.job, &ended.history, &mut value);
        let stamp = ended.job.finished_at().unwrap_or_default().0;
        Ok(Record { key: id.0.to_be_bytes(), stamp, value })
    });
    let pairs = || {
        let mut pairs: Vec<Pair> = Vec::with_capacity(8 * batch.len());
        let mut numbers = TermNumbers::default();
        for (id, ended) in batch.iter() {
            let terms = term_numbers(&ended.job, &mut numbers);
            pairs.extend(terms.into_iter().map(|term| (term, id.0)));
        }
        pairs.sort_unstable();
        pairs.into_iter().map(Ok)
    };
    write_run_with_terms(disk.as_ref(), name, records, pairs).map_err(|error| failed(&error))
}

/// The same of a record; one that cannot be read is found by its id only.
fn record_terms(record: &Record) -> Vec<u64> {
    thawed(&record.value)
        .map_or_else(|_| Vec::new(), |found| term_numbers(&found.job, &mut TermNumbers::default()))
}

fn next_run_name(memory: &Memory) -> String {
    let last = memory.run_number.fetch_add(1, Ordering::Relaxed);
    format!("run-{:016x}.arc", last + 1)
}

/// Merges small runs and drops what retention no longer keeps.
fn merge_runs(memory: &Arc<Memory>, disk: &Arc<dyn Disk>, now: Timestamp) -> Result<(), Error> {
    let keep_from = (now - memory.config.keep_finished).0;
    let mut archive = memory.archive.write().unwrap_or_else(PoisonError::into_inner);
    let gone = archive.drop_older_than(keep_from);
    let plan = archive.plan_merge(RUNS_MAX);
    drop(archive);
    // Before the merge, which may fail: what is too old goes whatever becomes of the rest.
    forget_runs(memory, disk, &gone)?;
    let Some(plan) = plan else { return Ok(()) };
    let name = next_run_name(memory);
    let merged = plan.merge(disk.as_ref(), &name, keep_from, &record_terms);
    let merged = merged.map_err(|error| failed(&error))?;
    let mut archive = memory.archive.write().unwrap_or_else(PoisonError::into_inner);
    let gone = archive.replace(&plan, merged);
    drop(archive);
    forget_runs(memory, disk, &gone)
}

/// Removes runs that the archive no longer has, once the manifest has forgotten them, too.
fn forget_runs(memory: &Memory, disk: &Arc<dyn Disk>, gone: &[String]) -> Result<(), Error> {
    if gone.is_empty() {
        return Ok(());
    }
    write_manifest(memory, disk, None)?;
    remove(disk, gone)
}

/// Takes a snapshot and cuts the journal behind it.
pub(super) fn snapshot(memory: &Arc<Memory>, now: Timestamp) -> Result<(), Error> {
    snapshot_by(memory, now, STRIDE, &mut || {})
}

/// The same by strides of a given size, with `between` called whenever no lock is held.
pub(super) fn snapshot_by(
    memory: &Arc<Memory>,
    now: Timestamp,
    stride: usize,
    between: &mut dyn FnMut(),
) -> Result<(), Error> {
    let (Some(disk), Some(journal)) = (&memory.disk, &memory.journal) else { return Ok(()) };
    forget_old_items(memory, now);
    let first_segment = journal.current_segment();
    let start = {
        let _still = memory.write();
        journal.next_lsn()
    };
    between();
    let name = format!("snapshot-{start:016x}.snap");
    let mut writer =
        SnapshotWriter::create(disk.clone(), &name, start).map_err(|error| failed(&error))?;
    let mut walk = Walk { stride, between };
    let (end, newest_move) =
        write_state(memory, &mut writer, &mut walk, || journal.next_lsn() - 1)?;
    between();
    // Jobs that ended before the walk came by are in no frame that is kept and not in the
    // snapshot: they must be in the archive before it counts.
    archive_finished(memory, disk)?;
    between();
    // The snapshot may know of frames that are not durable yet: they must be, before it gets its
    // name, because that can be the name of the snapshot that counts now.
    settle(memory)?;
    // Moves up to here are in no frame that is replayed.
    stream::write_until(memory, disk, newest_move)?;
    let bytes = writer.finish(end).map_err(|error| failed(&error))?;
    memory.journal_bytes.store(0, Ordering::Relaxed);
    let old = write_snapshot_manifest(memory, disk, &name, first_segment)?;
    memory.snapshot_bytes.store(bytes, Ordering::Relaxed);
    journal.trim(first_segment).map_err(|error| journal_failed(&error))?;
    remove(disk, &old)
}

/// Writes everything in RAM, jobs first: a job that ends after the walk began leaves its key and
/// its dead-letter item behind it, where the walk still comes by. Answers the last frame seen, and
/// the last move.
fn write_state(
    memory: &Memory,
    writer: &mut SnapshotWriter,
    walk: &mut Walk<'_>,
    last_frame: impl Fn() -> u64,
) -> Result<(u64, u64), Error> {
    let mut out = Buffer { bytes: Vec::with_capacity(2 * CHUNK_BYTES), cuts: Vec::new(), writer };
    let mut slot = 0;
    while slot < { memory.read().slab.slots() } {
        let state = memory.read();
        let until = slot.saturating_add(walk.stride as u32);
        while slot < until && !out.is_full() {
            if let Some(entry) = state.slab.get(slot) {
                encode_job(&entry.job, &entry.history(), &mut out.bytes);
            }
            slot += 1;
        }
        drop(state);
        out.pass_on()?;
        (walk.between)();
    }
    let mut item = None;
    loop {
        let state = memory.read();
        let from: Bound<DlqId> = item.map_or(Bound::Unbounded, Bound::Excluded);
        let mut some = state.items.range((from, Bound::Unbounded)).take(walk.stride).peekable();
        if some.peek().is_none() {
            break;
        }
        for (id, found) in some {
            encode_item(found, &mut out.bytes);
            item = Some(*id);
            if out.is_full() {
                break;
            }
        }
        drop(state);
        out.pass_on()?;
        (walk.between)();
    }
    let mut entity = None;
    loop {
        let state = memory.read();
        let from: Bound<EntityId> = entity.map_or(Bound::Unbounded, Bound::Excluded);
        let mut some = state.entities.range((from, Bound::Unbounded)).take(walk.stride).peekable();
        if some.peek().is_none() {
            break;
        }
        for (id, found) in some {
            encode_entity(found, &mut out.bytes);
            entity = Some(*id);
            if out.is_full() {
                break;
            }
        }
        drop(state);
        out.pass_on()?;
        (walk.between)();
    }
    let mut key = None;
    loop {
        let state = memory.read();
        let before = key;
        for (end, holder) in state.keys.ended_after(key).take(walk.stride) {
            encode_key(end.1, &holder, &mut out.bytes);
            key = Some(end);
        }
        drop(state);
        if key == before {
            break;
        }
        out.pass_on()?;
        (walk.between)();
    }
    let state = memory.read();
    let end = last_frame();
    write_registries(&state, &mut out);
    let newest_move = state.moves.newest();
    let mut counters = state.totals.to_array().to_vec();
    counters.push(newest_move);
    encode_counters(&counters, &mut out.bytes);
    drop(state);
    out.write()?;
    Ok((end, newest_move))
}

/// What is small, and written at once: types, queues, tokens, buckets and circuits.
fn write_registries(state: &State, out: &mut Buffer<'_>) {
    for spec in state.index.types.values() {
        encode_type(spec, &mut out.bytes);
        out.cut();
    }
    for card in state.index.queues.values().filter(|card| card.is_configured) {
        encode_queue(&card.spec, &mut out.bytes);
        out.cut();
    }
    for token in state.tokens.values() {
        encode_token(token, &mut out.bytes);
        out.cut();
    }
    for (key, meter) in state.index.meters.iter() {
        encode_meter(key, &meter, &mut out.bytes);
        out.cut();
    }
}

/// How a snapshot goes through the state.
struct Walk<'a> {
    stride: usize,
    between: &'a mut dyn FnMut(),
}

/// Whole records on their way into chunks of about [`CHUNK_BYTES`], and at most one more record.
struct Buffer<'a> {
    bytes: Vec<u8>,
    /// Where chunks end, if there is more than one.
    cuts: Vec<usize>,
    writer: &'a mut SnapshotWriter,
}

impl Buffer<'_> {
    fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES
    }

    /// Ends a chunk here if it is large enough: for what is gathered under one hold of the lock.
    fn cut(&mut self) {
        let start = self.cuts.last().copied().unwrap_or(0);
        if self.bytes.len() - start >= CHUNK_BYTES {
            self.cuts.push(self.bytes.len());
        }
    }

    fn pass_on(&mut self) -> Result<(), Error> {
        if self.is_full() { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Error> {
        let mut start = 0;
        for end in self.cuts.drain(..).chain([self.bytes.len()]) {
            self.writer.chunk(&self.bytes[start..end]).map_err(|error| failed(&error))?;
            start = end;
        }
        self.bytes.clear();
        self.bytes.shrink_to(2 * CHUNK_BYTES);
        Ok(())
    }
}

fn forget_old_items(memory: &Memory, now: Timestamp) {
    let keep_from = now - memory.config.keep_items;
    memory.write().items.forget_before(keep_from);
}

/// Replaces the manifest; `changed` names a new snapshot and where the journal starts behind it.
fn write_manifest(
    memory: &Memory,
    disk: &Arc<dyn Disk>,
    changed: Option<(&str, u64)>,
) -> Result<(), Error> {
    let manifest = Manifest::load(disk.as_ref()).map_err(|error| failed(&error))?;
    let mut manifest = manifest.unwrap_or_else(|| Manifest {
        store_uuid: memory.config.segment_id_seed.to_be_bytes().repeat(2).try_into().expect("16"),
        snapshot: None,
        first_segment: 1,
        runs: Vec::new(),
    });
    if let Some((snapshot, first_segment)) = changed {
        manifest.snapshot = Some(snapshot.to_owned());
        manifest.first_segment = first_segment;
    }
    manifest.runs = memory.archive().names();
    manifest.store(disk.as_ref()).map_err(|error| failed(&error))
}

/// The same for a new snapshot; answers the file it replaces.
fn write_snapshot_manifest(
    memory: &Memory,
    disk: &Arc<dyn Disk>,
    name: &str,
    first_segment: u64,
) -> Result<Vec<String>, Error> {
    let old = Manifest::load(disk.as_ref()).map_err(|error| failed(&error))?;
    write_manifest(memory, disk, Some((name, first_segment)))?;
    let old = old.and_then(|manifest| manifest.snapshot);
    Ok(old.into_iter().filter(|old| old != name).collect())
}

fn remove(disk: &Arc<dyn Disk>, names: &[String]) -> Result<(), Error> {
    for name in names {
        disk.remove(name).map_err(|error| failed(&error))?;
    }
    Ok(())
}

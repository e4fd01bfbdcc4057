//! Segment files: their names, their header, and how a new one comes into being.
//!
//! A segment is filled with zeros under a temporary name, synced, renamed and only then known to
//! the directory, so a `.log` file that lacks a whole header or its full length is damaged, never
//! just unfinished. Old segments are deleted, not recycled. Must never touch a segment that holds
//! blocks. Read next: `journal/log.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::JournalError;
use crate::bytes::{Fields, checksum, newer_format, temporary};
use crate::disk::{Disk, DiskFile, is_out_of_space};
use crate::error::FileError;
use mainspring_store::fatal::text_of;

/// Blocks start here: the header has a physical sector (4 KiB on current devices) to itself, so no
/// block write ever rewrites it.
pub(super) const DATA_START: u64 = 4096;

const MAGIC: &[u8; 8] = b"MSJOURNL";
const VERSION: u32 = 1;
const HEADER: usize = 44;

/// Free space that preparing leaves untouched, for the manifest and the file system itself.
const RESERVE: u64 = 1 << 20;

/// Zeros per sync: one sync of a whole segment made a flush beside it wait 160 ms
/// (`examples/journal_speed.rs`).
const SYNC_BYTES: u64 = 2 << 20;

/// A segment to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) seq: u64,
    pub(super) id: u64,
    pub(super) size: u64,
}

/// An open segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) seq: u64,
    pub(super) id: u64,
    pub(super) size: u64,
    pub(super) file: Box<dyn DiskFile>,
}

impl Segment {
    pub(super) fn name(&self) -> String {
        name(self.seq)
    }
}

pub(super) fn name(seq: u64) -> String {
    format!("journal-{seq:016x}.log")
}

fn seq_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("journal-")?.strip_suffix(".log")?;
    let seq = u64::from_str_radix(digits, 16).ok()?;
    (self::name(seq) == name).then_some(seq)
}

/// The numbers of all segments, ascending.
pub(super) fn list(disk: &dyn Disk) -> Result<Vec<u64>, JournalError> {
    let names = disk.list().map_err(|source| JournalError::io("list", "the directory", source))?;
    let mut seqs: Vec<u64> = names.iter().filter_map(|name| seq_of(name)).collect();
    seqs.sort_unstable();
    Ok(seqs)
}

/// Removes what an interrupted preparation left; not urgent, so not synced.
pub(super) fn remove_leftovers(disk: &dyn Disk) -> Result<(), JournalError> {
    let names = disk.list().map_err(|source| JournalError::io("list", "the directory", source))?;
    for name in names {
        if name.strip_suffix(".tmp").and_then(seq_of).is_some() {
            disk.remove(&name).map_err(|source| JournalError::io("remove", &name, source))?;
        }
    }
    Ok(())
}

/// Makes an empty segment, durable under its name. Replaces an unused one of the same number.
pub(super) fn prepare(disk: &dyn Disk, order: Order) -> Result<Segment, JournalError> {
    let name = name(order.seq);
    let failed = |operation, source| {
        if is_out_of_space(&source) {
            // Half a zero-fill must not keep the little space that is left.
            let _ = disk.remove(&temporary(&name));
            return JournalError::NoSpace;
        }
        JournalError::io(operation, &name, source)
    };
    // Asking first keeps a full disk from being filled and emptied again at every flush.
    let free = disk.free_bytes().map_err(|source| failed("measure space for", source))?;
    if free < order.size.saturating_add(RESERVE) {
        return Err(JournalError::NoSpace);
    }
    let file = disk.create(&temporary(&name)).map_err(|source| failed("create", source))?;
    file.write_at(0, &header(order)).map_err(|source| failed("write", source))?;
    let mut filled = HEADER as u64;
    while filled < order.size {
        let end = order.size.min(filled + SYNC_BYTES);
        file.zero_fill(filled, end).map_err(|source| failed("zero-fill", source))?;
        file.sync_data().map_err(|source| failed("sync", source))?;
        filled = end;
    }
    disk.rename(&temporary(&name), &name).map_err(|source| failed("rename", source))?;
    disk.sync_dir().map_err(|source| failed("publish", source))?;
    Ok(Segment { seq: order.seq, id: order.id, size: order.size, file })
}

/// Opens an existing segment and checks its header against its name and length.
pub(super) fn open(disk: &dyn Disk, seq: u64) -> Result<Segment, JournalError> {
    let name = name(seq);
    let file = disk.open_write(&name).map_err(|source| JournalError::io("open", &name, source))?;
    checked(seq, file)
}

/// The same for somebody who only reads.
pub(super) fn open_read(disk: &dyn Disk, seq: u64) -> Result<Segment, JournalError> {
    let name = name(seq);
    let file = disk.open_read(&name).map_err(|source| JournalError::io("open", &name, source))?;
    checked(seq, file)
}

fn checked(seq: u64, file: Box<dyn DiskFile>) -> Result<Segment, JournalError> {
    let name = name(seq);
    let mut bytes = [0; HEADER];
    let read = |source| JournalError::io("read", &name, source);
    file.read_at(0, &mut bytes).map_err(read)?;
    if let Some(found) = newer_format(&bytes, MAGIC, VERSION) {
        return Err(FileError::Newer { file: name, found, known: VERSION }.into());
    }
    let order = parse(&bytes)
        .ok_or_else(|| JournalError::damaged(&name, 0, "the segment header is invalid"))?;
    if order.seq != seq {
        let reason = format!("the header says segment {}", order.seq);
        return Err(JournalError::damaged(&name, 0, reason));
    }
    let size = file.size().map_err(read)?;
    if size != order.size {
        let reason = format!("the file should have {} bytes and has {size}", order.size);
        return Err(JournalError::damaged(&name, size.min(order.size), reason));
    }
    Ok(Segment { seq, id: order.id, size, file })
}

fn header(order: Order) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&order.seq.to_le_bytes());
    bytes.extend_from_slice(&order.id.to_le_bytes());
    bytes.extend_from_slice(&order.size.to_le_bytes());
    let sum = checksum(&[&bytes]);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fn parse(bytes: &[u8; HEADER]) -> Option<Order> {
    let sum = checksum(&[&bytes[..HEADER - 4]]);
    let mut fields = Fields(bytes);
    let is_ours = fields.take(8)? == MAGIC && fields.u32()? == VERSION;
    fields.take(4)?;
    let order = Order { seq: fields.u64()?, id: fields.u64()?, size: fields.u64()? };
    (is_ours && fields.u32()? == sum).then_some(order)
}

/// The thread that keeps one segment ready ahead of the writer.
#[derive(Debug)]
pub(super) struct Helper {
    orders: Option<Sender<Order>>,
    made: Receiver<Result<Segment, JournalError>>,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    pub(super) fn spawn(disk: Arc<dyn Disk>) -> Result<Self, JournalError> {
        let (orders, inbox) = channel::<Order>();
        let (outbox, made) = channel();
        let thread = std::thread::Builder::new()
            .name("journal-prepare".to_owned())
            .spawn(move || {
                for order in inbox {
                    let make = AssertUnwindSafe(|| prepare(disk.as_ref(), order));
                    let made = catch_unwind(make).unwrap_or_else(|panic| {
                        let words = text_of(&*panic).to_owned();
                        Err(JournalError::Died {
                            thread: "the thread that prepares segments",
                            words,
                        })
                    });
                    if outbox.send(made).is_err() {
                        return;
                    }
                }
            })
            .map_err(|source| JournalError::io("start a thread for", "the journal", source))?;
        Ok(Self { orders: Some(orders), made, thread: Some(thread) })
    }

    pub(super) fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A helper that is gone shows when its answer is missing.
            let _ = orders.send(order);
        }
    }

    /// The finished segment, if it is there already.
    pub(super) fn poll(&self) -> Option<Result<Segment, JournalError>> {
        self.made.try_recv().ok()
    }

    /// Waits for the answer to the outstanding order.
    pub(super) fn wait(&self) -> Result<Segment, JournalError> {
        // A missing answer means the helper panicked; the writer must not go on without it.
        self.made.recv().unwrap_or(Err(JournalError::Poisoned))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

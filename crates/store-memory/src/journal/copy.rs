//! Copying the journal, also beside a server that writes it: block by block, in order, each one
//! checked. What is copied is therefore the beginning of the log up to some block, and everything
//! that was acknowledged before the copy began is in it.
//!
//! Must never write to what it copies, and must never call a log short that is damaged: a block
//! that cannot be read is the end only if no block follows it. Read next: `backup.rs`.

use super::frame::{self, HEADER, Kind, Place, Seen};
use super::recovery::check_header;
use super::segment::{self, DATA_START, Segment};
use super::{JournalError, Lsn};
use crate::disk::Disk;
use std::time::Duration;

/// How often a block that is not whole is looked at again: somebody may be writing it.
const LOOKS_MAX: usize = 250;
const LOOK_PAUSE: Duration = Duration::from_millis(2);
/// Bytes of one look ahead.
const READ_BYTES: usize = 1 << 20;

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// The files.
    pub(crate) files: Vec<String>,
    /// The position of the last frame; zero if there is none.
    pub(crate) last_lsn: Lsn,
    /// Frames in them.
    pub(crate) frames: u64,
    /// Bytes of blocks.
    pub(crate) bytes: u64,
}

/// The segments from `first` on, held open: what is removed from now on can still be read.
#[derive(Debug)]
pub(crate) struct Held {
    segments: Vec<Segment>,
}

/// Opens the segments of a log. Answers `None` if the first one is not there.
///
/// # Errors
/// If one cannot be read, or is none.
pub(crate) fn hold(disk: &dyn Disk, first: u64) -> Result<Option<Held>, JournalError> {
    let mut segments = Vec::new();
    let mut seqs = segment::list(disk)?.into_iter().filter(|seq| *seq >= first);
    for expected in first.. {
        if seqs.next() != Some(expected) {
            break;
        }
        match segment::open_read(disk, expected) {
            Ok(segment) => segments.push(segment),
            // Removed between being listed and being opened: so is everything before it.
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok((!segments.is_empty()).then_some(Held { segments }))
}

/// Copies what `held` holds to `to`: the log as it was when it was held, and what was written in
/// the same segments since. `from` is where it comes from.
///
/// # Errors
/// If a file cannot be read or written, or the log is damaged.
pub(crate) fn copy(held: Held, from: &dyn Disk, to: &dyn Disk) -> Result<Copied, JournalError> {
    let mut copied = Copied::default();
    let first = held.segments.first().map_or(1, |segment| segment.seq);
    let mut next_lsn = (first == 1).then_some(1);
    let mut waiting = held.segments.into_iter();
    let mut current = waiting.next();
    while let Some(segment) = current.take() {
        let blocks = read_blocks(&segment, &mut next_lsn, &mut copied, from)?;
        let successor = if blocks.is_sealed { waiting.next() } else { None };
        // A seal promises a successor. One that was not there when the copy began is not waited
        // for, or a quick writer would be followed for ever: the copy ends before the seal.
        let end = if successor.is_some() { blocks.end } else { blocks.end_without_seal };
        write(&segment, end, to)?;
        copied.bytes += end - DATA_START;
        copied.files.push(segment.name());
        current = successor;
    }
    copied.last_lsn = next_lsn.unwrap_or(1) - 1;
    Ok(copied)
}

fn opened(disk: &dyn Disk, seq: u64) -> Result<Option<Segment>, JournalError> {
    match segment::open_read(disk, seq) {
        Ok(segment) => Ok(Some(segment)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// How far a segment goes.
struct Blocks {
    end: u64,
    end_without_seal: u64,
    is_sealed: bool,
}

fn read_blocks(
    segment: &Segment,
    next_lsn: &mut Option<Lsn>,
    copied: &mut Copied,
    from: &dyn Disk,
) -> Result<Blocks, JournalError> {
    let mut at = DATA_START;
    while at + HEADER as u64 <= segment.size {
        let Some((kind, size, after, frames)) = whole_block(segment, at, *next_lsn, from)? else {
            return Ok(Blocks { end: at, end_without_seal: at, is_sealed: false });
        };
        *next_lsn = Some(after);
        copied.frames += frames;
        if kind == Kind::Seal {
            return Ok(Blocks { end: at + size, end_without_seal: at, is_sealed: true });
        }
        at += size;
    }
    Err(JournalError::damaged(&segment.name(), at, "the segment is full but not sealed"))
}

/// The kind and size of the block at `at`, the lsn after it and its frames; `None` if the log ends
/// here.
fn whole_block(
    segment: &Segment,
    at: u64,
    next_lsn: Option<Lsn>,
    from: &dyn Disk,
) -> Result<Option<(Kind, u64, Lsn, u64)>, JournalError> {
    let place = Place { segment_id: segment.id, offset: at };
    for look in 0..LOOKS_MAX {
        if look > 0 {
            std::thread::sleep(LOOK_PAUSE);
        }
        let bytes = bytes(segment, at, HEADER)?;
        let header = match bytes.first_chunk().map(|bytes| frame::read_header(bytes, place)) {
            Some(Seen::Header(header)) => header,
            Some(Seen::Nothing) if follower(segment, at, from)?.is_none() => return Ok(None),
            Some(Seen::Nothing | Seen::Garbage) | None => continue,
        };
        let size = frame::padded(header.length as usize) as u64;
        check_header(&header, place, size, next_lsn, segment)?;
        let block = self::bytes(segment, at, size as usize)?;
        let body = &block[HEADER..HEADER + header.length as usize];
        if crc32fast::hash(body) == header.body_checksum {
            let frames = u64::from(header.count);
            return Ok(Some((header.kind, size, header.first_lsn + frames, frames)));
        }
    }
    match follower(segment, at, from)? {
        None => Ok(None),
        Some(reason) => Err(JournalError::damaged(&segment.name(), at, reason)),
    }
}

/// What follows the place where the log seems to end; then it is not its end.
fn follower(segment: &Segment, end: u64, from: &dyn Disk) -> Result<Option<String>, JournalError> {
    let mut at = end + HEADER as u64;
    while at < segment.size {
        let count = READ_BYTES.min((segment.size - at) as usize);
        let window = bytes(segment, at, count)?;
        for (nth, bytes) in window.as_chunks::<HEADER>().0.iter().enumerate() {
            let offset = at + (nth * HEADER) as u64;
            let place = Place { segment_id: segment.id, offset };
            if let Seen::Header(_) = frame::read_header(bytes, place) {
                return Ok(Some(format!("a valid block follows at byte {offset}")));
            }
        }
        at += count as u64;
    }
    let Some(next) = opened(from, segment.seq + 1)? else { return Ok(None) };
    let is_used = !frame::is_zero(&bytes(&next, DATA_START, HEADER)?);
    Ok(is_used.then(|| format!("{} follows and is in use", next.name())))
}

fn bytes(segment: &Segment, at: u64, count: usize) -> Result<Vec<u8>, JournalError> {
    Ok(crate::bytes::read_exact(segment.file.as_ref(), &segment.name(), at, count)?)
}

/// Writes the segment up to `end`; the rest of it is zero.
fn write(segment: &Segment, end: u64, to: &dyn Disk) -> Result<(), JournalError> {
    let name = segment.name();
    let failed = |source| JournalError::io("write", &name, source);
    let file = to.create(&name).map_err(failed)?;
    let mut at = 0;
    while at < end {
        let count = READ_BYTES.min((end - at) as usize);
        file.write_at(at, &bytes(segment, at, count)?).map_err(failed)?;
        at += count as u64;
    }
    file.set_len(segment.size).and_then(|()| file.sync_data()).map_err(failed)
}

//! Reading the journal back: replay what is whole, cut a tear, refuse damage.
//!
//! The argument is in `journal.rs`; the numbered rules below refer to it. Streams with one buffer
//! of a block (4 MiB, or one frame that is larger) and never holds a file. Must never change a byte
//! before the whole log has been found sound, and must never guess: what no crash explains is
//! `Damaged`.

use super::frame::{self, HEADER, Header, Kind, Place, Seen};
use super::segment::{self, DATA_START, Segment};
use super::{JournalError, Lsn, RecoverySummary, Start};
use crate::disk::Disk;

/// One read; large enough for the device, small enough for the cache.
const READ_BYTES: usize = 1 << 20;

/// Receives every frame in order.
pub(super) type Replay<'a> = dyn FnMut(Lsn, &[u8]) -> Result<(), String> + 'a;

/// Where writing goes on.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) segment: Segment,
    /// First free byte of the segment.
    pub(super) end: u64,
    pub(super) next_lsn: Lsn,
}

/// Replays the log. `None` means that there is none and one may be created.
pub(super) fn recover(
    disk: &dyn Disk,
    start: Start,
    replay: &mut Replay<'_>,
) -> Result<(Option<Tail>, RecoverySummary), JournalError> {
    let (first, seqs) = segments_from(disk, start)?;
    let mut summary = RecoverySummary::default();
    // Only segment 1 may be without its opening mark: the power can fail between its birth and
    // the mark. Any other start was once the current segment, so its mark was synced.
    let mut next_lsn = (first == 1).then_some(1);
    let mut scan = Scan { buffer: Vec::new(), buffer_at: 0 };
    for (nth, &seq) in seqs.iter().enumerate() {
        let segment = segment::open(disk, seq)?;
        summary.segments += 1;
        let found = scan.segment(&segment, &mut next_lsn, replay, &mut summary)?;
        let has_successor = nth + 1 < seqs.len();
        match found {
            End::Sealed if has_successor => {}
            End::Sealed => {
                let reason = "the segment after a sealed one is missing";
                return Err(JournalError::damaged(&segment::name(seq + 1), 0, reason));
            }
            End::Open { end, nonzero } => {
                check_unused(disk, &seqs[nth + 1..])?;
                let Some(next_lsn) = next_lsn else {
                    let reason = "the first segment has no opening mark";
                    return Err(JournalError::damaged(&segment.name(), DATA_START, reason));
                };
                summary.last_lsn = next_lsn - 1;
                summary.torn_bytes_cut = nonzero;
                cut(&segment, end, nonzero)?;
                return Ok((Some(Tail { segment, end, next_lsn }), summary));
            }
        }
    }
    Ok((None, summary))
}

/// The segments to replay: contiguous, and starting where they should.
fn segments_from(disk: &dyn Disk, start: Start) -> Result<(u64, Vec<u64>), JournalError> {
    let first = match start {
        Start::MayBeNew => 1,
        Start::Segment(seq) => seq,
    };
    let seqs: Vec<u64> = segment::list(disk)?.into_iter().filter(|seq| *seq >= first).collect();
    if seqs.is_empty() && start == Start::MayBeNew {
        return Ok((first, seqs));
    }
    for nth in 0..seqs.len().max(1) {
        let expected = first + nth as u64;
        if seqs.get(nth) != Some(&expected) {
            let reason = "the segment is missing";
            return Err(JournalError::damaged(&segment::name(expected), 0, reason));
        }
    }
    Ok((first, seqs))
}

/// Segments after an unsealed one can only be prepared ones: their mark must not exist.
fn check_unused(disk: &dyn Disk, seqs: &[u64]) -> Result<(), JournalError> {
    for &seq in seqs {
        let segment = segment::open(disk, seq)?;
        let mut bytes = [0; HEADER];
        segment
            .file
            .read_at(DATA_START, &mut bytes)
            .map_err(|source| JournalError::io("read", &segment.name(), source))?;
        if bytes != [0; HEADER] {
            let reason = "the segment is in use although the one before it is not sealed";
            return Err(JournalError::damaged(&segment.name(), DATA_START, reason));
        }
    }
    Ok(())
}

/// Zeroes a tear durably, so that no later crash can meet its remains behind new blocks.
fn cut(segment: &Segment, end: u64, nonzero: u64) -> Result<(), JournalError> {
    if nonzero == 0 {
        return Ok(());
    }
    segment
        .file
        .zero_fill(end, segment.size)
        .and_then(|()| segment.file.sync_data())
        .map_err(|source| JournalError::io("repair", &segment.name(), source))
}

enum End {
    Sealed,
    Open { end: u64, nonzero: u64 },
}

/// A window over the file being read.
struct Scan {
    buffer: Vec<u8>,
    buffer_at: u64,
}

impl Scan {
    fn segment(
        &mut self,
        segment: &Segment,
        next_lsn: &mut Option<Lsn>,
        replay: &mut Replay<'_>,
        summary: &mut RecoverySummary,
    ) -> Result<End, JournalError> {
        let name = segment.name();
        self.buffer.clear();
        let mut at = DATA_START;
        while at + HEADER as u64 <= segment.size {
            let place = Place { segment_id: segment.id, offset: at };
            let header = match self.header(segment, at)? {
                Seen::Header(header) => header,
                Seen::Nothing => return self.open_end(segment, at, at),
                // Rule 2: a tear cannot leave half a header.
                Seen::Garbage => {
                    return Err(JournalError::damaged(&name, at, "the block header is invalid"));
                }
            };
            let size = frame::padded(header.length as usize) as u64;
            check_header(&header, place, size, *next_lsn, segment)?;
            let block = self.bytes(segment, at, size as usize)?;
            let body = &block[HEADER..HEADER + header.length as usize];
            if crc32fast::hash(body) != header.body_checksum
                || !frame::is_zero(&block[HEADER + body.len()..])
            {
                // Rule 3: missing sectors are zero; without one there was no tear.
                if frame::zero_sectors(at, block) <= header.zero_sectors {
                    return Err(JournalError::damaged(&name, at, "the block checksum is wrong"));
                }
                return self.open_end(segment, at, at + HEADER as u64);
            }
            *next_lsn = Some(header.first_lsn + u64::from(header.count));
            replay_block(&name, at, &header, body, replay)?;
            summary.frames += u64::from(header.count);
            summary.bytes +=
                u64::from(header.length) - u64::from(header.count) * frame::FRAME_HEADER as u64;
            if header.kind == Kind::Seal {
                return Ok(End::Sealed);
            }
            at += size;
        }
        // Room for the seal is always kept, so the loop ends at it unless something is wrong.
        Err(JournalError::damaged(&name, at, "the segment is full but not sealed"))
    }

    /// Rule 1: after the end of the log there may be debris, but no valid header.
    fn open_end(&mut self, segment: &Segment, end: u64, from: u64) -> Result<End, JournalError> {
        let mut nonzero = 0;
        if from > end {
            nonzero += HEADER as u64;
        }
        let mut at = from;
        while at < segment.size {
            let count = READ_BYTES.min((segment.size - at) as usize);
            let window = self.bytes(segment, at, count)?;
            if !frame::is_zero(window) {
                for (nth, bytes) in window.as_chunks::<HEADER>().0.iter().enumerate() {
                    let offset = at + (nth * HEADER) as u64;
                    match frame::read_header(bytes, Place { segment_id: segment.id, offset }) {
                        Seen::Nothing => {}
                        Seen::Garbage => nonzero += HEADER as u64,
                        Seen::Header(_) => {
                            let reason = format!("a valid block follows at byte {offset}");
                            return Err(JournalError::damaged(&segment.name(), end, reason));
                        }
                    }
                }
            }
            at += count as u64;
        }
        Ok(End::Open { end, nonzero })
    }

    fn header(&mut self, segment: &Segment, at: u64) -> Result<Seen, JournalError> {
        let bytes = self.bytes(segment, at, HEADER)?;
        let place = Place { segment_id: segment.id, offset: at };
        Ok(bytes.first_chunk().map_or(Seen::Garbage, |bytes| frame::read_header(bytes, place)))
    }

    /// Bytes of the file, read ahead by at least [`READ_BYTES`] when the window has to move.
    fn bytes(&mut self, segment: &Segment, at: u64, count: usize) -> Result<&[u8], JournalError> {
        let is_inside =
            at >= self.buffer_at && at + count as u64 <= self.buffer_at + self.buffer.len() as u64;
        if !is_inside {
            let wanted = count.max(READ_BYTES).min((segment.size - at) as usize);
            self.buffer.resize(wanted, 0);
            let got = segment
                .file
                .read_at(at, &mut self.buffer)
                .map_err(|source| JournalError::io("read", &segment.name(), source))?;
            if got < count {
                self.buffer.clear();
                let reason = "the file ends early";
                return Err(JournalError::damaged(&segment.name(), at + got as u64, reason));
            }
            self.buffer.truncate(got);
            self.buffer_at = at;
        }
        let start = (at - self.buffer_at) as usize;
        Ok(&self.buffer[start..start + count])
    }
}

/// A header with a good checksum must also continue the history.
pub(super) fn check_header(
    header: &Header,
    place: Place,
    size: u64,
    next_lsn: Option<Lsn>,
    segment: &Segment,
) -> Result<(), JournalError> {
    let is_first = place.offset == DATA_START;
    let is_mark = header.kind != Kind::Frames;
    let reason = if place.offset + size > segment.size {
        "the block reaches beyond the segment".to_owned()
    } else if is_first != (header.kind == Kind::Open) {
        "the opening mark is missing or misplaced".to_owned()
    } else if is_mark != (header.count == 0) || is_mark != (header.length == 0) {
        "the block has the wrong number of frames".to_owned()
    } else if let Some(expected) = next_lsn
        && header.first_lsn != expected
    {
        format!("frame {expected} should follow but {} does", header.first_lsn)
    } else if header.first_lsn == 0 {
        "the block has no position".to_owned()
    } else {
        return Ok(());
    };
    Err(JournalError::damaged(&segment.name(), place.offset, reason))
}

fn replay_block(
    name: &str,
    at: u64,
    header: &Header,
    body: &[u8],
    replay: &mut Replay<'_>,
) -> Result<(), JournalError> {
    let mut rest = body;
    for lsn in header.first_lsn..header.first_lsn + u64::from(header.count) {
        let frame = frame::next_frame(&mut rest)
            .ok_or_else(|| JournalError::damaged(name, at, "the frames do not fill the block"))?;
        replay(lsn, frame).map_err(|reason| JournalError::Replay { lsn, reason })?;
    }
    if rest.is_empty() {
        return Ok(());
    }
    Err(JournalError::damaged(name, at, "the frames do not fill the block"))
}

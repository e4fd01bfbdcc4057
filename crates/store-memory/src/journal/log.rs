//! The synchronous core of the journal: stage frames, flush them as one block, move to the next
//! segment.
//!
//! One owner, no locks; the only thread is the optional helper that prepares segments. Must never
//! write block n+1 before the sync of block n returned: recovery (`journal/recovery.rs`) relies on
//! it. Read next: `journal/group_commit.rs`, which shares one log among many callers.

use std::sync::Arc;
use std::time::Instant;

use super::frame::{self, FRAME_HEADER, HEADER, Kind, Place};
use super::recovery::{self, Replay};
use super::segment::{self, DATA_START, Helper, Order, Segment};
use super::{Config, FRAME_BYTES_MAX, JournalError, Lsn, Preparation, RecoverySummary, Start};
use crate::disk::Disk;
use mainspring_store::Histogram;

/// A larger flush becomes several blocks, so that recovery's buffer stays small.
const BLOCK_BYTES_MAX: usize = 4 << 20;

/// A staging buffer that one burst made larger than this is given back.
const BUFFER_KEEP_MAX: usize = 8 << 20;

/// An open journal.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    config: Config,
    segment: Segment,
    end: u64,
    durable_lsn: Lsn,
    /// Space for a block header, then the staged frames: written without another copy. The header
    /// of a later block takes the place of frames that are durable already.
    staged: Vec<u8>,
    /// Where each frame ends in `staged`.
    ends: Vec<usize>,
    /// How many of them are durable.
    ends_done: usize,
    spare: Spare,
    helper: Option<Helper>,
    was_refused_space: bool,
    is_poisoned: bool,
    /// How long syncs took.
    pub(super) sync_times: Arc<Histogram>,
}

#[derive(Debug)]
enum Spare {
    Missing,
    Ordered,
    Ready(Segment),
}

#[expect(clippy::disallowed_methods, reason = "how long a sync takes decides nothing")]
fn started() -> Instant {
    Instant::now()
}

impl Log {
    /// Replays what is there, repairs a torn tail and makes the log ready for writing.
    ///
    /// # Errors
    /// `Damaged` when the log contradicts itself, `Replay` when the owner refuses a frame, `Io`
    /// and `NoSpace` when the disk does. Damage is never repaired.
    pub fn open(
        disk: Arc<dyn Disk>,
        config: Config,
        start: Start,
        replay: &mut Replay<'_>,
    ) -> Result<(Self, RecoverySummary), JournalError> {
        let segment_bytes = config.segment_bytes.max(2 * DATA_START).next_multiple_of(DATA_START);
        let config = Config { segment_bytes, ..config };
        let (tail, summary) = recovery::recover(disk.as_ref(), start, replay)?;
        segment::remove_leftovers(disk.as_ref())?;
        let (segment, end, next_lsn) = match tail {
            Some(tail) => (tail.segment, tail.end, tail.next_lsn),
            None => {
                let order = order(&config, 1, config.segment_bytes);
                (segment::prepare(disk.as_ref(), order)?, DATA_START, 1)
            }
        };
        let helper = match config.preparation {
            Preparation::Inline => None,
            Preparation::HelperThread => Some(Helper::spawn(Arc::clone(&disk))?),
        };
        let mut log = Self {
            disk,
            config,
            segment,
            end,
            durable_lsn: next_lsn - 1,
            staged: vec![0; HEADER],
            ends: Vec::new(),
            ends_done: 0,
            spare: Spare::Missing,
            helper,
            was_refused_space: false,
            is_poisoned: false,
            sync_times: Arc::new(Histogram::of_spans()),
        };
        if log.end == DATA_START {
            log.write_mark(Kind::Open)?;
        }
        log.ensure_spare()?;
        Ok((log, summary))
    }

    /// Adds a frame to the next flush and tells its position. Nothing is durable yet.
    ///
    /// # Errors
    /// `FrameTooLarge`, or `Poisoned` after a failure.
    pub fn stage(&mut self, body: &[u8]) -> Result<Lsn, JournalError> {
        self.check()?;
        if body.len() > FRAME_BYTES_MAX {
            return Err(JournalError::FrameTooLarge { bytes: body.len() });
        }
        frame::push_frame(&mut self.staged, body);
        self.ends.push(self.staged.len());
        Ok(self.next_lsn() - 1)
    }

    /// Makes every staged frame durable and returns the last durable lsn.
    ///
    /// # Errors
    /// `NoSpace` when the next segment is needed and cannot be made: what did not fit stays staged
    /// (see [`Log::durable_lsn`]) and a later flush tries again. Every other error poisons the log.
    pub fn flush(&mut self) -> Result<Lsn, JournalError> {
        self.check()?;
        let result = self.flush_staged().and_then(|()| self.ensure_spare());
        match result {
            Ok(()) => Ok(self.durable_lsn),
            Err(JournalError::NoSpace) => Err(JournalError::NoSpace),
            Err(error) => {
                self.is_poisoned = true;
                Err(error)
            }
        }
    }

    /// Deletes segments before `before`, but never the current one; returns their numbers.
    ///
    /// # Errors
    /// When a file cannot be removed. The log itself stays usable.
    pub fn trim(&self, before: u64) -> Result<Vec<u64>, JournalError> {
        super::trim(&self.disk, before.min(self.segment.seq))
    }

    /// Last position that survives a crash.
    pub fn durable_lsn(&self) -> Lsn {
        self.durable_lsn
    }

    /// Position the next staged frame will get.
    pub fn next_lsn(&self) -> Lsn {
        self.durable_lsn + (self.ends.len() - self.ends_done) as u64 + 1
    }

    /// Number of the segment being written; replay for everything from now on may start here.
    pub fn current_segment(&self) -> u64 {
        self.segment.seq
    }

    /// Bytes that can be flushed without asking the file system for more.
    pub fn headroom(&self) -> u64 {
        let spare = match &self.spare {
            Spare::Ready(spare) => spare.size - DATA_START - 2 * HEADER as u64,
            Spare::Missing | Spare::Ordered => 0,
        };
        self.room() + spare
    }

    /// Whether new work should be refused: the disk would not give a next segment, and more than
    /// three quarters of this one are used. Acknowledgements may still go into the rest.
    pub fn is_low_on_space(&self) -> bool {
        let has_spare = matches!(self.spare, Spare::Ready(_));
        !has_spare && self.was_refused_space && self.room() < self.segment.size / 4
    }

    fn check(&self) -> Result<(), JournalError> {
        if self.is_poisoned { Err(JournalError::Poisoned) } else { Ok(()) }
    }

    /// Free bytes of the segment; the place for the seal is not free.
    fn room(&self) -> u64 {
        self.segment.size - HEADER as u64 - self.end
    }

    fn flush_staged(&mut self) -> Result<(), JournalError> {
        while let [first_end, ..] = self.ends[self.ends_done..] {
            let (start, room) = (self.staged_start(), self.room() as usize);
            let fits = |end: usize| {
                frame::padded(end - start) <= room
                    && (end - start <= BLOCK_BYTES_MAX || end == first_end)
            };
            match self.ends[self.ends_done..].partition_point(|end| fits(*end)) {
                0 => self.rotate(first_end - start)?,
                count => self.write_frames(start, count)?,
            }
        }
        self.staged.truncate(HEADER);
        self.staged.shrink_to(BUFFER_KEEP_MAX);
        self.ends.clear();
        self.ends_done = 0;
        Ok(())
    }

    /// Where the frames that are not durable yet begin in `staged`.
    fn staged_start(&self) -> usize {
        self.ends_done.checked_sub(1).map_or(HEADER, |last| self.ends[last])
    }

    fn write_frames(&mut self, start: usize, count: usize) -> Result<(), JournalError> {
        let end = self.ends[self.ends_done + count - 1];
        let place = Place { segment_id: self.segment.id, offset: self.end };
        let mut staged = std::mem::take(&mut self.staged);
        let block = &mut staged[start - HEADER..end];
        frame::finish(block, Kind::Frames, place, self.durable_lsn + 1, count as u32);
        let result = self.write_block(block);
        self.staged = staged;
        result?;
        self.durable_lsn += count as u64;
        self.ends_done += count;
        Ok(())
    }

    /// Write, then sync: when this returns, the next block may be started.
    fn write_block(&mut self, block: &[u8]) -> Result<(), JournalError> {
        let failed = |operation, source| JournalError::io(operation, &self.segment.name(), source);
        let file = &self.segment.file;
        file.write_at(self.end, block).map_err(|source| failed("write", source))?;
        let started = started();
        file.sync_data().map_err(|source| failed("sync", source))?;
        self.sync_times.took(started.elapsed());
        self.end += frame::padded(block.len() - HEADER) as u64;
        Ok(())
    }

    fn write_mark(&mut self, kind: Kind) -> Result<(), JournalError> {
        let place = Place { segment_id: self.segment.id, offset: self.end };
        self.write_block(&frame::mark(kind, place, self.durable_lsn + 1))
    }

    /// Goes to the next segment, which is durable before the seal promises that it exists.
    fn rotate(&mut self, body_bytes: usize) -> Result<(), JournalError> {
        let needed = DATA_START as usize + 2 * HEADER + frame::padded(body_bytes);
        let needed = (needed as u64).next_multiple_of(DATA_START);
        let next = self.take_spare(needed)?;
        self.write_mark(Kind::Seal)?;
        self.segment = next;
        self.end = DATA_START;
        self.write_mark(Kind::Open)
    }

    fn take_spare(&mut self, needed: u64) -> Result<Segment, JournalError> {
        // The helper must be idle before this thread makes a segment of the same number.
        if let (Spare::Ordered, Some(helper)) = (&self.spare, &self.helper) {
            let answer = helper.wait();
            self.accept(answer)?;
        }
        let spare = std::mem::replace(&mut self.spare, Spare::Missing);
        if let Spare::Ready(spare) = spare
            && spare.size >= needed
        {
            return Ok(spare);
        }
        let size = needed.max(self.config.segment_bytes);
        let made =
            segment::prepare(self.disk.as_ref(), order(&self.config, self.segment.seq + 1, size));
        self.was_refused_space = matches!(made, Err(JournalError::NoSpace));
        made
    }

    /// Keeps one segment ready; a full disk is not an error here but a state.
    ///
    /// # Errors
    /// Anything but a full disk, which leaves the log poisoned.
    pub fn ensure_spare(&mut self) -> Result<(), JournalError> {
        self.check()?;
        let order = order(&self.config, self.segment.seq + 1, self.config.segment_bytes);
        let answer = match (&self.spare, &self.helper) {
            (Spare::Ready(_), _) => None,
            (Spare::Missing, Some(helper)) => {
                helper.order(order);
                self.spare = Spare::Ordered;
                None
            }
            (Spare::Ordered, Some(helper)) => helper.poll(),
            (Spare::Missing | Spare::Ordered, None) => {
                Some(segment::prepare(self.disk.as_ref(), order))
            }
        };
        answer.map_or(Ok(()), |answer| self.accept(answer))
    }

    fn accept(&mut self, answer: Result<Segment, JournalError>) -> Result<(), JournalError> {
        self.was_refused_space = false;
        match answer {
            Ok(segment) => self.spare = Spare::Ready(segment),
            Err(JournalError::NoSpace) => {
                self.was_refused_space = true;
                self.spare = Spare::Missing;
            }
            Err(error) => {
                self.is_poisoned = true;
                return Err(error);
            }
        }
        Ok(())
    }
}

fn order(config: &Config, seq: u64, size: u64) -> Order {
    // The multiplication keeps the ids of neighbouring segments far apart.
    let id = config.segment_id_seed ^ seq.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Order { seq, id, size }
}

const _: () = assert!(FRAME_BYTES_MAX + FRAME_HEADER < u32::MAX as usize);

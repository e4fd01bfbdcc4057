//! The journal: an append-only log of opaque frames that survives crashes or says why not.
//!
//! # Layout
//! Segments `journal-<16 hex>.log`, numbered without gaps, zero-filled before use. After the header
//! come blocks, each 32-byte aligned. One flush writes one block: a header, then its frames as
//! length and body. The first block of a segment is an `Open` mark that repeats the next lsn; a
//! `Seal` mark, synced before the next segment is touched, closes it.
//!
//! # Why a torn tail can be told from damage
//! There is one writer, and it never starts block n+1 (mark or not, same segment or next) before
//! the sync of block n returned. So at a crash at most one block, the last, is in doubt, and:
//! 1. A valid block header *after* an invalid block proves that the invalid one was synced once:
//!    damage. Sectors of the last flush may land in any order, but they hold only one header.
//! 2. A header never crosses a 512-byte sector and lies on zeros, so a tear leaves it whole or
//!    all zero. A header that is neither is damage.
//! 3. The sectors of a torn block that did not arrive are still zero. Each header counts the zero
//!    sectors its block has by right; a bad block with no zero sector beyond those is damage.
//! 4. A sealed segment promises a successor, so a deleted last segment is noticed.
//!
//! What stays undecidable: a device that acknowledged the very last block and then returns one of
//! its sectors as zeros looks like a tear. Assumed: a sector is written whole or not at all.
//!
//! After a tear the rest of the segment is zeroed and synced before anything is accepted, so the
//! argument holds again for the next crash, and for a crash during that repair.
//!
//! Must never acknowledge after a failed write or sync ([`JournalError::Poisoned`]), and never
//! repair what it calls damaged. Read next: `journal/frame.rs`, `journal/recovery.rs`,
//! `journal/group_commit.rs`.

use std::io;
use std::sync::Arc;

use crate::disk::Disk;
use crate::error::FileError;

pub(crate) mod copy;
mod frame;
mod group_commit;
mod log;
mod recovery;
mod segment;

pub use group_commit::{Done, GroupCommit, OnFatal, Syncs};
pub use log::Log;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod group_commit_tests;
#[cfg(test)]
mod tests;

/// Position of a frame in the log: the first is 1, each later one is one more.
pub type Lsn = u64;

/// Frames larger than this are refused; the length field would allow four times as much.
pub const FRAME_BYTES_MAX: usize = 1 << 30;

/// How the log lays out its files.
#[derive(Debug, Clone)]
pub struct Config {
    /// Size of a segment; rounded up to 4 KiB, at least 8 KiB. The product uses
    /// [`Config::SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// Random for every process start; the id of each new segment is derived from it, so bytes
    /// left over from anywhere else never pass for blocks of this segment.
    pub segment_id_seed: u64,
    /// Who zero-fills the next segment.
    pub preparation: Preparation,
}

impl Config {
    /// 64 MiB: little beside what is written between two snapshots, so trimming is never coarse.
    pub const SEGMENT_BYTES: u64 = 64 << 20;
}

/// Who makes the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// The caller of `flush`: deterministic, for simulation.
    Inline,
    /// A helper thread, one segment ahead, so that no flush pays for the zero-fill.
    HelperThread,
}

/// Where replay begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// There is no manifest yet: replay from segment 1, creating it when there is no journal.
    MayBeNew,
    /// The manifest names this segment: it must exist. Older ones are ignored.
    Segment(u64),
}

/// What opening found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoverySummary {
    /// Frames replayed.
    pub frames: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Bytes after the last good block that were not zero and have been zeroed.
    pub torn_bytes_cut: u64,
    /// Segments read.
    pub segments: u64,
    /// Last lsn of the log; zero when nothing was ever written.
    pub last_lsn: Lsn,
}

/// Why the journal cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A segment could not be read or written, or contradicts itself in a way no crash can cause.
    /// A log whose write failed is poisoned.
    #[error(transparent)]
    File(#[from] FileError),
    /// An earlier write or sync failed; nothing can be acknowledged until a restart.
    #[error("the journal stopped after a failed write")]
    Poisoned,
    /// No room for the next segment. Nothing is lost: the frames stay staged, flush again later.
    #[error("no space for the next journal segment")]
    NoSpace,
    /// The frame exceeds [`FRAME_BYTES_MAX`].
    #[error("a frame of {bytes} bytes is too large for the journal")]
    FrameTooLarge {
        /// Size of the refused body.
        bytes: usize,
    },
    /// The owner refused a frame during replay.
    #[error("frame {lsn} cannot be replayed, {reason}")]
    Replay {
        /// The refused frame.
        lsn: Lsn,
        /// What the owner said.
        reason: String,
    },
    /// A thread of the journal panicked; nothing can be acknowledged until a restart.
    #[error("{thread} died: {words}")]
    Died {
        /// Which one.
        thread: &'static str,
        /// What it said.
        words: String,
    },
    /// Appended after `shutdown`.
    #[error("the journal is shut down")]
    ShutDown,
}

impl JournalError {
    /// Whether it is a file that is not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, JournalError::File(error) if error.is_missing())
    }

    fn io(operation: &'static str, file: &str, source: io::Error) -> Self {
        FileError::io(operation, file, source).into()
    }

    fn damaged(file: &str, offset: u64, reason: impl Into<String>) -> Self {
        FileError::damaged(file, offset, reason).into()
    }
}

/// Deletes the segments before `before`. Safe while a log is open as long as the manifest already
/// names a later start: the log itself only ever touches its newest two files.
///
/// # Errors
/// When the directory cannot be read or a file cannot be removed.
pub(crate) fn trim(disk: &Arc<dyn Disk>, before: u64) -> Result<Vec<u64>, JournalError> {
    let old: Vec<u64> =
        segment::list(disk.as_ref())?.into_iter().filter(|seq| *seq < before).collect();
    for seq in &old {
        let name = segment::name(*seq);
        disk.remove(&name).map_err(|source| JournalError::io("remove", &name, source))?;
    }
    if !old.is_empty() {
        disk.sync_dir().map_err(|source| JournalError::io("sync", "the directory", source))?;
    }
    Ok(old)
}

//! What can go wrong with a file of the byte layer that is not the journal.
//!
//! `Damaged` must never be used for a file that a crash can legitimately leave behind: it means an
//! operator has to look. The journal has its own error because it also poisons; see `journal.rs`.

use std::io;

/// A file of the data directory could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot {operation} {file}")]
    Io {
        /// What was attempted, as a verb.
        operation: &'static str,
        /// The file, relative to the data directory.
        file: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The bytes are not the bytes that were written.
    #[error("{file} is damaged at byte {offset}, {reason}")]
    Damaged {
        /// The file, relative to the data directory.
        file: String,
        /// Where the first contradiction was seen.
        offset: u64,
        /// Which check failed.
        reason: String,
    },
    /// Written by a later version of this program; not damaged, but not for us.
    #[error("{file} has format {found} and this version reads {known}; start a newer mainspring")]
    Newer {
        /// The file, relative to the data directory.
        file: String,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
}

/// The number of "input/output error": what a device says of a sector that it cannot read.
const EIO: i32 = 5;

impl FileError {
    /// Whether these bytes are gone, as opposed to a passing trouble of the operating system.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Io { source, .. } => source.raw_os_error() == Some(EIO),
            Self::Newer { .. } => false,
        }
    }

    /// Whether it is about a file that is not there.
    pub(crate) fn is_missing(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Damaged { .. } | Self::Newer { .. } => false,
        }
    }

    pub(crate) fn io(operation: &'static str, file: &str, source: io::Error) -> Self {
        Self::Io { operation, file: file.to_owned(), source }
    }

    pub(crate) fn damaged(file: &str, offset: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { file: file.to_owned(), offset, reason: reason.into() }
    }
}

//! Little-endian fields in byte slices, and whole-file reads and atomic replacement.
//!
//! Must never interpret what it reads; a short slice is `None`, never a panic, because every caller
//! parses bytes that may be damaged. Used by `snapshot.rs`, `manifest.rs` and `archive/`.

use crate::disk::{Disk, DiskFile};
use crate::error::FileError;

/// Reads fields from the front of a slice.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }
}

/// The format of a header that is ours, whole, and newer than `known`. Magic, format and the
/// checksum at the header's end stay where they are in all formats to come.
pub(crate) fn newer_format(header: &[u8], magic: &[u8; 8], known: u32) -> Option<u32> {
    let (body, sum) = header.split_last_chunk::<4>()?;
    let is_whole = u32::from_le_bytes(*sum) == checksum(&[body]);
    let mut fields = Fields(body);
    let is_ours = fields.take(magic.len())? == magic;
    fields.u32().filter(|found| is_ours && is_whole && *found > known)
}

/// The checksum of several pieces as if they were one.
pub(crate) fn checksum(pieces: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for piece in pieces {
        hasher.update(piece);
    }
    hasher.finalize()
}

/// Reads exactly `count` bytes; a file that ends early is damaged, because its length was synced.
pub(crate) fn read_exact(
    file: &dyn DiskFile,
    name: &str,
    offset: u64,
    count: usize,
) -> Result<Vec<u8>, FileError> {
    let mut buffer = vec![0; count];
    let got =
        file.read_at(offset, &mut buffer).map_err(|source| FileError::io("read", name, source))?;
    if got < count {
        return Err(FileError::damaged(name, offset + got as u64, "the file ends early"));
    }
    Ok(buffer)
}

/// The name a file has until it is complete; leftovers of a crash are recognised by it.
pub(crate) fn temporary(name: &str) -> String {
    format!("{name}.tmp")
}

/// Gives a finished, synced temporary file its real name, durably.
pub(crate) fn publish(disk: &dyn Disk, name: &str) -> Result<(), FileError> {
    disk.rename(&temporary(name), name)
        .and_then(|()| disk.sync_dir())
        .map_err(|source| FileError::io("publish", name, source))
}

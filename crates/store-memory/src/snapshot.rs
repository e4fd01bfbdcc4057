//! Snapshot files: a stream of checksummed chunks between a header and a footer.
//!
//! Written under a temporary name with a sync every few MiB, so that the journal's syncs never
//! queue behind a gigabyte of dirty pages; the real name appears only when everything is durable. A
//! file under its real name is therefore whole or `Damaged`. Must never know what a chunk holds.
//! The manifest (`manifest.rs`) says which snapshot counts.

use std::sync::Arc;

use crate::bytes::{Fields, checksum, newer_format, publish, read_exact, temporary};
use crate::disk::{Disk, DiskFile};
use crate::error::FileError;
use crate::journal::Lsn;

const MAGIC: &[u8; 8] = b"MSSNAPSH";
const VERSION: u32 = 1;
const HEADER: usize = 24;
const CHUNK_HEADER: usize = 8;
/// Zero length, which no chunk has, then count, bytes, end lsn, checksum of checksums, checksum.
const FOOTER: usize = 36;
const WRITE_BYTES: usize = 256 << 10;
const SYNC_BYTES: u64 = 4 << 20;
const READ_BYTES: usize = 1 << 20;

/// Largest chunk; the owner cuts its state into pieces far smaller than this, and one piece that
/// cannot be cut still fits (`limits.rs`).
pub const CHUNK_BYTES_MAX: usize = 256 << 20;

/// Writes one snapshot; dropped before `finish` it leaves nothing under the real name.
#[derive(Debug)]
pub struct SnapshotWriter {
    disk: Arc<dyn Disk>,
    name: String,
    file: Box<dyn DiskFile>,
    buffer: Vec<u8>,
    written: u64,
    synced: u64,
    chunks: u64,
    bytes: u64,
    sums: crc32fast::Hasher,
    is_finished: bool,
}

impl SnapshotWriter {
    /// Starts a snapshot that needs the journal from `start_lsn` on.
    ///
    /// # Errors
    /// When the temporary file cannot be created.
    pub fn create(disk: Arc<dyn Disk>, name: &str, start_lsn: Lsn) -> Result<Self, FileError> {
        let file = disk
            .create(&temporary(name))
            .map_err(|source| FileError::io("create", &temporary(name), source))?;
        let mut buffer = Vec::with_capacity(WRITE_BYTES);
        buffer.extend_from_slice(MAGIC);
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        buffer.extend_from_slice(&start_lsn.to_le_bytes());
        let sum = checksum(&[&buffer]);
        buffer.extend_from_slice(&sum.to_le_bytes());
        Ok(Self {
            disk,
            name: name.to_owned(),
            file,
            buffer,
            written: 0,
            synced: 0,
            chunks: 0,
            bytes: 0,
            sums: crc32fast::Hasher::new(),
            is_finished: false,
        })
    }

    /// Adds one chunk; empty chunks are skipped.
    ///
    /// # Errors
    /// When a write or sync fails; the snapshot is then worthless and should be dropped.
    ///
    /// # Panics
    /// When the chunk is larger than [`CHUNK_BYTES_MAX`].
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<(), FileError> {
        assert!(chunk.len() <= CHUNK_BYTES_MAX, "a snapshot chunk is bounded by its writer");
        if chunk.is_empty() {
            return Ok(());
        }
        let sum = checksum(&[&self.chunks.to_le_bytes(), chunk]).to_le_bytes();
        self.buffer.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(&sum);
        self.buffer.extend_from_slice(chunk);
        self.sums.update(&sum);
        self.chunks += 1;
        self.bytes += chunk.len() as u64;
        if self.buffer.len() >= WRITE_BYTES {
            self.write_out()?;
        }
        if self.written - self.synced >= SYNC_BYTES {
            self.sync()?;
        }
        Ok(())
    }

    /// Completes the snapshot: it holds the state as of `end_lsn`. Returns its size in bytes.
    ///
    /// # Errors
    /// When it could not be made durable under its name.
    pub fn finish(mut self, end_lsn: Lsn) -> Result<u64, FileError> {
        let mut footer = vec![0; 4];
        footer.extend_from_slice(&self.chunks.to_le_bytes());
        footer.extend_from_slice(&self.bytes.to_le_bytes());
        footer.extend_from_slice(&end_lsn.to_le_bytes());
        footer.extend_from_slice(&self.sums.clone().finalize().to_le_bytes());
        let sum = checksum(&[&footer]);
        footer.extend_from_slice(&sum.to_le_bytes());
        self.buffer.extend_from_slice(&footer);
        self.write_out()?;
        self.sync()?;
        publish(self.disk.as_ref(), &self.name)?;
        self.is_finished = true;
        Ok(self.written)
    }

    fn write_out(&mut self) -> Result<(), FileError> {
        self.file
            .write_at(self.written, &self.buffer)
            .map_err(|source| FileError::io("write", &self.name, source))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), FileError> {
        self.synced = self.written;
        self.file.sync_data().map_err(|source| FileError::io("sync", &self.name, source))
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // Best effort: a leftover is harmless and the next attempt replaces it.
            let _ = self.disk.remove(&temporary(&self.name));
        }
    }
}

/// Reads a snapshot from front to back.
#[derive(Debug)]
pub struct SnapshotReader {
    name: String,
    file: Box<dyn DiskFile>,
    start_lsn: Lsn,
    end_lsn: Option<Lsn>,
    at: u64,
    window: Vec<u8>,
    window_at: u64,
    chunks: u64,
    bytes: u64,
    sums: crc32fast::Hasher,
}

impl SnapshotReader {
    /// Opens a snapshot and checks its header.
    ///
    /// # Errors
    /// `Io`, or `Damaged` when the header is not what was written.
    pub fn open(disk: &dyn Disk, name: &str) -> Result<Self, FileError> {
        let file = disk.open_read(name).map_err(|source| FileError::io("open", name, source))?;
        let header = read_exact(file.as_ref(), name, 0, HEADER)?;
        if let Some(found) = newer_format(&header, MAGIC, VERSION) {
            return Err(FileError::Newer { file: name.to_owned(), found, known: VERSION });
        }
        let start_lsn = parse_header(&header)
            .ok_or_else(|| FileError::damaged(name, 0, "the snapshot header is invalid"))?;
        Ok(Self {
            name: name.to_owned(),
            file,
            start_lsn,
            end_lsn: None,
            at: HEADER as u64,
            window: Vec::new(),
            window_at: 0,
            chunks: 0,
            bytes: 0,
            sums: crc32fast::Hasher::new(),
        })
    }

    /// First lsn that must be replayed on top.
    pub fn start_lsn(&self) -> Lsn {
        self.start_lsn
    }

    /// The lsn the snapshot was finished at; known once `next_chunk` returned `None`.
    pub fn end_lsn(&self) -> Option<Lsn> {
        self.end_lsn
    }

    /// Where the next chunk begins.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next verified chunk. `None` only after the footer agreed with everything read, so a
    /// state built from the chunks must not be used before.
    ///
    /// # Errors
    /// `Io`, or `Damaged` at the first byte range that is not what was written.
    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>, FileError> {
        if self.end_lsn.is_some() {
            return Ok(None);
        }
        let at = self.at;
        let mut fields = Fields(self.bytes(at, CHUNK_HEADER)?);
        let (length, sum) = (fields.u32().unwrap_or(0) as usize, fields.u32().unwrap_or(0));
        if length == 0 {
            self.end_lsn = Some(self.footer(at)?);
            return Ok(None);
        }
        if length > CHUNK_BYTES_MAX {
            return Err(FileError::damaged(&self.name, at, "the chunk length is impossible"));
        }
        let index = self.chunks.to_le_bytes();
        let chunk = self.bytes(at + CHUNK_HEADER as u64, length)?;
        if checksum(&[&index, chunk]) != sum {
            return Err(FileError::damaged(&self.name, at, "the chunk checksum is wrong"));
        }
        self.chunks += 1;
        self.bytes += length as u64;
        self.sums.update(&sum.to_le_bytes());
        self.at = at + (CHUNK_HEADER + length) as u64;
        self.bytes(at + CHUNK_HEADER as u64, length).map(Some)
    }

    fn footer(&mut self, at: u64) -> Result<Lsn, FileError> {
        let damaged = |name: &str, reason: &str| FileError::damaged(name, at, reason);
        let footer = self.bytes(at, FOOTER)?;
        let sum = checksum(&[&footer[..FOOTER - 4]]);
        let mut fields = Fields(&footer[4..]);
        let found = (fields.u64(), fields.u64());
        let end_lsn = fields.u64().unwrap_or(0);
        let sums = fields.u32();
        if fields.u32() != Some(sum) {
            return Err(damaged(&self.name, "the footer checksum is wrong"));
        }
        if found != (Some(self.chunks), Some(self.bytes))
            || sums != Some(self.sums.clone().finalize())
        {
            return Err(damaged(&self.name, "the footer disagrees with the chunks"));
        }
        let size = self.file.size().map_err(|source| FileError::io("read", &self.name, source))?;
        if size != at + FOOTER as u64 {
            return Err(damaged(&self.name, "there are bytes after the footer"));
        }
        Ok(end_lsn)
    }

    fn bytes(&mut self, at: u64, count: usize) -> Result<&[u8], FileError> {
        let is_inside =
            at >= self.window_at && at + count as u64 <= self.window_at + self.window.len() as u64;
        if !is_inside {
            self.window.resize(count.max(READ_BYTES), 0);
            let got = self
                .file
                .read_at(at, &mut self.window)
                .map_err(|source| FileError::io("read", &self.name, source))?;
            self.window.truncate(got);
            self.window_at = at;
            if got < count {
                return Err(FileError::damaged(&self.name, at + got as u64, "the file ends early"));
            }
        }
        let start = (at - self.window_at) as usize;
        Ok(&self.window[start..start + count])
    }
}

fn parse_header(header: &[u8]) -> Option<Lsn> {
    let mut fields = Fields(header);
    let is_ours = fields.take(8)? == MAGIC && fields.u32()? == VERSION;
    let start_lsn = fields.u64()?;
    (is_ours && fields.u32()? == checksum(&[&header[..HEADER - 4]])).then_some(start_lsn)
}

#[cfg(test)]
mod tests;

//! A copy of a store, taken while a server uses it, and the way back.
//!
//! The server takes no part in it. Every file but the journal and the manifest is written once and
//! never changed, so it is enough to have them all open at one moment: what the server removes
//! afterwards can still be read. The manifest says which they are; if one of them is gone before it
//! is open, there is a newer manifest. The journal is copied block by block (`journal/copy.rs`) and
//! last, so the copy holds everything that was acknowledged when it was begun, and a little more.
//! Pieces of the stream are opened before the journal: they never know of a move that it does not.
//!
//! `BACKUP` lists the files with sizes and checksums. It is written last: a directory without it is
//! no backup. Must never write to the directory that it copies.

use crate::bytes::{checksum, publish, temporary};
use crate::disk::{Disk, DiskFile};
use crate::error::FileError;
use crate::journal::{self, JournalError};
use crate::manifest::{self, Manifest};
use std::fmt::Write;

/// The list of a backup's files.
pub const LIST: &str = "BACKUP";

const TITLE: &str = "mainspring backup 1";
/// A larger list is not ours.
const LIST_BYTES_MAX: u64 = 64 << 20;
/// Bytes copied at a time.
const STEP_BYTES: usize = 1 << 20;
/// A server replaces files while it runs: then it is begun again, at most this often.
const BEGINS_MAX: usize = 50;

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file cannot be read or written, or is damaged.
    #[error(transparent)]
    File(#[from] FileError),
    /// The journal cannot be read or written, or is damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is nothing to copy.
    #[error("there is no store in this directory")]
    NoStore,
    /// It is not a whole backup.
    #[error("this is no whole backup: {0}")]
    NotWhole(String),
    /// The server replaced its files again and again.
    #[error("the files changed too often while they were opened; try again")]
    Restless,
}

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames of the journal.
    pub frames: u64,
}

/// Told as bytes are copied: done, and in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Everything that is copied, held open.
struct Held {
    manifest: Option<Manifest>,
    files: Vec<(String, Box<dyn DiskFile>, u64)>,
    journal: journal::copy::Held,
}

/// Copies the store in `from` into `to`, which is empty but for files that the caller put there and
/// names in `beside`: they are listed, too.
///
/// # Errors
/// If there is no store, a file cannot be read or written, or something is damaged.
pub fn take(
    from: &dyn Disk,
    to: &dyn Disk,
    beside: &[&str],
    progress: Progress<'_>,
) -> Result<Taken, BackupError> {
    let held = hold(from)?;
    let all = held.files.iter().map(|(_, _, size)| size).sum();
    let mut names: Vec<String> = beside.iter().map(|name| (*name).to_owned()).collect();
    let journal = journal::copy::copy(held.journal, from, to)?;
    names.extend(journal.files);
    let mut done = 0;
    for (name, file, size) in held.files {
        copy_file(file.as_ref(), &name, size, to, &mut |bytes| {
            done += bytes;
            progress(done, all);
        })?;
        names.push(name);
    }
    if let Some(manifest) = held.manifest {
        manifest.store(to)?;
        names.push(manifest::NAME.to_owned());
    }
    let bytes = write_list(to, &mut names)?;
    Ok(Taken { files: names.len() as u64, bytes, frames: journal.frames })
}

fn hold(from: &dyn Disk) -> Result<Held, BackupError> {
    for _ in 0..BEGINS_MAX {
        let manifest = Manifest::load(from)?;
        match hold_named(from, manifest.as_ref()) {
            Ok(Some(held)) => return Ok(held),
            Ok(None) if manifest.is_none() => return Err(BackupError::NoStore),
            Ok(None) => {}
            Err(BackupError::File(error)) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
        if Manifest::load(from)? == manifest {
            // Nothing was replaced: it is really missing, or about to be. One more look tells.
            let held = hold_named(from, manifest.as_ref())?;
            return held.ok_or(BackupError::NoStore);
        }
    }
    Err(BackupError::Restless)
}

/// Opens all that a manifest names; `None` if the journal does not begin where it says.
fn hold_named(from: &dyn Disk, manifest: Option<&Manifest>) -> Result<Option<Held>, BackupError> {
    let listed = from.list().map_err(|source| FileError::io("list", "the directory", source))?;
    let pieces = listed.into_iter().filter(|name| name.ends_with(".moves"));
    let named = manifest.iter().flat_map(|it| it.snapshot.iter().chain(&it.runs)).cloned();
    let mut files = Vec::new();
    for name in named.chain(pieces) {
        let opened = from.open_read(&name).and_then(|file| Ok((file.size()?, file)));
        let (size, file) = opened.map_err(|source| FileError::io("open", &name, source))?;
        files.push((name, file, size));
    }
    let first = manifest.map_or(1, |manifest| manifest.first_segment);
    let Some(journal) = journal::copy::hold(from, first)? else { return Ok(None) };
    Ok(Some(Held { manifest: manifest.cloned(), files, journal }))
}

fn copy_file(
    file: &dyn DiskFile,
    name: &str,
    size: u64,
    to: &dyn Disk,
    progress: &mut dyn FnMut(u64),
) -> Result<(), FileError> {
    let failed = |source| FileError::io("write", name, source);
    let copy = to.create(name).map_err(failed)?;
    let mut at = 0;
    while at < size {
        let count = STEP_BYTES.min((size - at) as usize);
        copy.write_at(at, &crate::bytes::read_exact(file, name, at, count)?).map_err(failed)?;
        at += count as u64;
        progress(count as u64);
    }
    copy.set_len(size).and_then(|()| copy.sync_data()).map_err(failed)
}

/// Size and checksum of a file.
fn measure(disk: &dyn Disk, name: &str) -> Result<(u64, u32), FileError> {
    let opened = disk.open_read(name).and_then(|file| Ok((file.size()?, file)));
    let (size, file) = opened.map_err(|source| FileError::io("read", name, source))?;
    let mut sum = crc32fast::Hasher::new();
    let mut at = 0;
    while at < size {
        let count = STEP_BYTES.min((size - at) as usize);
        sum.update(&crate::bytes::read_exact(file.as_ref(), name, at, count)?);
        at += count as u64;
    }
    Ok((size, sum.finalize()))
}

/// Reads everything back and writes it down; the directory is a backup from then on.
fn write_list(disk: &dyn Disk, names: &mut [String]) -> Result<u64, FileError> {
    names.sort_unstable();
    let (mut text, mut bytes) = (format!("{TITLE}\n"), 0);
    for name in names.iter() {
        let (size, sum) = measure(disk, name)?;
        bytes += size;
        writeln!(text, "{sum:08x} {size} {name}").expect("writing to a string cannot fail");
    }
    let sum = checksum(&[text.as_bytes()]);
    writeln!(text, "{sum:08x} end").expect("writing to a string cannot fail");
    let temporary = temporary(LIST);
    let failed = |source| FileError::io("write", &temporary, source);
    let file = disk.create(&temporary).map_err(failed)?;
    file.write_at(0, text.as_bytes()).and_then(|()| file.sync_data()).map_err(failed)?;
    publish(disk, LIST)?;
    Ok(bytes)
}

/// Checks every byte of a backup and answers with its files.
///
/// # Errors
/// If it is no backup, or not as it was written.
pub fn verify(disk: &dyn Disk) -> Result<Vec<(String, u64)>, BackupError> {
    let not_whole = |text: String| BackupError::NotWhole(text);
    let opened = disk.open_read(LIST).and_then(|file| Ok((file.size()?, file)));
    let (size, file) =
        opened.map_err(|error| not_whole(format!("{LIST} cannot be read ({error})")))?;
    if size > LIST_BYTES_MAX {
        return Err(not_whole(format!("{LIST} is too large")));
    }
    let bytes = crate::bytes::read_exact(file.as_ref(), LIST, 0, size as usize)?;
    let list = String::from_utf8(bytes).ok().and_then(|text| parse(&text));
    let list = list.ok_or_else(|| not_whole(format!("{LIST} is damaged")))?;
    for (name, size, sum) in &list {
        let found = measure(disk, name).map_err(|error| not_whole(error.to_string()))?;
        if found != (*size, *sum) {
            return Err(not_whole(format!("{name} is not what was written")));
        }
    }
    Ok(list.into_iter().map(|(name, size, _)| (name, size)).collect())
}

/// Copies the files of a backup, which [`verify`] has named, into an empty directory.
///
/// # Errors
/// If a file cannot be read or written.
pub fn restore(
    from: &dyn Disk,
    to: &dyn Disk,
    files: &[(String, u64)],
    progress: Progress<'_>,
) -> Result<(), BackupError> {
    let all = files.iter().map(|(_, size)| size).sum();
    let mut done = 0;
    for (name, size) in files {
        let file = from.open_read(name).map_err(|source| FileError::io("read", name, source))?;
        copy_file(file.as_ref(), name, *size, to, &mut |bytes| {
            done += bytes;
            progress(done, all);
        })?;
    }
    to.sync_dir().map_err(|source| FileError::io("sync", "the directory", source))?;
    Ok(())
}

fn parse(text: &str) -> Option<Vec<(String, u64, u32)>> {
    let body = text.strip_suffix(" end\n")?;
    let (body, sum) = body.split_at_checked(body.len().checked_sub(8)?)?;
    if u32::from_str_radix(sum, 16).ok()? != checksum(&[body.as_bytes()]) {
        return None;
    }
    let mut lines = body.lines();
    if lines.next()? != TITLE {
        return None;
    }
    let line = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let sum = u32::from_str_radix(parts.next()?, 16).ok()?;
        let size = parts.next()?.parse().ok()?;
        // A name leads nowhere else: this may be anybody's file.
        let name = parts.next().filter(|name| !name.contains('/') && !name.starts_with('.'))?;
        Some((name.to_owned(), size, sum))
    };
    lines.map(line).collect()
}

//! A disk that tells somebody after every change: the boundaries at which the power may fail.

use mainspring_store_memory::disk::{DirLock, Disk, DiskFile, SimDisk};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

/// Told after every write, sync and directory change.
pub type Told = Arc<dyn Fn() + Send + Sync>;

/// The watched disk. The planted bugs of the byte layer are here too.
#[derive(Clone)]
pub struct Watched {
    inner: SimDisk,
    told: Told,
    lie: Lie,
    writes: Arc<Mutex<u64>>,
}

/// How the disk betrays the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lie {
    /// It does not.
    #[default]
    None,
    /// `sync_data` returns at once and does nothing.
    SkipSync,
    /// `sync_dir` returns at once and does nothing.
    SkipDirSync,
    /// Every seventh write to the journal is thrown away although it is acknowledged.
    LoseWrite,
}

impl Watched {
    /// Watches `inner`.
    pub fn new(inner: SimDisk, lie: Lie, told: Told) -> Self {
        Watched { inner, told, lie, writes: Arc::default() }
    }

    fn file(&self, name: &str, inner: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let is_journal = name.starts_with("journal-");
        Box::new(WatchedFile { inner, disk: self.clone(), is_journal })
    }

    fn tell<T>(&self, outcome: T) -> T {
        (self.told)();
        outcome
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("lie", &self.lie).finish_non_exhaustive()
    }
}

impl Disk for Watched {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.inner.create(name).map(|file| self.file(name, file));
        self.tell(file)
    }

    fn open_write(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(name, self.inner.open_write(name)?))
    }

    fn open_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(name, self.inner.open_read(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let outcome = self.inner.rename(from, to);
        self.tell(outcome)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let outcome = self.inner.remove(name);
        self.tell(outcome)
    }

    fn sync_dir(&self) -> io::Result<()> {
        let outcome = if self.lie == Lie::SkipDirSync { Ok(()) } else { self.inner.sync_dir() };
        self.tell(outcome)
    }

    fn try_lock(&self) -> io::Result<Option<DirLock>> {
        self.inner.try_lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }
}

#[derive(Debug)]
struct WatchedFile {
    inner: Box<dyn DiskFile>,
    disk: Watched,
    is_journal: bool,
}

impl DiskFile for WatchedFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut count = self.disk.writes.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        let is_lost = self.disk.lie == Lie::LoseWrite && self.is_journal && count.is_multiple_of(7);
        drop(count);
        let outcome = if is_lost { Ok(()) } else { self.inner.write_at(offset, bytes) };
        self.disk.tell(outcome)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        let outcome = self.inner.set_len(size);
        self.disk.tell(outcome)
    }

    fn sync_data(&self) -> io::Result<()> {
        let outcome = if self.disk.lie == Lie::SkipSync { Ok(()) } else { self.inner.sync_data() };
        self.disk.tell(outcome)
    }
}

//! A disk on which somebody falls over: it panics in the thread that touches certain files.

use mainspring_store_memory::disk::{DirLock, Disk, DiskFile, SimDisk};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The trapped disk.
#[derive(Debug, Clone)]
pub(crate) struct Trap {
    inner: SimDisk,
    prefix: &'static str,
    is_set: Arc<AtomicBool>,
}

impl Trap {
    /// Panics, once it is set, where files whose names begin with `prefix` are made or written.
    pub(crate) fn new(inner: SimDisk, prefix: &'static str) -> Self {
        Trap { inner, prefix, is_set: Arc::default() }
    }

    pub(crate) fn set(&self) {
        self.is_set.store(true, Ordering::Release);
    }

    fn step_on(&self, name: &str) {
        if self.is_set.load(Ordering::Acquire) && name.starts_with(self.prefix) {
            panic!("a trap at {}", self.prefix);
        }
    }

    fn file(&self, name: &str, inner: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(TrapFile { inner, trap: self.clone(), name: name.to_owned() })
    }
}

impl Disk for Trap {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.step_on(name);
        Ok(self.file(name, self.inner.create(name)?))
    }

    fn open_write(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(name, self.inner.open_write(name)?))
    }

    fn open_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.inner.open_read(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn try_lock(&self) -> io::Result<Option<DirLock>> {
        self.inner.try_lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }
}

#[derive(Debug)]
struct TrapFile {
    inner: Box<dyn DiskFile>,
    trap: Trap,
    name: String,
}

impl DiskFile for TrapFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.trap.step_on(&self.name);
        self.inner.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.inner.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }
}

//! A disk in memory that remembers what a power loss may take away.
//!
//! Rules of the model, deliberately harsher than ext4: a write is durable only after `sync_data` of
//! its file, a name only after `sync_dir`; whatever is not durable may survive in any combination,
//! per 512-byte sector, in any order. One sector is never half written (`sim/crash.rs` picks the
//! combinations). A failed sync leaves its writes possibly on disk but no later sync covers them,
//! as Linux behaves. Must stay deterministic: no clock, no threads, no randomness but the seed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{DirLock, Disk, DiskFile};

mod crash;

pub use crash::CrashChoice;

/// The unit that reaches the platter whole or not at all.
pub const SECTOR: u64 = 512;

/// A simulated data directory. Clones share the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// Planned misfortune; counts start at one and every fault that names an operation fires once.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// This write from now fails with an input/output error and changes nothing.
    pub fail_write: Option<u64>,
    /// This sync from now (file or directory) fails.
    pub fail_sync: Option<u64>,
    /// All files together may not be larger; beyond it writes fail with "no space".
    pub quota_bytes: Option<u64>,
    /// After that many further changes (writes, syncs, directory operations) the power is gone:
    /// everything fails and nothing changes, until [`SimDisk::crash`] makes the restart's disk.
    pub power_off_after: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending: Vec<Pending>,
    faults: Faults,
    changes: u64,
    bytes_read: u64,
    is_locked: bool,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    now: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
}

#[derive(Debug)]
struct Pending {
    change: Change,
    /// A sync of this change failed: no later sync makes it durable.
    is_forgotten: bool,
}

#[derive(Debug)]
enum Change {
    Write {
        inode: usize,
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen {
        inode: usize,
        size: u64,
    },
    Link {
        name: String,
        inode: usize,
    },
    /// Moves this file, even when the name it had was never durable.
    Rename {
        from: String,
        to: String,
        inode: usize,
    },
    Unlink {
        name: String,
    },
}

impl SimDisk {
    /// An empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the planned faults.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Changes (writes, syncs, directory operations) asked for so far, failed ones included.
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.lock().bytes_read
    }

    /// Changes that a crash right now could undo.
    pub fn pending(&self) -> usize {
        self.lock().pending.len()
    }

    /// The bytes of a file as a reader sees them now.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.lock();
        state.names.get(name).map(|&inode| state.inodes[inode].now.to_vec())
    }

    /// Puts a file in place behind the journal's back, durable at once: how tests damage things.
    pub fn overwrite(&self, name: &str, bytes: Vec<u8>) {
        let mut state = self.lock();
        let bytes = Arc::new(bytes);
        state.inodes.push(Inode { now: Arc::clone(&bytes), durable: bytes });
        let inode = state.inodes.len() - 1;
        state.names.insert(name.to_owned(), inode);
        state.durable_names.insert(name.to_owned(), inode);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let state = self.lock();
        state.check_power()?;
        let &inode = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(SimFile { disk: self.clone(), inode }))
    }
}

impl State {
    fn check_power(&self) -> io::Result<()> {
        match self.faults.power_off_after {
            Some(0) => Err(io::Error::other("the simulated power is off")),
            _ => Ok(()),
        }
    }

    /// Counts one change; fails without effect when the power is gone.
    fn change(&mut self) -> io::Result<()> {
        self.changes += 1;
        self.check_power()?;
        if let Some(left) = &mut self.faults.power_off_after {
            *left -= 1;
        }
        Ok(())
    }

    fn push(&mut self, change: Change) {
        self.pending.push(Pending { change, is_forgotten: false });
    }

    /// Takes the pending changes that match out of the list and makes them durable, or, when the
    /// sync is planned to fail, marks them as beyond the reach of any later sync.
    fn sync(&mut self, covers: impl Fn(&Change) -> bool) -> io::Result<()> {
        self.change()?;
        if fires(&mut self.faults.fail_sync) {
            for pending in self.pending.iter_mut().filter(|pending| covers(&pending.change)) {
                pending.is_forgotten = true;
            }
            return Err(io::Error::other("simulated sync failure"));
        }
        let all = std::mem::take(&mut self.pending);
        for pending in all {
            if covers(&pending.change) && !pending.is_forgotten {
                // What is durable cannot be undone by an older change that lost its sync.
                let is_past = |older: &mut Pending| {
                    older.is_forgotten && pending.change.supersedes(&older.change)
                };
                self.pending.extract_if(.., is_past).for_each(drop);
                crash::apply(&mut self.inodes, &mut self.durable_names, &pending.change);
            } else {
                self.pending.push(pending);
            }
        }
        Ok(())
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|&inode| self.inodes[inode].now.len() as u64).sum()
    }
}

fn fires(countdown: &mut Option<u64>) -> bool {
    match countdown {
        Some(1) => {
            *countdown = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

impl Disk for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.lock();
        state.check_power()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.lock();
        state.change()?;
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        if state.names.insert(name.to_owned(), inode).is_some() {
            state.push(Change::Unlink { name: name.to_owned() });
        }
        state.push(Change::Link { name: name.to_owned(), inode });
        Ok(Box::new(SimFile { disk: self.clone(), inode }))
    }

    fn open_write(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open(name)
    }

    fn open_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.change()?;
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        state.push(Change::Rename { from: from.to_owned(), to: to.to_owned(), inode });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.change()?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.push(Change::Unlink { name: name.to_owned() });
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.lock().sync(|change| change.inode().is_none())
    }

    fn try_lock(&self) -> io::Result<Option<DirLock>> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_locked, true) {
            return Ok(None);
        }
        Ok(Some(DirLock::new(Unlock(self.clone()))))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.lock();
        let quota = state.faults.quota_bytes.unwrap_or(u64::MAX);
        Ok(quota.saturating_sub(state.used_bytes()))
    }
}

struct Unlock(SimDisk);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.lock().is_locked = false;
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: usize,
}

impl DiskFile for SimFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.change()?;
        if fires(&mut state.faults.fail_write) {
            return Err(io::Error::other("simulated write failure"));
        }
        let growth =
            (offset + bytes.len() as u64).saturating_sub(state.inodes[self.inode].now.len() as u64);
        if let Some(quota) = state.faults.quota_bytes
            && growth > 0
            && state.used_bytes() + growth > quota
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        crash::place(Arc::make_mut(&mut state.inodes[self.inode].now), offset, bytes);
        state.push(Change::Write { inode: self.inode, offset, bytes: bytes.to_vec() });
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.lock();
        state.check_power()?;
        let bytes = state.inodes[self.inode].now.get(offset as usize..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        state.bytes_read += count as u64;
        Ok(count)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.lock().inodes[self.inode].now.len() as u64)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.change()?;
        Arc::make_mut(&mut state.inodes[self.inode].now).resize(size as usize, 0);
        state.push(Change::SetLen { inode: self.inode, size });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.lock().sync(|change| change.inode() == Some(self.inode))
    }
}

//! The data directory on a real file system.
//!
//! Must never treat a failed sync as retryable: after one, the kernel may have dropped the dirty
//! pages and a second sync would lie. It passes the error up and the journal stops for good.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::{DirLock, Disk, DiskFile};

/// A directory of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    directory: File,
}

impl RealDisk {
    /// Opens the directory. One that is missing is made, with its parents, so that nobody else can
    /// look into it; one that exists is left as it is.
    ///
    /// # Errors
    /// When the directory cannot be created or opened.
    pub fn open(root: impl AsRef<Path>) -> io::Result<Self> {
        let root = root.as_ref().to_path_buf();
        let missing: Vec<PathBuf> =
            root.ancestors().take_while(|path| !is_there(path)).map(Path::to_path_buf).collect();
        if !missing.is_empty() {
            DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
        }
        // A new entry lives in its parent, so the parent has to be synced as well.
        for made in missing {
            let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        let directory = File::open(&root)?;
        Ok(Self { root, directory })
    }
}

/// Whether it is a directory; the empty path is the present one.
fn is_there(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

impl Disk for RealDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.root)? {
            // A name that is not text is not ours; nothing here ever writes one.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        match std::fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(self.root.join(name))?;
        Ok(Box::new(RealFile(file)))
    }

    fn open_write(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.root.join(name))?;
        Ok(Box::new(RealFile(file)))
    }

    fn open_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(File::open(self.root.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.root.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn try_lock(&self) -> io::Result<Option<DirLock>> {
        // A second descriptor: a flock belongs to the open file, and `directory` is never closed
        // before the disk is dropped, which would keep the lock alive too long.
        let holder = File::open(&self.root)?;
        match rustix::fs::flock(&holder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(DirLock::new(holder))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let space = rustix::fs::fstatvfs(&self.directory)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        // fdatasync by way of the C library: a raw system call would be out of reach for the shim
        // with which the power-cut tests of the real binary come in between.
        self.0.sync_data()
    }
}

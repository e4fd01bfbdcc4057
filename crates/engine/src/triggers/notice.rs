//! What the operating system tells of changes in folders. Only a hint that something is worth a
//! look: who looks opens every folder anew. Where it cannot be had, files are looked at from time
//! to time instead.

use crate::limits::WATCHES_MAX;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::unix::AsyncFd;

/// Why files are looked at from time to time instead.
pub(super) const REMOTE: &str = "on a file system that other machines change";
pub(super) const TOO_MANY: &str = "in more folders than can be watched";
pub(super) const MISSING: &str = "its root is not there";
pub(super) const UNTOLD: &str = "the operating system tells of no changes";

/// Told of changes in folders.
pub(super) struct Notice {
    fd: AsyncFd<Arc<OwnedFd>>,
    /// Which folder each watch is for.
    folders: HashMap<i32, PathBuf>,
}

/// Something happened in a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// To a file of that name.
    File(PathBuf, OsString),
    /// To a folder in it, or to itself.
    Folder(PathBuf),
    /// In a folder that is being looked into for the first time.
    Somewhere,
    /// Anywhere: more happened than could be told.
    Anywhere,
}

/// Asks for folders to be watched, from any thread.
#[derive(Clone)]
pub(super) struct Asking(Arc<OwnedFd>);

const WHAT: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::EXCL_UNLINK);

impl Asking {
    /// Has a folder watched; the number of the watch.
    pub(super) fn watch(&self, folder: &Path) -> Result<i32, &'static str> {
        match inotify::add_watch(&*self.0, folder, WHAT) {
            Ok(watch) => Ok(watch),
            Err(Errno::NOSPC | Errno::NOMEM) => Err(TOO_MANY),
            Err(_) => Err(UNTOLD),
        }
    }
}

impl Notice {
    /// Nothing is watched yet; `None` where the system tells of nothing.
    pub(super) fn new() -> Option<Notice> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        #[expect(deprecated, reason = "the other way is unsafe; this descriptor is ours alone")]
        let fd = AsyncFd::new(Arc::new(fd)).ok()?;
        Some(Notice { fd, folders: HashMap::new() })
    }

    pub(super) fn asking(&self) -> Asking {
        Asking(self.fd.get_ref().clone())
    }

    /// How many more watches there may be.
    pub(super) fn room(&self) -> usize {
        WATCHES_MAX.saturating_sub(self.folders.len())
    }

    /// Takes note of a watch.
    pub(super) fn note(&mut self, watch: i32, folder: PathBuf) {
        self.folders.insert(watch, folder);
    }

    /// Ends the watches of folders that nobody wants any more.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&Path) -> bool) {
        let fd = self.fd.get_ref().clone();
        self.folders.retain(|watch, folder| {
            let is_wanted = is_wanted(folder);
            if !is_wanted {
                // It may be gone with its folder.
                let _ = inotify::remove_watch(&*fd, *watch);
            }
            is_wanted
        });
    }

    /// Waits for changes; some of them.
    pub(super) async fn changes(&mut self) -> Vec<Change> {
        loop {
            let Ok(mut guard) = self.fd.readable().await else {
                return std::future::pending().await;
            };
            let (changes, gone) = read(guard.get_inner(), &self.folders);
            if changes.is_empty() {
                guard.clear_ready();
                continue;
            }
            drop(guard);
            for watch in gone {
                self.folders.remove(&watch);
            }
            return changes;
        }
    }
}

/// What there is to read at once, and the watches that have ended.
fn read(fd: &OwnedFd, folders: &HashMap<i32, PathBuf>) -> (Vec<Change>, Vec<i32>) {
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut reader = Reader::new(fd, &mut buffer);
    let (mut changes, mut gone) = (Vec::new(), Vec::new());
    while let Ok(event) = reader.next() {
        let (watch, what) = (event.wd(), event.events());
        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
        changes.extend(told(folders, watch, what, name));
        if what.contains(ReadFlags::IGNORED) {
            gone.push(watch);
        }
        if reader.is_buffer_empty() {
            break;
        }
    }
    changes.dedup();
    (changes, gone)
}

fn told(
    folders: &HashMap<i32, PathBuf>,
    watch: i32,
    what: ReadFlags,
    name: Option<&OsStr>,
) -> Option<Change> {
    if what.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(Change::Anywhere);
    }
    let Some(folder) = folders.get(&watch) else {
        // The end of a watch that was not wanted any more is no news.
        return (!what.contains(ReadFlags::IGNORED)).then_some(Change::Somewhere);
    };
    Some(match name {
        Some(name) if !what.contains(ReadFlags::ISDIR) => {
            Change::File(folder.clone(), name.to_owned())
        }
        Some(_) | None => Change::Folder(folder.clone()),
    })
}

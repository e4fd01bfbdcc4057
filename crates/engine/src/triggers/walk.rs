//! A look at the files of a path, on a thread that may wait. Nothing is followed: each folder is
//! opened from the one above it, and what is a link is not there. So no link, however quickly it is
//! put in a folder's place, leads out of a root.

use super::pattern::{Part, Pattern, is_like};
use crate::limits::{WALK_DEPTH_MAX, WALK_MAX};
use mainspring_kernel::Timestamp;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstatfs, openat, statat};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// A folder that was looked into, and the one name that matters in it, if it is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) name: Option<OsString>,
}

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// When the newest file changed.
    pub(super) newest: Option<Timestamp>,
    /// Where something might come to be, or go.
    pub(super) places: Vec<Place>,
    /// Whether there was too much to look at.
    pub(super) is_cut: bool,
    /// Whether the root is not there.
    pub(super) is_missing: bool,
    /// Whether changes made elsewhere are not told here.
    pub(super) is_remote: bool,
    pub(super) took: Duration,
}

struct Walk<'a> {
    pattern: &'a Pattern,
    /// Told of every folder before it is looked into.
    enter: &'a mut dyn FnMut(&Path),
    left: usize,
    found: Walked,
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Looks at everything that `pattern` means; `enter` is told of each folder first.
pub(super) fn walk(pattern: &Pattern, enter: &mut dyn FnMut(&Path)) -> Walked {
    let began = Instant::now();
    let mut walk = Walk { pattern, enter, left: WALK_MAX, found: Walked::default() };
    // Who set the root up may well have used a link for it.
    match openat(CWD, &pattern.root, FOLDER, Mode::empty()) {
        Ok(root) => {
            walk.found.is_remote = fstatfs(&root).is_ok_and(|fs| is_remote(fs.f_type as u64));
            walk.folder(&root, &pattern.root, 0, 0);
        }
        Err(_) => walk.found.is_missing = true,
    }
    walk.found.took = began.elapsed();
    walk.found
}

/// NFS, SMB, CIFS, 9P, FUSE, AFS, Ceph: what others do there is not told here.
fn is_remote(kind: u64) -> bool {
    const REMOTE: [u64; 8] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x0102_1997,
        0x6573_5546,
        0x5346_414f,
        0x00c3_6400,
    ];
    REMOTE.contains(&(kind & 0xffff_ffff))
}

impl Walk<'_> {
    fn folder(&mut self, fd: &OwnedFd, path: &Path, at: usize, depth: usize) {
        if depth > WALK_DEPTH_MAX {
            self.found.is_cut = true;
            return;
        }
        let name = match &self.pattern.parts[at] {
            Part::Name(name) => Some(name.clone()),
            Part::Wild(_) | Part::Folders => None,
        };
        (self.enter)(path);
        self.found.places.push(Place { folder: path.to_owned(), name });
        self.inside(fd, path, at, depth);
    }

    /// Looks at what part `at` means in a folder.
    fn inside(&mut self, fd: &OwnedFd, path: &Path, at: usize, depth: usize) {
        let part = &self.pattern.parts[at];
        let is_last = at + 1 == self.pattern.parts.len();
        match part {
            Part::Name(name) if is_last => self.file(fd, name),
            Part::Name(name) => self.open(fd, path, name, at + 1, depth),
            Part::Wild(_) | Part::Folders => {
                if *part == Part::Folders && !is_last {
                    // It may stand for no folder at all.
                    self.inside(fd, path, at + 1, depth);
                }
                self.list(fd, path, at, depth);
            }
        }
    }

    fn list(&mut self, fd: &OwnedFd, path: &Path, at: usize, depth: usize) {
        let part = &self.pattern.parts[at];
        let is_last = at + 1 == self.pattern.parts.len();
        let Ok(entries) = Dir::read_from(fd) else { return };
        for entry in entries {
            let Ok(entry) = entry else { return };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.left == 0 {
                self.found.is_cut = true;
                return;
            }
            self.left -= 1;
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    kind_of(fd, name).map_or(FileType::Unknown, |stat| file_type(&stat))
                }
                kind => kind,
            };
            match (part, kind) {
                (Part::Folders, FileType::Directory) => self.open(fd, path, name, at, depth),
                (Part::Folders, FileType::RegularFile) if is_last => self.file(fd, name),
                (Part::Wild(_), FileType::RegularFile) if is_last && is_like(part, name) => {
                    self.file(fd, name);
                }
                (Part::Wild(_), FileType::Directory) if !is_last && is_like(part, name) => {
                    self.open(fd, path, name, at + 1, depth);
                }
                _ => {}
            }
            if self.found.is_cut {
                return;
            }
        }
    }

    fn open(&mut self, fd: &OwnedFd, path: &Path, name: &OsStr, at: usize, depth: usize) {
        if let Ok(next) = openat(fd, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            self.folder(&next, &path.join(name), at, depth + 1);
        }
    }

    fn file(&mut self, fd: &OwnedFd, name: &OsStr) {
        let Some(stat) = kind_of(fd, name) else { return };
        if file_type(&stat) == FileType::RegularFile {
            let micros = i64::try_from(stat.st_mtime_nsec).unwrap_or(0) / 1_000;
            let seconds = stat.st_mtime as i64;
            let at = Timestamp(seconds.saturating_mul(1_000_000).saturating_add(micros));
            self.found.newest = self.found.newest.max(Some(at));
        }
    }
}

fn kind_of(fd: impl AsFd, name: &OsStr) -> Option<Stat> {
    statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

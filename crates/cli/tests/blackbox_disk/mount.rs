//! A small file system of its own, gone when dropped.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted tmpfs.
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// Mounts one of `megabytes` at `path`.
    ///
    /// # Panics
    /// If that is not permitted: a test of full disks without one would prove nothing.
    pub(crate) fn tmpfs(path: &Path, megabytes: u32) -> Self {
        std::fs::create_dir_all(path).expect("a directory");
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(path)
            .status()
            .expect("mount starts");
        assert!(
            mounted.success(),
            "THE FULL DISK TEST DID NOT RUN: mounting a tmpfs needs root and CAP_SYS_ADMIN"
        );
        Mount(path.to_owned())
    }

    /// Fills what is left, to the last byte.
    pub(crate) fn fill(&self) {
        let path = self.0.join("ballast");
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a file");
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
    }

    /// Frees what [`Mount::fill`] took.
    pub(crate) fn free(&self) {
        std::fs::remove_file(self.0.join("ballast")).expect("the ballast");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

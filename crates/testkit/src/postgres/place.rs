//! A directory with processes that live in it. Both are gone when it is dropped, and also when the
//! test process ends in any other way: a guard waits for that.

use super::programs;
use rustix::process::Signal;
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends whatever has its working directory inside `$0`, and removes it. A process id from a file
/// could be somebody else's by now; a working directory cannot. What a killed PostgreSQL leaves
/// outside of its directory is one tiny segment of shared memory, which its pid file names.
const GUARD: &str = r#"
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
  found=$(find /proc -maxdepth 2 -name cwd -lname "$0*" 2>/dev/null)
  [ -n "$found" ] || break
  for link in $found; do pid=${link#/proc/}; kill -9 "${pid%/cwd}" 2>/dev/null; done
  sleep 0.1
done
if [ -f "$0/data/postmaster.pid" ]; then
  sed -n 7p "$0/data/postmaster.pid" | (read -r _ id; [ -n "$id" ] && ipcrm -m "$id") 2>/dev/null
fi
rm -rf "$0"
"#;

/// Ports from here up to the first one the system hands out by itself. A port of that upper range
/// could be taken by anybody's outgoing connection while PostgreSQL is down.
const PORT_MIN: u16 = 15_000;

/// A directory, and its guard.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    guard: Child,
}

impl Place {
    /// A new directory, owned by the account the programs run as.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(prefix: &str) -> Self {
        let place = tempfile::Builder::new().prefix(prefix).tempdir_in(parent());
        let path = place.expect("a temporary directory").keep();
        if let Some((user, group)) = programs::account() {
            chown(&path, Some(user), Some(group)).expect("root may give files away");
        }
        let guard = Command::new("sh")
            .args(["-c", GUARD])
            .arg(&path)
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        Place { path, guard }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file that only the account of the programs may read, as keys must be.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn put_private(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path.join(name);
        std::fs::write(&path, text).expect("a file can be written");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
        if let Some((user, group)) = programs::account() {
            chown(&path, Some(user), Some(group)).expect("root may give files away");
        }
        path
    }

    /// The processes that live in it.
    pub fn processes(&self) -> Vec<u32> {
        let known = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        known
            .filter(|entry| {
                let home = std::fs::read_link(entry.path().join("cwd"));
                home.is_ok_and(|home| home.starts_with(&self.path))
            })
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }

    /// Sends a signal to all of them.
    pub(super) fn signal(&self, signal: Signal) {
        for pid in self.processes() {
            crate::blackbox::command::signal(pid, signal);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// The usual directory for temporary files, unless the account cannot get there or the name of a
/// socket in it would be too long.
fn parent() -> PathBuf {
    let usual = std::env::temp_dir();
    let is_open = usual
        .ancestors()
        .all(|directory| std::fs::metadata(directory).is_ok_and(|found| found.mode() & 0o001 != 0));
    let is_short = usual.as_os_str().len() < 60;
    if is_short && (is_open || programs::account().is_none()) { usual } else { "/tmp".into() }
}

/// A port of 127.0.0.1 that nobody listens on and that no outgoing connection is given: whoever
/// listened there can do so again after a restart.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let lowest = range.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
    let end = lowest.filter(|lowest| *lowest > PORT_MIN + 1_000).unwrap_or(32_768);
    let count = u64::from(end - PORT_MIN);
    let mut tries = (0..200).map(|_| PORT_MIN + (super::chance() % count) as u16);
    let free = tries.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.expect("a free port")
}

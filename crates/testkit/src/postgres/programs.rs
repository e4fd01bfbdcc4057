//! Where PostgreSQL's programs are, and as whom they may run: they refuse to run as root.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Accounts without rights, the best first; Debian's package makes the first one.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// The directory of `initdb`, `postgres` and `psql`: that of `PG_BIN`, what `pg_config` says, or
/// the newest of Debian's.
///
/// # Panics
/// If there is none.
pub fn directory() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let named = std::env::var_os("PG_BIN").map(PathBuf::from);
        let found = named.into_iter().chain(configured()).chain(packaged());
        let is_whole = |place: &PathBuf| {
            ["initdb", "postgres", "psql"].iter().all(|name| place.join(name).is_file())
        };
        match found.into_iter().find(is_whole) {
            Some(found) => found,
            None => panic!("no PostgreSQL found: install the package `postgresql` or set PG_BIN"),
        }
    })
}

fn configured() -> Option<PathBuf> {
    let ran = Command::new("pg_config").arg("--bindir").output().ok()?;
    let path = String::from_utf8(ran.stdout).ok()?;
    Some(PathBuf::from(path.trim()))
}

/// `/usr/lib/postgresql/VERSION/bin`, the newest first.
fn packaged() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_unstable();
    versions.into_iter().rev().map(|(_, path)| path).collect()
}

/// A program of the system, which may lie where only administrators look.
pub(super) fn of_the_system(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join(name)).find(|program| program.is_file())
}

/// User and group to become before a program is started; none if we are nobody special ourselves.
///
/// # Panics
/// If we are root and there is no account to become.
pub fn account() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = ACCOUNTS.iter().find_map(|account| {
        known.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let is_it = fields.len() > 3 && fields[0] == *account;
            is_it.then(|| Some((fields[2].parse().ok()?, fields[3].parse().ok()?)))?
        })
    });
    assert!(found.is_some(), "PostgreSQL does not run as root, and there is nobody to become");
    found
}

/// A command as the account of [`account`], in `place`, with nothing of our environment, and out of
/// reach of a Ctrl-C in our terminal: the guard of the place ends it.
pub(super) fn command(program: &Path, place: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(place).env_clear().env("LC_ALL", "C").env("TZ", "UTC").process_group(0);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if let Some((user, group)) = account() {
        command.uid(user).gid(group);
    }
    command
}

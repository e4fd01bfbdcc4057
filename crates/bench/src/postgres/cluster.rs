//! A PostgreSQL cluster of our own with default settings: made in a temporary directory, on a port
//! of its own, gone when dropped. PostgreSQL refuses to run as root, so root becomes `postgres`.

use super::session::Session;
use crate::cpu_time;
use crate::server::free_address;
use crate::stopwatch::Stopwatch;
use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::cell::Cell;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Where Debian keeps the programs of each major version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// How long a cluster may take to come up.
const START_MAX: Duration = Duration::from_secs(60);

/// A running cluster.
pub(crate) struct Cluster {
    child: Child,
    port: u16,
    folder: TempDir,
    databases: Cell<u32>,
}

impl Cluster {
    /// Makes and starts a cluster in `directory`, with `settings` such as `work_mem=8MB` on top of
    /// the defaults.
    pub(crate) fn start(directory: &Path, settings: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("bench-postgres-").tempdir_in(directory)?;
        let owner = owner()?;
        if let Some((user, group)) = owner {
            chown(folder.path(), Some(user), Some(group))?;
        }
        let files = folder.path().join("cluster");
        let made = program("initdb", owner)
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale"])
            .arg("--no-sync")
            .arg(&files)
            .output()
            .context("cannot start initdb; is PostgreSQL installed?")?;
        if !made.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
        let port = free_address()?.port();
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut server = program("postgres", owner);
        server.arg("-D").arg(&files).args(["-p", &port.to_string()]);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        for setting in settings {
            server.args(["-c", setting]);
        }
        let child = server.stdout(Stdio::null()).stderr(log).spawn()?;
        let mut cluster = Cluster { child, port, folder, databases: Cell::new(0) };
        cluster.wait_ready()?;
        Ok(cluster)
    }

    fn wait_ready(&mut self) -> anyhow::Result<()> {
        let stopwatch = Stopwatch::start();
        while Session::open(&self.url("postgres")).is_err() {
            let ended = self.child.try_wait()?;
            if ended.is_some() || stopwatch.elapsed() > START_MAX {
                let log = std::fs::read_to_string(self.folder.path().join("log"));
                bail!("PostgreSQL did not come up: {}", log.unwrap_or_default().trim());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// An empty database, after a checkpoint, so that none of them pays for the one before.
    pub(crate) fn database(&self) -> anyhow::Result<Database<'_>> {
        self.databases.set(self.databases.get() + 1);
        let name = format!("bench_{}", self.databases.get());
        let mut session = Session::open(&self.url("postgres"))?;
        session.run(&format!("create database {name}"))?;
        session.run("checkpoint")?;
        Ok(Database { url: self.url(&name), name, cluster: self })
    }

    /// Processor time of all its processes so far.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        cpu_time::taken_with_children(self.child.id())
    }

    /// Such as `15.18`.
    pub(crate) fn version(&self) -> anyhow::Result<String> {
        let told = Session::open(&self.url("postgres"))?.text("show server_version")?;
        Ok(told.split_whitespace().next().unwrap_or_default().to_owned())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing in it is worth a clean end; its children see that it is gone.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = self.child.wait();
    }
}

/// A database of the cluster; it goes when dropped.
pub(crate) struct Database<'a> {
    cluster: &'a Cluster,
    name: String,
    pub(crate) url: String,
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // The whole cluster goes in the end; a database that stays until then harms nobody.
        let _ = Session::open(&self.cluster.url("postgres")).and_then(|mut session| {
            session.run(&format!("drop database {} with (force)", self.name))
        });
    }
}

/// The user and group to become; `None` unless we are root.
fn owner() -> anyhow::Result<Option<(u32, u32)>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let ids = users.lines().find_map(|line| {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    });
    Ok(Some(ids.context("PostgreSQL does not run as root, and there is no user `postgres`")?))
}

/// A program from the folder in `PG_BIN`, of the newest PostgreSQL of Debian, or of the path.
fn program(name: &str, owner: Option<(u32, u32)>) -> Command {
    let asked = std::env::var_os("PG_BIN").map(|folder| PathBuf::from(folder).join(name));
    let found = asked.or_else(|| newest(name)).unwrap_or_else(|| PathBuf::from(name));
    let mut command = Command::new(found);
    command.stdin(Stdio::null()).current_dir("/");
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    command
}

fn newest(name: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN).ok()?.flatten();
    let major = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(major)?;
    Some(newest.join("bin").join(name)).filter(|path| path.is_file())
}

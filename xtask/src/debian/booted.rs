//! The unit under a systemd that runs: a root is booted in namespaces of its own, as a container
//! manager would, and systemd finds the unit, starts it, is told that it is ready, and starts it
//! again after a kill. Where no namespaces or no group of processes can be made, it says so and
//! tries nothing: a build machine may well be a container itself.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::{PATHS, STATE, fresh_root, inside, install, now, remove};
use crate::dist::said;

/// From the start of systemd to a service that takes work.
const READY_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What the least Debian lacks.
const PACKAGES: [&str; 2] = ["systemd-sysv", "dbus"];

/// Makes what a container gets, and becomes its first process. `$0` is the root.
const BOOT: &str = r#"
mount --make-rprivate /
mount -t proc proc "$0/proc"
mount -t sysfs -o ro sysfs "$0/sys"
mount -t cgroup2 none "$0/sys/fs/cgroup"
mount -t tmpfs tmpfs "$0/run"
mount -t tmpfs -o mode=755 tmpfs "$0/dev"
mkdir "$0/dev/pts" "$0/dev/shm"
for name in null zero full random urandom tty; do
  : > "$0/dev/$name"
  mount --bind "/dev/$name" "$0/dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
ln -s pts/ptmx "$0/dev/ptmx"
ln -s /proc/self/fd "$0/dev/fd"
exec env -i container=other "PATH=$1" chroot "$0" /lib/systemd/systemd --unit=multi-user.target
"#;

/// Installs the archive in a root with a systemd and boots that.
pub(super) fn try_out(archive: &Path, place: &Path) -> Result<()> {
    let fresh = fresh_root(place, "fresh-systemd", &PACKAGES)?;
    let root = place.join("booted");
    remove(&root)?;
    said(Command::new("cp").arg("-a").arg(&fresh).arg(&root))?;
    let service = install(archive, &root)?;
    let verify = ["systemd-analyze", "verify", "--man=no", "mainspring.service"];
    said(&mut inside(&root, &verify)).context("systemd finds fault with the unit")?;
    said(&mut inside(&root, &["systemctl", "enable", "mainspring"]))?;
    let tried = match Booted::start(&root)? {
        Some(booted) => booted.works(&service.url),
        None => {
            println!("no systemd can be booted here (cgroup2, namespaces): the unit was verified");
            Ok(())
        }
    };
    remove(&root)?;
    tried
}

/// A systemd that runs in a root, until it is dropped.
struct Booted {
    child: Child,
    /// Its process as we see it.
    init: String,
    group: PathBuf,
    since: Instant,
}

impl Booted {
    fn start(root: &Path) -> Result<Option<Self>> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let groups = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let (place, kind) = (words.nth(1)?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(place))
        });
        let Some(groups) = groups.last() else { return Ok(None) };
        let group = groups.join(format!("mainspring-debian-{}", std::process::id()));
        if fs::create_dir_all(&group).is_err() {
            return Ok(None);
        }
        let log = root.with_extension("log");
        let kinds = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"];
        let enter = "echo $$ > \"$0/cgroup.procs\"; exec \"$@\"";
        let child = Command::new("sh")
            .args(["-euc", enter])
            .arg(&group)
            .arg("unshare")
            .args(kinds)
            .args(["--fork", "--kill-child", "sh", "-euc", BOOT])
            .arg(root)
            .arg(PATHS)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?)
            .spawn()
            .context("cannot start unshare")?;
        let mut booted = Booted { child, init: String::new(), group, since: now() };
        // The shell that prepares the root becomes systemd.
        while now() - booted.since < READY_MAX {
            if booted.child.try_wait()?.is_some() {
                println!("{}", fs::read_to_string(&log).unwrap_or_default().trim());
                return Ok(None);
            }
            let id = booted.child.id();
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
            let init = children.unwrap_or_default().trim().to_owned();
            let name = fs::read_to_string(format!("/proc/{init}/comm")).unwrap_or_default();
            if name.trim() == "systemd" {
                booted.init = init;
                return Ok(Some(booted));
            }
            thread::sleep(LOOK_EVERY);
        }
        bail!("systemd does not start: {}", fs::read_to_string(&log).unwrap_or_default())
    }

    /// A command beside systemd.
    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        let kinds = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--root", "--wd"];
        command.args(["--target", &self.init]).args(kinds).arg("--").args(line);
        command.env_clear().env("PATH", PATHS).env("HOME", "/root").stdin(Stdio::null());
        command
    }

    fn property(&self, name: &str) -> String {
        let line = ["systemctl", "show", "--value", "--property", name, "mainspring"];
        let told = self.command(&line).stderr(Stdio::null()).output();
        told.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned()).unwrap_or_default()
    }

    /// Waits until systemd was told that the service is ready.
    fn once_active(&self, restarts: &str) -> Result<()> {
        let since = now();
        while self.property("ActiveState") != "active" || self.property("NRestarts") != restarts {
            if now() - since > READY_MAX {
                let line = ["journalctl", "--no-pager", "--unit", "mainspring"];
                bail!("the service is not active:\n{}", said(&mut self.command(&line))?);
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn works(&self, url: &str) -> Result<()> {
        self.once_active("0")?;
        println!("systemd: active after {:.1} s", (now() - self.since).as_secs_f64());
        ensure!(self.property("StatusText") == "taking work", "{}", self.property("StatusText"));
        let process = self.property("MainPID");
        let owner = said(&mut self.command(&["stat", "-c", "%u", &format!("/proc/{process}")]))?;
        ensure!(owner.trim() != "0", "the service runs as root");
        let client = |line: &[&str]| {
            let mut command = self.command(&[&["mainspring"], line].concat());
            command.env("MAINSPRING_URL", url);
            said(command.env("MAINSPRING_TOKEN_FILE", format!("{STATE}/admin.token")))
        };
        client(&["types", "set", "hello"])?;
        let job = client(&["jobs", "submit", "hello", "{}", "-o", "json"])?;
        let job: serde_json::Value = serde_json::from_str(&job)?;
        let id = job["job_id"].as_str().context("it has an id")?;
        // What signs in as an admin is for the file only.
        let journal =
            said(&mut self.command(&["journalctl", "--no-pager", "--unit", "mainspring"]))?;
        let token = said(&mut self.command(&["cat", &format!("{STATE}/admin.token")]))?;
        let is_told = journal.contains(token.trim()) || journal.contains("once=");
        ensure!(!is_told && journal.contains("admin.token"), "the journal:\n{journal}");
        // Killed, it is started again, and knows the job.
        said(&mut self.command(&["systemctl", "kill", "--signal", "KILL", "mainspring"]))?;
        self.once_active("1")?;
        ensure!(client(&["jobs", "get", id])?.contains("queued"), "the job is not there");
        said(&mut self.command(&["systemctl", "stop", "mainspring"]))?;
        let (state, result) = (self.property("ActiveState"), self.property("Result"));
        ensure!((&*state, &*result) == ("inactive", "success"), "stopped: {state}, {result}");
        println!("systemd: as its own user, started again after a kill, stopped in order");
        Ok(())
    }
}

impl Drop for Booted {
    fn drop(&mut self) {
        // With its first process the namespace ends, and all that runs in it.
        let _ = Command::new("kill").args(["-KILL", &self.init]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
        for _ in 0..50 {
            let inner = fs::read_dir(&self.group).into_iter().flatten().flatten();
            let inner = inner.map(|entry| entry.path()).filter(|path| path.is_dir());
            inner.for_each(|path| remove_group(&path));
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// A group of processes and those in it; they have ended.
fn remove_group(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_group(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

//! `cargo xtask debian`: the archive on a Debian that has nothing else, as a new user would install
//! it. A root is made by debootstrap and used by chroot; nothing of this machine is in it but its
//! kernel and its network. The unit is installed and what it starts is started as it says, because
//! no systemd runs in there: its user, its environment, its directory, its readiness. Then the
//! first job within a minute, and a backup taken under load that is brought back in a second root.
//! A third root has a systemd, which is booted and starts the unit itself: `debian/booted.rs`.

mod booted;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::dist::{self, Running, said};
use crate::{cargo, packages};

/// From the archive to the first job that is done.
const FIRST_JOB_MAX: Duration = Duration::from_secs(60);
/// Jobs of one call of the load, and how many there are before and after a backup.
const BATCH: usize = 100;
const BATCHES_MIN: usize = 10;
/// How long a server may take to say that it is ready.
const READY_MAX: Duration = Duration::from_secs(60);
/// Nobody, in every Debian: what stands for the user that systemd would make up.
const NOBODY: &str = "65534";
const UNIT: &str = "etc/systemd/system/mainspring.service";
const STATE: &str = "/var/lib/mainspring";
/// What must not be needed.
const TOOLCHAIN: [&str; 4] = ["usr/bin/cc", "usr/bin/gcc", "usr/bin/cargo", "usr/bin/rustc"];
const PATHS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let binary = match arguments {
        [] => cargo::target_directory()?.join("debug/mainspring"),
        [flag, file] if flag == "--binary" => PathBuf::from(file),
        _ => bail!("`cargo xtask debian [--binary FILE]`; what `cargo build` made if left out"),
    };
    packages::ensure("debian")?;
    let place = cargo::target_directory()?.join("debian");
    let fresh = fresh_root(&place, "fresh", &[])?;
    println!("the binary needs glibc {}", glibc(&binary)?);
    let archive = dist::make(&binary, &place.join("dist"))?;
    let [here, there] = ["here", "there"].map(|name| place.join(name));
    for root in [&here, &there] {
        remove(root)?;
        said(Command::new("cp").arg("-a").arg(&fresh).arg(root))?;
    }
    let tried = try_in(&archive, &here, &there);
    for root in [&here, &there] {
        remove(root)?;
    }
    tried?;
    booted::try_out(&archive, &place)
}

/// A root as debootstrap leaves it, made once; `more` are packages beside the least.
fn fresh_root(place: &Path, name: &str, more: &[&str]) -> Result<PathBuf> {
    let (fresh, half) = (place.join(name), place.join(format!("{name}.partial")));
    if !fresh.exists() {
        fs::create_dir_all(place).context("cannot make a place")?;
        remove(&half)?;
        let mut make = Command::new("debootstrap");
        if !more.is_empty() {
            make.arg(format!("--include={}", more.join(",")));
        }
        cargo::run_command(make.args(["--variant=minbase", "stable"]).arg(&half))?;
        fs::rename(&half, &fresh).context("cannot keep the root")?;
    }
    Ok(fresh)
}

fn remove(root: &Path) -> Result<()> {
    match root.exists() {
        true => fs::remove_dir_all(root).with_context(|| format!("cannot remove {root:?}")),
        false => Ok(()),
    }
}

/// The newest version of the C library that a binary names.
fn glibc(binary: &Path) -> Result<String> {
    let bytes = fs::read(binary).context("cannot read the binary")?;
    let mut newest = (0, 0);
    for at in memchr(&bytes, b"GLIBC_2.") {
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit());
        let minor: String = digits.map(|byte| char::from(*byte)).collect();
        newest = newest.max((2, minor.parse().unwrap_or(0)));
    }
    Ok(format!("{}.{}", newest.0, newest.1))
}

/// Where each `wanted` in `bytes` ends.
fn memchr<'a>(bytes: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let found = bytes.windows(wanted.len()).enumerate();
    found.filter(move |(_, window)| window == &wanted).map(move |(at, _)| at + wanted.len())
}

/// A command inside of a root, with nothing of our environment. Every system has /proc; this one
/// has it for as long as the command runs, and nobody else sees it.
fn inside(root: &Path, line: &[&str]) -> Command {
    const ENTER: &str = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-euc", ENTER]).arg(root).args(line);
    command.env_clear().env("PATH", PATHS).env("HOME", "/root");
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn try_in(archive: &Path, here: &Path, there: &Path) -> Result<()> {
    let found = TOOLCHAIN.iter().find(|program| here.join(program).exists());
    ensure!(found.is_none(), "there is a toolchain in it: {found:?}");
    let release = fs::read_to_string(here.join("etc/debian_version")).unwrap_or_default();
    let start = now();
    let service = install(archive, here)?;
    let _server = service.start(here)?;
    service.client(here, &["types", "set", "hello"])?;
    let worker = service.command(here, &["worker", "--type", "hello", "--", "cat"]);
    let worker = Running::start({ worker }.stdout(Stdio::null()).stderr(Stdio::null()))?;
    let job = service.client(here, &["jobs", "submit", "hello", "{\"n\": 0}", "--wait", "1m"])?;
    ensure!(job.contains("succeeded"), "the first job did not succeed:\n{job}");
    let took = now() - start;
    ensure!(took < FIRST_JOB_MAX, "the first job took {took:?}");
    println!(
        "Debian {}: from the archive to the first job in {:.1} s",
        release.trim(),
        took.as_secs_f64()
    );
    backed_up(&service, here)?;
    drop(worker);
    let before = fs::read_to_string(here.join("root/acknowledged"))?;
    restored(archive, (here, there), &before)
}

/// What the unit says, as far as it is needed to start what it starts.
struct Service {
    /// `ExecStart`, in words.
    line: Vec<String>,
    /// `Environment` and the lines of `EnvironmentFile`.
    environment: Vec<(String, String)>,
    url: String,
}

/// Installs as docs/deployment.md says, and reads what was installed.
fn install(archive: &Path, root: &Path) -> Result<Service> {
    let file = archive.file_name().context("it has a name")?.to_string_lossy().into_owned();
    fs::copy(archive, root.join("root").join(&file)).context("cannot copy the archive")?;
    let script = format!(
        "cd /root && tar -xzf {file} && cd mainspring-*/ && install bin/mainspring /usr/local/bin/ \
         && install -D -m 644 systemd/mainspring.service /{UNIT} && mkdir -p /etc/mainspring"
    );
    said(&mut inside(root, &["sh", "-euc", &script]))?;
    // The machine's network is shared, and its port may be taken.
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let listen = format!("127.0.0.1:{port}");
    fs::write(
        root.join("etc/mainspring/environment"),
        format!("MAINSPRING_LISTEN={listen}\nMAINSPRING_LOG=warn\n"),
    )?;
    let unit = fs::read_to_string(root.join(UNIT)).context("the unit is not there")?;
    let value = |name: &str| {
        let found = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.map(str::to_owned).with_context(|| format!("the unit has no {name}"))
    };
    ensure!(value("Type")? == "notify" && value("DynamicUser")? == "yes", "another unit:\n{unit}");
    ensure!(STATE == format!("/var/lib/{}", value("StateDirectory")?), "another directory");
    let more = value("EnvironmentFile")?;
    let more = root.join(more.trim_start_matches(['-', '/']));
    let lines = format!("{}\n{}", value("Environment")?, fs::read_to_string(more)?);
    let pair = |line: &str| line.split_once('=').map(|(name, text)| (name.into(), text.into()));
    Ok(Service {
        line: value("ExecStart")?.split(' ').map(str::to_owned).collect(),
        environment: lines.lines().filter_map(pair).collect(),
        url: format!("http://{listen}"),
    })
}

impl Service {
    /// Starts what the unit starts, as nobody in particular, and waits until it says that it is
    /// ready.
    fn start(&self, root: &Path) -> Result<Running> {
        let state = root.join(STATE.trim_start_matches('/'));
        fs::create_dir_all(&state)?;
        said(Command::new("chown").arg("-R").arg(format!("{NOBODY}:{NOBODY}")).arg(&state))?;
        said(Command::new("chmod").arg("700").arg(&state))?;
        let path = root.join("run/notify");
        let _ = fs::remove_file(&path);
        let ear = UnixDatagram::bind(&path).context("cannot listen for its readiness")?;
        ear.set_read_timeout(Some(READY_MAX))?;
        said(Command::new("chmod").arg("666").arg(&path))?;
        let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
        let mut line = vec!["setpriv", &user, &group, "--clear-groups", "--no-new-privs"];
        line.extend(self.line.iter().map(String::as_str));
        let mut command = inside(root, &line);
        command.envs(self.environment.iter().cloned()).env("NOTIFY_SOCKET", "/run/notify");
        let log = File::create(root.join("root/log"))?;
        command.stdout(log.try_clone()?).stderr(log);
        let server = Running::start(&mut command)?;
        let mut told = [0; 1024];
        loop {
            let Ok(count) = ear.recv(&mut told) else {
                bail!("it is not ready: {}", fs::read_to_string(root.join("root/log"))?);
            };
            if String::from_utf8_lossy(&told[..count]).lines().any(|line| line == "READY=1") {
                return Ok(server);
            }
        }
    }

    /// A client's command, as root inside of the root.
    fn command(&self, root: &Path, line: &[&str]) -> Command {
        let mut command = inside(root, &[&["mainspring"], line].concat());
        command.env("MAINSPRING_URL", &self.url);
        command.env("MAINSPRING_TOKEN_FILE", format!("{STATE}/admin.token"));
        command
    }

    fn client(&self, root: &Path, line: &[&str]) -> Result<String> {
        said(&mut self.command(root, line))
    }
}

/// Takes a backup while jobs are submitted and done; notes which had been acknowledged before.
fn backed_up(service: &Service, root: &Path) -> Result<()> {
    let (acknowledged, is_over) = (Mutex::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let mut done = acknowledged.lock().map_err(|_| anyhow::anyhow!("a panic"))?;
                submit(service, root, *done)?;
                *done += 1;
            }
            anyhow::Ok(())
        });
        let so_far = || acknowledged.lock().map_or(0, |done| *done);
        let taken = (|| {
            dist::wait_for("jobs before the backup", || {
                (so_far() >= BATCHES_MIN || load.is_finished()).then_some(())
            })?;
            let before = so_far();
            said(&mut inside(root, &["mainspring", "backup", "/root/copy", "--data-dir", STATE]))?;
            dist::wait_for("jobs after it", || {
                (so_far() > before || load.is_finished()).then_some(())
            })?;
            fs::write(root.join("root/acknowledged"), (before * BATCH).to_string())?;
            anyhow::Ok(())
        })();
        is_over.store(true, Ordering::Relaxed);
        let loaded = load.join().map_err(|_| anyhow::anyhow!("the load panicked"))?;
        taken.and(loaded)
    })
}

/// One call of the load: its jobs have numbers.
fn submit(service: &Service, root: &Path, nth: usize) -> Result<()> {
    let job = |n: usize| format!("{{\"job_type\":\"hello\",\"payload\":{{\"n\":{n}}}}}\n");
    let jobs: String = (nth * BATCH + 1..=(nth + 1) * BATCH).map(job).collect();
    fs::write(root.join("root/jobs.ndjson"), jobs)?;
    let line = ["jobs", "submit", "--file", "/root/jobs.ndjson", "-o", "json"];
    let told: Value = serde_json::from_str(&service.client(root, &line)?)?;
    ensure!(told["accepted"] == BATCH, "not all were taken: {told}");
    Ok(())
}

/// Brings the backup back in another root, where nothing else is, and looks for every job.
fn restored(archive: &Path, (here, there): (&Path, &Path), count: &str) -> Result<()> {
    let count: usize = count.trim().parse()?;
    let service = install(archive, there)?;
    said(Command::new("cp").arg("-a").arg(here.join("root/copy")).arg(there.join("root/")))?;
    said(&mut inside(there, &["mainspring", "restore", "/root/copy", "--data-dir", STATE]))?;
    // A backup has no token; the one of before is its operator's to keep.
    let token = format!("{}/admin.token", STATE.trim_start_matches('/'));
    fs::copy(here.join(&token), there.join(&token))?;
    let _server = service.start(there)?;
    let told = service.client(there, &["export", "jobs"])?;
    let number =
        |line: &str| serde_json::from_str::<Value>(line).ok()?["data"]["payload"]["n"].as_u64();
    let found: BTreeSet<u64> = told.lines().filter_map(number).collect();
    let missing = (1..=count as u64).filter(|n| !found.contains(n)).count();
    ensure!(missing == 0 && count > 0, "{missing} of {count} acknowledged jobs are not there");
    println!("restored elsewhere: all {count} jobs that were acknowledged before the backup");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a task times itself; no product code runs on this")]
fn now() -> Instant {
    Instant::now()
}

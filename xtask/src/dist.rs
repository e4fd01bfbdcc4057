//! `cargo xtask dist`: everything that is needed to run Mainspring on a machine without a
//! toolchain, as one archive with its checksum. `--try` unpacks it into an empty place with an
//! empty home and has it do a job.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::cargo;

/// Files of the tree that go along, and where to.
const FILES: [(&str, &str); 9] = [
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("README.md", "README.md"),
    ("README.zh-CN.md", "README.zh-CN.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("ops/alerts.yml", "ops/alerts.yml"),
    ("ops/grafana.json", "ops/grafana.json"),
    ("packaging/mainspring.service", "systemd/mainspring.service"),
    ("examples/quant.toml", "examples/quant.toml"),
];

const SHELLS: [(&str, &str); 3] =
    [("bash", "mainspring.bash"), ("zsh", "_mainspring"), ("fish", "mainspring.fish")];

/// How long the trial waits for something, looked at this often.
const LOOKS_MAX: u32 = 600;
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut binary, mut is_tried) = (None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--binary" => binary = rest.next().map(PathBuf::from),
            "--try" => is_tried = true,
            other => {
                bail!("unknown argument {other:?}; `cargo xtask dist [--binary FILE] [--try]`")
            }
        }
    }
    let binary = match binary {
        Some(binary) => binary,
        None => {
            cargo::run(&["build", "--release", "--locked", "--package", "mainspring-cli"])?;
            cargo::target_directory()?.join("release/mainspring")
        }
    };
    let archive = make(&binary, Path::new("dist"))?;
    println!("{}", archive.display());
    if is_tried {
        try_out(&archive)?;
    }
    Ok(())
}

/// An archive of what the tests were run with, tried and thrown away.
pub(crate) fn quick() -> Result<()> {
    let target = cargo::target_directory()?;
    let archive = make(&target.join("debug/mainspring"), &target.join("dist"))?;
    try_out(&archive)
}

/// Makes the archive of a binary in a directory.
pub(crate) fn make(binary: &Path, into: &Path) -> Result<PathBuf> {
    let version = said(Command::new(binary).arg("--version"))?;
    let version = version.trim().rsplit(' ').next().context("it says no version")?.to_owned();
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let name = format!("mainspring-{version}-{target}");
    let root = into.join(&name);
    if root.exists() {
        fs::remove_dir_all(&root).context("cannot replace the last one")?;
    }
    for folder in ["bin", "completions", "man/man1", "systemd", "ops", "examples"] {
        fs::create_dir_all(root.join(folder)).with_context(|| format!("cannot make {folder}"))?;
    }
    fs::copy(binary, root.join("bin/mainspring")).context("cannot copy the binary")?;
    for (from, to) in FILES {
        fs::copy(from, root.join(to)).with_context(|| format!("cannot copy {from}"))?;
    }
    copy_pages(Path::new("docs"), &root.join("docs"))?;
    for (shell, file) in SHELLS {
        let script = said(Command::new(binary).args(["completions", shell]))?;
        fs::write(root.join("completions").join(file), script).context("cannot write a script")?;
    }
    said(Command::new(binary).arg("man").arg(root.join("man/man1")))?;
    let archive = into.join(format!("{name}.tar.gz"));
    // The same content makes the same archive.
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-C"]);
    said(tar.arg(into).arg("-czf").arg(&archive).arg(&name))?;
    let digest = Sha256::digest(fs::read(&archive).context("cannot read the archive")?);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let file = archive.file_name().context("it has a name")?.to_string_lossy().into_owned();
    fs::write(into.join(format!("{file}.sha256")), format!("{digest}  {file}\n"))
        .context("cannot write the checksum")?;
    fs::remove_dir_all(&root).context("cannot tidy up")?;
    Ok(archive)
}

/// The pages below a folder, which lead to one another; pictures are for who reads them on the web.
fn copy_pages(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = entry.context("cannot list the pages")?.path();
        let target = to.join(path.file_name().context("it has a name")?);
        if path.is_dir() && path.file_name().is_some_and(|name| name != "screenshots") {
            copy_pages(&path, &target)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

pub(crate) fn said(command: &mut Command) -> Result<String> {
    let ran = command.stderr(Stdio::inherit()).output();
    let ran = ran.with_context(|| format!("cannot start {command:?}"))?;
    ensure!(ran.status.success(), "{command:?} failed ({})", ran.status);
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// A process that ends with the trial.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Running(child))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Unpacks the archive where nothing else is, with nothing of this machine's environment, and has
/// it do one job.
fn try_out(archive: &Path) -> Result<()> {
    let place = std::env::temp_dir().join(format!("mainspring-dist-{}", std::process::id()));
    fs::create_dir_all(place.join("home")).context("cannot make a place to try it")?;
    let tried = try_in(archive, &place);
    fs::remove_dir_all(&place).context("cannot tidy up")?;
    tried
}

fn try_in(archive: &Path, place: &Path) -> Result<()> {
    let folder = archive.parent().context("it is in a folder")?;
    let file = archive.file_name().context("it has a name")?.to_string_lossy().into_owned();
    said(
        Command::new("sha256sum").arg("--check").arg(format!("{file}.sha256")).current_dir(folder),
    )?;
    said(
        Command::new("tar")
            .arg("-xzf")
            .arg(archive)
            .arg("--strip-components=1")
            .arg("-C")
            .arg(place),
    )?;
    for wanted in ["man/man1/mainspring-jobs-submit.1", "completions/_mainspring", "LICENSE-MIT"] {
        ensure!(place.join(wanted).is_file(), "{wanted} is missing");
    }
    let command = |arguments: &[&str]| {
        let mut command = Command::new(place.join("bin/mainspring"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", place.join("home"));
        command.current_dir(place).stdin(Stdio::null());
        command
    };
    let out = place.join("out");
    let mut server = command(&["serve", "--listen", "127.0.0.1:0"]);
    server.stdout(File::create(&out).context("cannot keep its output")?).stderr(Stdio::null());
    let _server = Running::start(&mut server)?;
    let url = wait_for("the server", || {
        let said = fs::read_to_string(&out).ok()?;
        let url = said.lines().next()?.split_once(" on ")?.1.trim().to_owned();
        place.join("mainspring-data/admin.token").exists().then_some(url)
    })?;
    let client = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env("MAINSPRING_URL", &url);
        command
    };
    said(&mut client(&["types", "set", "hello"]))?;
    let worker = client(&["worker", "--type", "hello", "--", "cat"]);
    let _worker = Running::start({ worker }.stdout(Stdio::null()).stderr(Stdio::null()))?;
    let job = said(&mut client(&["jobs", "submit", "hello", "{\"tried\": true}", "--wait", "1m"]))?;
    ensure!(job.contains("succeeded"), "the first job did not succeed:\n{job}");
    said(&mut client(&["backup", "copy"]))?;
    said(&mut client(&["restore", "copy", "--data-dir", "elsewhere"]))?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "tried in an empty place: the first job succeeded")?;
    Ok(())
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    for _ in 0..LOOKS_MAX {
        if let Some(found) = look() {
            return Ok(found);
        }
        thread::sleep(LOOK_EVERY); // paced: another process is starting
    }
    bail!("waited in vain for {what}")
}

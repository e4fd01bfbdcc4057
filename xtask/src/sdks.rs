//! `cargo xtask sdks`: the Python and TypeScript packages, built as they would be published and
//! installed into throw-away directories under `target/`. There they replay the recorded
//! conversations of `sdks/transcripts/`, and workers of both languages work for a real server on
//! each store, while they are killed at random and told to stop (`sdks/live/`).
//!
//! What is needed to build and check them comes from PyPI and npm, in the versions that
//! `xtask/sdks/` and `xtask/npm/` name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::postgres::Postgres;
use crate::server::Server;
use crate::{cargo, npm, packages};

/// Jobs per language and store while workers are killed, unless another number is asked for.
const JOBS: u64 = 300;

/// The same in the long test.
const JOBS_FULL: u64 = 10_000;

const NODE_MAJOR_MIN: u32 = 20;

const PYTHON: &str = "sdks/python";
const TYPESCRIPT: &str = "sdks/typescript";
const PINNED: &str = "xtask/sdks/requirements.txt";
const COMPILER: &str = "xtask/npm/typescript.txt";

/// Builds the source archive, and the wheel out of what that unpacks to: what is missing in the
/// archive is missing in the wheel.
const BUILD: &str = "\
import os, sys, tarfile
import setuptools.build_meta as backend
dist = sys.argv[1]
archive = os.path.join(dist, backend.build_sdist(dist))
with tarfile.open(archive) as packed:
    packed.extractall('unpacked', **({'filter': 'data'} if hasattr(tarfile, 'data_filter') else {}))
os.chdir(os.path.join('unpacked', os.listdir('unpacked')[0]))
print(os.path.join(dist, backend.build_wheel(dist)))
";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let jobs = match arguments {
        [] => JOBS,
        [flag, count] if flag == "--jobs" => count.parse().context("--jobs needs a number")?,
        [other, ..] => bail!("unexpected argument `{other}`; it takes --jobs N"),
    };
    packages::ensure("test")?;
    cargo::run(&["build", "--workspace", "--locked"])?;
    exercise(jobs)
}

/// A few hundred jobs; the workspace must be built.
pub(crate) fn quick() -> Result<()> {
    exercise(JOBS)
}

/// Ten thousand jobs per language and store; the workspace must be built.
pub(crate) fn full() -> Result<()> {
    exercise(JOBS_FULL)
}

/// Where everything is put.
struct Place {
    /// Kept between runs: what the packages are built and checked with.
    tools: PathBuf,
    /// Made anew for every run.
    fresh: PathBuf,
}

fn exercise(jobs: u64) -> Result<()> {
    let target = cargo::target_directory()?;
    let place =
        Place { tools: target.join("sdks").join("tools"), fresh: target.join("sdks").join("run") };
    if place.fresh.exists() {
        fs::remove_dir_all(&place.fresh).context("cannot remove what the last run left")?;
    }
    fs::create_dir_all(&place.fresh).context("cannot make a place for this run")?;
    node_is_new_enough()?;
    let tools = python_tools(&place)?;
    let compiler = compiler(&place)?;
    let python = install_python(&place, &tools)?;
    let node = install_typescript(&place)?;
    check(&place, &tools, &compiler, &python, &node)?;
    for (store, postgres) in [("memory", None), ("postgres", Some(Postgres::start()?))] {
        let place = place.fresh.join(store);
        fs::create_dir_all(&place).context("cannot make a place for the server")?;
        let mut server = Server::start(&target, &place, postgres.as_ref().map(Postgres::url))?;
        let script = |name: &str| {
            let mut command = plain(&python);
            command.arg(format!("sdks/{name}"));
            command.env("MAINSPRING_URL", &server.url).env("MAINSPRING_TOKEN", &server.token);
            command
        };
        println!("{store}:");
        cargo::run_command(script("transcripts/record.py").arg("--check").env("TMPDIR", &place))?;
        let mut live = script("live/live.py");
        cargo::run_command(live.args(["--jobs", &jobs.to_string(), "--node"]).arg(&node))?;
        server.expect_alive()?;
    }
    Ok(())
}

/// A command with nothing of this shell's Python in it.
fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("PYTHONPATH").env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    command
}

fn node_is_new_enough() -> Result<()> {
    let output = Command::new("node").arg("--version").output().context("cannot start node")?;
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let major = told.trim_start_matches('v').split('.').next().and_then(|text| text.parse().ok());
    match major {
        Some(major) if NODE_MAJOR_MIN <= major => Ok(()),
        _ => bail!("Node {NODE_MAJOR_MIN} or newer is needed, not {told:?}"),
    }
}

/// Python with what builds and checks packages, installed first if it is not there as pinned.
fn python_tools(place: &Place) -> Result<PathBuf> {
    let home = place.tools.join("python");
    let python = home.join("bin").join("python");
    let pinned = fs::read_to_string(PINNED).context("cannot read the pinned versions")?;
    let note = home.join("pinned.txt");
    if python.is_file() && fs::read_to_string(&note).is_ok_and(|had| had == pinned) {
        return Ok(python);
    }
    if home.exists() {
        fs::remove_dir_all(&home).context("cannot remove the old tools")?;
    }
    cargo::run_command(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    let mut pip = plain(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    cargo::run_command(pip.args(["--requirement", PINNED]))?;
    fs::write(&note, pinned).context("cannot note the versions")?;
    Ok(python)
}

/// The TypeScript compiler, installed first if it is not there as pinned.
fn compiler(place: &Place) -> Result<PathBuf> {
    let package = npm::pinned(&place.tools.join("node"), ("typescript", COMPILER))?;
    Ok(package.join("bin").join("tsc"))
}

/// The Python package as it would be published, in a throw-away environment; says which Python.
fn install_python(place: &Place, tools: &Path) -> Result<PathBuf> {
    let (source, dist) = (place.fresh.join("python-source"), place.fresh.join("dist"));
    fs::create_dir_all(&dist).context("cannot make a place for packages")?;
    copy(Path::new(PYTHON), &source)?;
    let mut build = plain(tools);
    build.args(["-c", BUILD]).arg(&dist).current_dir(&source);
    let wheel = said(&mut build)?.lines().last().unwrap_or_default().to_owned();
    let home = place.fresh.join("venv");
    cargo::run_command(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&home))?;
    let python = home.join("bin").join("python");
    let mut pip = plain(tools);
    pip.args(["-m", "pip", "--python"]).arg(&python);
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]);
    cargo::run_command(pip.arg(&wheel))?;
    Ok(python)
}

/// The TypeScript package as it would be published; says where `node_modules` is.
fn install_typescript(place: &Place) -> Result<PathBuf> {
    let home = place.fresh.join("node");
    fs::create_dir_all(&home).context("cannot make a place for the package")?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--pack-destination"]).arg(&home).current_dir(TYPESCRIPT);
    let packed = said(&mut npm)?.trim().to_owned();
    npm::install(&home, &["--offline"], &format!("./{packed}"))?;
    copy(&Path::new(TYPESCRIPT).join("test"), &home.join("test"))?;
    Ok(home)
}

/// Types and recorded conversations, of both languages side by side.
fn check(place: &Place, tools: &Path, compiler: &Path, python: &Path, node: &Path) -> Result<()> {
    let transcripts = fs::canonicalize("sdks/transcripts").context("no conversations")?;
    let mut types = plain(tools);
    types.args(["-m", "mypy", "--strict", "--no-error-summary", "--cache-dir"]);
    types.arg(place.tools.join("mypy")).args(["--python-version", "3.10"]);
    types.args(["-p", "mainspring", "-p", "job_orchestration"]);
    types.env("MYPYPATH", fs::canonicalize(PYTHON)?.join("src"));
    let mut replay = plain(python);
    replay.args(["-W", "error", "-m", "unittest", "--quiet"]);
    replay.args(["test_replay", "test_package"]).current_dir(format!("{PYTHON}/tests"));
    let mut compile = Command::new("node");
    compile.arg(compiler).args(["--noEmit", "--strict", "--skipLibCheck", "false"]);
    compile.args(["--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"]);
    compile.arg("test/types.ts").current_dir(node);
    let mut replay_node = Command::new("node");
    replay_node.args(["--test", "--test-reporter", "dot", "test/"]).current_dir(node);
    replay_node.env("MAINSPRING_TRANSCRIPTS", transcripts);
    let started: Vec<(String, Child)> = [types, replay, compile, replay_node]
        .into_iter()
        .map(|mut command| {
            let shown = cargo::shown(&command);
            println!("$ {shown}");
            let child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
            Ok((shown, child))
        })
        .collect::<Result<_>>()?;
    let mut failed = Vec::new();
    for (shown, mut child) in started {
        if !child.wait().with_context(|| format!("cannot wait for `{shown}`"))?.success() {
            failed.push(shown);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join("; ")) }
}

/// What a command prints; an unsuccessful exit is an error.
fn said(command: &mut Command) -> Result<String> {
    let shown = cargo::shown(command);
    println!("$ {shown}");
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        print!("{}", String::from_utf8_lossy(&output.stdout));
        print!("{}", String::from_utf8_lossy(&output.stderr));
        bail!("`{shown}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).context("it printed what is not text")
}

/// Copies a directory, without what running it left there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry.context("cannot read an entry")?;
        let (name, path) = (entry.file_name(), entry.path());
        if name == "__pycache__" {
            continue;
        }
        match entry.file_type().context("cannot tell its kind")?.is_dir() {
            true => copy(&path, &to.join(name))?,
            false => {
                fs::copy(&path, to.join(name))
                    .with_context(|| format!("cannot copy {}", path.display()))?;
            }
        }
    }
    Ok(())
}

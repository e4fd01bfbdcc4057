//! The system programs a task needs, and how to get them on Debian.
//!
//! To add one, add a row to `NEEDS`. A missing program is installed when we run as root, as in a
//! fresh container; otherwise the task stops and says what to type.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo;

/// A program, the Debian package that brings it, and the task that needs it. A program with
/// arguments must also succeed with them.
struct Need {
    task: &'static str,
    program: &'static str,
    package: &'static str,
}

/// Debian starts a cluster of its own with the package postgresql; ours are others, and that one is
/// left alone.
const NEEDS: &[Need] = &[
    Need { task: "bench", program: "beanstalkd", package: "beanstalkd" },
    Need { task: "bench", program: "postgres", package: "postgresql" },
    Need { task: "bench", program: "pgbouncer", package: "pgbouncer" },
    Need { task: "bench", program: "npm", package: "npm" },
    Need { task: "bench", program: "redis-server", package: "redis-server" },
    // The shim for power cuts is built on the spot, the README talks HTTP with curl, and full disks
    // are small file systems.
    Need { task: "test", program: "gcc", package: "gcc" },
    Need { task: "test", program: "curl", package: "curl" },
    Need { task: "test", program: "mount", package: "mount" },
    // The second store, and the pooler that many people put in front of it.
    Need { task: "test", program: "postgres", package: "postgresql" },
    Need { task: "test", program: "pgbouncer", package: "pgbouncer" },
    // Generated requests; the program itself comes from PyPI, pinned. Debian's Python has a package
    // of its own for what makes a directory of packages.
    Need { task: "test", program: "python3 -m ensurepip --version", package: "python3-venv" },
    // The TypeScript package, what packs and checks it, and the worker in ten lines of shell.
    Need { task: "test", program: "jq", package: "jq" },
    Need { task: "test", program: "node", package: "nodejs" },
    Need { task: "test", program: "npm", package: "npm" },
    // The dashboard in a real browser, and what steers it.
    Need { task: "test", program: "chromium", package: "chromium" },
    Need { task: "test", program: "chromedriver", package: "chromium-driver" },
    // What checks the alert rules and the metrics.
    Need { task: "test", program: "promtool", package: "prometheus" },
    // Who events are told to.
    Need { task: "test", program: "nats-server", package: "nats-server" },
    // A Debian of its own to install into.
    Need { task: "debian", program: "debootstrap", package: "debootstrap" },
    Need { task: "debian", program: "unshare", package: "util-linux" },
    // What counts instructions.
    Need { task: "test", program: "valgrind", package: "valgrind" },
    // Servers whose clocks disagree.
    Need { task: "test", program: "libfaketimeMT.so.1", package: "libfaketime" },
];

/// Directories that hold servers and are often absent from a user's PATH.
const EXTRA_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Makes sure every program of the task is there, or says what is missing.
pub(crate) fn ensure(task: &str) -> Result<()> {
    let needs: Vec<&Need> = NEEDS.iter().filter(|need| need.task == task).collect();
    if needs.is_empty() {
        println!("no system program needed");
        return Ok(());
    }
    let missing: Vec<&str> =
        needs.iter().filter(|need| !is_installed(need.program)).map(|need| need.package).collect();
    if missing.is_empty() {
        println!("all {} system programs found", needs.len());
        return Ok(());
    }
    let list = missing.join(" ");
    if !is_installed("apt-get") {
        bail!("these programs are missing and there is no apt-get to install them: {list}");
    }
    if !is_root()? {
        bail!("missing system packages; install them with `sudo apt-get install -y {list}`");
    }
    apt_get(&["update"])?;
    apt_get(&[&["install", "-y", "--no-install-recommends"][..], &missing[..]].concat())?;
    match needs.iter().find(|need| !is_installed(need.program)) {
        None => Ok(()),
        Some(need) => {
            bail!("package {} is installed but brought no `{}`", need.package, need.program)
        }
    }
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    cargo::run_command(&mut command)
}

fn is_installed(program: &str) -> bool {
    if let Some((program, arguments)) = program.split_once(' ') {
        let output = Command::new(program).args(arguments.split(' ')).output();
        return output.is_ok_and(|output| output.status.success());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(EXTRA_DIRECTORIES.map(PathBuf::from))
        .chain(postgres_directories())
        .chain(faketime_directories())
        .any(|directory| directory.join(program).is_file())
}

/// Where the server programs of PostgreSQL are, which no PATH has; the testkit looks there too.
fn postgres_directories() -> Vec<PathBuf> {
    let named = env::var_os("PG_BIN").map(PathBuf::from);
    let told = Command::new("pg_config").arg("--bindir").output().ok();
    let told = told.and_then(|output| String::from_utf8(output.stdout).ok());
    let told = told.map(|path| PathBuf::from(path.trim()));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let packaged = versions.map(|version| version.path().join("bin"));
    named.into_iter().chain(told).chain(packaged).collect()
}

/// Where the library for other clocks is, by kind of processor; the tests look there too.
fn faketime_directories() -> Vec<PathBuf> {
    let kinds = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    kinds.map(|kind| kind.path().join("faketime")).collect()
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output().context("cannot start `id -u`")?;
    Ok(output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::is_installed;

    #[test]
    fn a_program_with_arguments_must_succeed_with_them() {
        assert!(is_installed("sh") && is_installed("sh -c true"));
        assert!(!is_installed("sh -c false") && !is_installed("no-such-program -c true"));
    }
}

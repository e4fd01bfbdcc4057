//! graphile-worker, a job queue on PostgreSQL that works hard to be fast: installed with npm by
//! name, together with the Node it needs, and driven by `peer.mjs` in a process of its own.

use crate::latency::Latency;
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The version is fixed so that figures of two days have the same peer.
const PACKAGES: [&str; 3] = ["graphile-worker@0.18.0", "node@22", "pg@8"];
const SCRIPT: &str = include_str!("peer.mjs");

/// The packages, installed.
pub(crate) struct Peer {
    folder: PathBuf,
    /// Such as `graphile-worker 0.18.0 on Node v22.23.3`.
    pub(crate) name: String,
    _temporary: Option<TempDir>,
}

impl Peer {
    /// Installs it in `kept`, unless it is there from an earlier run, or else in a folder in
    /// `directory` that goes in the end. `None` without npm.
    pub(crate) fn install(kept: Option<&Path>, directory: &Path) -> anyhow::Result<Option<Self>> {
        if !has_npm() {
            eprintln!("npm is not installed, so there is no graphile-worker beside us");
            return Ok(None);
        }
        let temporary = match kept {
            Some(_) => None,
            None => Some(tempfile::tempdir_in(directory)?),
        };
        let folder = match (kept, &temporary) {
            (Some(kept), _) => kept.to_owned(),
            (None, Some(temporary)) => temporary.path().to_owned(),
            (None, None) => bail!("no folder for graphile-worker"),
        };
        std::fs::create_dir_all(&folder)?;
        if !folder.join("node_modules/graphile-worker/package.json").is_file() {
            eprintln!("installing {} with npm", PACKAGES.join(", "));
            // An empty package file keeps npm from looking for one further up.
            std::fs::write(folder.join("package.json"), "{}")?;
            let installed = Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"])
                .args(PACKAGES)
                .current_dir(&folder)
                .stdin(Stdio::null())
                .output()?;
            if !installed.status.success() {
                bail!("npm failed: {}", String::from_utf8_lossy(&installed.stderr).trim());
            }
        }
        std::fs::write(folder.join("peer.mjs"), SCRIPT)?;
        let name = "graphile-worker".to_owned();
        let mut peer = Peer { folder, name, _temporary: temporary };
        let told = peer.node(&["peer.mjs", "version"])?;
        peer.name =
            format!("graphile-worker {} on Node {}", text(&told, "version")?, text(&told, "node")?);
        Ok(Some(peer))
    }

    /// Jobs per second of one of W1, W1s, W2 and W2s.
    pub(crate) fn rate(&self, url: &str, workload: &str, jobs: usize) -> anyhow::Result<f64> {
        number(&self.run(url, workload, jobs)?, "rate")
    }

    /// W3: from submit to the start of the handler.
    pub(crate) fn latency(&self, url: &str, jobs: usize) -> anyhow::Result<Latency> {
        let told = self.run(url, "W3", jobs)?;
        Ok(Latency { p50_ms: number(&told, "p50_ms")?, p99_ms: number(&told, "p99_ms")? })
    }

    fn run(&self, url: &str, workload: &str, jobs: usize) -> anyhow::Result<Value> {
        self.node(&["peer.mjs", workload, url, &jobs.to_string()])
    }

    /// The last line that Node prints.
    fn node(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let output = Command::new(self.folder.join("node_modules/.bin/node"))
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .context("cannot start the Node that npm brought")?;
        let told = String::from_utf8_lossy(&output.stdout);
        match told.lines().last() {
            Some(line) if output.status.success() => Ok(serde_json::from_str(line)?),
            _ => {
                bail!("graphile-worker failed: {}", String::from_utf8_lossy(&output.stderr).trim())
            }
        }
    }
}

fn has_npm() -> bool {
    let version = Command::new("npm").arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

fn number(told: &Value, name: &str) -> anyhow::Result<f64> {
    told[name].as_f64().with_context(|| format!("graphile-worker told no {name}: {told}"))
}

fn text<'a>(told: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    told[name].as_str().with_context(|| format!("graphile-worker told no {name}: {told}"))
}

//! A peer that npm installs by name, together with the Node it needs. Its script and `load.mjs`
//! drive it in a process of its own.

use super::Kind;
use crate::latency::Latency;
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What every script shares.
const LOAD: &str = include_str!("load.mjs");

/// The packages, installed.
pub(crate) struct Peer {
    folder: PathBuf,
    /// Such as `graphile-worker 0.18.0 on Node v22.23.3`.
    pub(crate) name: String,
    _temporary: Option<TempDir>,
}

impl Peer {
    /// Installs it in a folder of its own in `kept`, unless it is there from an earlier run, or
    /// else in a folder in `directory` that goes in the end. `None` without npm.
    pub(crate) fn install(
        kind: &Kind,
        kept: Option<&Path>,
        directory: &Path,
    ) -> anyhow::Result<Option<Self>> {
        if !has_npm() {
            eprintln!("npm is not installed, so there is no {} beside us", kind.name);
            return Ok(None);
        }
        let temporary = match kept {
            Some(_) => None,
            None => Some(tempfile::tempdir_in(directory)?),
        };
        let folder = match (kept, &temporary) {
            (Some(kept), _) => kept.join(kind.name),
            (None, Some(temporary)) => temporary.path().to_owned(),
            (None, None) => bail!("no folder for {}", kind.name),
        };
        std::fs::create_dir_all(&folder)?;
        let done = folder.join("installed");
        if !done.is_file() {
            eprintln!("installing {} with npm", kind.packages.join(", "));
            // An empty package file keeps npm from looking for one further up.
            std::fs::write(folder.join("package.json"), "{}")?;
            let installed = Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"])
                .args(kind.packages)
                .current_dir(&folder)
                .stdin(Stdio::null())
                .output()?;
            if !installed.status.success() {
                bail!("npm failed: {}", String::from_utf8_lossy(&installed.stderr).trim());
            }
            std::fs::write(&done, kind.packages.join("\n"))?;
        }
        std::fs::write(folder.join("load.mjs"), LOAD)?;
        std::fs::write(folder.join("peer.mjs"), kind.script)?;
        let mut peer = Peer { folder, name: kind.name.to_owned(), _temporary: temporary };
        let told = peer.node(&["peer.mjs", "version"])?;
        let (version, node) = (peer.text(&told, "version")?, peer.text(&told, "node")?);
        peer.name = format!("{} {version} on Node {node}", kind.name);
        Ok(Some(peer))
    }

    /// Jobs per second of one of W1, W1s, W2 and W2s; `None` for what it has no way to do.
    pub(crate) fn rate(
        &self,
        address: &str,
        workload: &str,
        jobs: usize,
    ) -> anyhow::Result<Option<f64>> {
        let told = self.run(address, workload, jobs)?;
        match told["absent"].as_bool() {
            Some(true) => Ok(None),
            Some(false) | None => self.number(&told, "rate").map(Some),
        }
    }

    /// W3: from submit to the start of the handler.
    pub(crate) fn latency(&self, address: &str, jobs: usize) -> anyhow::Result<Latency> {
        let told = self.run(address, "W3", jobs)?;
        Ok(Latency { p50_ms: self.number(&told, "p50_ms")?, p99_ms: self.number(&told, "p99_ms")? })
    }

    fn run(&self, address: &str, workload: &str, jobs: usize) -> anyhow::Result<Value> {
        self.node(&["peer.mjs", workload, address, &jobs.to_string()])
    }

    /// The last line that Node prints.
    fn node(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let output = Command::new(self.folder.join("node_modules/.bin/node"))
            .args(arguments)
            .current_dir(&self.folder)
            // Two lines for every job, which only Restate would pay for.
            .env("RESTATE_LOGGING", "ERROR")
            .stdin(Stdio::null())
            .output()
            .context("cannot start the Node that npm brought")?;
        let told = String::from_utf8_lossy(&output.stdout);
        match told.lines().last() {
            Some(line) if output.status.success() => Ok(serde_json::from_str(line)?),
            _ => {
                let why = String::from_utf8_lossy(&output.stderr);
                bail!("{} failed: {}", self.name, why.trim())
            }
        }
    }

    fn number(&self, told: &Value, name: &str) -> anyhow::Result<f64> {
        told[name].as_f64().with_context(|| format!("{} told no {name}: {told}", self.name))
    }

    fn text<'a>(&self, told: &'a Value, name: &str) -> anyhow::Result<&'a str> {
        told[name].as_str().with_context(|| format!("{} told no {name}: {told}", self.name))
    }
}

fn has_npm() -> bool {
    let version = Command::new("npm").arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

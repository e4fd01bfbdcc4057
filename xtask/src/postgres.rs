//! The one PostgreSQL that all tests of a run share.
//!
//! `throwaway-postgres` of `mainspring-testkit` runs the cluster; this file only holds it. The
//! cluster lives as long as we hold its input open, so that it also goes away when we are killed.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo;

/// Tells tests where the cluster is; the testkit reads it.
const SHARED: &str = "MAINSPRING_TEST_POSTGRES";

/// The running cluster.
pub(crate) struct Postgres {
    launcher: Child,
    url: String,
}

impl Postgres {
    /// Starts a cluster; the workspace must be built.
    pub(crate) fn start() -> Result<Self> {
        let program = cargo::target_directory()?.join("debug").join("throwaway-postgres");
        let mut launcher = Command::new(&program)
            // Ctrl-C is for us; the launcher hears of it by the end of its input.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = launcher.stdout.take().context("a launcher without output")?;
        let mut url = String::new();
        BufReader::new(output).read_line(&mut url).context("cannot read its address")?;
        let url = url.trim().to_owned();
        let postgres = Self { launcher, url };
        if postgres.url.is_empty() {
            bail!("PostgreSQL did not start");
        }
        println!("PostgreSQL for this run: {}", postgres.url);
        Ok(postgres)
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Makes a test command use the cluster.
    pub(crate) fn lend(&self, command: &mut Command) {
        command.env(SHARED, &self.url);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.launcher.stdin.take());
        // It has removed its directory when it ends; there is nothing to do about a failure.
        let _ = self.launcher.wait();
    }
}

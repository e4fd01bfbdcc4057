//! The server under test: this same binary, or the build that [`OTHER_BUILD`] names, in a process
//! and a directory of its own.

use super::cpu_time;
use super::http::Connection;
use super::job::{JOB_TYPE, Requests};
use super::stopwatch::Stopwatch;
use anyhow::{Context, bail};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The admin token of servers under test.
const TOKEN: &str = "bench-admin-token-0123456789";
/// The variable that names another build's binary: one client measures two builds in turn.
const OTHER_BUILD: &str = "MAINSPRING_BENCH_SERVER";
/// How long a server may take to come up.
const START_MAX: Duration = Duration::from_secs(120);

/// A running server; it ends when dropped.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    directory: PathBuf,
    /// How long it took from the start of the process to the first answer.
    pub(crate) started_in: Duration,
}

impl Server {
    /// Starts a server on `directory`, which may hold the state of an earlier one.
    pub(crate) fn start(directory: &Path) -> anyhow::Result<Self> {
        Self::start_on(directory, None)
    }

    /// Starts a server that keeps its state in a database, if given, else in `directory`.
    pub(crate) fn start_on(directory: &Path, database: Option<&str>) -> anyhow::Result<Self> {
        Self::start_with(directory, database, "")
    }

    /// The same with more configuration.
    pub(crate) fn start_with(
        directory: &Path,
        database: Option<&str>,
        more: &str,
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let config = directory.join("bench.toml");
        std::fs::write(&config, format!("[types.{JOB_TYPE}]\ndomain = \"bench\"\n{more}"))?;
        let log = std::fs::File::create(directory.join("server.log"))?;
        let stopwatch = Stopwatch::start();
        let binary = match std::env::var_os(OTHER_BUILD) {
            Some(path) => PathBuf::from(path),
            None => std::env::current_exe()?,
        };
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", &address.to_string(), "--config"]).arg(&config);
        match database {
            Some(url) => command.args(["--database-url", url]),
            None => command.arg("--data-dir").arg(directory.join("data")),
        };
        let child = command
            .env("MAINSPRING_ADMIN_TOKEN", TOKEN)
            .env("MAINSPRING_LOG", "warn")
            .env_remove("DATABASE_URL")
            .env_remove("MAINSPRING_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start the server")?;
        let mut server =
            Server { child, address, directory: directory.to_owned(), started_in: Duration::ZERO };
        server.wait_ready(stopwatch)?;
        server.started_in = stopwatch.elapsed();
        Ok(server)
    }

    fn wait_ready(&mut self, stopwatch: Stopwatch) -> anyhow::Result<()> {
        let request = self.requests().get("/readyz");
        loop {
            let ready = Connection::open(self.address)
                .and_then(|mut connection| connection.ask(&request).map(|answer| answer.status));
            if matches!(ready, Ok(200)) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                let log = std::fs::read_to_string(self.directory.join("server.log"));
                bail!("the server ended with {status}: {}", log.unwrap_or_default().trim());
            }
            if stopwatch.elapsed() > START_MAX {
                bail!("the server did not come up within {START_MAX:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn requests(&self) -> Requests {
        Requests::new(self.address, TOKEN)
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        Ok(kilobytes.context("no VmRSS")? * 1024)
    }

    /// Processor time so far.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        cpu_time::taken(self.child.id())
    }

    /// The answer of `/api/v1/runtime`.
    pub(crate) fn runtime(&self) -> anyhow::Result<Vec<u8>> {
        let mut connection = Connection::open(self.address)?;
        Ok(connection.ask_ok(&self.requests().get("/api/v1/runtime"))?.to_vec())
    }

    /// Ends the server without warning, as a power cut would end the process.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback address nobody listens on just now.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

//! A Redis that keeps everything it was told: each turn of its loop syncs the log before it
//! answers.

use crate::server::free_address;
use crate::stopwatch::Stopwatch;
use anyhow::bail;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running server; it ends when dropped.
pub(super) struct Redis {
    child: Child,
    address: SocketAddr,
}

/// Whether the program is installed.
pub(super) fn is_present() -> bool {
    let version = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

impl Redis {
    /// Starts one that keeps its log in `folder`.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        let address = free_address()?;
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""])
            .arg("--dir")
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Redis { child, address };
        let stopwatch = Stopwatch::start();
        while TcpStream::connect(address).is_err() {
            if stopwatch.elapsed() > Duration::from_secs(10) {
                bail!("redis-server did not come up");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

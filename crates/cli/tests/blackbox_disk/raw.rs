//! A server process that is allowed to fail: started on any directory, watched until its end.

use mainspring_testkit::blackbox::{Caller, command, eventually};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

const ADMIN: &str = "ms_blackbox_0123456789abcdef0123456789abcdef0123456789abcdef";

/// A process and what it says.
pub(crate) struct Raw {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Raw {
    /// Starts a server on `data` with more environment variables; does not wait for anything.
    pub(crate) fn start(data: &Path, config: &str, env: &[(String, String)]) -> Self {
        Self::start_as(None, data, config, env)
    }

    /// The same as another user and group, which only root can do.
    pub(crate) fn start_as(
        who: Option<u32>,
        data: &Path,
        config: &str,
        env: &[(String, String)],
    ) -> Self {
        let place = data.parent().expect("a directory above");
        let name = data.file_name().expect("a name").to_string_lossy().into_owned();
        let [config_path, stdout, stderr] =
            ["toml", "out", "err"].map(|ending| place.join(format!("{name}.{ending}")));
        std::fs::write(&config_path, config).expect("writes");
        let (data, config) = (data.display().to_string(), config_path.display().to_string());
        let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data, "--config", &config];
        let mut command = command::prepare(env!("CARGO_BIN_EXE_mainspring"), &args, &[], place);
        command.env("MAINSPRING_ADMIN_TOKEN", ADMIN).envs(env.iter().cloned());
        if let Some(who) = who {
            command.uid(who).gid(who);
        }
        command.stdout(File::create(&stdout).expect("a file"));
        command.stderr(File::create(&stderr).expect("a file"));
        Raw { child: command.spawn().expect("the binary starts"), stdout, stderr }
    }

    /// Everything it said so far.
    pub(crate) fn said(&self) -> String {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        format!("{}{}", read(&self.stdout), read(&self.stderr))
    }

    /// The admin, once the server takes work; none if it ends before.
    pub(crate) fn admin(&mut self) -> Option<Caller> {
        eventually("the server is up or gone", || {
            if self.child.try_wait().expect("our child").is_some() {
                return Some(None);
            }
            let said = std::fs::read_to_string(&self.stdout).ok()?;
            let address = said.lines().next()?.split_once(" on http://")?.1.trim().parse().ok()?;
            let caller = Caller { address, token: ADMIN.to_owned() };
            let answer = caller.request("GET", "/readyz").try_send(address).ok()?;
            (answer.status == 200).then_some(Some(caller))
        })
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let status = eventually("the server ends", || self.child.try_wait().expect("our child"));
        (status, self.said())
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill9(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every file of a directory with its bytes; a running server may remove one meanwhile.
pub(crate) fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        match std::fs::read(entry.path()) {
            Ok(bytes) => files.insert(name, bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => panic!("{name}: {error}"),
        };
    }
    files
}

/// Writes a directory anew.
pub(crate) fn write(directory: &Path, files: &BTreeMap<String, Vec<u8>>) {
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory).expect("a directory");
    for (name, bytes) in files {
        std::fs::write(directory.join(name), bytes).expect("writes");
    }
}

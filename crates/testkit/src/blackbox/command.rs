//! Running the command line, with nothing of the test's own environment leaking into it.

use super::eventually;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What came of a command.
#[derive(Debug, Clone)]
pub struct Ran {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Ran {
    /// The output as JSON.
    ///
    /// # Panics
    /// If it is none.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The same, after checking the exit code.
    ///
    /// # Panics
    /// If the exit code is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// A command with only these environment variables, and no input.
pub fn prepare(binary: &str, args: &[&str], env: &[(&str, &str)], directory: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        // The cluster of a test run does without syncs.
        .env("MAINSPRING_ALLOW_UNSAFE_POSTGRES", "true")
        .envs(env.iter().copied())
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end.
///
/// # Panics
/// If it cannot be started or does not end.
pub fn run(binary: &str, args: &[&str], env: &[(&str, &str)], directory: &Path) -> Ran {
    let out = tempfile::tempdir().expect("a place for output");
    let (stdout, stderr) = (out.path().join("stdout"), out.path().join("stderr"));
    let mut child = prepare(binary, args, env, directory)
        .stdout(File::create(&stdout).expect("a file"))
        .stderr(File::create(&stderr).expect("a file"))
        .spawn()
        .expect("the binary starts");
    let status = eventually(&format!("{args:?} ends"), || child.try_wait().expect("our child"));
    let read = |path| String::from_utf8_lossy(&std::fs::read(path).expect("kept")).into_owned();
    Ran { code: status.code(), stdout: read(&stdout), stderr: read(&stderr) }
}

/// Sends a signal to a process this test started.
///
/// # Panics
/// If the id makes no sense.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let _ = rustix::process::kill_process(pid.expect("a process id"), signal);
}

/// A process that is killed when the test lets go of it, such as a worker.
#[derive(Debug)]
pub struct Background(pub Child);

impl Background {
    /// Asks it to stop, and waits until it has.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn terminate(mut self) -> Option<i32> {
        signal(self.0.id(), rustix::process::Signal::TERM);
        eventually("it stops", || self.0.try_wait().expect("our child")).code()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

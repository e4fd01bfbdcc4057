//! A server process of one's own: started from the real binary in a directory that goes away with
//! it, killed when the test lets go of it or dies itself.

use super::http::{Request, Response};
use super::{Caller, Ran, command, eventually};
use crate::postgres::Database;
use crate::postgres::place::free_port;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Path of the binary: `env!("CARGO_BIN_EXE_mainspring")`.
    pub binary: &'static str,
    /// More arguments of `serve`.
    pub args: Vec<String>,
    /// The configuration file's text. Types are not strict unless it says so.
    pub config: String,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Whether it forgets everything at the end; with a database it is the database that goes.
    pub is_ephemeral: bool,
    /// The PostgreSQL database it keeps its state in, instead of a directory.
    pub database: Option<Arc<Database>>,
    /// A packed data directory to begin with.
    pub data: Option<PathBuf>,
    /// Another way to that database, such as a pooler.
    pub database_url: Option<String>,
    /// Whether it speaks https; then it is for the test to find out whether it is ready.
    pub is_encrypted: bool,
}

impl Options {
    /// A server with a journal that takes jobs of any type; see `Store::options` for a choice.
    pub fn new(binary: &'static str) -> Self {
        Options {
            binary,
            args: Vec::new(),
            config: "[types]\nstrict = false\n".to_owned(),
            env: Vec::new(),
            is_ephemeral: false,
            database: None,
            data: None,
            database_url: None,
            is_encrypted: false,
        }
    }

    /// With one more argument of `serve`.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// With this configuration file instead.
    #[must_use]
    pub fn config(mut self, text: &str) -> Self {
        self.config = text.to_owned();
        self
    }

    /// With one more environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With its database reached this way.
    #[must_use]
    pub fn through(mut self, url: &str) -> Self {
        self.database_url = Some(url.to_owned());
        self
    }

    /// Speaking https with the certificate in `cert.pem` and the key in `key.pem` of a directory.
    #[must_use]
    pub fn encrypted(mut self, files: &Path) -> Self {
        for (flag, name) in [("--tls-cert", "cert.pem"), ("--tls-key", "key.pem")] {
            self = self.arg(flag).arg(&files.join(name).display().to_string());
        }
        self.is_encrypted = true;
        self
    }

    /// Without a journal.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.is_ephemeral = true;
        self
    }
}

/// Unpacks a `.tar.gz` into a directory.
///
/// # Panics
/// If it cannot be.
pub fn unpack(archive: &Path, into: &Path) {
    let ran = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(into).status();
    assert!(ran.expect("tar starts").success(), "{} cannot be unpacked", archive.display());
}

/// The admin token of every server started here.
const ADMIN: &str = "ms_blackbox_0123456789abcdef0123456789abcdef0123456789abcdef";

/// A running (or stopped) server.
#[derive(Debug)]
pub struct Server {
    /// Where it listens: `http://127.0.0.1:PORT`, the same after a restart.
    pub url: String,
    /// The same as an address.
    pub address: SocketAddr,
    /// A token that may do everything but move jobs by hand.
    pub admin: String,
    options: Options,
    directory: TempDir,
    child: Option<Child>,
    guard: Option<Child>,
}

impl Server {
    /// Starts a server and waits until it takes work.
    ///
    /// # Panics
    /// If it does not come up; its log is part of the message.
    pub fn start(options: Options) -> Self {
        let directory = tempfile::Builder::new().prefix("mainspring-").tempdir().expect("a tmp");
        std::fs::write(directory.path().join("config.toml"), &options.config).expect("writes");
        if let Some(archive) = &options.data {
            unpack(archive, directory.path());
        }
        let mut server = Server {
            url: String::new(),
            address: SocketAddr::from(([127, 0, 0, 1], free_port())),
            admin: ADMIN.to_owned(),
            options,
            directory,
            child: None,
            guard: None,
        };
        server.spawn();
        server
    }

    fn spawn(&mut self) {
        let out = self.directory.path().join("stdout");
        let mut command = Command::new(self.options.binary);
        command.args(["serve", "--listen", &self.address.to_string(), "--config"]);
        command.arg(self.directory.path().join("config.toml"));
        if let Some(database) = &self.options.database {
            let url = self.options.database_url.as_ref().unwrap_or(&database.url);
            command.args(["--database-url", url]);
        } else if self.options.is_ephemeral {
            command.arg("--ephemeral");
        } else {
            command.arg("--data-dir").arg(self.data_dir());
        }
        let log = OpenOptions::new().create(true).append(true).open(self.log_path());
        let child = command
            .args(&self.options.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("MAINSPRING_ADMIN_TOKEN", &self.admin)
            // The cluster of a test run does without syncs.
            .env("MAINSPRING_ALLOW_UNSAFE_POSTGRES", "true")
            .envs(self.options.env.iter().cloned())
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(File::create(&out).expect("a file for its output"))
            .stderr(log.expect("a file for its log"))
            .spawn()
            .expect("the binary starts");
        self.guard = Some(guard(child.id(), self.directory.path()));
        self.child = Some(child);
        let address = eventually("the server says where it listens", || {
            self.assert_alive();
            let said = std::fs::read_to_string(&out).ok()?;
            said.lines().next()?.split_once("://")?.1.trim().parse().ok()
        });
        self.address = address;
        if self.options.is_encrypted {
            // Certificates name hosts.
            self.url = format!("https://localhost:{}", address.port());
            return;
        }
        self.url = format!("http://{address}");
        eventually("the server is ready", || {
            self.assert_alive();
            let answer = Request::new("GET", "/readyz").try_send(address).ok()?;
            (answer.status == 200).then_some(())
        });
    }

    fn assert_alive(&mut self) {
        let child = self.child.as_mut().expect("was started");
        if let Ok(Some(status)) = child.try_wait() {
            panic!("the server ended by itself ({status}):\n{}", self.log());
        }
    }

    /// Whether the process runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// The process id, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The database it keeps its state in, if it is one.
    pub fn database(&self) -> Option<&Database> {
        self.options.database.as_deref()
    }

    /// Where its journal lies, if it has one.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A directory that goes away with the server, for files of the test.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// Everything it logged, over all its lives.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Ends it at once, as a power cut would.
    pub fn kill9(&mut self) {
        self.disarm();
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops its clock: its connections stay open and nobody answers.
    pub fn pause(&self) {
        self.pid().into_iter().for_each(|pid| command::signal(pid, rustix::process::Signal::STOP));
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.pid().into_iter().for_each(|pid| command::signal(pid, rustix::process::Signal::CONT));
    }

    /// Asks it to stop, and waits until it has.
    ///
    /// # Panics
    /// If it was not running, or does not stop.
    pub fn terminate(&mut self) -> ExitStatus {
        self.disarm();
        let mut child = self.child.take().expect("is running");
        command::signal(child.id(), rustix::process::Signal::TERM);
        eventually("the server stops", || child.try_wait().expect("is our child"))
    }

    /// Starts it again on the same address and the same data; kills it first if it runs.
    pub fn restart(&mut self) {
        self.kill9();
        self.spawn();
    }

    /// The same, with other options from now on.
    pub fn restart_with(&mut self, change: impl FnOnce(&mut Options)) {
        self.kill9();
        change(&mut self.options);
        let path = self.directory.path().join("config.toml");
        std::fs::write(path, &self.options.config).expect("writes");
        self.spawn();
    }

    /// Sends a request.
    pub fn send(&self, request: &Request) -> Response {
        request.send(self.address)
    }

    /// Acts as the first admin.
    pub fn admin(&self) -> Caller {
        Caller { address: self.address, token: self.admin.clone() }
    }

    /// Makes a token and acts with it.
    ///
    /// # Panics
    /// If the server makes none.
    #[track_caller]
    pub fn caller(&self, tenant: &str, user: &str, roles: &[&str]) -> Caller {
        let wish = json!({ "tenant_id": tenant, "user_id": user, "roles": roles });
        let made = self.admin().post("/api/v1/tokens", &wish);
        let token = made.data()["token"].as_str().expect("a secret, once").to_owned();
        Caller { address: self.address, token }
    }

    /// Runs a client command against this server, as its admin.
    pub fn cli(&self, args: &[&str]) -> Ran {
        self.cli_as(&self.admin, args)
    }

    /// Runs a client command against this server, with another token.
    pub fn cli_as(&self, token: &str, args: &[&str]) -> Ran {
        let env = [("MAINSPRING_URL", &*self.url), ("MAINSPRING_TOKEN", token)];
        command::run(self.options.binary, args, &env, self.directory.path())
    }

    /// The guard must not shoot at a process id that may soon be somebody else's.
    fn disarm(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.kill();
            let _ = guard.wait();
        }
    }
}

/// A process that ends the server and removes its directory when this one ends, however it ends:
/// servers that live in a static are never dropped.
fn guard(pid: u32, directory: &Path) -> Child {
    Command::new("sh")
        .args(["-c", "read -r _; kill -9 \"$0\" 2>/dev/null; rm -rf \"$1\"", &pid.to_string()])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill9();
        if std::thread::panicking() {
            eprintln!("--- log of {} ---\n{}---", self.url, self.log());
        }
    }
}

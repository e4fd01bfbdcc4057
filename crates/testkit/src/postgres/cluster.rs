//! One PostgreSQL cluster of its own, and everything that can happen to it.

use super::place::{Place, free_port};
use super::{Admin, Database, ROLE, Signed, programs};
use crate::blackbox::command::signal;
use crate::blackbox::eventually;
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// How a cluster is set up.
#[derive(Debug, Clone, Default)]
pub struct ClusterOptions {
    /// Whether it survives a power cut. Off, it is quicker; what it acknowledged survives a
    /// `kill -9` all the same, because the kernel of the operating system has it.
    pub is_durable: bool,
    /// More settings, as in `postgresql.conf`.
    pub settings: Vec<(String, String)>,
    /// Environment variables of its processes.
    pub env: Vec<(String, String)>,
    /// Files in its data directory, by name; they replace those that `initdb` makes.
    pub files: Vec<(String, String)>,
}

/// Encrypted connections only, and nobody is asked for a password; the socket is for ourselves.
const ENCRYPTED_ONLY: &str = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";

impl ClusterOptions {
    /// With every commit synced, as in production.
    pub fn durable() -> Self {
        ClusterOptions { is_durable: true, ..Self::default() }
    }

    /// With one more setting.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With one more file in its data directory, such as `pg_hba.conf`.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> Self {
        self.files.push((name.to_owned(), text.to_owned()));
        self
    }

    /// With encryption, and without connections that do without it.
    #[must_use]
    pub fn encrypted(self, shown: &Signed) -> Self {
        self.setting("ssl", "on")
            .file("server.crt", &shown.certificate)
            .file("server.key", &shown.key)
            .file("pg_hba.conf", ENCRYPTED_ONLY)
    }

    /// With one more environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running (or stopped) cluster. It listens on a port of 127.0.0.1 that it keeps.
#[derive(Debug)]
pub struct Cluster {
    admin: Admin,
    settings: Vec<(String, String)>,
    env: Vec<(String, String)>,
    postmaster: Option<Child>,
    /// Whether its port is known to others, so that it must be the same after a restart.
    has_port: bool,
    place: Place,
}

impl Cluster {
    /// Makes a cluster and waits until it takes connections; about a second.
    ///
    /// # Panics
    /// If there is no PostgreSQL, or it does not start; its log is part of the message.
    pub fn start(options: &ClusterOptions) -> Self {
        let place = Place::new("mainspring-pg-");
        let made = programs::command(&programs::directory().join("initdb"), place.path())
            .args(["-D", "data", "-U", ROLE, "-E", "UTF8", "--locale=C", "--auth=trust"])
            .args(["--no-sync", "--no-instructions"])
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let admin = Admin { host: "127.0.0.1".to_owned(), port: 0, role: ROLE.to_owned() };
        let settings = settings(options);
        let env = options.env.clone();
        let mut cluster =
            Cluster { admin, settings, env, postmaster: None, has_port: false, place };
        for (name, text) in &options.files {
            cluster.put_file(name, text);
        }
        cluster.bring_up();
        cluster
    }

    /// How to reach it.
    pub fn admin(&self) -> &Admin {
        &self.admin
    }

    /// A fresh database in it.
    pub fn database(&self) -> Database {
        Database::create(&self.admin)
    }

    /// Replaces a file in its data directory; it counts from the next start.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn put_file(&self, name: &str, text: &str) {
        self.place.put_private(&format!("data/{name}"), text);
    }

    /// Everything it logged, over all its lives.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Ends it as `pg_ctl stop -m immediate` does: every connection breaks, and the next start
    /// recovers from the log.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop_immediate(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            self.resume();
            signal(postmaster.id(), Signal::QUIT);
            eventually("PostgreSQL stops", || postmaster.try_wait().expect("is our child"));
        }
    }

    /// Kills the postmaster. Its back ends notice by themselves and may still answer for a moment.
    pub fn kill9(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            let _ = postmaster.kill();
            let _ = postmaster.wait();
            // Whoever is paused could not notice.
            self.resume();
        }
    }

    /// Starts it again on the same port and the same files, and waits until it takes connections.
    /// While back ends of a killed postmaster are there a start is refused; it is tried again.
    ///
    /// # Panics
    /// If it does not start; its log is part of the message.
    pub fn start_again(&mut self) {
        assert!(self.postmaster.is_none(), "it runs");
        self.bring_up();
    }

    /// Stops the clock for all of it: connections stay open and nobody answers.
    ///
    /// # Panics
    /// If it does not run.
    pub fn pause(&self) {
        let postmaster = self.postmaster.as_ref().expect("it runs");
        // The postmaster first: from then on there are no new processes.
        signal(postmaster.id(), Signal::STOP);
        self.place.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.place.signal(Signal::CONT);
    }

    /// Refuses every write from now on, as a replica or a full disk would, or takes them again.
    /// Everybody is disconnected, so that nobody goes on under the old rule.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn set_read_only(&self, is_read_only: bool) {
        let word = if is_read_only { "on" } else { "off" };
        let rule = format!("ALTER SYSTEM SET default_transaction_read_only = {word}");
        self.admin.sql("postgres", &rule);
        self.admin.sql("postgres", "SELECT pg_reload_conf()");
        // The reload takes a moment; sessions that begin before it would miss it.
        eventually("the rule holds", || {
            let told = self.admin.try_sql("postgres", "SHOW default_transaction_read_only").ok()?;
            (told == word).then_some(())
        });
        self.disconnect_all();
    }

    /// Breaks every connection.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn disconnect_all(&self) {
        self.admin.sql(
            "postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
    }

    fn log_path(&self) -> PathBuf {
        self.place.path().join("log")
    }

    fn bring_up(&mut self) {
        // Through the socket in its own directory: whoever listens on the port, this is ours.
        let host = self.place.path().display().to_string();
        let came_up = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually("PostgreSQL takes connections", || {
                let is_running = match &mut self.postmaster {
                    Some(child) => matches!(child.try_wait(), Ok(None)),
                    None => false,
                };
                if !is_running {
                    self.postmaster = Some(self.spawn());
                }
                let inside = Admin { host: host.clone(), ..self.admin.clone() };
                inside.try_sql("postgres", "SELECT 1").ok()
            })
        }));
        assert!(came_up.is_ok(), "PostgreSQL does not start:\n{}", self.log());
        self.has_port = true;
    }

    fn spawn(&mut self) -> Child {
        if !self.has_port {
            self.admin.port = free_port();
        }
        let log = OpenOptions::new().create(true).append(true).open(self.log_path());
        let log = log.expect("a file for its log");
        let mut command =
            programs::command(&programs::directory().join("postgres"), self.place.path());
        command.args(["-D", "data", "-p", &self.admin.port.to_string(), "-k"]);
        command.arg(self.place.path());
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().expect("postgres starts")
    }
}

fn settings(options: &ClusterOptions) -> Vec<(String, String)> {
    let synced = if options.is_durable { "on" } else { "off" };
    let ours = [
        ("listen_addresses", "127.0.0.1"),
        ("max_connections", "300"),
        ("fsync", synced),
        ("full_page_writes", synced),
        // In the cluster's own directory, where nothing is left behind after a kill.
        ("dynamic_shared_memory_type", "mmap"),
        ("timezone", "UTC"),
    ];
    let ours = ours.map(|(name, value)| (name.to_owned(), value.to_owned()));
    // The last word counts.
    ours.into_iter().chain(options.settings.iter().cloned()).collect()
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(30).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            eprintln!("--- end of PostgreSQL's log ---\n{}\n---", tail.join("\n"));
        }
        // The guard of the place ends every process; the postmaster is our child to bury.
        self.kill9();
    }
}

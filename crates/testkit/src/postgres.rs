//! PostgreSQL for tests, from the installed programs and for this run only. Nothing here touches a
//! cluster of the system.
//!
//! A test that needs a database asks [`Database::create`] with [`shared`]: one cluster serves a
//! whole `cargo xtask test`, and without that each test process starts its own. A test that kills
//! or pauses PostgreSQL starts a [`Cluster`] of its own.

pub mod bouncer;
pub mod certificates;
pub mod cluster;
pub mod place;
pub mod programs;
pub mod proxy;

pub use bouncer::PgBouncer;
pub use certificates::{Authority, Signature, Signed};
pub use cluster::{Cluster, ClusterOptions};
pub use proxy::Proxy;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Says where the cluster of the whole run is: `postgres://USER@HOST:PORT/DATABASE`.
pub const SHARED: &str = "MAINSPRING_TEST_POSTGRES";

/// The only role of a cluster started here; nobody is asked for a password.
pub(crate) const ROLE: &str = "mainspring";

/// How to reach a cluster as its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// Name, address, or the directory of the socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// A superuser without a password.
    pub role: String,
}

impl Admin {
    /// Reads `postgres://USER@HOST:PORT/...`.
    pub fn parse(url: &str) -> Option<Self> {
        let (role, rest) = url.strip_prefix("postgres://")?.split_once('@')?;
        let place = rest.split('/').next()?;
        let (host, port) = place.rsplit_once(':')?;
        Some(Admin { host: host.to_owned(), port: port.parse().ok()?, role: role.to_owned() })
    }

    /// The address of one of its databases.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{}@{}:{}/{database}", self.role, self.host, self.port)
    }

    /// Runs one statement and answers with its rows, one per line, fields apart by `|`.
    ///
    /// # Errors
    /// What `psql` complained about.
    pub fn try_sql(&self, database: &str, statement: &str) -> Result<String, String> {
        let ran = Command::new(programs::directory().join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
            .args(["-h", &self.host, "-p", &self.port.to_string(), "-U", &self.role])
            .args(["-d", database, "-c", statement])
            .env_clear()
            .env("PGCONNECT_TIMEOUT", "10")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("psql does not start: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if ran.status.success() { Ok(text(&ran.stdout)) } else { Err(text(&ran.stderr)) }
    }

    /// The same for a statement that must work.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn sql(&self, database: &str, statement: &str) -> String {
        match self.try_sql(database, statement) {
            Ok(rows) => rows,
            Err(told) => panic!("{statement}: {told}"),
        }
    }
}

/// The cluster for tests that only need a database: that of the run, or one for this process.
///
/// # Panics
/// If the address of the run makes no sense, or there is no PostgreSQL to start.
pub fn shared() -> &'static Admin {
    static OF_THE_RUN: OnceLock<Admin> = OnceLock::new();
    static OWN: OnceLock<Cluster> = OnceLock::new();
    OF_THE_RUN.get_or_init(|| match std::env::var(SHARED) {
        Ok(url) => match Admin::parse(&url) {
            Some(admin) => admin,
            None => panic!("{SHARED} is {url:?}, not postgres://USER@HOST:PORT/DATABASE"),
        },
        // Statics are never dropped; the cluster's guard removes it when this process ends.
        Err(_) => OWN.get_or_init(|| Cluster::start(&ClusterOptions::default())).admin().clone(),
    })
}

/// A fresh database that goes away when it is dropped, with everybody who is still connected.
#[derive(Debug)]
pub struct Database {
    /// Where it is, as `serve --database-url` takes it.
    pub url: String,
    /// Its name.
    pub name: String,
    admin: Admin,
}

impl Database {
    /// Makes one.
    ///
    /// # Panics
    /// If the cluster refuses.
    pub fn create(admin: &Admin) -> Self {
        // Nobody can be connected to template0, so that tests do not get into each other's way.
        Database::create_with(admin, "TEMPLATE template0")
    }

    /// Makes one with options as in `CREATE DATABASE`.
    ///
    /// # Panics
    /// If the cluster refuses.
    pub fn create_with(admin: &Admin, options: &str) -> Self {
        let name = format!("ms_{:016x}", chance());
        admin.sql("postgres", &format!("CREATE DATABASE {name} {options}"));
        Database { url: admin.url(&name), name, admin: admin.clone() }
    }

    /// Runs one statement that must work.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn sql(&self, statement: &str) -> String {
        self.admin.sql(&self.name, statement)
    }

    /// Everything in it, as SQL.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn dump(&self) -> String {
        let admin = &self.admin;
        let ran = Command::new(programs::directory().join("pg_dump"))
            .args(["-h", &admin.host, "-p", &admin.port.to_string(), "-U", &admin.role])
            .arg(&self.name)
            .env_clear()
            .output()
            .expect("pg_dump starts");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).expect("a dump is text")
    }

    /// Runs a file of statements, such as a dump.
    ///
    /// # Panics
    /// If one of them fails.
    pub fn restore(&self, file: &Path) {
        let admin = &self.admin;
        let ran = Command::new(programs::directory().join("psql"))
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1"])
            .args(["-h", &admin.host, "-p", &admin.port.to_string(), "-U", &admin.role])
            .args(["-d", &self.name, "-f"])
            .arg(file)
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .expect("psql starts");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    /// The processes that serve its connections right now.
    ///
    /// # Panics
    /// If the cluster does not answer.
    pub fn back_ends(&self) -> Vec<u32> {
        let ask = format!("SELECT pid FROM pg_stat_activity WHERE datname = '{}'", self.name);
        let told = self.admin.sql("postgres", &ask);
        told.lines().map(|line| line.parse().expect("a process id")).collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The cluster may be gone, or stopped on purpose: then its directory takes this along.
        let _ = self.admin.try_sql("postgres", &format!("DROP DATABASE {} (FORCE)", self.name));
    }
}

/// A number nobody else comes up with, for names and ports.
pub(crate) fn chance() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

//! What can be said before a Mainspring is opened.

use crate::error::Error;
use crate::spring::Mainspring;
use mainspring_engine::{Clock, Config, Engine, Entropy, SharedClock, SystemClock, SystemEntropy};
use mainspring_kernel::{TenantId, UserId};
use mainspring_store::{Fatal, Store};
use mainspring_store_memory::disk::RealDisk;
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::{PostgresConfig, PostgresStore, address};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The tenant and the user of jobs that nobody named others for.
const OWNER: &str = "default";
const HOUR: Duration = Duration::from_secs(3600);

/// Settings, each with a default. Begin with [`Mainspring::options`], end with [`Options::open`],
/// [`Options::connect`] or [`Options::in_memory`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Options {
    tenant: String,
    user: String,
    keep_finished: Duration,
    schema: Option<String>,
    is_strict: bool,
    allows_unsafe: bool,
    fatal: Fatal,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tenant: OWNER.to_owned(),
            user: OWNER.to_owned(),
            keep_finished: Duration::from_secs(7 * 24 * 3600),
            schema: None,
            is_strict: false,
            allows_unsafe: false,
            fatal: Fatal::new(|why| tracing::error!(why, "mainspring takes no more jobs")),
        }
    }
}

impl Options {
    /// Whose jobs these are. Workers take only jobs of this tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Who submits.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = user.into();
        self
    }

    /// How long finished jobs can be looked at; a week where nobody says otherwise.
    pub fn keep_finished(mut self, span: Duration) -> Self {
        self.keep_finished = span;
        self
    }

    /// The schema of the database in which everything is kept; `mainspring` where nobody says
    /// otherwise.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Whether jobs of types that were not defined are refused. They are taken where nobody says
    /// otherwise, since a library's types are its handlers.
    pub fn strict_types(mut self, is_strict: bool) -> Self {
        self.is_strict = is_strict;
        self
    }

    /// Whether a database is taken that may lose what it acknowledged, `fsync` being off. It is
    /// refused where nobody says otherwise.
    pub fn allow_unsafe_database(mut self, allows: bool) -> Self {
        self.allows_unsafe = allows;
        self
    }

    /// Called once, with the reason, when nothing can be taken any more: the disk failed, or a
    /// background task died. Everything that was acknowledged is safe; end the process and start
    /// again. Without this it is told to the log, and every call fails.
    pub fn on_fatal(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.fatal = Fatal::new(tell);
        self
    }

    /// Opens or makes a store in a directory that nobody else can look into.
    ///
    /// # Errors
    /// If another process has it, or it cannot be written or read.
    pub async fn open(self, directory: impl AsRef<Path>) -> Result<Mainspring, Error> {
        let directory = directory.as_ref();
        let path = || directory.display().to_string();
        let clock = Arc::new(SystemClock::new());
        let disk = RealDisk::open(directory);
        let disk = disk.map_err(|cause| Error::Made { path: path(), cause })?;
        let store = MemoryStore::open(Arc::new(disk), self.memory(), clock.now())
            .map_err(|cause| Error::Directory { path: path(), cause })?;
        self.start(Arc::new(store), clock).await
    }

    /// Connects to a database and brings its schema up to date. Other processes and servers may be
    /// at work on it.
    ///
    /// # Errors
    /// If the address is none, or the database cannot be used.
    pub async fn connect(self, url: &str) -> Result<Mainspring, Error> {
        // Everybody at one database keeps time by it.
        let clock = Arc::new(SharedClock::new());
        let (now, set) = (clock.clone(), clock.clone());
        let standard = PostgresConfig::standard(url, Arc::new(move || now.now()));
        let config = PostgresConfig {
            schema: self.schema.clone().unwrap_or(standard.schema),
            node_name: format!("library (process {})", std::process::id()),
            keep_finished: self.keep_finished,
            keep_stream: standard.keep_stream.min(self.keep_finished),
            are_types_strict: self.is_strict,
            allows_unsafe: self.allows_unsafe,
            on_time: Arc::new(move |look, record| set.set(look, record)),
            fatal: self.fatal.clone(),
            ..standard
        };
        let opened = PostgresStore::open(config, SystemEntropy::default().bits()).await;
        let store =
            opened.map_err(|cause| Error::Database { database: address::shown(url), cause })?;
        self.start(Arc::new(store), clock).await
    }

    /// Keeps everything in memory, for as long as the process runs.
    ///
    /// # Errors
    /// If a name is none.
    pub async fn in_memory(self) -> Result<Mainspring, Error> {
        let store = MemoryStore::ephemeral(self.memory());
        self.start(Arc::new(store), Arc::new(SystemClock::new())).await
    }

    fn memory(&self) -> MemoryConfig {
        MemoryConfig {
            keep_finished: self.keep_finished,
            fatal: self.fatal.clone(),
            ..MemoryConfig::standard(seed())
        }
    }

    pub(crate) async fn start_forgetful(self, clock: Arc<dyn Clock>) -> Result<Mainspring, Error> {
        // Without threads everything happens on the runtime, whose clock the test holds.
        let config = MemoryConfig { has_threads: false, ..self.memory() };
        let store = Arc::new(MemoryStore::ephemeral(config));
        // A day of a test should not be a day of upkeep.
        let engine = Config { maintain_every: HOUR, ..Config::standard() };
        self.start_with(store, clock, engine).await
    }

    async fn start(
        self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Mainspring, Error> {
        self.start_with(store, clock, Config::standard()).await
    }

    async fn start_with(
        self,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        standard: Config,
    ) -> Result<Mainspring, Error> {
        let (tenant, user) = (TenantId::new(&self.tenant)?, UserId::new(&self.user)?);
        let config = Config { are_types_strict: self.is_strict, fatal: self.fatal, ..standard };
        let entropy = Arc::new(SystemEntropy::default());
        let engine = Engine::start(store, clock, entropy, config).await?;
        Ok(Mainspring::new(engine, tenant, user))
    }
}

fn seed() -> u64 {
    SystemEntropy::default().bits() as u64
}

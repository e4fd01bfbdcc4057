//! What every command that talks to PostgreSQL needs: the address checked, the store's settings.

use crate::config::layers::{self, Flags};
use crate::config::{Settings, StoreChoice};
use crate::exit::usage;
use mainspring_engine::{Clock, SharedClock};
use mainspring_store::Fatal;
use mainspring_store_postgres::PostgresConfig;
use mainspring_store_postgres::address::{self, BadAddress};
use std::path::PathBuf;
use std::sync::Arc;

/// Which database a command is about; what is not said is found as `serve` finds it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Place {
    /// The database [default: as for `serve`]
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Configuration file (TOML), for the address and the schema
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl Place {
    /// The settings of the store.
    ///
    /// # Errors
    /// If no database is named, or the configuration is wrong.
    pub(crate) fn resolve(&self) -> anyhow::Result<PostgresConfig> {
        let flags = Flags {
            database_url: self.database_url.clone(),
            config: self.config.clone(),
            ..Flags::default()
        };
        let settings = layers::resolve(Settings::standard(), &flags, &layers::process_environment)?;
        let StoreChoice::Postgres { url, from } = &settings.store else {
            return Err(usage(
                "no database is named; use --database-url, MAINSPRING_DATABASE_URL, or \
                 database_url under [store] of the configuration file",
            ));
        };
        check_url(url, from)?;
        Ok(config(&settings, url, &Arc::new(SharedClock::new()), Fatal::default()))
    }
}

/// Refuses an address that is none, before anything is touched.
pub(crate) fn check_url(url: &str, from: &str) -> anyhow::Result<()> {
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    match address::check(url) {
        Ok(()) if is_url => return Ok(()),
        Err(BadAddress::Encryption(why)) => return Err(usage(format!("{from}: {why}"))),
        Ok(()) | Err(BadAddress::Unreadable) => {}
    }
    let url = address::shown(url);
    Err(usage(format!(
        "{from} asks for {url}, which is no PostgreSQL address; write \
         postgres://user@host:port/database"
    )))
}

/// The settings of a store whose servers keep time by the database.
pub(crate) fn config(
    settings: &Settings,
    url: &str,
    clock: &Arc<SharedClock>,
    fatal: Fatal,
) -> PostgresConfig {
    let (now, set) = (clock.clone(), clock.clone());
    PostgresConfig {
        schema: settings.postgres.schema.clone(),
        connections_max: settings.postgres.connections,
        is_notified: settings.postgres.is_notified,
        poll_every: settings.postgres.poll_every,
        node_name: format!("{} (process {})", settings.listen, std::process::id()),
        keep_finished: settings.retention.finished,
        keep_items: settings.retention.dlq,
        // What a move tells is told from its job.
        keep_stream: settings.retention.stream.min(settings.retention.finished),
        are_types_strict: settings.types_strict,
        key_window_secs: settings.key_window_secs(),
        allows_unsafe: settings.postgres.allows_unsafe,
        on_time: Arc::new(move |look, record| set.set(look, record)),
        fatal,
        ..PostgresConfig::standard(url, Arc::new(move || now.now()))
    }
}

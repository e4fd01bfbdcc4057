//! What every command that talks to PostgreSQL needs: the address checked, the settings of the store.

use crate::config::{Settings, show};
use crate::exit::usage;
use mainspring_engine::{Clock, SharedClock};
use mainspring_store_postgres::PostgresConfig;
use std::sync::Arc;

/// Refuses an address that is none, before anything is touched.
pub(crate) fn check_url(url: &str, from: &str) -> anyhow::Result<()> {
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(());
    }
    let url = show::without_password(url);
    Err(usage(format!(
        "{from} asks for {url}, which is no PostgreSQL address; write \
         postgres://user@host:port/database"
    )))
}

/// The settings of a store whose servers keep time by the database.
pub(crate) fn config(settings: &Settings, url: &str, clock: &Arc<SharedClock>) -> PostgresConfig {
    let (now, set) = (clock.clone(), clock.clone());
    PostgresConfig {
        schema: settings.postgres.schema.clone(),
        connections_max: settings.postgres.connections,
        is_notified: settings.postgres.is_notified,
        poll_every: settings.postgres.poll_every,
        node_name: format!("{} (process {})", settings.listen, std::process::id()),
        keep_finished: settings.retention.finished,
        keep_items: settings.retention.dlq,
        are_types_strict: settings.types_strict,
        on_time: Arc::new(move |at| set.set(at)),
        ..PostgresConfig::standard(url, Arc::new(move || now.now()))
    }
}

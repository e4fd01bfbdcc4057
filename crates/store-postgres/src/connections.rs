//! The connections to the database. Statements are prepared once per connection and sent without
//! waiting for one another; behind a transaction pooler, which cannot keep either promise, they are
//! sent unnamed and every transaction sets what it needs (`session.rs`).

pub mod address;
pub(crate) mod connect;
mod connection;
pub(crate) mod encryption;
mod session;

pub(crate) use connection::{Connection, Part};
pub(crate) use session::Wait;
pub use session::session_settings;

use crate::config::PostgresConfig;
use crate::connections::session::{begin_pooled, keeps_settings, pool};
use crate::fault::Fault;
use crate::queries::{Queries, Query};
use deadpool_postgres::Pool;
use mainspring_store::Histogram;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// A parameter.
pub(crate) type Value = Box<dyn ToSql + Sync + Send>;

/// A statement with its parameters.
pub(crate) struct Call {
    pub(crate) query: Query,
    pub(crate) values: Vec<Value>,
}

impl Call {
    pub(crate) fn new(query: Query, values: Vec<Value>) -> Self {
        debug_assert_eq!(values.len(), query.types().len(), "{query:?}");
        Call { query, values }
    }
}

/// The connections of one store.
pub(crate) struct Connections {
    pool: Pool,
    pub(crate) queries: Queries,
    patience: Duration,
    /// Whether a pooler stands between us and the database.
    is_pooled: bool,
    begin_pooled: String,
    /// How long round trips took.
    pub(crate) times: Histogram,
}

impl Connections {
    /// Prepares to connect; finds out whether a pooler is in the way.
    pub(crate) async fn open(config: &PostgresConfig) -> Result<Self, Fault> {
        let queries = Queries::new(&config.schema);
        let direct = pool(config, true)?;
        let is_pooled = match keeps_settings(&direct).await {
            Ok(keeps) => !keeps,
            Err(Fault::Away(why)) if why.contains("startup parameter") => true,
            Err(fault) => return Err(fault),
        };
        let pool = if is_pooled { pool(config, false)? } else { direct };
        Ok(Connections {
            pool,
            queries,
            patience: config.patience,
            is_pooled,
            begin_pooled: begin_pooled(),
            times: Histogram::of_spans(),
        })
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// A connection, waiting for one within the patience of callers.
    pub(crate) async fn get(&self) -> Result<Connection<'_>, Fault> {
        match self.pool.get().await {
            Ok(client) => Ok(Connection::new(client, self)),
            Err(error) => Err(error.into()),
        }
    }

    /// One read on any connection.
    pub(crate) async fn read(&self, query: Query, values: Vec<Value>) -> Result<Vec<Row>, Fault> {
        let mut connection = self.get().await?;
        connection.one(Call::new(query, values)).await
    }

    /// One statement that waits no longer than that for locks.
    pub(crate) async fn write(
        &self,
        wait: Wait,
        query: Query,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, Fault> {
        let mut connection = self.get().await?;
        connection.wait = wait;
        let mut rows = connection.run(Part::All, vec![Call::new(query, values)]).await?;
        Ok(rows.pop().unwrap_or_default())
    }

    /// Lets go of every connection.
    pub(crate) fn close(&self) {
        self.pool.close();
    }

    /// Lets go of idle connections: after a fault they are as dead as the one that failed.
    pub(crate) fn shed(&self) {
        self.pool.retain(|_, _| false);
    }
}

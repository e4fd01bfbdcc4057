//! One connection to PostgreSQL, driven by the thread that uses it.

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

/// What a statement is given.
pub(crate) type Given<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection; it closes when dropped.
pub(crate) struct Session {
    runtime: Runtime,
    client: Client,
}

impl Session {
    pub(crate) fn open(url: &str) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, connection) = runtime
            .block_on(mainspring_store_postgres::connect(url))
            .context("cannot connect to PostgreSQL")?;
        // It runs while a statement is waited for, and never otherwise.
        runtime.spawn(connection);
        Ok(Session { runtime, client })
    }

    /// Runs statements for their effect.
    pub(crate) fn run(&mut self, sql: &str) -> anyhow::Result<()> {
        self.runtime.block_on(self.client.batch_execute(sql)).with_context(|| sql.to_owned())
    }

    pub(crate) fn prepare(&mut self, sql: &str) -> anyhow::Result<Statement> {
        self.runtime.block_on(self.client.prepare(sql)).with_context(|| sql.to_owned())
    }

    pub(crate) fn query(&mut self, what: &Statement, given: Given<'_>) -> anyhow::Result<Vec<Row>> {
        Ok(self.runtime.block_on(self.client.query(what, given))?)
    }

    pub(crate) fn execute(&mut self, what: &Statement, given: Given<'_>) -> anyhow::Result<u64> {
        Ok(self.runtime.block_on(self.client.execute(what, given))?)
    }

    /// The only value of the only row.
    pub(crate) fn number(&mut self, sql: &str) -> anyhow::Result<i64> {
        let row = self.runtime.block_on(self.client.query_one(sql, &[]));
        Ok(row.with_context(|| sql.to_owned())?.try_get(0)?)
    }

    /// A text and a number from every row, for the reader of the log.
    pub(crate) fn told(&mut self, sql: &str) -> anyhow::Result<Vec<(String, i64)>> {
        let rows = self.runtime.block_on(self.client.query(sql, &[]));
        let rows = rows.with_context(|| sql.to_owned())?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// The only value of the only row.
    pub(crate) fn text(&mut self, sql: &str) -> anyhow::Result<String> {
        let row = self.runtime.block_on(self.client.query_one(sql, &[]));
        Ok(row.with_context(|| sql.to_owned())?.try_get(0)?)
    }
}

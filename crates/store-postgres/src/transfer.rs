//! Everything out of a database, or into an empty one, while no server uses it. One transaction at
//! either end: what is read is of one moment, and what is written counts when it was read again and
//! found to be the same, or not at all.

mod export;
mod import;

pub use export::PostgresExport;
pub use import::PostgresImport;

use crate::connections::Value;
use crate::fault::Fault;
use crate::migrate::{MigrateError, failed};
use crate::neighbours::GONE_AFTER;
use crate::queries::{Queries, Query, in_schema};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

/// A connection inside of a transaction, with the statements of its schema.
struct Session {
    client: Client,
    queries: Queries,
}

impl Session {
    async fn call(&self, query: Query, values: Vec<Value>) -> Result<Vec<Row>, Fault> {
        self.ask(self.queries.text(query), values, query.types()).await
    }

    /// Runs a statement that was written for the usual schema.
    async fn script(
        &self,
        sql: &str,
        values: Vec<Value>,
        types: &[Type],
    ) -> Result<Vec<Row>, Fault> {
        self.ask(&in_schema(sql, self.queries.schema()), values, types).await
    }

    async fn ask(&self, sql: &str, values: Vec<Value>, types: &[Type]) -> Result<Vec<Row>, Fault> {
        let values: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|value| &**value as _).zip(types.iter().cloned()).collect();
        Ok(self.client.query_typed(sql, &values).await?)
    }

    /// Begins, and keeps servers out: one that starts cannot say that it is alive.
    async fn begin(&self) -> Result<(), MigrateError> {
        let schema = self.queries.schema();
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ;
             SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
             SET LOCAL lock_timeout = '5s'; SET LOCAL jit = off;
             LOCK TABLE {schema}.node IN SHARE MODE"
        );
        self.client.batch_execute(&begin).await.map_err(failed)?;
        let sql = "SELECT name FROM mainspring.node
            WHERE seen_at > clock_timestamp() - $1 * interval '1 second' LIMIT 1";
        let secs: Vec<Value> = vec![Box::new(GONE_AFTER.as_secs_f64())];
        match self.script(sql, secs, &[Type::FLOAT8]).await?.first() {
            None => Ok(()),
            Some(row) => Err(MigrateError::Refused(format!(
                "a server uses the database: {}; stop it and wait {} seconds",
                row.get::<_, &str>(0),
                GONE_AFTER.as_secs()
            ))),
        }
    }
}

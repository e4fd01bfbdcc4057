//! The doctor: looks at a database that may be in use, changes nothing, and says what is wrong and
//! what to do about it. Everything is read in one snapshot; on large tables it looks at a part and
//! says so.

mod jobs;
mod schema;
mod server;

pub use schema::catalog;

use crate::config::PostgresConfig;
use crate::migrate::{self, MigrateError, failed};
use crate::queries::in_schema;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Worth a look.
    Warning,
    /// Something does not work, or data is not as it must be.
    Failure,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A name that stays the same.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub cure: String,
}

/// What the doctor has to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What was looked at and is fine, by topic.
    pub facts: Vec<(&'static str, String)>,
    /// What is not.
    pub findings: Vec<Finding>,
    /// What was looked at in part only, or not at all.
    pub notes: Vec<String>,
}

impl Report {
    fn fact(&mut self, topic: &'static str, text: impl Into<String>) {
        self.facts.push((topic, text.into()));
    }

    fn warn(&mut self, code: &'static str, text: impl Into<String>, cure: impl Into<String>) {
        let (text, cure) = (text.into(), cure.into());
        self.findings.push(Finding { code, severity: Severity::Warning, text, cure });
    }

    fn fail(&mut self, code: &'static str, text: impl Into<String>, cure: impl Into<String>) {
        let (text, cure) = (text.into(), cure.into());
        self.findings.push(Finding { code, severity: Severity::Failure, text, cure });
    }
}

/// One look: a connection inside of a transaction that only reads.
struct Look<'a> {
    client: &'a Client,
    config: &'a PostgresConfig,
}

/// One statement of the doctor may take this long.
const STATEMENT_WAIT: &str = "60s";

impl Look<'_> {
    /// Runs a statement that was written for the usual schema. A statement that fails does not end
    /// the look.
    async fn ask(
        &self,
        sql: &str,
        values: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, MigrateError> {
        let sql = in_schema(sql, &self.config.schema);
        self.client.batch_execute("SAVEPOINT question").await.map_err(failed)?;
        let answer = self.client.query_typed(&sql, values).await;
        let end = match answer.is_ok() {
            true => "RELEASE SAVEPOINT question",
            false => "ROLLBACK TO SAVEPOINT question",
        };
        self.client.batch_execute(end).await.map_err(failed)?;
        answer.map_err(failed)
    }
}

/// Examines a database.
///
/// # Errors
/// If it cannot be reached, or goes away in between.
pub async fn examine(config: &PostgresConfig) -> Result<Report, MigrateError> {
    let client = migrate::connect(config).await?;
    let begin = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
         SET LOCAL statement_timeout = '{STATEMENT_WAIT}'; SET LOCAL lock_timeout = '5s';
         SET LOCAL jit = off"
    );
    client.batch_execute(&begin).await.map_err(failed)?;
    let look = Look { client: &client, config };
    let mut report = Report::default();
    server::examine(&look, &mut report).await?;
    if schema::examine(&look, &mut report).await? {
        server::examine_tables(&look, &mut report).await?;
        jobs::examine(&look, &mut report).await?;
    }
    client.batch_execute("ROLLBACK").await.map_err(failed)?;
    Ok(report)
}

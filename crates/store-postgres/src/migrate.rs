//! Migrations: forward only, one transaction each, under a lock so that servers may start together.
//! A step that is not transactional (an index built while work goes on) says so in its first line.

use crate::config::PostgresConfig;
use crate::fault::Fault;
use crate::queries::in_schema;
use mainspring_kernel::fingerprint;
use std::str::FromStr;
use tokio_postgres::{Client, NoTls};

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its number: 1, 2, 3…
    pub version: i32,
    /// What it brings.
    pub name: &'static str,
    /// Its text, for the schema `mainspring`.
    sql: &'static str,
}

/// Every step, in order. Never edited after a release: add one.
pub const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "first_schema",
    sql: include_str!("../migrations/0001_first_schema.sql"),
}];

/// Where a database stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationStatus {
    /// The newest step taken; none in an empty database.
    pub version: Option<i32>,
    /// Steps this version of Mainspring still has to take.
    pub pending: Vec<i32>,
    /// What is wrong: an edited step, or a database that is ahead of this version.
    pub problems: Vec<String>,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database cannot be reached, or a step failed.
    #[error("{0}")]
    Failed(String),
    /// The database was migrated by a newer Mainspring, or steps were edited.
    #[error("{0}")]
    Refused(String),
}

impl Migration {
    /// Whether servers of the version before may go on while this step is taken and after.
    pub fn is_compatible(&self) -> bool {
        self.sql.lines().next().is_some_and(|line| line.starts_with("-- compatible"))
    }

    /// The statements, for `schema`.
    pub fn sql(&self, schema: &str) -> String {
        in_schema(self.sql, schema)
    }

    fn checksum(&self) -> String {
        let digest = fingerprint::digest(&[self.sql.as_bytes()]);
        digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Where the database stands.
///
/// # Errors
/// If it cannot be asked.
pub async fn status(config: &PostgresConfig) -> Result<MigrationStatus, MigrateError> {
    let client = connect(config).await?;
    read_status(&client, &config.schema).await
}

/// Takes every step that is missing; the versions of those taken.
///
/// # Errors
/// If the database is ahead or differs, or a step fails; steps before it stay taken.
pub async fn up(config: &PostgresConfig) -> Result<Vec<i32>, MigrateError> {
    let client = connect(config).await?;
    let schema = &config.schema;
    let mut taken = Vec::new();
    loop {
        let status = read_status(&client, schema).await?;
        refuse_problems(&status)?;
        let Some(next) = MIGRATIONS.iter().find(|step| status.pending.contains(&step.version))
        else {
            return Ok(taken);
        };
        if step(&client, schema, next).await? {
            taken.push(next.version);
        }
    }
}

/// Refuses a database that this version must not touch.
///
/// # Errors
/// If it is ahead of this version, or its steps differ.
pub(crate) fn refuse_problems(status: &MigrationStatus) -> Result<(), MigrateError> {
    match status.problems.first() {
        None => Ok(()),
        Some(problem) => Err(MigrateError::Refused(problem.clone())),
    }
}

/// Takes one step; `false` if another server took it meanwhile.
async fn step(client: &Client, schema: &str, step: &Migration) -> Result<bool, MigrateError> {
    let lock = format!(
        "BEGIN; SET LOCAL lock_timeout = '10s'; SET LOCAL statement_timeout = 0;
         SELECT pg_advisory_xact_lock(hashtextextended('{schema}.migration', 0));
         CREATE SCHEMA IF NOT EXISTS {schema};"
    );
    client.batch_execute(&lock).await.map_err(failed)?;
    let outcome = async {
        let status = read_status(client, schema).await?;
        if !status.pending.contains(&step.version) {
            return Ok(false);
        }
        client.batch_execute(&step.sql(schema)).await.map_err(failed)?;
        let note = format!(
            "INSERT INTO {schema}.migration (version, name, checksum) VALUES ({}, '{}', '{}')",
            step.version,
            step.name,
            step.checksum()
        );
        client.batch_execute(&note).await.map_err(failed)?;
        Ok(true)
    }
    .await;
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await.map_err(failed)?;
    outcome
}

async fn read_status(client: &Client, schema: &str) -> Result<MigrationStatus, MigrateError> {
    let table = format!("{schema}.migration");
    let sql = "SELECT to_regclass($1) IS NOT NULL";
    let found = client.query_typed(sql, &[(&table, tokio_postgres::types::Type::TEXT)]).await;
    let is_there: bool = found.map_err(failed)?.first().is_some_and(|row| row.get(0));
    let mut status = MigrationStatus { version: None, pending: Vec::new(), problems: Vec::new() };
    let mut taken = Vec::new();
    if is_there {
        let sql = format!("SELECT version, name, checksum FROM {table} ORDER BY version");
        for row in client.query_typed(&sql, &[]).await.map_err(failed)? {
            let (version, name, checksum): (i32, String, String) =
                (row.get(0), row.get(1), row.get(2));
            status.version = Some(version);
            taken.push(version);
            match MIGRATIONS.iter().find(|step| step.version == version) {
                None => status.problems.push(format!(
                    "the database has step {version} ({name}) of a newer Mainspring; run that \
                     version, or one newer still"
                )),
                Some(step) if step.checksum() != checksum => status.problems.push(format!(
                    "step {version} ({name}) of the database differs from this Mainspring's: it \
                     was made by a build that was never released"
                )),
                Some(_) => {}
            }
        }
    }
    let pending = MIGRATIONS.iter().filter(|step| !taken.contains(&step.version));
    status.pending = pending.map(|step| step.version).collect();
    Ok(status)
}

async fn connect(config: &PostgresConfig) -> Result<Client, MigrateError> {
    let settings = tokio_postgres::Config::from_str(&config.url)
        .map_err(|error| MigrateError::Refused(format!("the address is not valid: {error}")))?;
    let (client, connection) = settings.connect(NoTls).await.map_err(failed)?;
    tokio::spawn(async move {
        // The error reaches whoever uses the client.
        let _ = connection.await;
    });
    Ok(client)
}

fn failed(error: tokio_postgres::Error) -> MigrateError {
    match Fault::from(error) {
        Fault::Away(why) | Fault::Broken(why) | Fault::Unknown(why) => MigrateError::Failed(why),
        Fault::Conflict | Fault::RegistryChanged => MigrateError::Failed("a conflict".into()),
        Fault::Held => MigrateError::Failed("others hold what a step needs; try again".into()),
    }
}

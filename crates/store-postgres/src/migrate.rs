//! Migrations: forward only, under a lock so that servers may start together.
//!
//! The first line of a step says whether servers of the version before may go on while it is taken
//! and after (`-- compatible`), or must be stopped first (`-- breaking`). A second line
//! `-- not transactional` makes it run statement by statement outside of a transaction, for indexes
//! built while work goes on. Read next: `migrate/run.rs`.

mod run;

use crate::config::PostgresConfig;
use crate::connections::connect::{Address, BadAddress};
use crate::fault::Fault;
use crate::queries::in_schema;
use mainspring_kernel::fingerprint;
pub use run::{prepare, prepare_with, up, up_with};
use std::time::Duration;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// One step.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its number: 1, 2, 3…
    pub version: i32,
    /// What it brings.
    pub name: &'static str,
    /// Its text, for the schema `mainspring`.
    pub written: &'static str,
}

/// Every step, in order. Never edited after a release: add one.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "first_schema",
        written: include_str!("../migrations/0001_first_schema.sql"),
    },
    Migration {
        version: 2,
        name: "submit_in_sql",
        written: include_str!("../migrations/0002_submit_in_sql.sql"),
    },
    Migration {
        version: 3,
        name: "effects_and_workers",
        written: include_str!("../migrations/0003_effects_and_workers.sql"),
    },
    Migration { version: 4, name: "lists", written: include_str!("../migrations/0004_lists.sql") },
    Migration {
        version: 5,
        name: "refuse_at_the_door",
        written: include_str!("../migrations/0005_refuse_at_the_door.sql"),
    },
    Migration {
        version: 6,
        name: "count_held",
        written: include_str!("../migrations/0006_count_held.sql"),
    },
    Migration {
        version: 7,
        name: "shared_time",
        written: include_str!("../migrations/0007_shared_time.sql"),
    },
    Migration {
        version: 8,
        name: "silences",
        written: include_str!("../migrations/0008_silences.sql"),
    },
    Migration {
        version: 9,
        name: "entities",
        written: include_str!("../migrations/0009_entities.sql"),
    },
    Migration { version: 10, name: "lz4", written: include_str!("../migrations/0010_lz4.sql") },
    Migration {
        version: 11,
        name: "labels_by_the_batch",
        written: include_str!("../migrations/0011_labels_by_the_batch.sql"),
    },
    Migration {
        version: 12,
        name: "checkpoints",
        written: include_str!("../migrations/0012_checkpoints.sql"),
    },
    Migration {
        version: 13,
        name: "limits",
        written: include_str!("../migrations/0013_limits.sql"),
    },
    Migration {
        version: 14,
        name: "count_types",
        written: include_str!("../migrations/0014_count_types.sql"),
    },
    Migration {
        version: 15,
        name: "retry_lanes",
        written: include_str!("../migrations/0015_retry_lanes.sql"),
    },
    Migration {
        version: 16,
        name: "parents",
        written: include_str!("../migrations/0016_parents.sql"),
    },
];

/// The newest step this version knows.
pub(crate) const NEWEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// What to say of a step that a server of this version cannot work with.
pub(crate) fn beyond(step: i32, name: Option<&str>) -> String {
    let name = name.map_or_else(String::new, |name| format!(" ({name})"));
    format!(
        "the database has step {step}{name} of a newer Mainspring, which this one cannot work with; \
         run that version, or one newer still"
    )
}

/// The oldest PostgreSQL this works with.
pub const POSTGRES_MIN: i32 = 15;

/// Where a database stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationStatus {
    /// The newest step taken; none in an empty database.
    pub version: Option<i32>,
    /// Steps this version of Mainspring still has to take.
    pub pending: Vec<i32>,
    /// Steps of a newer Mainspring that this one can live with.
    pub newer: Vec<i32>,
    /// What is wrong: an edited step, or a database that is ahead of this version.
    pub problems: Vec<String>,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database cannot be reached.
    #[error("PostgreSQL cannot be reached: {0}")]
    Away(String),
    /// A step failed.
    #[error("{0}")]
    Failed(String),
    /// A newer Mainspring migrated the database, steps were edited, or a breaking step waits.
    #[error("{0}")]
    Refused(String),
    /// The address is none.
    #[error("the address is not valid: {0}")]
    Address(String),
}

impl Migration {
    /// Whether servers of the version before may go on while this step is taken and after.
    pub fn is_compatible(&self) -> bool {
        self.written.lines().next().is_some_and(|line| line.starts_with("-- compatible"))
    }

    /// Whether all of it counts or nothing.
    pub fn is_transactional(&self) -> bool {
        self.written.lines().nth(1).is_none_or(|line| !line.starts_with("-- not transactional"))
    }

    /// The statements, for `schema`.
    pub fn sql(&self, schema: &str) -> String {
        in_schema(self.written, schema)
    }

    /// What tells an edited step from the one that was released.
    pub fn checksum(&self) -> String {
        let digest = fingerprint::digest(&[self.written.as_bytes()]);
        digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Where the database stands.
///
/// # Errors
/// If it cannot be asked.
pub async fn status(config: &PostgresConfig) -> Result<MigrationStatus, MigrateError> {
    let client = connect(config).await?;
    read_status(&client, &config.schema, MIGRATIONS).await
}

/// Refuses a database that this version must not touch.
///
/// # Errors
/// If it is ahead of this version, or its steps differ.
pub fn refuse_problems(status: &MigrationStatus) -> Result<(), MigrateError> {
    match status.problems.first() {
        None => Ok(()),
        Some(problem) => Err(MigrateError::Refused(problem.clone())),
    }
}

/// Where the database stands, for a Mainspring that knows `steps`.
pub(crate) async fn read_status(
    client: &Client,
    schema: &str,
    steps: &[Migration],
) -> Result<MigrationStatus, MigrateError> {
    let table = format!("{schema}.migration");
    let sql = "SELECT to_regclass($1) IS NOT NULL";
    let found = client.query_typed(sql, &[(&table, Type::TEXT)]).await.map_err(failed)?;
    let mut status = MigrationStatus {
        version: None,
        pending: Vec::new(),
        newer: Vec::new(),
        problems: Vec::new(),
    };
    let mut taken = Vec::new();
    if found.first().is_some_and(|row| row.get(0)) {
        let sql =
            format!("SELECT version, name, checksum, is_compatible FROM {table} ORDER BY version");
        for row in client.query_typed(&sql, &[]).await.map_err(failed)? {
            let (version, name, checksum): (i32, String, String) =
                (row.get(0), row.get(1), row.get(2));
            status.version = Some(version);
            taken.push(version);
            match steps.iter().find(|step| step.version == version) {
                None if row.get(3) => status.newer.push(version),
                None => status.problems.push(beyond(version, Some(&name))),
                Some(step) if step.checksum() != checksum => status.problems.push(format!(
                    "step {version} ({name}) of the database differs from this Mainspring's: one \
                     of the two was edited after it was released; run the version that made the \
                     database"
                )),
                Some(_) => {}
            }
        }
    }
    let pending = steps.iter().filter(|step| !taken.contains(&step.version));
    status.pending = pending.map(|step| step.version).collect();
    Ok(status)
}

/// A connection outside of any pool, to a PostgreSQL that is new enough.
pub(crate) async fn connect(config: &PostgresConfig) -> Result<Client, MigrateError> {
    let mut address: Address =
        config.url.parse().map_err(|error: BadAddress| MigrateError::Address(error.to_string()))?;
    if let Some(fault) = address.fault().await {
        return Err(MigrateError::Address(fault));
    }
    address.settings.application_name("mainspring").connect_timeout(config.patience);
    let connecting = tokio::time::timeout(config.patience * 2, address.connect()).await;
    let (client, connection) = connecting
        .map_err(|_| MigrateError::Away("no answer in time".to_owned()))?
        .map_err(away)?;
    tokio::spawn(async move {
        // The error reaches whoever uses the client.
        let _ = connection.await;
    });
    let major = server_version(&client).await? / 10_000;
    if major < POSTGRES_MIN {
        return Err(MigrateError::Refused(format!(
            "this is PostgreSQL {major}; {POSTGRES_MIN} or newer is needed"
        )));
    }
    refuse_encoding(&client).await?;
    Ok(client)
}

/// Refuses a database that cannot hold any text, before anything is made in it.
async fn refuse_encoding(client: &Client) -> Result<(), MigrateError> {
    let encoding = setting(client, "server_encoding").await?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(MigrateError::Refused(format!(
        "POSTGRES_ENCODING: the database is encoded as {encoding}, and UTF8 is needed; make one \
         with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
    )))
}

/// Refuses a server that may lose or tear what it acknowledged, unless that was asked for.
///
/// # Errors
/// If `fsync` or `full_page_writes` is off, or it cannot be asked.
pub(crate) async fn refuse_unsafe(config: &PostgresConfig) -> Result<(), MigrateError> {
    if config.allows_unsafe {
        return Ok(());
    }
    let client = connect(config).await?;
    for name in ["fsync", "full_page_writes"] {
        if setting(&client, name).await? == "off" {
            return Err(MigrateError::Refused(format!(
                "POSTGRES_UNSAFE: {name} is off: a power cut would destroy the database; turn it \
                 on in postgresql.conf, or set allow_unsafe_postgres = true under [store] if \
                 nothing here is worth keeping"
            )));
        }
    }
    Ok(())
}

async fn setting(client: &Client, name: &str) -> Result<String, MigrateError> {
    let sql = "SELECT current_setting($1)";
    let rows = client.query_typed(sql, &[(&name, Type::TEXT)]).await.map_err(failed)?;
    Ok(rows.first().map(|row| row.get(0)).unwrap_or_default())
}

/// The version as a number: 150004 for 15.4.
pub(crate) async fn server_version(client: &Client) -> Result<i32, MigrateError> {
    let sql = "SELECT current_setting('server_version_num')::int";
    let rows = client.query_typed(sql, &[]).await.map_err(failed)?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// Whether somebody else holds what a step needs.
fn is_held(error: &MigrateError) -> bool {
    matches!(error, MigrateError::Failed(text) if text == HELD)
}

const HELD: &str = "others hold what a step needs; try again when there is less to do";
/// How long a step waits for a lock: whoever comes after it waits as long.
const LOCK_WAIT: Duration = Duration::from_secs(1);

pub(crate) fn failed(error: tokio_postgres::Error) -> MigrateError {
    MigrateError::from(Fault::from(error))
}

impl From<Fault> for MigrateError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Away(why) => MigrateError::Away(why),
            Fault::Broken(why)
            | Fault::Unreadable(why)
            | Fault::Refused(why)
            | Fault::Unknown(why) => MigrateError::Failed(why),
            Fault::Conflict | Fault::RegistryChanged => MigrateError::Failed("a conflict".into()),
            Fault::Locked => MigrateError::Failed(HELD.into()),
        }
    }
}

/// Whatever a server says to somebody who connects, it cannot be used.
pub(crate) fn away(error: tokio_postgres::Error) -> MigrateError {
    MigrateError::Away(match Fault::from(error) {
        Fault::Away(why)
        | Fault::Broken(why)
        | Fault::Unreadable(why)
        | Fault::Refused(why)
        | Fault::Unknown(why) => why,
        Fault::Conflict | Fault::RegistryChanged | Fault::Locked => "busy".to_owned(),
    })
}

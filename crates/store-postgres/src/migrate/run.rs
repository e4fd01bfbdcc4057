//! Taking steps. One process at a time: the others wait, and find the work done.

use super::{
    LOCK_WAIT, MIGRATIONS, MigrateError, Migration, MigrationStatus, connect, failed, is_held,
    read_status, refuse_problems,
};
use crate::config::PostgresConfig;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};

/// A step that finds its tables in use is tried again this often, and after this long each time.
const TRIES_MAX: u32 = 30;
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long to wait for another process that migrates: an index may take its time.
const TURN_WAIT: Duration = Duration::from_secs(1800);
const TURN_EVERY: Duration = Duration::from_millis(100);

/// Takes every step that is missing, telling `progress` before each; the versions of those taken.
///
/// # Errors
/// If the database is ahead or differs, or a step fails; steps before it stay taken.
pub async fn up(
    config: &PostgresConfig,
    progress: &mut (dyn FnMut(&Migration) + Send),
) -> Result<Vec<i32>, MigrateError> {
    up_with(config, MIGRATIONS, progress).await
}

/// The same for a Mainspring that knows `steps`.
///
/// # Errors
/// As [`up`].
pub async fn up_with(
    config: &PostgresConfig,
    steps: &[Migration],
    progress: &mut (dyn FnMut(&Migration) + Send),
) -> Result<Vec<i32>, MigrateError> {
    let client = connect(config).await?;
    let mut taken = Vec::new();
    loop {
        let status = read_status(&client, &config.schema, steps).await?;
        refuse_problems(&status)?;
        let Some(next) = steps.iter().find(|step| status.pending.contains(&step.version)) else {
            return Ok(taken);
        };
        progress(next);
        if take_patiently(config, &client, steps, next).await? {
            taken.push(next.version);
        }
    }
}

/// What a server does when it starts: an empty database gets every step, another one those that do
/// not disturb servers of the version before. The versions of the steps taken.
///
/// # Errors
/// If the database is ahead or differs, a breaking step waits, or a step fails.
pub async fn prepare(config: &PostgresConfig) -> Result<Vec<i32>, MigrateError> {
    prepare_with(config, MIGRATIONS).await
}

/// The same for a Mainspring that knows `steps`.
///
/// # Errors
/// As [`prepare`].
pub async fn prepare_with(
    config: &PostgresConfig,
    steps: &[Migration],
) -> Result<Vec<i32>, MigrateError> {
    let client = connect(config).await?;
    let status = read_status(&client, &config.schema, steps).await?;
    drop(client);
    refuse_problems(&status)?;
    refuse_breaking(&status, steps)?;
    if status.pending.is_empty() {
        return Ok(Vec::new());
    }
    up_with(config, steps, &mut |step| {
        tracing::info!(version = step.version, name = step.name, "migrating the database");
    })
    .await
}

fn refuse_breaking(status: &MigrationStatus, steps: &[Migration]) -> Result<(), MigrateError> {
    let mut pending = steps.iter().filter(|step| status.pending.contains(&step.version));
    match (status.version, pending.find(|step| !step.is_compatible())) {
        (Some(version), Some(step)) => Err(MigrateError::Refused(format!(
            "the database has version {version} and step {} ({}) disturbs servers of that version; \
             stop them, then run mainspring migrate up",
            step.version, step.name
        ))),
        _ => Ok(()),
    }
}

/// Takes one step, again and again while its tables are in use; `false` if another process took it.
async fn take_patiently(
    config: &PostgresConfig,
    client: &Client,
    steps: &[Migration],
    step: &Migration,
) -> Result<bool, MigrateError> {
    let mut tries = 0;
    loop {
        let outcome = match step.is_transactional() {
            true => take(client, &config.schema, steps, step).await,
            false => take_outside(config, client, steps, step).await,
        };
        tries += 1;
        match outcome {
            Err(error) if is_held(&error) && tries < TRIES_MAX => {
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
            other => return other,
        }
    }
}

/// Begins a transaction that holds the turn to migrate. Whoever has to wait asks again and again: a
/// statement that waits has a snapshot, and an index that is built concurrently waits for those.
async fn begin_turn(client: &Client, schema: &str) -> Result<(), MigrateError> {
    let begin = format!(
        "BEGIN; SET LOCAL lock_timeout = {}; SET LOCAL statement_timeout = 0;
         SET LOCAL idle_in_transaction_session_timeout = 0",
        LOCK_WAIT.as_millis()
    );
    // By the simple protocol, for the same reason: it leaves nothing open.
    let ask =
        format!("SELECT pg_try_advisory_xact_lock(hashtextextended('{schema}.migration', 0))");
    let started = Instant::now();
    loop {
        client.batch_execute(&begin).await.map_err(failed)?;
        let is_mine = client.simple_query(&ask).await.map(|told| {
            told.iter().any(|message| {
                matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"))
            })
        });
        if matches!(is_mine, Ok(true)) {
            return Ok(());
        }
        client.batch_execute("ROLLBACK").await.map_err(failed)?;
        is_mine.map_err(failed)?;
        if started.elapsed() > TURN_WAIT {
            return Err(MigrateError::Failed("another process has migrated for too long".into()));
        }
        tokio::time::sleep(TURN_EVERY).await;
    }
}

async fn end_turn<T>(client: &Client, outcome: Result<T, MigrateError>) -> Result<T, MigrateError> {
    let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = client.batch_execute(end).await.map_err(failed);
    let found = outcome?;
    ended.map(|()| found)
}

/// Takes a step in one transaction.
async fn take(
    client: &Client,
    schema: &str,
    steps: &[Migration],
    step: &Migration,
) -> Result<bool, MigrateError> {
    begin_turn(client, schema).await?;
    let outcome = async {
        if !is_pending(client, schema, steps, step).await? {
            return Ok(false);
        }
        make_schema(client, schema).await?;
        client.batch_execute(&step.sql(schema)).await.map_err(|error| in_step(step, error))?;
        note(client, schema, step).await?;
        Ok(true)
    }
    .await;
    end_turn(client, outcome).await
}

/// Takes a step statement by statement; another connection holds the turn meanwhile. What an
/// earlier try left half done is removed first.
async fn take_outside(
    config: &PostgresConfig,
    client: &Client,
    steps: &[Migration],
    step: &Migration,
) -> Result<bool, MigrateError> {
    let schema = &config.schema;
    let keeper = connect(config).await?;
    begin_turn(&keeper, schema).await?;
    let outcome = async {
        if !is_pending(client, schema, steps, step).await? {
            return Ok(false);
        }
        let text = step.sql(schema);
        drop_invalid(client, schema, &text).await?;
        for statement in statements(&text) {
            client.batch_execute(&statement).await.map_err(|error| in_step(step, error))?;
        }
        note(client, schema, step).await?;
        Ok(true)
    }
    .await;
    end_turn(&keeper, outcome).await
}

async fn is_pending(
    client: &Client,
    schema: &str,
    steps: &[Migration],
    step: &Migration,
) -> Result<bool, MigrateError> {
    Ok(read_status(client, schema, steps).await?.pending.contains(&step.version))
}

/// Makes the schema unless it is there: a role that may not make one can still use one.
async fn make_schema(client: &Client, schema: &str) -> Result<(), MigrateError> {
    let sql = "SELECT to_regnamespace($1) IS NOT NULL";
    let rows = client.query_typed(sql, &[(&schema, Type::TEXT)]).await.map_err(failed)?;
    if rows.first().is_some_and(|row| row.get(0)) {
        return Ok(());
    }
    client.batch_execute(&format!("CREATE SCHEMA {schema}")).await.map_err(failed)
}

async fn note(client: &Client, schema: &str, step: &Migration) -> Result<(), MigrateError> {
    let sql = format!(
        "INSERT INTO {schema}.migration (version, name, checksum, is_compatible)
         VALUES ({}, '{}', '{}', {})",
        step.version,
        step.name,
        step.checksum(),
        step.is_compatible()
    );
    client.batch_execute(&sql).await.map_err(failed)
}

/// Drops what a build that was interrupted left of the indexes that `text` makes.
async fn drop_invalid(client: &Client, schema: &str, text: &str) -> Result<(), MigrateError> {
    let sql = "SELECT c.relname::text FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND NOT i.indisvalid";
    for row in client.query_typed(sql, &[(&schema, Type::TEXT)]).await.map_err(failed)? {
        let name: &str = row.get(0);
        let is_ours = text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name);
        if is_ours {
            let sql = format!("DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}");
            client.batch_execute(&sql).await.map_err(failed)?;
        }
    }
    Ok(())
}

fn in_step(step: &Migration, error: tokio_postgres::Error) -> MigrateError {
    let error = failed(error);
    if is_held(&error) || matches!(error, MigrateError::Away(_)) {
        return error;
    }
    MigrateError::Failed(format!("step {} ({}): {error}", step.version, step.name))
}

/// The statements of a step, each up to a semicolon at the end of a line outside of `$$`.
fn statements(text: &str) -> Vec<String> {
    let (mut found, mut statement, mut is_quoted) = (Vec::new(), String::new(), false);
    for line in text.lines().filter(|line| !line.trim_start().starts_with("--")) {
        is_quoted ^= line.matches("$$").count() % 2 == 1;
        statement.push_str(line);
        statement.push('\n');
        if !is_quoted && line.trim_end().ends_with(';') {
            found.push(std::mem::take(&mut statement));
        }
    }
    if !statement.trim().is_empty() {
        found.push(statement);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_cut_into_statements() {
        let text = "-- compatible\n-- not transactional\nCREATE INDEX a\n  ON b (c);\nDO $$\nBEGIN\n\
                    x;\nEND $$;\nSELECT 1";
        let found = statements(text);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("CREATE INDEX a\n"), "{found:?}");
        assert!(found[1].contains("x;\nEND $$;"), "{found:?}");
    }

    #[test]
    fn the_first_lines_say_what_a_step_is() {
        let step = |written| Migration { version: 2, name: "x", written };
        assert!(step("-- compatible: more\nSELECT 1").is_compatible());
        assert!(!step("-- breaking: less\n").is_compatible());
        assert!(!step("").is_compatible());
        assert!(step("-- compatible\nSELECT 1").is_transactional());
        assert!(!step("-- compatible\n-- not transactional\n").is_transactional());
        for known in MIGRATIONS {
            let line = known.written.lines().next().unwrap_or_default();
            assert!(line.starts_with("-- compatible") || line.starts_with("-- breaking"), "{line}");
        }
    }
}

//! The tables: are they those the migrations make?

use super::{Look, Report};
use crate::config::PostgresConfig;
use crate::migrate::{self, MIGRATIONS, MigrateError, failed};
use std::collections::HashSet;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// What the migrations make. Written by `cargo xtask bless`.
const CATALOG: &str = include_str!("../../catalog.txt");

/// What a database has, one line each, without daily partitions.
///
/// # Errors
/// If it cannot be asked.
pub async fn catalog(config: &PostgresConfig) -> Result<String, MigrateError> {
    let client = migrate::connect(config).await?;
    let mut text = read_catalog(&client, &config.schema).await?.join("\n");
    text.push('\n');
    Ok(text)
}

async fn read_catalog(client: &Client, schema: &str) -> Result<Vec<String>, MigrateError> {
    let sql = include_str!("../../scripts/catalog.sql");
    let rows = client.query_typed(sql, &[(&schema, Type::TEXT)]).await.map_err(failed)?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Looks at the tables; whether what is in them can be looked at.
pub(super) async fn examine(look: &Look<'_>, report: &mut Report) -> Result<bool, MigrateError> {
    let schema = &look.config.schema;
    let status = migrate::read_status(look.client, schema, MIGRATIONS).await?;
    let Some(version) = status.version else {
        report.warn(
            "schema_missing",
            format!("there is no schema {schema}"),
            "run mainspring migrate up, or start a server",
        );
        return Ok(false);
    };
    for problem in &status.problems {
        report.fail("schema_refused", problem.clone(), "run the version that made the database");
    }
    if !status.pending.is_empty() {
        report.warn(
            "schema_pending",
            format!("steps {:?} are missing", status.pending),
            "run mainspring migrate up",
        );
    }
    if !status.problems.is_empty() || !status.pending.is_empty() {
        return Ok(false);
    }
    report.fact("schema", format!("{schema}, version {version}"));
    let found: HashSet<String> = read_catalog(look.client, schema).await?.into_iter().collect();
    let missing: Vec<&str> = CATALOG.lines().filter(|line| !found.contains(*line)).collect();
    for line in &missing {
        let cure = match line.split(' ').next() {
            Some("index") => "create it: see mainspring migrate plan for the statement, on a copy",
            _ => "restore it from a backup, or from schema.sql of this version",
        };
        report.fail("schema_drift", format!("missing or changed: {line}"), cure);
    }
    partitions(look, report).await?;
    let are_tables_whole = !missing.iter().any(|line| line.starts_with("column"));
    if !are_tables_whole {
        report.notes.push("data was not looked at: tables are not as they must be".to_owned());
    }
    Ok(are_tables_whole)
}

/// Days ahead must have their partitions, and nothing may have landed where no day was made for it.
async fn partitions(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let sql = "SELECT w.name FROM (
            SELECT t.name || '_' || to_char(d.day, 'YYYYMMDD') AS name
            FROM unnest(ARRAY['job', 'finished', 'stream']) t (name),
                generate_series(date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC'),
                    date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') + interval '1 day',
                    interval '1 day') d (day)
        ) w
        WHERE NOT EXISTS (
            SELECT 1 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE c.relnamespace = to_regnamespace($1) AND c.relname = w.name)
        ORDER BY 1";
    for row in look.ask(sql, &[(&look.config.schema, Type::TEXT)]).await? {
        report.warn(
            "partition_missing",
            format!("{} is missing", row.get::<_, &str>(0)),
            "start a server of this version: it makes the days ahead",
        );
    }
    let sql = "SELECT w.name FROM (
            SELECT 'job_later' AS name WHERE EXISTS (SELECT 1 FROM mainspring.job_later)
            UNION ALL SELECT 'finished_later'
            WHERE EXISTS (SELECT 1 FROM mainspring.finished_later)
            UNION ALL SELECT 'stream_later' WHERE EXISTS (SELECT 1 FROM mainspring.stream_later)
        ) w";
    // Fails if one of them is missing, which is drift and told already.
    for row in look.ask(sql, &[]).await.unwrap_or_default() {
        let name: &str = row.get(0);
        report.warn(
            "partition_later",
            format!("{name} has rows: no day was made for them in time"),
            "move them: detach it, start a server, insert the rows again, attach it as DEFAULT",
        );
    }
    Ok(())
}

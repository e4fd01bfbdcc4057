//! The server under the database: version, settings, poolers, old transactions, bloat.

use super::{Look, Report};
use crate::connections::connect::Address;
use crate::migrate::{MigrateError, server_version};
use tokio_postgres::types::Type;

/// A transaction that is older keeps dead rows from being removed.
const OLD_SECS: f64 = 600.0;
/// Transactions until numbers run out, of two thousand million.
const FROZEN_AGE_MAX: i32 = 1_000_000_000;
/// Dead rows worth a word, if they are also more than those alive.
const DEAD_ROWS_MAX: i64 = 100_000;

pub(super) async fn examine(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let version = server_version(look.client).await?;
    report.fact("database", format!("PostgreSQL {}.{}", version / 10_000, version % 10_000));
    settings(look, report).await?;
    encryption(look, report).await?;
    match is_pooled(look).await {
        true => report.fact("pooler", "a pooler is in between; servers look instead of listening"),
        false => report.fact("pooler", "none"),
    }
    old_transactions(look, report).await
}

async fn settings(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let sql = "SELECT current_setting('fsync'), current_setting('synchronous_commit'),
        current_setting('full_page_writes'), pg_is_in_recovery(),
        (SELECT coalesce(bool_or(setting = 'on'), false) FROM pg_settings
            WHERE name = 'default_transaction_read_only')";
    let rows = look.ask(sql, &[]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let text = |at: usize| row.get::<_, String>(at);
    if text(0) == "off" || text(2) == "off" {
        report.fail(
            "durability_off",
            format!("fsync is {}, full_page_writes is {}", text(0), text(2)),
            "turn both on in postgresql.conf: a power cut would destroy the database",
        );
    }
    match text(1).as_str() {
        "off" => report.warn(
            "synchronous_commit_off",
            "synchronous_commit is off: a crash loses what was acknowledged last",
            "ALTER DATABASE ... SET synchronous_commit = on",
        ),
        how => report.fact("durability", format!("fsync on, synchronous_commit {how}")),
    }
    if row.get(3) || row.get(4) {
        report.fail(
            "read_only",
            "the database takes no writes",
            "connect to the primary, or turn default_transaction_read_only off",
        );
    }
    Ok(())
}

/// Whether the last stretch to the database is encrypted; a pooler in between has its own.
async fn encryption(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let sql = "SELECT ssl, version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let rows = look.ask(sql, &[]).await?;
    let address = look.config.url.parse::<Address>().ok();
    let mode = address.as_ref().map_or("", |address| address.encryption.mode().name());
    match rows.first().filter(|row| row.get(0)) {
        Some(row) => {
            let (version, cipher): (String, String) = (row.get(1), row.get(2));
            report.fact("encryption", format!("{version}, {cipher} (sslmode={mode})"));
        }
        None => report.fact("encryption", format!("none (sslmode={mode})")),
    }
    if address.is_some_and(|address| address.encryption.has_idle_roots()) {
        report.warn(
            "certificate_unchecked",
            format!("sslrootcert is given, and sslmode={mode} checks no certificate"),
            "say sslmode=verify-full in the address",
        );
    }
    Ok(())
}

/// A pooler refuses what it cannot keep for a transaction.
async fn is_pooled(look: &Look<'_>) -> bool {
    let Ok(mut address) = look.config.url.parse::<Address>() else { return false };
    address.settings.connect_timeout(look.config.patience).options("-c jit=off");
    match address.connect().await {
        Ok(_) => false,
        Err(error) => {
            error.as_db_error().is_some_and(|told| told.message().contains("startup parameter"))
        }
    }
}

async fn old_transactions(look: &Look<'_>, report: &mut Report) -> Result<(), MigrateError> {
    let sql = "SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::float8,
            coalesce(application_name, '')
        FROM pg_stat_activity
        WHERE backend_xmin IS NOT NULL AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
        ORDER BY xact_start LIMIT 1";
    for row in look.ask(sql, &[]).await? {
        let (pid, age, who): (i32, f64, String) = (row.get(0), row.get(1), row.get(2));
        if age > OLD_SECS {
            report.warn(
                "old_transaction",
                format!("process {pid} ({who}) has held its snapshot for {age:.0} s"),
                format!("end it: SELECT pg_terminate_backend({pid})"),
            );
        }
    }
    let sql = "SELECT count(*) FROM pg_prepared_xacts
        WHERE database = current_database() AND prepared < clock_timestamp() - interval '10 min'";
    let prepared: i64 = look.ask(sql, &[]).await?.first().map_or(0, |row| row.get(0));
    if prepared > 0 {
        report.warn(
            "prepared_transaction",
            format!("{prepared} prepared transactions wait for somebody to end them"),
            "COMMIT PREPARED or ROLLBACK PREPARED those in pg_prepared_xacts",
        );
    }
    let sql = "SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()";
    let age: i32 = look.ask(sql, &[]).await?.first().map_or(0, |row| row.get(0));
    match age > FROZEN_AGE_MAX {
        true => report.warn(
            "frozen_age",
            format!("the oldest transaction number is {age} transactions old"),
            "find out why autovacuum does not freeze; VACUUM (FREEZE) the database",
        ),
        false => report.fact("frozen age", age.to_string()),
    }
    Ok(())
}

/// Dead rows by table.
pub(super) async fn examine_tables(
    look: &Look<'_>,
    report: &mut Report,
) -> Result<(), MigrateError> {
    let sql = "SELECT relname::text, n_live_tup, n_dead_tup, pg_total_relation_size(relid)
        FROM pg_stat_user_tables WHERE schemaname = $1 ORDER BY 4 DESC";
    let rows = look.ask(sql, &[(&look.config.schema, Type::TEXT)]).await?;
    let mut bytes = 0;
    for row in &rows {
        let (name, live, dead): (&str, i64, i64) = (row.get(0), row.get(1), row.get(2));
        bytes += row.get::<_, i64>(3);
        if dead > DEAD_ROWS_MAX && dead > live {
            report.warn(
                "dead_rows",
                format!("{name} has {dead} dead rows and {live} that are alive"),
                "see whether autovacuum gets there, and whether an old transaction stops it",
            );
        }
    }
    report.fact("size", format!("{} MiB in {} tables", bytes >> 20, rows.len()));
    Ok(())
}

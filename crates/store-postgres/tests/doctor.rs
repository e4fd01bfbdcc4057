//! The doctor finds nothing on a healthy database, and every damage that is planted.

use mainspring_kernel::Timestamp;
use mainspring_store::Store;
use mainspring_store::conformance::differ;
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::doctor::{Report, Severity, examine};
use mainspring_store_postgres::{PostgresConfig, PostgresStore, prepare};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;

fn config(database: &Database) -> PostgresConfig {
    let now = Arc::new(|| Timestamp::from_millis(1_790_000_000_000));
    PostgresConfig {
        is_notified: false,
        allows_unsafe: true,
        ..PostgresConfig::standard(&database.url, now)
    }
}

/// A database after a random life, with jobs in every state; its server is gone.
async fn worked(seed: u64) -> Database {
    let database = Database::create(shared());
    let store = Arc::new(PostgresStore::open(config(&database), 1).await.expect("it opens"));
    let memory = Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(1)));
    differ(seed, 200, memory, store.clone()).await;
    store.close().await.expect("it closes");
    database
}

async fn look(database: &Database) -> Report {
    examine(&config(database)).await.expect("it looks")
}

/// Codes of what was found. The clusters of tests are not durable, and their stores live in days
/// that no partition was made for.
fn codes(report: &Report) -> Vec<&'static str> {
    let mut codes: Vec<_> = report.findings.iter().map(|found| found.code).collect();
    codes.retain(|code| !["durability_off", "partition_later"].contains(code));
    codes.dedup();
    codes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_database_is_clean() {
    let empty = Database::create(shared());
    assert_eq!(codes(&look(&empty).await), ["schema_missing"]);
    prepare(&config(&empty)).await.expect("it is filled");
    let report = look(&empty).await;
    assert!(codes(&report).is_empty(), "{report:#?}");
    for seed in 0..6 {
        let database = worked(seed).await;
        let report = look(&database).await;
        assert!(codes(&report).is_empty(), "seed {seed}: {report:#?}");
        assert!(report.notes.is_empty(), "{report:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_schema_is_looked_at_as_well() {
    let database = Database::create(shared());
    let config = PostgresConfig { schema: "other".to_owned(), ..config(&database) };
    prepare(&config).await.expect("it is filled");
    let report = examine(&config).await.expect("it looks");
    assert!(codes(&report).is_empty(), "{report:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_tables_are_found() {
    let damages: &[(&str, &str)] = &[
        ("DROP INDEX mainspring.live_alarm", "schema_drift"),
        ("ALTER TABLE mainspring.held_key DROP CONSTRAINT held_key_pkey", "schema_drift"),
        ("ALTER TABLE mainspring.live DROP CONSTRAINT live_check", "schema_drift"),
        ("ALTER TABLE mainspring.node DROP COLUMN version", "schema_drift"),
        ("DROP FUNCTION mainspring.expect", "schema_drift"),
        (
            "DO $$ BEGIN EXECUTE 'DROP TABLE mainspring.job_'
             || to_char(clock_timestamp() AT TIME ZONE 'UTC' + interval '1 day', 'YYYYMMDD'); END $$",
            "partition_missing",
        ),
        ("UPDATE mainspring.migration SET checksum = 'x'", "schema_refused"),
        ("DELETE FROM mainspring.migration", "schema_missing"),
    ];
    for (damage, code) in damages {
        let database = Database::create(shared());
        prepare(&config(&database)).await.expect("it is filled");
        database.sql(damage);
        let report = look(&database).await;
        assert_eq!(codes(&report), [*code], "{damage}: {report:#?}");
    }
}

/// A life that ends with jobs in all places that can be damaged.
async fn rich_seed() -> u64 {
    for seed in 0..40 {
        let database = worked(seed).await;
        let found = database.sql(
            "SELECT EXISTS (SELECT 1 FROM mainspring.ready WHERE NOT is_retry)
             AND EXISTS (SELECT 1 FROM mainspring.expiry)
             AND EXISTS (SELECT 1 FROM mainspring.finished)
             AND EXISTS (SELECT 1 FROM mainspring.held_key WHERE free_at IS NULL)",
        );
        if found == "t" {
            return seed;
        }
    }
    panic!("no life is rich enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_data_is_found() {
    let fake = "00000000-0000-7000-8000-000000000001";
    let one = |table: &str| format!("(SELECT id FROM mainspring.{table} ORDER BY id LIMIT 1)");
    let damages: Vec<(String, &str)> = vec![
        (
            "DELETE FROM mainspring.ready WHERE id = (
             SELECT id FROM mainspring.ready WHERE NOT is_retry LIMIT 1)"
                .to_owned(),
            "job_nowhere",
        ),
        (
            format!(
                "INSERT INTO mainspring.live (id, state, version, lane, alarm_at, worker, record)
                 VALUES ('{fake}', 1, 1, 1, clock_timestamp() + interval '1 year', 'w', '')"
            ),
            "job_missing",
        ),
        (format!("DELETE FROM mainspring.job WHERE id = {}", one("finished")), "job_missing"),
        (
            format!(
                "INSERT INTO mainspring.waiting SELECT id, 'infinity', 1, 0, false
                 FROM mainspring.finished WHERE id = {}",
                one("finished")
            ),
            "job_twice",
        ),
        ("UPDATE mainspring.tally SET n = n + 1 WHERE name = 'state/queued'".into(), "tally_wrong"),
        (
            "UPDATE mainspring.tally SET n = n + 1 WHERE name LIKE 'type/queued/%'".into(),
            "tally_wrong",
        ),
        ("DELETE FROM mainspring.held_key WHERE free_at IS NULL".into(), "key_missing"),
        (
            format!(
                "INSERT INTO mainspring.held_key (hash, job) VALUES ('{fake}', {})",
                one("finished")
            ),
            "key_stuck",
        ),
        ("DELETE FROM mainspring.expiry".into(), "alarm_missing"),
        (format!("INSERT INTO mainspring.entity_term VALUES (1, 1, '{fake}')"), "entity_unlisted"),
        (
            "INSERT INTO mainspring.outbox (moves, names, deltas)
             SELECT 0, '{}', '{}' FROM generate_series(1, 10001)"
                .into(),
            "outbox_backlog",
        ),
        (
            format!(
                "INSERT INTO mainspring.node VALUES ('{fake}', 'lost', '0', clock_timestamp(),
                 clock_timestamp() - interval '1 minute')"
            ),
            "server_gone",
        ),
    ];
    let seed = rich_seed().await;
    for (damage, code) in damages {
        let database = worked(seed).await;
        database.sql(&damage);
        let report = look(&database).await;
        assert!(codes(&report).contains(&code), "{damage}: {report:#?}");
        let finding = report.findings.iter().find(|found| found.code == code);
        assert!(finding.is_some_and(|found| !found.cure.is_empty()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_nobody_looks_after_are_found() {
    let database = worked(3).await;
    let later = Arc::new(|| Timestamp::from_millis(1_890_000_000_000));
    let config = PostgresConfig::standard(&database.url, later);
    let report = examine(&config).await.expect("it looks");
    let running = database.sql("SELECT count(*) FROM mainspring.live WHERE alarm_at IS NOT NULL");
    assert_eq!(codes(&report).contains(&"lease_not_reaped"), running != "0", "{report:#?}");
    assert!(
        report
            .findings
            .iter()
            .all(|found| { found.severity == Severity::Warning || found.code == "durability_off" })
    );
}

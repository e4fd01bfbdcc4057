//! What servers of one database tell each other, and the locks that keep them apart.

use crate::hand::Hand;
use mainspring_store::conformance::wish;
use mainspring_store::{News, Store, WorkerNote};
use mainspring_store_postgres::{PostgresConfig, PostgresStore, Queries, Query, SCHEMA};
use mainspring_testkit::postgres::Database;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// Long enough for any machine; only a failure waits for it.
const LONG: Duration = Duration::from_secs(60);

async fn connect(database: &Database) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&database.url, NoTls).await.expect("it connects");
    tokio::spawn(connection);
    client
}

/// A lease that others look after is not a new server's to extend.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_joins_others_leaves_running_leases_to_them() {
    let mut here = Hand::new().await;
    let job = here.submit(wish()).await;
    here.pull(1).await;
    assert_eq!(here.store.running().await.expect("it reads"), [job], "nobody else serves");
    let there = Hand::on(here.database.clone(), here.clock.clone()).await;
    assert_eq!(there.store.running().await.expect("it reads"), [], "somebody else does");
    there.pass(Duration::from_secs(61));
    assert_eq!(there.store.running().await.expect("it reads"), [job], "and has left it alone");
    // Servers that have not been seen for long do not count.
    here.database.sql("UPDATE mainspring.node SET seen_at = seen_at - interval '11 s'");
    let before = Arc::new(AtomicI64::new(there.now().0 - 61_000_000));
    let alone = Hand::on(here.database.clone(), before).await;
    assert_eq!(alone.store.running().await.expect("it reads"), [job]);
}

/// Says what it hears.
struct Ear(UnboundedSender<&'static str>);

impl News for Ear {
    fn work(&self) {
        let _ = self.0.send("work");
    }
    fn moved(&self) {
        let _ = self.0.send("moved");
    }
    fn timers(&self) {}
    fn registry(&self) {}
    fn workers(&self) -> Vec<WorkerNote> {
        Vec::new()
    }
}

/// Neither of them looks by itself: what arrives was told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_told_to_the_other_servers() {
    let here = Hand::new().await;
    let now = here.now();
    let config = PostgresConfig {
        is_notified: true,
        allows_unsafe: true,
        poll_every: Duration::from_secs(3600),
        ..PostgresConfig::standard(&here.database.url, Arc::new(move || now))
    };
    let there = PostgresStore::open(config, u128::MAX).await.expect("it opens");
    let (tell, mut told) = unbounded_channel();
    there.watch(Arc::new(Ear(tell)));
    // It listens from here on.
    let listening = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND query ILIKE 'LISTEN%'";
    while here.database.sql(listening) == "0" {
        tokio::task::yield_now().await;
    }
    // Whoever comes later knows that there is somebody to tell.
    let mut third = Hand::on(here.database.clone(), here.clock.clone()).await;
    third.submit(wish()).await;
    let mut heard = Vec::new();
    while heard.len() < 2 {
        heard.push(tokio::time::timeout(LONG, told.recv()).await.expect("it hears").expect("open"));
    }
    heard.sort_unstable();
    assert_eq!(heard, ["moved", "work"]);
}

/// What a statement locks for the rest of its transaction.
async fn locks_of(
    client: &Client,
    query: Query,
    values: &[&(dyn tokio_postgres::types::ToSql + Sync)],
) -> Vec<String> {
    let queries = Queries::new(SCHEMA);
    client.batch_execute("BEGIN").await.expect("it begins");
    let statement =
        client.prepare_typed(queries.text(query), query.types()).await.expect("it prepares");
    client.query(&statement, values).await.expect("it runs");
    let held = "SELECT mode FROM pg_locks
        WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted ORDER BY mode";
    let rows = client.query(held, &[]).await.expect("it reads");
    client.batch_execute("ROLLBACK").await.expect("it ends");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Without these, two servers could decide on what the other one is changing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_decides_on_something_shared_holds_it_until_the_end() {
    let here = Hand::new().await;
    let client = connect(&here.database).await;
    let version: i64 =
        here.database.sql("SELECT version FROM mainspring.registry").parse().expect("a number");
    let guard = locks_of(&client, Query::Guard, &[&version]).await;
    assert_eq!(guard, ["ShareLock"], "the registries stay as they are while a batch commits");
    let change = locks_of(&client, Query::GuardForChange, &[&version]).await;
    assert_eq!(change, ["ExclusiveLock"], "and nobody commits while they change");
    let limits = vec![Uuid::from_u128(1), Uuid::from_u128(2)];
    let limits = locks_of(&client, Query::LockLimits, &[&limits]).await;
    assert_eq!(limits, ["ExclusiveLock"; 2], "one server counts under a limit at a time");
    let stamp = locks_of(&client, Query::LockStamp, &[]).await;
    assert_eq!(stamp, ["ExclusiveLock"], "and one stamps");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_about_the_clock_is_changed_by_whoever_saw_the_latest() {
    let here = Hand::new().await;
    let client = connect(&here.database).await;
    let queries = Queries::new(SCHEMA);
    let known = || here.database.sql("SELECT epoch, ahead_us, since_us FROM mainspring.clock");
    let epoch: i64 = here.database.sql("SELECT epoch FROM mainspring.clock").parse().expect("one");
    let correct = async |epoch: i64, ahead: i64| {
        let text = queries.text(Query::CorrectClock);
        let statement = client.prepare_typed(text, Query::CorrectClock.types()).await;
        let none = Vec::<i64>::new();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&epoch, &ahead, &7_i64, &none, &none];
        client.execute(&statement.expect("it prepares"), &values).await.expect("it runs")
    };
    assert_eq!(correct(epoch, 111).await, 1);
    let first = known();
    assert_eq!(first, format!("{}|111|7", epoch + 1));
    assert_eq!(correct(epoch, 222).await, 0, "somebody was quicker");
    assert_eq!(known(), first);
}

/// A look that finds the clock set must leave it to be judged: who notes it, hides it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_a_clock_that_was_set_is_not_noted() {
    let here = Hand::new().await;
    let client = connect(&here.database).await;
    let queries = Queries::new(SCHEMA);
    let text = queries.text(Query::LookAtClock);
    let statement = client.prepare_typed(text, Query::LookAtClock.types()).await.expect("it is");
    for (set, is_noted) in [("- 3600e6", false), ("+ 3600e6", false), ("- 1e6", true)] {
        here.database.sql(&format!(
            "UPDATE mainspring.clock SET seen_us =
                ((extract(epoch FROM clock_timestamp()) * 1000000) {set})::bigint"
        ));
        let before = here.database.sql("SELECT seen_us FROM mainspring.clock");
        client.query(&statement, &[&60_000_000_i64]).await.expect("it looks");
        let after = here.database.sql("SELECT seen_us FROM mainspring.clock");
        assert_eq!(after != before, is_noted, "{set}");
    }
}

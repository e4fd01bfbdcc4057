//! What was acknowledged survives, whatever the database or the role is set to; and databases that
//! could not keep it are refused before anything is made in them.

use crate::hand::Hand;
use mainspring_kernel::Timestamp;
use mainspring_store::conformance::wish;
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::postgres::{Cluster, ClusterOptions, Database, PgBouncer, shared};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_a_crash_though_synchronous_commit_is_off() {
    // The log is written out every ten seconds only, unless somebody waits for it.
    let options = ClusterOptions::durable().setting("wal_writer_delay", "10000");
    let mut cluster = Cluster::start(&options);
    let first = Hand::new().await;
    let (direct, pooled) = (Arc::new(cluster.database()), Arc::new(cluster.database()));
    for database in [&direct, &pooled] {
        let hand = Hand::on(database.clone(), first.clock.clone()).await;
        hand.database.sql("CHECKPOINT");
    }
    direct.sql("ALTER ROLE mainspring SET synchronous_commit = off");
    pooled.sql(&format!("ALTER DATABASE {} SET synchronous_commit = off", pooled.name));
    let bouncer = PgBouncer::start(cluster.admin());
    let mut here = Hand::on(direct.clone(), first.clock.clone()).await;
    let url = bouncer.admin().url(&pooled.name);
    let mut there = Hand::through(&url, pooled.clone(), first.clock.clone()).await;
    for _ in 0..20 {
        here.submit(wish()).await;
        there.submit(wish()).await;
    }
    cluster.stop_immediate();
    cluster.start_again();
    for database in [&direct, &pooled] {
        assert_eq!(database.sql("SHOW synchronous_commit"), "off", "as it was set");
        assert_eq!(database.sql("SELECT count(*) FROM mainspring.job"), "20", "none is lost");
    }
}

fn config(url: &str) -> PostgresConfig {
    PostgresConfig::standard(url, Arc::new(|| Timestamp::from_millis(1_790_000_000_000)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_fsync_is_refused_unless_that_was_asked_for() {
    let database = Database::create(shared());
    let refused = PostgresStore::open(config(&database.url), 1).await.err();
    let refused = refused.expect("the cluster of the tests does without").to_string();
    assert!(refused.contains("POSTGRES_UNSAFE: fsync is off"), "{refused}");
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mainspring'";
    assert_eq!(database.sql(made), "0", "nothing was made");
    let allowed = PostgresConfig { allows_unsafe: true, ..config(&database.url) };
    PostgresStore::open(allowed, 1).await.expect("it was asked for");

    let torn = ClusterOptions::durable().setting("full_page_writes", "off");
    let cluster = Cluster::start(&torn);
    let database = cluster.database();
    let refused = PostgresStore::open(config(&database.url), 1).await.err();
    let refused = refused.expect("pages may be torn").to_string();
    assert!(refused.contains("POSTGRES_UNSAFE: full_page_writes is off"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_utf8_is_refused_before_anything_is_made_in_it() {
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let database = Database::create_with(
            shared(),
            &format!("TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"),
        );
        let allowed = PostgresConfig { allows_unsafe: true, ..config(&database.url) };
        let refused = PostgresStore::open(allowed, 1).await.err().expect("it is refused");
        let refused = refused.to_string();
        assert!(
            refused.contains(&format!("POSTGRES_ENCODING: the database is encoded as {encoding}")),
            "{refused}"
        );
        let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mainspring'";
        assert_eq!(database.sql(made), "0", "nothing was made");
    }
}

//! The suite that defines what a store does, on a real PostgreSQL; and random sequences of commands
//! that must leave both stores with equal dumps.

use futures_util::FutureExt;
use mainspring_kernel::Timestamp;
use mainspring_store::Store;
use mainspring_store::conformance::{differ, exercise};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;

fn config(url: &str) -> PostgresConfig {
    let now = Arc::new(|| Timestamp::from_millis(1_790_000_000_000));
    PostgresConfig { is_notified: false, ..PostgresConfig::standard(url, now) }
}

async fn open() -> Arc<dyn Store> {
    let database = Database::create(shared());
    let store = PostgresStore::open(config(&database.url), 1).await.expect("it opens");
    // Dropped with the cluster: the store outlives this function.
    std::mem::forget(database);
    Arc::new(store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_does_what_a_store_must() {
    exercise(&|| open().boxed()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_sequences_leave_both_stores_with_equal_dumps() {
    for seed in 0..20 {
        let memory = MemoryStore::ephemeral(MemoryConfig::standard(seed));
        differ(seed, 120, Arc::new(memory), open().await).await;
    }
}

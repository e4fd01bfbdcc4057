//! The suite that defines what a store does, on a real PostgreSQL; and random sequences of commands
//! that must leave both stores with equal dumps.

use futures_util::FutureExt;
use mainspring_kernel::Timestamp;
use mainspring_store::conformance::{differ, exercise};
use mainspring_store::{Error, Fatal, Needs, Store};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;

fn config(url: &str) -> PostgresConfig {
    let now = Arc::new(|| Timestamp::from_millis(1_790_000_000_000));
    PostgresConfig { is_notified: false, allows_unsafe: true, ..PostgresConfig::standard(url, now) }
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

/// Seeds of a quick run, and of a full one.
const SEEDS: (u64, u64) = (240, 2_500);
/// Seeds lived at the same time, each on a database of its own.
const AT_ONCE: u64 = 3;
/// What a life leaves behind, so that the next one starts from nothing on the same database.
const FORGET: &str = "
    DELETE FROM mainspring.ready; DELETE FROM mainspring.waiting; DELETE FROM mainspring.expiry;
    DELETE FROM mainspring.live; DELETE FROM mainspring.finished; DELETE FROM mainspring.job;
    DELETE FROM mainspring.held_key; DELETE FROM mainspring.item; DELETE FROM mainspring.type;
    DELETE FROM mainspring.queue; DELETE FROM mainspring.token; DELETE FROM mainspring.outbox;
    DELETE FROM mainspring.stream; DELETE FROM mainspring.tally; DELETE FROM mainspring.lane;
    DELETE FROM mainspring.node; DELETE FROM mainspring.effect; DELETE FROM mainspring.term;
    DELETE FROM mainspring.entity; DELETE FROM mainspring.entity_term;
    DELETE FROM mainspring.checkpoint; DELETE FROM mainspring.meter;
    UPDATE mainspring.registry SET version = 1";

/// `MAINSPRING_SEED=n` repeats one seed; `MAINSPRING_TEST=full` lives thousands.
fn seeds() -> std::ops::Range<u64> {
    let wanted = std::env::var("MAINSPRING_SEED").ok().and_then(|text| text.parse().ok());
    let is_full = std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full");
    wanted.map_or(0..if is_full { SEEDS.1 } else { SEEDS.0 }, |seed| seed..seed + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_sequences_leave_both_stores_with_equal_dumps() {
    let mut tasks = Vec::new();
    for first in 0..AT_ONCE {
        tasks.push(tokio::spawn(async move {
            let database = Database::create(shared());
            let mut is_used = false;
            for seed in seeds().filter(|seed| seed % AT_ONCE == first) {
                if is_used {
                    database.sql(FORGET);
                }
                is_used = true;
                let store = PostgresStore::open(config(&database.url), 1).await.expect("it opens");
                let store = Arc::new(store);
                let memory = MemoryStore::ephemeral(MemoryConfig::standard(seed));
                // Short lives mostly: what differs, differs early. Some long ones for the rest.
                let steps = if seed % 10 == 0 { 100 } else { 25 };
                differ(seed, steps, Arc::new(memory), store.clone()).await;
                store.close().await.expect("it closes");
            }
        }));
    }
    for task in tasks {
        if let Err(failed) = task.await {
            std::panic::resume_unwind(failed.into_panic());
        }
    }
}

/// Servers look at each other by a task of the store; the clock that it sets is a place where it
/// can be made to fall over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_dies_is_told_and_the_store_says_so() {
    let database = Database::create(shared());
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let is_set = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let trap = is_set.clone();
    let config = PostgresConfig {
        // The test may have heard enough.
        fatal: Fatal::new(move |why| drop(tell.send(why.to_owned()))),
        on_time: Arc::new(move |_, _| {
            assert!(!trap.load(std::sync::atomic::Ordering::Acquire), "fell into a pit");
            None
        }),
        ..config(&database.url)
    };
    let store = PostgresStore::open(config, 1).await.unwrap();
    assert_eq!(store.health().broken, None);
    is_set.store(true, std::sync::atomic::Ordering::Release);
    let limit = std::time::Duration::from_secs(60);
    let why = tokio::time::timeout(limit, told.recv()).await.unwrap().unwrap();
    assert_eq!(why, "the look at other servers died: fell into a pit");
    assert_eq!(store.health().broken, Some(why));
    let refused = store.commit(Needs::default(), &mut |_| ()).await;
    assert!(matches!(refused, Err(Error::Stopped)));
}

//! Everything from one store to the other and back: what each end answers stays the same.

use mainspring_kernel::Timestamp;
use mainspring_store::Store;
use mainspring_store::conformance::{differ, dump};
use mainspring_store::transfer::Seal;
use mainspring_store_memory::disk::RealDisk;
use mainspring_store_memory::transfer::{MemoryExport, MemoryImport};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::doctor::examine;
use mainspring_store_postgres::transfer::{PostgresExport, PostgresImport};
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::postgres::{Database, shared};
use std::path::Path;
use std::sync::Arc;

const NOW: Timestamp = Timestamp::from_millis(1_790_010_000_000);

fn config(database: &Database) -> PostgresConfig {
    let now = Arc::new(|| NOW);
    PostgresConfig {
        is_notified: false,
        allows_unsafe: true,
        ..PostgresConfig::standard(&database.url, now)
    }
}

fn open(path: &Path) -> MemoryStore {
    open_at(path, NOW)
}

fn open_at(path: &Path, now: Timestamp) -> MemoryStore {
    let disk = Arc::new(RealDisk::open(path).expect("a directory"));
    MemoryStore::open(disk, MemoryConfig::standard(7), now).expect("it opens")
}

/// All that a store answers, the stream with its positions included.
async fn told(store: &dyn Store) -> String {
    dump(store, NOW).await.expect("it reads")
}

async fn to_postgres(path: &Path, database: &Database) {
    let mut export = MemoryExport::open(path, NOW).expect("nobody uses it");
    let mut import = PostgresImport::open(&config(database)).await.expect("it is empty");
    let mut seal = Seal::default();
    while let Some(records) = export.next().await.expect("it reads") {
        records.iter().for_each(|record| seal.add(record));
        import.put(records).await.expect("it writes");
    }
    import.finish(&seal).await.expect("it is the same");
    export.close().await.expect("it closes");
}

async fn to_memory(database: &Database, path: &Path) {
    let mut export = PostgresExport::open(&config(database)).await.expect("nobody uses it");
    let mut import = MemoryImport::open(path, NOW).expect("it is empty");
    let mut seal = Seal::default();
    while let Some(records) = export.next().await.expect("it reads") {
        records.iter().for_each(|record| seal.add(record));
        import.put(records).expect("it writes");
    }
    import.finish(&seal).await.expect("it is the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_random_life_moves_there_and_back() {
    for seed in 0..4 {
        let folder = tempfile::tempdir().expect("a directory");
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        std::fs::create_dir(&first).expect("a directory");
        let store = Arc::new(open_at(&first, Timestamp::from_millis(1_789_000_000_000)));
        let twin = Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(1)));
        differ(seed, 200, store.clone(), twin).await;
        let before = told(&*store).await;
        store.close().await.expect("it closes");
        drop(store);

        let database = Database::create(shared());
        to_postgres(&first, &database).await;
        let report = examine(&config(&database)).await.expect("it looks");
        let wrong: Vec<_> = report
            .findings
            .iter()
            .filter(|found| {
                let expected = ["durability_off", "partition_later", "lease_not_reaped"];
                !expected.contains(&found.code)
            })
            .collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        let store = PostgresStore::open(config(&database), 1).await.expect("it opens");
        assert!(before == told(&store).await, "seed {seed}: there");
        store.close().await.expect("it closes");

        to_memory(&database, &second).await;
        let store = open(&second);
        assert!(before == told(&store).await, "seed {seed}: and back");
        store.close().await.expect("it closes");
        let store = open(&first);
        assert!(before == told(&store).await, "seed {seed}: the source is as it was");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_that_are_in_use_or_not_empty_are_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("store");
    assert!(MemoryExport::open(&path, NOW).err().is_some(), "nothing is there");
    std::fs::create_dir(&path).expect("a directory");
    let store = open(&path);
    let refused = MemoryExport::open(&path, NOW).err().expect("it is in use").to_string();
    assert!(refused.contains("another process uses"), "{refused}");
    store.close().await.expect("it closes");
    drop(store);
    let refused = MemoryImport::open(&path, NOW).err().expect("it is full").to_string();
    assert!(refused.contains("not empty"), "{refused}");
    std::fs::create_dir(folder.path().join("new.moving")).expect("a directory");
    let refused = MemoryImport::open(&folder.path().join("new"), NOW).err().expect("half a move");
    assert!(refused.to_string().contains("remove it and start again"), "{refused}");

    let database = Database::create(shared());
    let refused = PostgresExport::open(&config(&database)).await.err().expect("no schema");
    assert!(refused.to_string().contains("no schema"), "{refused}");
    let store = PostgresStore::open(config(&database), 1).await.expect("it opens");
    for refused in [
        PostgresExport::open(&config(&database)).await.err().expect("a server runs").to_string(),
        PostgresImport::open(&config(&database)).await.err().expect("a server runs").to_string(),
    ] {
        assert!(refused.contains("a server uses the database"), "{refused}");
    }
    store.close().await.expect("it closes");
    database.sql("INSERT INTO mainspring.queue VALUES ('q', false, false)");
    let refused = PostgresImport::open(&config(&database)).await.err().expect("it is full");
    assert!(refused.to_string().contains("has queues already"), "{refused}");
    drop(PostgresExport::open(&config(&database)).await.expect("nobody uses it"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_does_not_match_leaves_an_empty_database() {
    let database = Database::create(shared());
    let import = PostgresImport::open(&config(&database)).await.expect("it is empty");
    let mut seal = Seal::default();
    seal.add(&mainspring_store::record::Record::Counters(vec![1]));
    let failed = import.finish(&seal).await.expect_err("something is missing");
    assert!(failed.to_string().contains("the copy is not the same"), "{failed}");
    drop(PostgresImport::open(&config(&database)).await.expect("it is empty still"));
}

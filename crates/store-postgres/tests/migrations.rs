//! Migrations of a database that is in use: steps of the next version, made up here, are taken
//! while a store of this version goes on.

use mainspring_kernel::Timestamp;
use mainspring_store::Store;
use mainspring_store::conformance::{differ, dump};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::{
    MIGRATIONS, MigrateError, Migration, PostgresConfig, PostgresStore, prepare, prepare_with,
    status, up, up_with,
};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;

/// The numbers of the next steps.
const NEXT: i32 = MIGRATIONS.len() as i32 + 1;
const AFTER: i32 = NEXT + 1;

const COLUMN: Migration = Migration {
    version: NEXT,
    name: "a_column",
    written: "-- compatible: a column nobody has to fill\n\
              ALTER TABLE mainspring.live ADD COLUMN note text;\n\
              ALTER TABLE mainspring.item ADD COLUMN note text NOT NULL DEFAULT '';\n",
};
const INDEX: Migration = Migration {
    version: AFTER,
    name: "an_index",
    written: "-- compatible: an index\n-- not transactional\n\
              CREATE INDEX CONCURRENTLY IF NOT EXISTS live_worker\n    ON mainspring.live (worker);\n",
};
const BREAKING: Migration = Migration {
    version: NEXT,
    name: "less",
    written: "-- breaking: a column goes\nALTER TABLE mainspring.node DROP COLUMN name;\n",
};

fn config(database: &Database) -> PostgresConfig {
    let now = Arc::new(|| Timestamp::from_millis(1_790_000_000_000));
    PostgresConfig {
        is_notified: false,
        allows_unsafe: true,
        ..PostgresConfig::standard(&database.url, now)
    }
}

fn with(more: &[Migration]) -> Vec<Migration> {
    MIGRATIONS.iter().chain(more).copied().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_this_version_goes_on_while_the_next_one_migrates_and_after() {
    let database = Database::create(shared());
    let config = config(&database);
    let store: Arc<dyn Store> =
        Arc::new(PostgresStore::open(config.clone(), 1).await.expect("it opens"));
    let memory = Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(7)));
    // A random life, checked against the other store all along.
    let working = tokio::spawn(differ(7, 400, memory, store.clone()));
    let mut told = Vec::new();
    let steps = with(&[COLUMN, INDEX]);
    let taken = up_with(&config, &steps, &mut |step| told.push(step.name)).await;
    assert_eq!(taken.expect("they are taken"), [NEXT, AFTER]);
    assert_eq!(told, ["a_column", "an_index"]);
    assert!(!working.is_finished(), "there is work left to do on the newer schema");
    working.await.expect("no commit failed and no answer differed");

    // A server that knows nothing of the steps starts: they are marked as compatible.
    let found = status(&config).await.expect("it answers");
    assert_eq!((found.newer.as_slice(), found.problems.is_empty()), (&[NEXT, AFTER][..], true));
    let now = Timestamp::from_millis(1_790_010_000_000);
    let ours = dump(&*store, now).await.expect("it reads");
    store.close().await.expect("it closes");
    let older = PostgresStore::open(config.clone(), 2).await.expect("an older one starts");
    let theirs = dump(&older, now).await.expect("it reads");
    assert!(ours == theirs, "the older one reads what is there");

    // It does not start after a step that is not.
    let spoil = "UPDATE mainspring.migration SET is_compatible = false WHERE version = ";
    database.sql(&format!("{spoil}{AFTER}"));
    let refused = PostgresStore::open(config, 3).await.err().expect("it is refused");
    assert!(refused.to_string().contains("(an_index) of a newer"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_whose_build_was_cut_short_is_built_again() {
    let database = Database::create(shared());
    let config = config(&database);
    prepare(&config).await.expect("an empty database is filled");
    database.sql("CREATE INDEX live_worker ON mainspring.live (worker)");
    database.sql(
        "UPDATE pg_index SET indisvalid = false
         WHERE indexrelid = 'mainspring.live_worker'::regclass",
    );
    let taken = up_with(&config, &with(&[COLUMN, INDEX]), &mut |_| ()).await;
    assert_eq!(taken.expect("they are taken"), [NEXT, AFTER]);
    let valid = database.sql(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'mainspring.live_worker'::regclass",
    );
    assert_eq!(valid, "t");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_takes_compatible_steps_and_leaves_breaking_ones_to_the_operator() {
    let database = Database::create(shared());
    let config = config(&database);
    let all = with(&[BREAKING]);
    prepare(&config).await.expect("an empty database is filled");
    let refused = prepare_with(&config, &all).await.expect_err("it is refused");
    assert!(refused.to_string().contains("run mainspring migrate up"), "{refused}");
    assert!(matches!(refused, MigrateError::Refused(_)));
    let taken = prepare_with(&config, &with(&[COLUMN])).await;
    assert_eq!(taken.expect("a compatible step is taken"), [NEXT]);

    let empty = Database::create(shared());
    let config = self::config(&empty);
    let taken = prepare_with(&config, &all).await;
    assert_eq!(taken.expect("nobody uses an empty database"), (1..=NEXT).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_migrate_at_once_take_each_step_once() {
    let database = Database::create(shared());
    let config = config(&database);
    let steps = with(&[COLUMN, INDEX]);
    let turns = (0..6).map(|_| {
        let (config, steps) = (config.clone(), steps.clone());
        tokio::spawn(async move { up_with(&config, &steps, &mut |_| ()).await })
    });
    let mut taken = Vec::new();
    for turn in turns.collect::<Vec<_>>() {
        taken.extend(turn.await.expect("no panic").expect("it ends well"));
    }
    taken.sort_unstable();
    assert_eq!(taken, (1..=AFTER).collect::<Vec<_>>());
    assert_eq!(up(&config, &mut |_| ()).await.expect("newer, but compatible"), [0; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_fails_leaves_nothing_behind() {
    let database = Database::create(shared());
    let config = config(&database);
    let bad = Migration {
        version: NEXT,
        name: "bad",
        written: "-- compatible\nCREATE TABLE mainspring.half (id int);\nSELECT nonsense;\n",
    };
    let failed = up_with(&config, &with(&[bad]), &mut |_| ()).await.expect_err("it fails");
    assert!(failed.to_string().contains("(bad)"), "{failed}");
    assert_eq!(database.sql("SELECT to_regclass('mainspring.half') IS NULL"), "t");
    assert_eq!(status(&config).await.expect("it answers").version, Some(NEXT - 1));
}

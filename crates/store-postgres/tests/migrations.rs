//! Migrations of a database that is in use: steps of the next version, made up here, are taken
//! while a store of this version goes on.

use mainspring_kernel::{JobId, StateName, TenantId, Timestamp, UserId};
use mainspring_store::conformance::{differ, dump};
use mainspring_store::{ItemFilter, JobFilter, Scope, Store, TypeCount};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::{
    MIGRATIONS, MigrateError, Migration, PostgresConfig, PostgresStore, prepare, prepare_with,
    status, up, up_with,
};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;

/// The numbers of the next steps.
const NEXT: i32 = MIGRATIONS[MIGRATIONS.len() - 1].version + 1;
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

/// The versions of every step there is, and of the next one.
fn all_until_next() -> Vec<i32> {
    MIGRATIONS.iter().map(|step| step.version).chain([NEXT]).collect()
}

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
    assert_eq!(taken.expect("nobody uses an empty database"), all_until_next());
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
    assert_eq!(taken, all_until_next().into_iter().chain([AFTER]).collect::<Vec<_>>());
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_there_before_there_were_lists_is_listed() {
    let database = Database::create(shared());
    let config = config(&database);
    let before: Vec<Migration> = MIGRATIONS.iter().copied().filter(|it| it.version < 4).collect();
    up_with(&config, &before, &mut |_| ()).await.expect("the steps of before");
    database.sql("UPDATE mainspring.registry SET are_types_strict = false");
    database.sql(
        "SELECT mainspring.submit('acme', 'ada', 'mill', '{}', labels => '{\"team\": \"red\"}')",
    );
    database.sql("SELECT mainspring.submit('acme', 'bob', 'saw', '{}')");
    let parent = format!("parent_id => '{}'", JobId(77));
    database.sql(&format!("SELECT mainspring.submit('third', 'eve', 'saw', '{{}}', {parent})"));
    database.sql("SELECT mainspring.submit('other', 'bob', 'saw', '{}', trace_id => 't1')");
    // One of them has ended, by hand: lists go by the row, and only reading it wants its record.
    database.sql(
        "INSERT INTO mainspring.finished (id, state, finished_at, record)
         SELECT id, 7, now(), '\\x00' FROM mainspring.job WHERE trace = 't1'",
    );
    let store = PostgresStore::open(config, 1).await.expect("it opens, and takes the step");
    let acme = || JobFilter::of(Scope::Tenant(TenantId::new("acme").expect("a name")));
    let all = || JobFilter::of(Scope::All);
    for (filter, count) in [
        (acme(), 2),
        (JobFilter { labels: vec![("team".to_owned(), "red".to_owned())], ..acme() }, 1),
        (JobFilter { labels: vec![("team".to_owned(), "red".to_owned())], ..all() }, 1),
        (JobFilter { state: Some(StateName::Cancelled), ..all() }, 1),
        (JobFilter { state: Some(StateName::Cancelled), ..acme() }, 0),
        (JobFilter { trace_id: Some("t1".to_owned()), ..all() }, 1),
        (JobFilter { user: Some(UserId::new("bob").expect("a name")), ..all() }, 2),
        (JobFilter { parent: Some(JobId(77)), ..all() }, 1),
        (JobFilter { parent: Some(JobId(77)), ..acme() }, 0),
        (JobFilter { parent: Some(JobId(78)), ..all() }, 0),
    ] {
        assert_eq!(store.count_jobs(&filter, 9).await.expect("it counts"), count, "{filter:?}");
    }
    let page = store.jobs(&acme(), None, 9).await.expect("it lists");
    assert_eq!(page.items.len(), 2);
    // Whoever submits by SQL lists nothing, nor do servers of before: a trigger does.
    database.sql("UPDATE mainspring.registry SET are_types_strict = false");
    database.sql(&format!("SELECT mainspring.submit('acme', 'eve', 'saw', '{{}}', {parent})"));
    let found = JobFilter { parent: Some(JobId(77)), ..acme() };
    assert_eq!(store.count_jobs(&found, 9).await.expect("it counts"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_of_servers_that_knew_no_lists_are_listed_by_upkeep() {
    let database = Database::create(shared());
    let store: Arc<dyn Store> =
        Arc::new(PostgresStore::open(config(&database), 1).await.expect("it opens"));
    differ(11, 300, Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(7))), store.clone())
        .await;
    let all = ItemFilter::of(Scope::All);
    let items = store.items(&all, None, 100).await.expect("it lists").items;
    assert!(items.len() > 3, "{} items", items.len());
    database.sql("DELETE FROM mainspring.item_term; DELETE FROM mainspring.term");
    database.sql("UPDATE mainspring.item SET is_listed = false, state = state");
    store.maintain(Timestamp::from_millis(1_790_000_000_000)).await.expect("upkeep works");
    for item in &items {
        let job = JobFilter {
            job_type: Some(item.job.job_type.clone()),
            queue: Some(item.job.queue.clone()),
            ..JobFilter::of(Scope::User(item.job.tenant.clone(), item.job.user.clone()))
        };
        let filter = ItemFilter { state: Some(item.state.as_str().to_owned()), job, ..all.clone() };
        let listed = store.items(&filter, None, 100).await.expect("it lists").items;
        assert!(listed.iter().any(|it| it.id == item.id), "{filter:?}");
        let count = store.count_items(&filter, 100).await.expect("it counts");
        assert_eq!(count, listed.len(), "{filter:?}");
        // The codes of their jobs come back with them.
        let code = item
            .job
            .last_failure
            .as_ref()
            .map(|last_failure| last_failure.failure.code.to_string());
        let filter = JobFilter { error_code: code, ..JobFilter::of(Scope::All) };
        let listed = store.jobs(&filter, None, 100).await.expect("it lists").items;
        assert!(listed.iter().any(|it| it.id == item.job.id), "{filter:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_there_before_types_were_counted_is_counted() {
    let database = Database::create(shared());
    let (config, now) = (config(&database), Timestamp::from_millis(1_790_000_000_000));
    let store: Arc<dyn Store> =
        Arc::new(PostgresStore::open(config.clone(), 1).await.expect("it opens"));
    differ(23, 300, Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(7))), store.clone())
        .await;
    let kept = store.counts(now).await.expect("it counts").types;
    let sum = |count: fn(&TypeCount) -> u64| kept.iter().map(count).sum::<u64>();
    assert!(sum(|it| it.queued) > 0 && sum(|it| it.running) > 0 && sum(|it| it.retrying) > 0);
    // As if a version of before had been here until now.
    database.sql("DELETE FROM mainspring.tally WHERE name LIKE 'type/%'");
    database.sql("DELETE FROM mainspring.migration WHERE name = 'count_types'");
    assert_eq!(up(&config, &mut |_| ()).await.expect("it is taken"), [14]);
    assert_eq!(store.counts(now).await.expect("it counts").types, kept);
}

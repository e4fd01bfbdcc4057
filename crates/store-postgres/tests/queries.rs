//! Every statement under `queries/` is used, says what it is for, and is accepted by a database
//! with the schema of today.

use mainspring_kernel::{DlqState, Timestamp};
use mainspring_store_postgres::{PostgresConfig, Queries, Query, SCHEMA, up};
use mainspring_testkit::postgres::{Database, shared};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio_postgres::NoTls;

#[tokio::test]
async fn every_statement_is_accepted_with_the_types_it_is_sent_with() {
    let database = Database::create(shared());
    let now = Arc::new(|| Timestamp::from_millis(1_790_000_000_000));
    up(&PostgresConfig::standard(&database.url, now), &mut |_| ()).await.expect("it migrates");
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let queries = Queries::new(SCHEMA);
    let mut refused = Vec::new();
    for query in Query::ALL {
        if let Err(error) = client.prepare_typed(queries.text(*query), query.types()).await {
            refused.push(format!("{}: {error:?}", query.file()));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// An index has the rows of a partial list only if the statement names the same words.
#[test]
fn items_are_open_for_sql_as_they_are_for_the_kernel() {
    let open: Vec<String> = DlqState::WAITING_NAMES.iter().map(|it| format!("'{it}'")).collect();
    let queries = Queries::new(SCHEMA);
    let text = queries.text(Query::CountOpenItems);
    assert!(text.trim_end().ends_with(&format!("state IN ({})", open.join(", "))), "{text}");
}

#[test]
fn every_file_is_used_and_begins_with_what_it_is_for() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries");
    let used: BTreeSet<&str> = Query::ALL.iter().map(|query| query.file()).collect();
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("-- "), "{name} does not say what it is for");
        assert!(used.contains(&*name), "{name} is used nowhere");
        found.insert(name);
    }
    assert_eq!(found.len(), used.len(), "a statement without a file of its own");
}

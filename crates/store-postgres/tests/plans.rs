//! The plans of the hot statements, in a database of a realistic size: kept under `plans/`, so that
//! a change of plan is seen in review. `cargo xtask bless` writes them anew.
//!
//! No plan may read all of a table that grows, however full or empty the database is.

#[path = "plans/tree.rs"]
mod tree;

use mainspring_kernel::Timestamp;
use mainspring_store_postgres::{
    PostgresConfig, Queries, Query, SCHEMA, list_samples, session_settings, up,
};
use mainspring_testkit::postgres::{Database, shared};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tree::Node;

/// The version the kept plans are of; others print them differently.
const KEPT_VERSION: &str = "15";

/// Statements whose plans are not kept, and why. All others are hot.
const LEFT_OUT: &[(Query, &str)] = &[
    (Query::GuardForChange, "changes of registries: rare"),
    (Query::SetType, "changes of registries: rare"),
    (Query::SetQueue, "changes of registries: rare"),
    (Query::SetToken, "changes of registries: rare"),
    (Query::HastenJobs, "by hand, or when what a job waited for is done: by its primary key"),
    (Query::SetStrict, "changes of registries: rare"),
    (Query::ReorderReady, "a queue changes its order: rare, reads the whole queue"),
    (Query::ReorderWaiting, "a queue changes its order: rare, reads the whole queue"),
    (Query::SplitLanes, "a type changes its lanes: rare, reads all its jobs"),
    (Query::RelaneReady, "a type changes its lanes: rare, reads all its jobs"),
    (Query::RelaneWaiting, "a type changes its lanes: rare, reads all its jobs"),
    (Query::LoadRunning, "a type changes its limit: rare, reads all that run"),
    (Query::RelimitLive, "a type changes its limit: rare"),
    (Query::LoadTypes, "a whole registry, when it has changed"),
    (Query::LoadQueues, "a whole registry, when it has changed"),
    (Query::LoadTokens, "a whole registry, when it has changed"),
    (Query::OldestDue, "for metrics: reads all ready rows and says so"),
    (Query::CountLanes, "counts lanes: a row for each queue and type of a tenant"),
    (Query::MakePartitions, "upkeep of partitions: a few times a day"),
    (Query::ListPartitions, "upkeep of partitions: a few times a day"),
    (Query::FindHeld, "only when somebody outside holds something"),
    (Query::ForgetNode, "a row per server, when one stops"),
    (Query::ReadHeld, "a row per queue and tenant, and what is not stamped yet: twice a second"),
    (Query::ForgetLanes, "upkeep: only while there are very many lanes"),
    (Query::ForgetTallies, "upkeep: reads all numbers, twice a minute"),
    (Query::CountNodes, "a row per server, a few times a minute"),
];

/// Statements whose plans are checked like all others, but are not kept, and why.
const UNKEPT: &[(Query, &str)] = &[
    (
        Query::DeleteTerms,
        "either index of its table leads to the few rows; which one is taken \
     depends on what PostgreSQL thinks of their sizes",
    ),
    (Query::FindLate, "asks PostgreSQL's own tables: their plan is PostgreSQL's business"),
];

/// Scans of a whole index that are short all the same.
const SHORT: &[(Query, &str, &str)] = &[
    (Query::HasReady, "ready_pkey", "stops at the first row"),
    (Query::CountOpenItems, "item_open", "has the items that wait for a decision, and no others"),
];

/// Statements that are run for their plan: PostgreSQL shows what hangs on the working table of a
/// recursion only then. They change nothing, and find a row.
const RUN: &[Query] = &[Query::FindLanes];

fn hot() -> impl Iterator<Item = Query> {
    Query::ALL.iter().copied().filter(|query| LEFT_OUT.iter().all(|(left, _)| left != query))
}

fn is_short(query: Query, scan: &str) -> bool {
    let known = SHORT.iter().find(|(short, _, _)| *short == query);
    known.is_some_and(|(_, index, _)| scan.contains(&format!("Scan using {index} on ")))
}

#[tokio::test]
async fn plans_of_a_full_database_are_those_kept() {
    let (database, client) = migrated().await;
    client.batch_execute(include_str!("plans/fill.sql")).await.expect("it fills");
    // Before PostgreSQL got round to counting, and after.
    let mut wrong = check_all(&client).await;
    client.batch_execute("VACUUM ANALYZE").await.expect("it is analysed");
    wrong.extend(check_all(&client).await);
    let version = database.sql("SHOW server_version_num");
    if version.starts_with(KEPT_VERSION) {
        wrong.extend(compare(&client).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn plans_of_an_empty_database_read_no_whole_table_either() {
    let (_database, client) = migrated().await;
    let mut wrong = check_all(&client).await;
    client.batch_execute("ANALYZE").await.expect("it is analysed");
    wrong.extend(check_all(&client).await);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The rows that a page and a count by each lead look at: counted, for a time would tell of the
/// machine. The database has 355,000 jobs; a page of 20 is asked for.
#[tokio::test]
async fn a_list_looks_at_a_few_rows_of_very_many() {
    let (database, client) = migrated().await;
    client.batch_execute(include_str!("plans/fill.sql")).await.expect("it fills");
    let term = database.sql("SELECT term FROM mainspring.term ORDER BY term LIMIT 1");
    let rows_of = async |name: &str, values: &str| {
        let sql = format!(
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON)
             EXECUTE {name} ('ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid,
                 '00000000-0000-0000-0000-000000000000'::uuid, {values})"
        );
        let told = client.simple_query(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let text: String = told
            .iter()
            .filter_map(|message| {
                let SimpleQueryMessage::Row(row) = message else { return None };
                row.get(0)
            })
            .collect();
        looked_at(&text)
    };
    client.batch_execute("SET plan_cache_mode = force_generic_plan").await.expect("it is set");
    let mut told = Vec::new();
    for is_analysed in [false, true] {
        if is_analysed {
            client.batch_execute("VACUUM ANALYZE").await.expect("it is analysed");
        }
        for (name, values, bound) in [
            ("list_all", "ARRAY[0], 20".to_owned(), 160),
            ("list_lanes", "ARRAY[3, 4], 20".to_owned(), 320),
            ("list_user", "ARRAY[3, 4], 20, 'user2'".to_owned(), 320),
            ("list_trace", "ARRAY['none'], 20".to_owned(), 160),
            ("list_terms", format!("ARRAY[{term}, 5], 20"), 320),
            ("list_items", "ARRAY[0], 20".to_owned(), 160),
            ("list_item_terms", "ARRAY[5, 6], 20".to_owned(), 320),
            ("list_lanes_measure", "ARRAY[3, 4], 2000".to_owned(), 20_000),
        ] {
            let rows = rows_of(name, &values).await;
            told.push(format!("{name} {rows}"));
            assert!(rows <= bound, "{name} looked at {rows} rows, not {bound}");
        }
    }
    println!("rows looked at: {}", told.join(", "));
}

/// The rows that came out of all nodes of a plan or were thrown away in them.
fn looked_at(json: &str) -> u64 {
    let number = |name: &str, node: &str| -> f64 {
        let rest = node.split_once(&format!("\"{name}\": ")).map_or("0", |(_, rest)| rest);
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse().unwrap_or(0.0)
    };
    // Each node has these of its own before those below it.
    let nodes = json.split("\"Node Type\"").skip(1);
    let rows = nodes.map(|node| {
        let each = number("Actual Rows", node) + number("Rows Removed by Filter", node);
        each * number("Actual Loops", node)
    });
    rows.sum::<f64>() as u64
}

#[test]
fn a_scan_of_everything_is_seen() {
    let scans = |text: &str| Node::read(&text.lines().map(str::to_owned).collect::<Vec<_>>());
    let whole = "Nested Loop\n  ->  Function Scan on w\n  ->  Seq Scan on job_20261116 j_1";
    assert_eq!(scans(whole).long_scans(), ["Seq Scan on job_DAY j"]);
    let sorted = "Limit\n  ->  Sort\n        Sort Key: a\n        ->  Index Scan using b on live";
    assert_eq!(scans(sorted).long_scans(), ["Index Scan using b on live"]);
    let first = "Limit\n  ->  LockRows\n        ->  Index Scan using b on live";
    assert!(scans(first).long_scans().is_empty());
    let filtered = "Limit\n  ->  Index Scan using b on live\n        Filter: (state = 1)";
    assert_eq!(scans(filtered).long_scans(), ["Index Scan using b on live"]);
    let narrow = "Index Scan using b on live\n  Index Cond: (a = 1)\n  Filter: (state = 1)";
    assert!(scans(narrow).long_scans().is_empty());
    let small = "Seq Scan on registry";
    assert!(scans(small).long_scans().is_empty());
}

/// A new database with the schema of today, and a connection as the store makes it.
async fn migrated() -> (Database, Client) {
    let database = Database::create(shared());
    let now = Arc::new(|| Timestamp::from_millis(1_790_000_000_000));
    up(&PostgresConfig::standard(&database.url, now), &mut |_| ()).await.expect("it migrates");
    let (client, connection) =
        tokio_postgres::connect(&database.url, NoTls).await.expect("it connects");
    tokio::spawn(connection);
    let queries = Queries::new(SCHEMA);
    for (name, value) in session_settings() {
        client.batch_execute(&format!("SET {name} = {value}")).await.expect("it is set");
    }
    for query in hot() {
        let types: Vec<&str> = query.types().iter().map(|kind| kind.name()).collect();
        let types = if types.is_empty() { String::new() } else { format!("({})", types.join(",")) };
        let sql = format!("PREPARE {}{types} AS {}", query.file(), queries.text(query));
        client.batch_execute(&sql).await.unwrap_or_else(|e| panic!("{}: {e:?}", query.file()));
    }
    for (name, sql, types) in list_samples() {
        let types: Vec<&str> = types.iter().map(|kind| kind.name()).collect();
        let sql = format!("PREPARE {name} ({}) AS {sql}", types.join(","));
        client.batch_execute(&sql).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
    }
    (database, client)
}

/// What is wrong with any plan, made for all values or for some.
async fn check_all(client: &Client) -> Vec<String> {
    let mut wrong = Vec::new();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        client.batch_execute(&format!("SET plan_cache_mode = {mode}")).await.expect("it is set");
        for query in hot() {
            let plan = explain(client, query).await;
            let text = plan.text();
            let mut faults = missing_indexes(query, &text);
            let scans = plan.long_scans().into_iter().filter(|scan| !is_short(query, scan));
            faults.extend(scans.map(|scan| format!("reads all: {scan}")));
            let filters = text.lines().filter(|line| is_unprobed(line)).map(str::trim);
            faults.extend(filters.map(|line| format!("compares what it could probe: {line}")));
            if !faults.is_empty() {
                wrong.push(format!("{} ({mode}): {}\n{text}", query.file(), faults.join(", ")));
            }
        }
        for (name, _, types) in list_samples() {
            let plan = explain_named(client, &name, &types, false).await;
            let long = plan.long_scans().into_iter();
            let long: Vec<String> = long.filter(|scan| !is_short_list(&name, scan)).collect();
            if !long.is_empty() {
                wrong.push(format!("{name} ({mode}) reads all: {long:?}\n{}", plan.text()));
            }
        }
    }
    wrong
}

/// Whether rows are read and then compared by their id: every row that a batch names costs as many
/// as have the rest of the key in common, which may be all of a tenant's. The other way round is
/// fine: an id has few rows.
fn is_unprobed(line: &str) -> bool {
    line.trim_start().starts_with("Filter: ") && line.contains("(id = ANY (ARRAY[")
}

/// Scans of lists that are short all the same: what is thought long there ends at the limit, or was
/// seen to be short before.
fn is_short_list(name: &str, scan: &str) -> bool {
    let known = [
        // What runs is little; of what waits for a retry, the newest come first.
        ("list_live", "live_pkey"),
        ("list_live_measure", "live_pkey"),
        ("list_live_count", "live_pkey"),
        // Most of what has ended has ended well.
        ("list_finished", "finished_"),
        ("list_finished_measure", "finished_"),
        ("list_finished_count", "finished_"),
        // Only taken when it was seen to be short.
        ("list_waiting_count", "ready_pkey"),
    ];
    known.iter().any(|(list, index)| name == *list && scan.contains(index))
}

/// The plan of a statement, for some values.
async fn explain(client: &Client, query: Query) -> Node {
    explain_named(client, query.file(), query.types(), RUN.contains(&query)).await
}

async fn explain_named(client: &Client, name: &str, types: &[Type], is_run: bool) -> Node {
    let values: Vec<String> = types.iter().map(|kind| value(kind.name())).collect();
    let values = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
    let execute = format!("EXECUTE {name}{values}");
    let sql = match is_run {
        false => format!("EXPLAIN (COSTS OFF) {execute}"),
        true => format!(
            "BEGIN; INSERT INTO mainspring.ready VALUES (0, 0, gen_random_uuid(), now(), false);
            EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {execute}; ROLLBACK"
        ),
    };
    let told = client.simple_query(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let lines: Vec<String> = told
        .iter()
        .filter_map(|message| {
            let SimpleQueryMessage::Row(row) = message else { return None };
            row.get(0).map(str::to_owned)
        })
        .collect();
    Node::read(&lines)
}

/// Some value of a type.
fn value(kind: &str) -> String {
    match kind {
        "int2" | "int4" | "int8" => format!("10::{kind}"),
        "uuid" => "mainspring.first_id(now())".to_owned(),
        "timestamptz" => "now()".to_owned(),
        "text" => "'name'".to_owned(),
        "bool" => "true".to_owned(),
        "bytea" => "'\\x00'::bytea".to_owned(),
        array => {
            let element = array.strip_prefix('_').unwrap_or_else(|| panic!("a value of {array}"));
            format!("ARRAY[{}, {}]", value(element), value(element))
        }
    }
}

/// The indexes that the comment of a statement names and its plan does not use.
fn missing_indexes(query: Query, plan: &str) -> Vec<String> {
    let queries = Queries::new(SCHEMA);
    let lines = queries.text(query).lines().take_while(|line| line.starts_with("-- "));
    let comment: Vec<&str> = lines.map(|line| line.trim_start_matches("-- ")).collect();
    let comment = comment.join(" ");
    let Some((_, named)) = comment.split_once("Index: ") else { return Vec::new() };
    let named = named.split('.').next().unwrap_or(named);
    if named.starts_with("none") {
        return Vec::new();
    }
    let mut missing = Vec::new();
    let uses = ["Index Scan", "Index Only Scan", "Conflict "];
    if !uses.iter().any(|kind| plan.contains(kind)) {
        missing.push("no index".to_owned());
    }
    if named.contains("key") && !plan.contains("_pkey") {
        missing.push("no primary key".to_owned());
    }
    let words = named.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for word in words.filter(|word| word.contains('_')) {
        // PostgreSQL names those of partitions by itself.
        let is_used = plan.contains(word)
            || word
                .split_once('_')
                .is_some_and(|(table, column)| plan.contains(&format!("{table}_DAY_{column}_idx")));
        match (is_used, named.contains(" or ")) {
            (true, true) => return Vec::new(),
            (true, false) => {}
            (false, _) => missing.push(format!("not by {word}")),
        }
    }
    missing
}

/// Plans that are not those kept.
async fn compare(client: &Client) -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let is_blessing = std::env::var_os("MAINSPRING_BLESS").is_some();
    client.batch_execute("SET plan_cache_mode = force_generic_plan").await.expect("it is set");
    let mut wrong = Vec::new();
    let mut names = BTreeSet::new();
    let mut plans = Vec::new();
    for query in hot().filter(|query| UNKEPT.iter().all(|(unkept, _)| unkept != query)) {
        plans.push((query.file().to_owned(), explain(client, query).await.text()));
    }
    for (name, _, types) in list_samples() {
        let plan = explain_named(client, &name, &types, false).await;
        plans.push((name, plan.text()));
    }
    for (name, made) in plans {
        let name = format!("{name}.txt");
        if is_blessing {
            std::fs::write(directory.join(&name), &made).expect("it is written");
        }
        let kept = std::fs::read_to_string(directory.join(&name)).unwrap_or_default();
        if kept != made {
            wrong.push(format!("{name} is not what is kept; it was\n{kept}and is\n{made}"));
        }
        names.insert(name);
    }
    for entry in std::fs::read_dir(&directory).expect("it is there") {
        let path = entry.expect("it is listed").path();
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        if name.ends_with(".txt") && !names.contains(&name) {
            match is_blessing {
                true => std::fs::remove_file(&path).expect("it is removed"),
                false => wrong.push(format!("{name} is the plan of no hot statement")),
            }
        }
    }
    wrong
}

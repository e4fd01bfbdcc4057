//! `mainspring migrate`, and what `serve` does with a database that is not as it should be.

use mainspring_testkit::blackbox::{Options, Ran, Server, Store, eventually, run};
use mainspring_testkit::postgres::{Database, shared};
use serde_json::json;
use std::path::Path;

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

fn migrate(database: &Database, args: &[&str]) -> Ran {
    let mut line = vec!["migrate"];
    line.extend(args);
    run(BINARY, &line, &[("DATABASE_URL", &database.url)], Path::new("/"))
}

fn serve(database: &Database) -> Ran {
    let line = ["serve", "--listen", "127.0.0.1:0", "--database-url", &database.url];
    run(BINARY, &line, &[], Path::new("/"))
}

#[test]
fn a_database_is_looked_at_planned_and_brought_up() {
    let database = Database::create(shared());
    let status = migrate(&database, &["status"]).expect(0);
    assert!(status.stdout.contains("none: empty"), "{status:?}");
    assert!(!status.stdout.contains("problem"), "{status:?}");
    let plan = migrate(&database, &["plan"]).expect(0);
    assert!(plan.stdout.contains("CREATE TABLE mainspring.job"), "{plan:?}");
    assert!(plan.stdout.contains("-- step 1 (first_schema)"), "{plan:?}");
    let plan = migrate(&database, &["plan", "-o", "json"]).expect(0).json();
    assert_eq!(plan["steps"][0]["compatible"], json!(true));
    let found = database.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'mainspring'");
    assert_eq!(found, "0", "planning changes nothing");
    let up = migrate(&database, &["up"]).expect(0);
    assert!(up.stdout.starts_with("step 1 (first_schema)\n"), "{up:?}");
    assert!(up.stdout.contains("done: the database has version"), "{up:?}");
    let again = migrate(&database, &["up", "-o", "json"]).expect(0).json();
    assert_eq!(again["taken"], json!([]));
    let status = migrate(&database, &["status", "-o", "json"]).expect(0).json();
    assert_eq!(status["pending"], json!([]));
    assert_eq!(status["version"], status["newest"]);
    assert!(migrate(&database, &["plan"]).expect(0).stdout.contains("nothing to do"));
}

#[test]
fn an_address_that_leads_nowhere_says_so() {
    let ran = |args: &[&str]| run(BINARY, args, &[], Path::new("/"));
    let none = ran(&["migrate", "status"]).expect(2);
    assert!(none.stderr.contains("no database is named"), "{none:?}");
    ran(&["migrate", "status", "--database-url", "mysql://h/d"]).expect(2);
    ran(&["migrate", "status", "--database-url", "postgres://h:notaport/d"]).expect(2);
    let gone = ran(&["migrate", "up", "--database-url", "postgres://u@127.0.0.1:1/d"]).expect(3);
    assert!(gone.stderr.contains("cannot be reached"), "{gone:?}");
    let line = ["serve", "--listen", "127.0.0.1:0", "--database-url", "postgres://u@127.0.0.1:1/d"];
    ran(&line).expect(3);
}

#[test]
fn a_newer_or_edited_schema_is_refused_by_everybody() {
    let database = Database::create(shared());
    migrate(&database, &["up"]).expect(0);
    database.sql("INSERT INTO mainspring.migration VALUES (99, 'later', 'x', false)");
    for ran in [migrate(&database, &["up"]).expect(1), serve(&database).expect(1)] {
        assert!(ran.stderr.contains("step 99 (later) of a newer Mainspring"), "{ran:?}");
    }
    let status = migrate(&database, &["status"]).expect(1);
    assert!(status.stdout.contains("run that version"), "{status:?}");
    database.sql("DELETE FROM mainspring.migration WHERE version = 99");
    database.sql("UPDATE mainspring.migration SET checksum = 'edited' WHERE version = 1");
    for ran in [migrate(&database, &["plan"]).expect(1), serve(&database).expect(1)] {
        assert!(ran.stderr.contains("edited after it was released"), "{ran:?}");
    }
}

#[test]
fn two_servers_start_at_once_on_an_empty_database() {
    let options = Store::Postgres.options(BINARY);
    let servers: Vec<Server> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..2)
            .map(|_| {
                let options = options.clone();
                scope.spawn(|| Server::start(options))
            })
            .collect();
        starts.into_iter().map(|start| start.join().expect("it starts")).collect()
    });
    let caller = |at: usize| servers[at].caller("acme", "ann", &["submitter", "worker", "viewer"]);
    let id = caller(0).submit_plain("greet");
    assert_eq!(caller(1).job(&id)["status"], "queued");
    let database = servers[0].database().expect("it has one");
    let twice = "SELECT count(*) - count(DISTINCT version) FROM mainspring.migration";
    assert_eq!(database.sql(twice), "0");
}

#[test]
fn a_schema_of_another_name_serves_a_whole_life() {
    let mut options: Options = Store::Postgres.options(BINARY);
    options.config.push_str("[store]\nschema = \"other\"\n");
    let server = Server::start(options);
    let ann = server.caller("acme", "ann", &["submitter", "worker", "viewer"]);
    let id = ann.submit_plain("greet");
    let grant = ann.pull_one("greet");
    assert_eq!(grant["job_id"], json!(id));
    ann.complete(&grant);
    assert_eq!(ann.job(&id)["status"], "succeeded");
    let database = server.database().expect("it has one");
    assert_eq!(database.sql("SELECT count(*) FROM other.finished"), "1");
    let found = database.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'mainspring'");
    assert_eq!(found, "0", "nothing is made outside of the schema");
}

#[test]
fn the_doctor_examines_a_database_and_says_what_to_do() {
    let database = Database::create(shared());
    let doctor = |more: &[&str]| {
        let mut line = vec!["doctor", "--database-url", &database.url];
        line.extend(more);
        run(BINARY, &line, &[], Path::new("/"))
    };
    let empty = doctor(&[]);
    assert!(empty.stdout.contains("schema_missing"), "{empty:?}");
    migrate(&database, &["up"]).expect(0);
    // The clusters of tests do without syncs, which the doctor does not like.
    let verdicts = |ran: &Ran| -> Vec<String> {
        let checks = ran.json();
        let checks = checks.as_array().expect("a list").iter();
        let bad = checks.filter(|check| check["verdict"] != "ok");
        bad.map(|check| check["check"].to_string()).filter(|it| !it.contains("durab")).collect()
    };
    assert!(verdicts(&doctor(&["-o", "json"])).is_empty());
    database.sql("DROP INDEX mainspring.live_limit");
    let hurt = doctor(&[]).expect(1);
    assert!(hurt.stdout.contains("schema_drift: missing or changed: index live_limit"), "{hurt:?}");
    assert_eq!(verdicts(&doctor(&["-o", "json"])), ["\"schema_drift\""]);
    let line = ["doctor", "--database-url", "postgres://u@127.0.0.1:1/d"];
    run(BINARY, &line, &[], Path::new("/")).expect(3);
}

#[test]
fn a_server_without_fsync_is_refused_unless_told_by_file_flag_or_environment() {
    let database = Database::create(shared());
    let line = ["serve", "--listen", "127.0.0.1:0", "--database-url", &database.url];
    let strict = [("MAINSPRING_ALLOW_UNSAFE_POSTGRES", "false")];
    let refused = run(BINARY, &line, &strict, Path::new("/")).expect(1);
    assert!(refused.stderr.contains("POSTGRES_UNSAFE"), "{refused:?}");
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mainspring'";
    assert_eq!(database.sql(made), "0", "nothing was made");
    let strict = Store::Postgres.options(BINARY).env(strict[0].0, strict[0].1);
    let by_flag = Server::start(strict.clone().arg("--allow-unsafe-postgres"));
    assert!(by_flag.pid().is_some());
    let mut by_file = Store::Postgres.options(BINARY);
    by_file.config.push_str("[store]\nallow_unsafe_postgres = true\n");
    // An empty variable is none.
    let by_file = Server::start(by_file.env("MAINSPRING_ALLOW_UNSAFE_POSTGRES", ""));
    assert!(by_file.pid().is_some());
}

#[test]
fn a_step_that_older_servers_would_not_survive_waits_for_the_operator() {
    let database = Database::create(shared());
    migrate(&database, &["up"]).expect(0);
    // As the version before left it: with a server that was seen a moment ago.
    database.sql(
        "DROP TABLE mainspring.effect; ALTER TABLE mainspring.node DROP COLUMN workers;
         DELETE FROM mainspring.migration WHERE version = 3;
         INSERT INTO mainspring.node VALUES (gen_random_uuid(), 'old', '0', now(), now())",
    );
    let refused = serve(&database).expect(1);
    assert!(refused.stderr.contains("run mainspring migrate up"), "{refused:?}");
    let refused = migrate(&database, &["up"]).expect(1);
    assert!(
        refused.stderr.contains("a server of an older version uses the database: old"),
        "{refused:?}"
    );
    database.sql("DELETE FROM mainspring.node");
    migrate(&database, &["up"]).expect(0);
    let mut options = Options::new(BINARY);
    options.database = Some(std::sync::Arc::new(database));
    let server = Server::start(options);
    let ann = server.caller("acme", "ann", &["submitter", "worker", "viewer"]);
    let id = ann.submit_plain("greet");
    ann.complete(&ann.pull_one("greet"));
    assert_eq!(ann.job(&id)["status"], "succeeded");
}

/// Somebody newer took a step that this version does not survive, without asking: whatever still
/// runs ends, and says why.
#[test]
fn a_server_ends_by_itself_when_the_schema_becomes_one_it_cannot_work_with() {
    let mut server = Server::start(Store::Postgres.options(BINARY));
    let sql = |server: &Server, text: &str| server.database().expect("it has one").sql(text);
    sql(&server, "INSERT INTO mainspring.migration VALUES (98, 'kind', 'x', true)");
    let id = server.admin().submit_plain("greet");
    sql(&server, "INSERT INTO mainspring.migration VALUES (99, 'unkind', 'x', false)");
    eventually("the server ends", || (!server.is_alive()).then_some(()));
    let log = server.log();
    assert!(log.contains("step 99 of a newer Mainspring"), "{log}");
    assert!(log.contains("run that version"), "{log}");
    sql(&server, "DELETE FROM mainspring.migration WHERE version = 99");
    server.restart();
    assert_eq!(server.admin().job(&id)["status"], "queued", "it lives with a compatible one");
}

/// As far as a version can be tried beside one that does not exist yet: somebody newer takes a
/// compatible step while this version works.
#[test]
fn a_compatible_step_of_a_newer_version_is_lived_with_under_load() {
    let options = Store::Postgres.options(BINARY);
    let mut server = Server::start(options.clone());
    let database = server.database().expect("it has one").url.clone();
    let sql = |server: &Server, text: &str| server.database().expect("it has one").sql(text);
    let ann = server.caller("acme", "ann", &["submitter", "worker", "viewer"]);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let mut done = 0;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let id = ann.submit_plain("greet");
                let grant = ann.pull_one("greet");
                assert_eq!(grant["job_id"], json!(id));
                ann.complete(&grant);
                done += 1;
            }
            done
        });
        for column in 0..5 {
            // What an online step does: nothing that is there changes its meaning.
            let step = format!(
                "SET lock_timeout = '5s'; ALTER TABLE mainspring.job ADD COLUMN later_{column} int"
            );
            sql(&server, &step);
        }
        sql(&server, "CREATE TABLE mainspring.later (id int)");
        sql(&server, "INSERT INTO mainspring.migration VALUES (99, 'later', 'x', true)");
        // A second server of this version starts beside it, and both go on.
        let second = Server::start(options.clone());
        let id = second.admin().submit_plain("other");
        assert_eq!(server.admin().job(&id)["status"], "queued");
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        work.join().expect("no request fails")
    });
    assert!(done > 0, "there was work meanwhile");
    server.restart();
    assert_eq!(items_of(&server, "succeeded"), done);
    let env = [("DATABASE_URL", database.as_str())];
    let status = run(BINARY, &["migrate", "status", "-o", "json"], &env, Path::new("/")).expect(0);
    assert_eq!(status.json()["newer"], json!([99]), "{status:?}");
    println!("{done} jobs were done while the schema changed");
}

fn items_of(server: &Server, state: &str) -> u64 {
    let counters = server.admin().get("/api/v1/runtime").data()["counters"].take();
    counters["jobs"][state].as_u64().unwrap_or(0)
}

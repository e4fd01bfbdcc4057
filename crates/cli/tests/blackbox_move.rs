//! `mainspring move` from outside: a server's jobs go on at the new place.

use mainspring_testkit::blackbox::{Options, Ran, Server, Store, run};
use mainspring_testkit::postgres::{Database, shared};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

fn moved(from: &str, to: &str) -> Ran {
    run(BINARY, &["move", "--from", from, "--to", to, "-o", "json"], &[], Path::new("/"))
}

#[test]
fn a_servers_jobs_go_on_at_the_new_place() {
    let mut old = Server::start(Store::Memory.options(BINARY));
    let ann = old.caller("acme", "ann", &["submitter", "worker", "viewer"]);
    let (done, waiting) = (ann.submit_plain("greet"), ann.submit_plain("later"));
    ann.complete(&ann.pull_one("greet"));
    let database = Arc::new(Database::create(shared()));
    let from = format!("memory:{}", old.data_dir().display());
    let refused = moved(&from, &database.url).expect(1);
    assert!(refused.stderr.contains("another process uses"), "{refused:?}");
    assert!(old.terminate().success());
    let ran = moved(&from, &database.url).expect(0).json();
    assert_eq!(ran["jobs"], json!(2));
    let refused = moved(&from, &database.url).expect(1);
    assert!(refused.stderr.contains("already"), "{refused:?}");
    moved("nowhere", &database.url).expect(2);

    let mut options = Options::new(BINARY);
    options.database = Some(database);
    let new = Server::start(options);
    let ann = new.caller("acme", "ann", &["submitter", "worker", "viewer"]);
    assert_eq!(ann.job(&done)["status"], "succeeded");
    let grant = ann.pull_one("later");
    assert_eq!(grant["job_id"], json!(waiting));
    ann.complete(&grant);
    assert_eq!(ann.path(&waiting).last().map(String::as_str), Some("succeeded"));
}

//! `mainspring move` from outside: a server's jobs go on at the new place, and so do those who
//! follow them.

#[path = "blackbox_bus/inbox.rs"]
mod inbox;
#[path = "blackbox_bus/stream.rs"]
mod stream;

use inbox::Inbox;
use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Options, Ran, Server, Store, eventually, run};
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
    // What is counted by type and state came along.
    let counted = "mainspring_type_jobs{type=\"later\",state=\"queued\"} 1";
    let page = new.admin().get("/metrics").text();
    assert!(page.lines().any(|line| line == counted), "{page}");
    let grant = ann.pull_one("later");
    assert_eq!(grant["job_id"], json!(waiting));
    ann.complete(&grant);
    assert_eq!(ann.path(&waiting).last().map(String::as_str), Some("succeeded"));
}

/// A subscription that was behind goes on behind, and an old position of the stream still counts.
#[test]
fn d18_events_that_were_not_told_yet_are_told_at_the_new_place() {
    const CONFIG: &str = "[types]\nstrict = false\n[webhooks]\nallow_private = true\n";
    let mut old = Server::start(Store::Memory.options(BINARY).config(CONFIG));
    let roles = ["submitter", "worker", "operator"];
    let ann = old.caller("acme", "ann", &roles);
    let mut inbox = Inbox::start();
    inbox.kill();
    let wish = json!({ "name": "all", "url": inbox.url() });
    let made = ann.post("/api/v1/subscriptions", &wish).data();
    let path = format!("/api/v1/subscriptions/{}", text(&made, "subscription_id"));
    let jobs: Vec<String> = (0..20).map(|_| ann.submit_plain("greet")).collect();
    for _ in 0..20 {
        ann.complete(&ann.pull_one("greet"));
    }
    let before = stream::all(&ann, 0, 60);
    assert!(old.terminate().success());
    let database = Arc::new(Database::create(shared()));
    moved(&format!("memory:{}", old.data_dir().display()), &database.url).expect(0);
    let mut options = Options::new(BINARY).config(CONFIG);
    options.database = Some(database.clone());
    let mut new = Server::start(options);
    let ann = new.caller("acme", "ann", &roles);
    assert_eq!(stream::all(&ann, 0, 60), before, "the same events at the same positions");
    let seen = ann.get(&path).data();
    assert_eq!((&seen["lag"], &seen["missed_count"]), (&json!(60), &json!(0)), "{seen}");
    assert!(new.terminate().success());

    // And back again, with one more.
    let folder = tempfile::tempdir().expect("a directory");
    let back = folder.path().join("back");
    let ran = eventually("the database is free", || {
        let ran = moved(&database.url, &format!("memory:{}", back.display()));
        (ran.code == Some(0)).then_some(ran)
    });
    assert_eq!(ran.json()["jobs"], json!(20));
    let mut last = Server::start(Options::new(BINARY).config(CONFIG));
    last.kill9();
    std::fs::remove_dir_all(last.data_dir()).expect("it was there");
    std::fs::rename(&back, last.data_dir()).expect("it is on the same disk");
    last.restart();
    let ann = last.caller("acme", "ann", &roles);
    assert_eq!(stream::all(&ann, 0, 60), before);
    inbox.revive();
    ann.poke(&format!("{path}/resume")).data();
    let told = eventually("all of it is told", || {
        let told = inbox.taken();
        (told.len() >= 60).then_some(told)
    });
    let ids: Vec<&str> = told.iter().map(|it| it.id()).collect();
    let wanted: Vec<String> = before.iter().map(|(.., data)| text(data, "event_id")).collect();
    assert_eq!(ids, wanted, "each once, in order");
    assert_eq!(jobs.len(), 20);
}

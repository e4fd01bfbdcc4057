//! `mainspring bench --url` against a server that has other things to do: it measures, touches
//! nobody else's jobs, and leaves nothing waiting, also when it is interrupted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::items;
use mainspring_testkit::blackbox::command::{Background, prepare};
use mainspring_testkit::blackbox::{Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::json;

both_stores![
    a_running_server_is_measured_and_nothing_is_left,
    an_interrupted_measurement_cleans_up,
    who_may_not_is_told_what_is_missing,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const STRICT: &str = "[types]\nstrict = true\n";

/// Jobs of the benchmark's type that have not ended.
fn left(server: &Server) -> usize {
    let of = |status: &str| {
        let path = format!("/api/v1/jobs?type=mainspring-bench&status={status}&limit=100");
        items(server.admin().get(&path).data()).len()
    };
    ["queued", "running", "retrying"].map(of).iter().sum()
}

fn a_running_server_is_measured_and_nothing_is_left(store: Store) {
    let server = Server::start(store.options(BINARY).config(STRICT));
    let admin = server.admin();
    admin.put("/api/v1/types/mainspring-bench", &json!({})).data();
    // Somebody else's, of the very same type: only the queue tells them apart.
    let other = admin.submit_plain("mainspring-bench");
    let line = ["bench", "--url", &server.url, "--quick", "-o", "json"];
    let ran = server.cli(&line).expect(0);
    let told = ran.json();
    let figures = told.as_array().unwrap();
    assert_eq!(figures.len(), 5, "{told}");
    for (figure, unit) in figures.iter().zip(["jobs/s", "jobs/s", "jobs/s", "ms", "ms"]) {
        assert_eq!(figure["unit"], unit, "{told}");
        assert!(figure["figure"].as_f64().unwrap() > 0.0, "{told}");
    }
    assert!(ran.stderr.contains("type mainspring-bench in the queue bench-"), "{ran:?}");
    assert_eq!(admin.job(&other)["status"], "queued", "nobody touched it");
    assert_eq!(left(&server), 1);
    let dead = items(admin.get("/api/v1/dlq/items").data());
    assert!(dead.is_empty(), "{dead:?}");
    let done = admin.get("/api/v1/runtime").data()["counters"]["jobs"]["succeeded"].clone();
    // 2,000 in batches, 400 one by one, 150 for three seconds, and the first.
    assert_eq!(done, 2_551, "everything that was submitted was done");
    println!("{store:?}: {told}");
}

fn an_interrupted_measurement_cleans_up(store: Store) {
    let server = Server::start(store.options(BINARY).config(STRICT));
    let env = [("MAINSPRING_TOKEN", &*server.admin)];
    let line = ["bench", "--url", &server.url, "--jobs", "500000"];
    let said = server.directory().join("bench");
    let bench = prepare(BINARY, &line, &env, server.directory())
        .stderr(std::fs::File::create(&said).unwrap())
        .spawn();
    let bench = Background(bench.unwrap());
    eventually("jobs are there", || (left(&server) > 10).then_some(()));
    assert_eq!(bench.terminate(), Some(1));
    let said = std::fs::read_to_string(said).unwrap();
    assert!(said.contains("stopped before the end"), "{said}");
    assert!(said.contains("were left and are gone"), "{said}");
    assert_eq!(left(&server), 0);
    let dead = items(server.admin().get("/api/v1/dlq/items").data());
    assert!(dead.is_empty(), "{dead:?}");
}

fn who_may_not_is_told_what_is_missing(store: Store) {
    let server = Server::start(store.options(BINARY).config(STRICT));
    let run = |token: &str, more: &[&str]| {
        server.cli_as(token, &[&["bench", "--url", &server.url, "--quick"], more].concat())
    };
    let viewer = server.caller("acme", "vic", &["viewer", "submitter"]);
    let ran = run(&viewer.token, &[]).expect(2);
    assert!(ran.stderr.contains("needs the roles submitter and worker"), "{ran:?}");
    let both = server.caller("acme", "bea", &["submitter", "worker"]);
    let ran = run(&both.token, &[]).expect(1);
    assert!(ran.stderr.contains("mainspring types set mainspring-bench"), "{ran:?}");
    let ran = run(&server.admin, &["--suite"]).expect(2);
    assert!(ran.stderr.contains("go along with --url"), "{ran:?}");
    server.admin().put("/api/v1/types/mainspring-bench", &json!({})).data();
    run(&both.token, &[]).expect(0);
    assert_eq!(left(&server), 0);
}

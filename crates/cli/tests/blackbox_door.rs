//! The door as it is on both stores: text that nobody can keep, dates of long ago, settings of the
//! file, and types that the file and a person both change.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Request, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![
    text_that_nobody_can_keep_is_refused_and_spoils_no_neighbour,
    a_date_in_the_past_is_no_way_to_the_front,
    types_of_the_file_are_applied_when_their_entry_changes,
    keys_hosts_and_strictness_are_as_the_file_says,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

fn text_that_nobody_can_keep_is_refused_and_spoils_no_neighbour(store: Store) {
    let server = Server::start(store.options(BINARY));
    let ann = server.caller("door", "ann", &["submitter", "worker"]);
    let good = || json!({ "job_type": "t", "payload": { "a": "\u{0}" }, "trace_id": "fine" });
    let mut jobs = vec![good()];
    for (field, value) in [
        ("trace_id", json!("a\u{0}b")),
        ("subject", json!("\u{0}")),
        ("idempotency_key", json!("k\u{0}")),
        ("labels", json!({ "l": "\u{0}" })),
        ("labels", json!({ "\u{1}": "l" })),
        ("queue", json!("q\u{85}")),
    ] {
        let mut wish = good();
        wish[field] = value;
        assert_eq!(ann.post("/api/v1/jobs", &wish).refusal().0, 400, "{wish}");
        jobs.push(wish);
        jobs.push(good());
    }
    let told = items(ann.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data());
    for (place, item) in told.iter().enumerate() {
        match place % 2 {
            0 => assert_eq!(item["status"], "queued", "{item}"),
            _ => assert_eq!(item["error"]["code"], "REQ_VALIDATION_FAILED", "{item}"),
        }
    }
    assert_eq!(ann.get("/api/v1/jobs?trace_id=%00").refusal().0, 400);
    assert_eq!(items(ann.get("/api/v1/jobs?trace_id=fine").data()).len(), 7);
    // What a worker says last is kept, without the bytes that cannot be.
    let grant = ann.pull_one("t");
    assert_eq!(grant["payload"], json!({ "a": "\u{0}" }));
    let said = json!({ "error_code": "E", "message": "a\u{0}b\nc", "retryable": false });
    ann.report("fail", &grant, said);
    let job = ann.job(&text(&grant, "job_id"));
    assert_eq!(job["last_error"]["message"], "a\u{fffd}b\nc");
    assert_eq!(job["last_error"]["class"], "permanent");
    if let Some(database) = server.database() {
        let doctor = server.cli(&["doctor", "--database-url", &database.url]);
        // The cluster of the tests does without fsync, which the doctor does not like.
        assert!(doctor.stdout.contains("each in one place"), "{}", doctor.stdout);
        assert!(!doctor.stdout.contains("could not be checked"), "{}", doctor.stdout);
    }
}

fn a_date_in_the_past_is_no_way_to_the_front(store: Store) {
    let server = Server::start(store.options(BINARY).ephemeral());
    let ann = server.caller("door", "ann", &["submitter", "worker"]);
    let first = ann.submit_plain("t");
    for past in ["0000-01-01T00:00:00Z", "1969-12-31T23:59:59.9Z", "2001-01-01T00:00:00Z"] {
        let job = ann.submit(&json!({ "job_type": "t", "payload": 1, "run_at": past }));
        assert_eq!(job["run_at"], job["created_at"], "{past}");
    }
    let metrics = server.admin().get("/metrics").text();
    let lag = metrics.lines().find_map(|line| line.strip_prefix("jobs_lag_seconds "));
    assert!(lag.unwrap().parse::<f64>().unwrap() < 3_600.0, "{lag:?}");
    assert_eq!(text(&ann.pull_one("t"), "job_id"), first);
    for beyond in ["9999-12-31T23:59:59Z", "-000001-01-01T00:00:00Z", "10000-01-01T00:00:00Z"] {
        let wish = json!({ "job_type": "t", "payload": 1, "run_at": beyond });
        assert_eq!(ann.post("/api/v1/jobs", &wish).refusal().0, 400, "{beyond}");
    }
}

fn types_of_the_file_are_applied_when_their_entry_changes(store: Store) {
    let entry = |priority: u8| {
        format!("[types]\nstrict = false\n[types.mail]\npriority = {priority}\nqueue = \"post\"\n")
    };
    let mut server = Server::start(store.options(BINARY).config(&entry(10)));
    let priority = |server: &Server| -> Value {
        server.admin().get("/api/v1/types/mail").data()["priority"].clone()
    };
    assert_eq!(priority(&server), 10);
    let by_hand = |server: &Server, priority: u8| {
        let wish = json!({ "priority": priority, "queue": "post" });
        server.admin().put("/api/v1/types/mail", &wish).data();
    };
    by_hand(&server, 99);
    for _ in 0..2 {
        server.restart();
        assert_eq!(priority(&server), 99, "the file said nothing new");
    }
    let log = server.log();
    assert!(log.contains("a type was changed through the API"), "{log}");
    // Another node with the same file changes nothing either; one with a new entry does.
    let path = server.directory().join("config.toml");
    std::fs::write(&path, entry(20)).unwrap();
    server.restart();
    assert_eq!(priority(&server), 20);
    assert!(server.log().contains("a type's entry has changed"));
    by_hand(&server, 5);
    server.restart();
    assert_eq!(priority(&server), 5);
}

fn keys_hosts_and_strictness_are_as_the_file_says(store: Store) {
    let config = "[server]\nhosts = [\"jobs.example.org\"]\n\
        [strict]\nidempotency_key = true\ntrace_id = true\n\
        [idempotency]\nwindow = \"1s\"\n[types]\nstrict = false\n";
    let server =
        Server::start(store.options(BINARY).config(config).env("MAINSPRING_TRACE_ID", "t"));
    let traced = |method: &str, path: &str| {
        server.admin().request(method, path).header("x-trace-id", "mine")
    };
    let wish = json!({ "job_type": "t", "payload": 1 });
    let bare = server.admin().request("POST", "/api/v1/jobs").json(&wish);
    assert_eq!(server.send(&bare).refusal(), (400, "TRACE_ID_REQUIRED".to_owned()));
    let keyless = traced("POST", "/api/v1/jobs").json(&wish);
    assert_eq!(server.send(&keyless).refusal(), (400, "IDEMPOTENCY_MISSING".to_owned()));
    let submit =
        || server.send(&traced("POST", "/api/v1/jobs").header("idempotency-key", "k").json(&wish));
    let first = text(&submit().data(), "job_id");
    assert_eq!(text(&submit().data(), "job_id"), first);
    let pull = json!({ "worker_id": "w" });
    let pulled = server.send(&traced("POST", "/api/v1/work/pull").json(&pull)).data();
    server.admin().complete(&pulled["jobs"][0]);
    let second = eventually("the key is free a second after its job ended", || {
        let id = text(&submit().data(), "job_id");
        (id != first).then_some(id)
    });
    assert_ne!(second, first);
    if let Some(database) = server.database() {
        assert_eq!(database.sql("SELECT key_window_secs FROM mainspring.registry"), "1");
    }
    let status = |host: &str| {
        Request::new("GET", "/healthz").header("host", host).send(server.address).status
    };
    assert_eq!((status("jobs.example.org:7070"), status("other.example.org")), (200, 421));
}

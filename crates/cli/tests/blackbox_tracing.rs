//! Traces of other systems from outside: a `traceparent` goes with its job to whoever works on it,
//! through every contract and over restarts, and a malformed one does no harm.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![
    a_traceparent_goes_with_its_job_to_whoever_works_on_it,
    a_traceparent_is_taken_by_every_contract,
    a_malformed_traceparent_is_ignored,
];

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

fn start(store: Store) -> Server {
    let config = "[types]\nstrict = false\n[types.env]\ndomain = \"d\"\nmax_retries = 0\n\
        executor = { mode = \"process\", command = \"echo $TRACEPARENT\", shell = true }\n";
    Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).config(config))
}

fn person(server: &Server) -> Caller {
    server.caller("acme", "ann", &["submitter", "worker", "operator"])
}

fn submit(who: &Caller, path: &str, header: &str, body: &Value) -> Value {
    let request = who.request("POST", path).header("traceparent", header).json(body);
    let answer = request.send(who.address);
    assert!(answer.status < 300, "{}", answer.text());
    answer.json()
}

fn a_traceparent_goes_with_its_job_to_whoever_works_on_it(store: Store) {
    let mut server = start(store);
    let ann = person(&server);
    let job = |kind: &str| json!({ "job_type": kind, "payload": 1, "max_retries": 0 });
    let made = submit(&ann, "/api/v1/jobs", PARENT, &job("t"))["data"].clone();
    assert_eq!(made["traceparent"], PARENT);
    let id = text(&made, "job_id");
    server.restart();
    assert_eq!(ann.job(&id)["traceparent"], PARENT);
    let grant = ann.pull_one("t");
    assert_eq!((&grant["job_id"], &grant["traceparent"]), (&json!(id), &json!(PARENT)));
    // What is run again is run for the same reason.
    ann.fail(&grant, "BAD", false);
    let item = eventually("it is there", || items(ann.get("/api/v1/dlq/items").data()).pop());
    let path = format!("/api/v1/dlq/items/{}/requeue", text(&item, "dlq_id"));
    ann.poke(&path).data();
    assert_eq!(ann.pull_one("t")["traceparent"], PARENT);
    // A command of the server's own gets it, too.
    let made = submit(&ann, "/api/v1/jobs?wait_ms=30000", PARENT, &job("env"))["data"].clone();
    assert_eq!(text(&made, "result").trim(), PARENT);

    // The jobs of a batch may each have their own; where the body is silent, the header speaks.
    let jobs = json!({ "jobs": [
        { "job_type": "b", "payload": 1 },
        { "job_type": "b", "payload": 2, "traceparent": OTHER },
        { "job_type": "b", "payload": 3, "traceparent": "nonsense" },
    ] });
    submit(&ann, "/api/v1/jobs/batch", PARENT, &jobs);
    let mut pulled = ann.pull("b", 3);
    pulled.sort_by_key(|grant| grant["payload"].as_u64());
    let seen: Vec<&Value> = pulled.iter().map(|grant| &grant["traceparent"]).collect();
    assert_eq!(seen, [&json!(PARENT), &json!(OTHER), &json!(null)]);
    let plain = ann.submit_plain("p");
    assert!(ann.job(&plain).get("traceparent").is_none(), "nothing is made up");
}

fn a_traceparent_is_taken_by_every_contract(store: Store) {
    let server = start(store);
    let ann = person(&server);
    let task = json!({ "task_id": "t1", "schedule_type": "at",
        "scheduled_at": "2026-02-25T12:00:00Z" });
    let queued = json!({ "object_type": "memory", "object_id": "m1", "action": "verify",
        "run_at": "2030-01-01T00:00:00Z" });
    let task_of_jobs = json!({ "taskType": "env", "idempotencyKey": "k" });
    let ids = [
        text(&submit(&ann, "/tasks", PARENT, &task)["task"], "job_id"),
        text(&submit(&ann, "/jobs", PARENT, &task_of_jobs)["data"], "taskId"),
        text(&submit(&ann, "/scheduler/jobs", PARENT, &queued), "job_id"),
    ];
    for id in ids {
        assert_eq!(ann.job(&id)["traceparent"], PARENT, "{id}");
    }
}

fn a_malformed_traceparent_is_ignored(store: Store) {
    let server = start(store);
    let ann = person(&server);
    let body = json!({ "job_type": "m", "payload": 1 });
    for bad in ["x", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-0-0-0"] {
        let made = submit(&ann, "/api/v1/jobs", bad, &body)["data"].clone();
        assert!(made.get("traceparent").is_none(), "{made}");
    }
    // Two are none.
    let request = ann.request("POST", "/api/v1/jobs").json(&body);
    let twice = request.header("traceparent", PARENT).header("traceparent", OTHER);
    assert!(twice.send(ann.address).data().get("traceparent").is_none());
    // Of a later version what is known.
    let later = PARENT.replacen("00-", "42-", 1) + "-more";
    let made = submit(&ann, "/api/v1/jobs", &later, &body)["data"].clone();
    assert_eq!(made["traceparent"], PARENT);
}

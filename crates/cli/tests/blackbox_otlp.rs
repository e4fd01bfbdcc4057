//! Traces of jobs, as a collector gets them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(dead_code, reason = "the receiver is shared with other tests")]

#[path = "blackbox_executor/receiver.rs"]
mod receiver;

use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::both_stores;
use receiver::{Receiver, answer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

both_stores![
    a_collector_gets_a_trace_of_every_job_that_ended,
    a_collector_that_was_away_misses_nothing,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const ROLES: [&str; 4] = ["submitter", "worker", "operator", "viewer"];
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn start(store: Store, receiver: &Receiver) -> Server {
    let options = store
        .options(BINARY)
        .config("[types]\nstrict = false")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{}", receiver.address))
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sesame")
        .env("OTEL_SERVICE_NAME", "orders");
    Server::start(options)
}

/// Every span that a collector has taken.
fn spans(receiver: &Receiver) -> Vec<Value> {
    let of = |body: Value| {
        let scope = &body["resourceSpans"][0]["scopeSpans"][0];
        scope["spans"].as_array().unwrap().clone()
    };
    receiver.received().iter().flat_map(|it| of(it.json())).collect()
}

fn attribute(span: &Value, key: &str) -> Value {
    let found = span["attributes"].as_array().unwrap().iter().find(|it| it["key"] == key);
    found.map_or(Value::Null, |it| it["value"].clone())
}

/// The spans of one job, once they are there.
fn of_job(receiver: &Receiver, job: &str) -> Vec<Value> {
    let is_root = |span: &&Value| attribute(span, "mainspring.job_id")["stringValue"] == job;
    eventually("the trace comes", || {
        let all = spans(receiver);
        let root = all.iter().find(is_root)?.clone();
        let below = all.into_iter().filter(|it| it["parentSpanId"] == root["spanId"]);
        Some([root.clone()].into_iter().chain(below).collect())
    })
}

fn a_collector_gets_a_trace_of_every_job_that_ended(store: Store) {
    let receiver = Receiver::start(|_| answer("200 OK", "", "{}"));
    let server = start(store, &receiver);
    let ann: Caller = server.caller("acme", "ann", &ROLES);
    let submit = |wish: Value| ann.submit(&wish)["job_id"].as_str().unwrap().to_owned();
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let good = submit(json!({ "job_type": "mill", "payload": {}, "traceparent": parent }));
    ann.complete(&ann.pull_one("mill"));
    let told = of_job(&receiver, &good);
    let names: Vec<&str> = told.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["job mill", "submit", "pickup", "run"]);
    assert!(told.iter().all(|span| span["traceId"] == TRACE));
    assert_eq!(told[0]["parentSpanId"], PARENT, "it belongs to whoever submitted it");
    assert_eq!(attribute(&told[0], "mainspring.status")["stringValue"], "succeeded");
    assert_eq!(told[0]["status"], json!({}));
    let times = |span: &Value| {
        ["startTimeUnixNano", "endTimeUnixNano"]
            .map(|name| span[name].as_str().unwrap().parse::<u64>().unwrap())
    };
    let whole = times(&told[0]);
    assert!(
        told.iter()
            .map(times)
            .all(|[start, end]| whole[0] <= start && start <= end && end <= whole[1])
    );
    let request = &receiver.received()[0];
    assert_eq!(request.line, "POST /v1/traces HTTP/1.1");
    assert_eq!(request.header("x-key"), "sesame");
    let service = &request.json()["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(service["value"]["stringValue"], "orders");
    // A retry is another attempt; a failure says its code, and nothing that the worker wrote.
    let bad = submit(json!({ "job_type": "flaky", "payload": {}, "max_retries": 1 }));
    let first = ann.pull_one("flaky");
    let fail = |grant: &Value| {
        let why = json!({ "error_code": "BROKEN", "message": "secret paper", "retryable": true,
            "retry_delay_ms": 0 });
        ann.report("fail", grant, why);
    };
    fail(&first);
    fail(&eventually("it is tried again", || ann.pull("flaky", 1).pop()));
    let told = of_job(&receiver, &bad);
    let names: Vec<&str> = told.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["job flaky", "submit", "pickup", "run", "pickup", "run"]);
    assert_eq!(told[3]["status"], json!({ "code": 2, "message": "BROKEN" }));
    assert_eq!(told[0]["status"]["code"], 2);
    let ids: BTreeSet<&str> = told.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), told.len());
    assert!(
        !receiver
            .received()
            .iter()
            .any(|it| String::from_utf8_lossy(&it.body).contains("secret paper"))
    );
    // Whoever does not want it told is not told of.
    submit(
        json!({ "job_type": "quiet", "payload": {}, "traceparent": format!("00-{TRACE}-{PARENT}-00") }),
    );
    ann.complete(&ann.pull_one("quiet"));
    let last = submit(json!({ "job_type": "mill", "payload": {} }));
    ann.complete(&ann.pull_one("mill"));
    of_job(&receiver, &last);
    assert!(!spans(&receiver).iter().any(|span| span["name"] == "job quiet"));
}

fn a_collector_that_was_away_misses_nothing(store: Store) {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let receiver = Receiver::start(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => answer("503 Service Unavailable", "", ""),
        _ => answer("200 OK", "", "{}"),
    });
    let mut server = start(store, &receiver);
    let ann: Caller = server.caller("acme", "ann", &ROLES);
    let run = |ann: &Caller| {
        let job = ann.submit_plain("mill");
        ann.complete(&ann.pull_one("mill"));
        job
    };
    let first = run(&ann);
    eventually("it was tried", || (tries.load(Ordering::SeqCst) > 0).then_some(()));
    server.kill9();
    server.restart();
    let ann = Caller { address: server.admin().address, ..ann };
    let second = run(&ann);
    for job in [first, second] {
        of_job(&receiver, &job);
    }
}

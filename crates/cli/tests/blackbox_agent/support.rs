//! What the tests of the agent contract say most often.

#![allow(dead_code, reason = "each test file uses its own part")]

use mainspring_testkit::blackbox::Caller;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(crate) const EVERYTHING: [&str; 4] = ["submitter", "worker", "viewer", "operator"];
pub(crate) const FUTURE: &str = "2031-02-25T12:00:00Z";

/// The thirteen fields of the document's sample of a run.
pub(crate) const RUN_FIELDS: [&str; 13] = [
    "schemaVersion",
    "id",
    "type",
    "traceId",
    "parentTaskId",
    "prompt",
    "priority",
    "createdAt",
    "attempts",
    "timeout",
    "deferUntil",
    "sourceTriggerId",
    "triggeredAt",
];

/// The fields of its sample of a result.
pub(crate) const RESULT_FIELDS: [&str; 14] = [
    "schemaVersion",
    "id",
    "status",
    "resultType",
    "result",
    "error",
    "failureReason",
    "attempts",
    "traceId",
    "sourceTriggerId",
    "startedAt",
    "completedAt",
    "durationMs",
    "task",
];

/// The fields of the snapshot in it.
pub(crate) const SNAPSHOT_FIELDS: [&str; 8] = [
    "prompt",
    "priority",
    "createdAt",
    "timeout",
    "traceId",
    "parentTaskId",
    "sourceTriggerId",
    "triggeredAt",
];

/// The eight fields of its sample of the index.
pub(crate) const STATUS_FIELDS: [&str; 8] = [
    "schemaVersion",
    "id",
    "status",
    "completedAt",
    "resultId",
    "sourceTriggerId",
    "failureReason",
    "traceId",
];

pub(crate) fn fields(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// A good answer to a GET below `/agent`.
#[track_caller]
pub(crate) fn read(who: &Caller, path: &str) -> Value {
    let answer = who.get(&format!("/agent{path}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The answer to a POST below `/agent`, with this status.
#[track_caller]
pub(crate) fn send(who: &Caller, path: &str, body: &Value, status: u16) -> Value {
    let answer = who.post(&format!("/agent{path}"), body);
    assert_eq!(answer.status, status, "{}", answer.text());
    answer.json()
}

/// A new run of that name.
#[track_caller]
pub(crate) fn run(who: &Caller, id: &str, more: Value) -> Value {
    let mut body = json!({ "id": id, "prompt": format!("do {id}") });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send(who, "/runs", &body, 201)
}

/// What a worker is handed now.
#[track_caller]
pub(crate) fn pull(who: &Caller, more: Value) -> Vec<Value> {
    let mut body = json!({ "worker_id": "w-1", "limit": 100 });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut answer = send(who, "/pull", &body, 200);
    serde_json::from_value(answer["runs"].take()).unwrap()
}

/// The one thing that a worker is handed, at the latest in half a minute.
#[track_caller]
pub(crate) fn pull_one(who: &Caller) -> Value {
    let mut pulled = pull(who, json!({ "limit": 1, "wait_ms": 30_000 }));
    pulled.pop().expect("something within half a minute")
}

/// Reports on what was handed out; `noun` is `runs` or `plans`.
#[track_caller]
pub(crate) fn report(who: &Caller, noun: &str, granted: &Value, more: Value) -> Value {
    let mut body = json!({ "leaseToken": granted["leaseToken"] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    send(who, &format!("/{noun}/{}/result", granted["id"].as_str().unwrap()), &body, 200)
}

/// Status and code of a refusal of this contract.
#[track_caller]
pub(crate) fn refused(answer: &mainspring_testkit::blackbox::http::Response) -> (u16, String) {
    let body = answer.json();
    assert!(body["error"].is_string() && body["retryable"].is_boolean(), "{body}");
    (answer.status, body["code"].as_str().expect("a code").to_owned())
}

/// The ids of a list.
pub(crate) fn ids(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("a list").iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

//! What the tests of the task contract say most often.

#![allow(dead_code, reason = "each test file uses its own part")]

use mainspring_testkit::blackbox::Caller;
use mainspring_testkit::blackbox::caller::{items, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(crate) const EVERYTHING: [&str; 5] = ["submitter", "worker", "viewer", "operator", "internal"];
pub(crate) const PAST: &str = "2026-02-25T12:00:00Z";
pub(crate) const FUTURE: &str = "2031-02-25T12:00:00Z";

/// The 13 fields of the document's sample of a task.
pub(crate) const SAMPLE_FIELDS: [&str; 13] = [
    "task_id",
    "schedule_type",
    "state",
    "attempt",
    "max_retries",
    "timeout_ms",
    "idempotency_key",
    "last_error_code",
    "last_error_reason",
    "created_at",
    "updated_at",
    "started_at",
    "finished_at",
];

pub(crate) fn at(task_id: &str, scheduled_at: &str) -> Value {
    json!({ "task_id": task_id, "schedule_type": "at", "scheduled_at": scheduled_at })
}

pub(crate) fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// A new task, as it is answered.
#[track_caller]
pub(crate) fn created(who: &Caller, body: &Value) -> Value {
    let answer = who.post("/tasks", body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let mut answer = answer.json();
    assert_eq!(answer["idempotent_hit"], false);
    answer["task"].take()
}

#[track_caller]
pub(crate) fn task(who: &Caller, id: &str) -> Value {
    let answer = who.get(&format!("/tasks/{id}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[track_caller]
pub(crate) fn moves(who: &Caller, id: &str) -> Vec<Value> {
    let answer = who.get(&format!("/tasks/{id}/events"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    items(answer.json())
}

/// The states of a task by its events.
pub(crate) fn states(events: &[Value]) -> Vec<String> {
    let pair = |event: &Value| {
        format!("{}>{}", text(&event["payload"], "from_state"), text(&event["payload"], "to_state"))
    };
    events.iter().map(pair).collect()
}

pub(crate) fn transition(who: &Caller, id: &str, to: &str) -> (u16, Value) {
    let request = who.request("POST", &format!("/tasks/{id}/transition"));
    let request = request.header("x-internal-debug", "true").json(&json!({ "to_state": to }));
    let answer = request.send(who.address);
    (answer.status, answer.json())
}

#[track_caller]
pub(crate) fn told_no(answer: (u16, Value), status: u16, code: &str) -> Value {
    let (told, mut body) = answer;
    assert_eq!((told, body["error"]["code"].as_str()), (status, Some(code)), "{body}");
    let error = body["error"].take();
    assert!(error["message"].is_string() && error["retryable"].is_boolean(), "{error}");
    error
}

pub(crate) fn post(who: &Caller, path: &str, body: &Value) -> (u16, Value) {
    let answer = who.post(path, body);
    (answer.status, answer.json())
}

pub(crate) fn fields(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

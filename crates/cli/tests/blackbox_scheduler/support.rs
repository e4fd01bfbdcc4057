//! What the tests of `/scheduler` say most often.

#![allow(dead_code, reason = "each file of tests uses its own part")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::http::Response;
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store};
use serde_json::{Value, json};

/// Whoever does everything that a tenant has to do.
pub(crate) const EVERYTHING: [&str; 4] = ["submitter", "worker", "operator", "viewer"];
/// A day on which jobs of the tests are due: far ahead, so that only the callers' clock reaches it.
pub(crate) const DAY: &str = "2030-02-21";

/// One server per store for a whole file, whose workers may say what time it is.
pub(crate) fn server(servers: &'static PerStore, store: Store) -> &'static Server {
    let config = "[scheduler]\nallow_client_clock = true\n[types]\nstrict = false\n";
    servers.get(store, || {
        let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(config);
        options.arg("--internal-routes")
    })
}

/// An instant of [`DAY`].
pub(crate) fn at(time: &str) -> String {
    format!("{DAY}T{time}Z")
}

/// The wish for a job of [`DAY`].
pub(crate) fn wish(object: &str, action: &str, time: &str) -> Value {
    json!({
        "object_type": "memory", "object_id": object, "action": action, "run_at": at(time),
    })
}

/// With other or further fields.
pub(crate) fn with(mut wish: Value, more: Value) -> Value {
    if let (Some(wish), Value::Object(more)) = (wish.as_object_mut(), more) {
        wish.extend(more);
    }
    wish
}

/// Enqueues a job that must be new, and answers with its id.
#[track_caller]
pub(crate) fn enqueued(who: &Caller, wish: &Value) -> String {
    let made = who.post("/scheduler/jobs", wish);
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.json()["deduplicated"], false);
    text(&made.json(), "job_id")
}

/// Pulls at the end of [`DAY`].
#[track_caller]
pub(crate) fn pulled(who: &Caller, more: Value) -> Vec<Value> {
    let wish = with(json!({ "worker_id": "w-1", "now": at("23:59:59") }), more);
    jobs(&who.post("/scheduler/jobs/pull", &wish))
}

/// The jobs of an answer to a pull.
#[track_caller]
pub(crate) fn jobs(answer: &Response) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_value(answer.json()["jobs"].take()).expect("a list of jobs")
}

/// The ids of jobs.
pub(crate) fn ids(jobs: &[Value]) -> Vec<String> {
    jobs.iter().map(|job| text(job, "job_id")).collect()
}

/// One job as it stands.
#[track_caller]
pub(crate) fn job(who: &Caller, id: &str) -> Value {
    let found = who.get(&format!("/scheduler/jobs/{id}"));
    assert_eq!(found.status, 200, "{}", found.text());
    found.json()
}

/// Reports on a job: `verb` is `ack`, `fail` or `renew`.
pub(crate) fn report(who: &Caller, verb: &str, id: &str, body: &Value) -> Response {
    who.post(&format!("/scheduler/jobs/{id}/{verb}"), body)
}

/// Says what is to be known of a memory.
#[track_caller]
pub(crate) fn put(who: &Caller, object: &str, wish: &Value) -> Value {
    let told = who.put(&format!("/scheduler/objects/memory/{object}"), wish);
    assert_eq!(told.status, 200, "{}", told.text());
    told.json()
}

/// Opens or closes a gate.
#[track_caller]
pub(crate) fn gate(who: &Caller, name: &str, state: &str) {
    let told = who.put(&format!("/scheduler/gates/{name}"), &json!({ "state": state }));
    assert_eq!((told.status, &told.json()["state"]), (200, &json!(state)), "{}", told.text());
}

/// Status and code of a refusal.
#[track_caller]
pub(crate) fn no(answer: &Response) -> (u16, String) {
    (answer.status, text(&answer.json()["error"], "code"))
}

/// The codes of what holds a job.
#[track_caller]
pub(crate) fn held_by(who: &Caller, id: &str) -> Vec<String> {
    let told = who.get(&format!("/api/v1/jobs/{id}/explain")).data();
    let reasons = told["reasons"].as_array().expect("a list of reasons");
    reasons.iter().map(|reason| text(reason, "code")).collect()
}

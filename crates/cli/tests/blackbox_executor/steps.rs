//! What the tests of executors have in common.

#![allow(dead_code, reason = "each test file uses what it needs")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, Store, eventually};
use serde_json::{Value, json};

/// The registry that ships with the product.
pub(crate) const QUANT: &str = include_str!("../../../../examples/quant.toml");
/// A strategy performance analysis.
pub(crate) const ANALYZE: &str = "strategy_performance_analyze";
/// A risk notification.
pub(crate) const NOTIFY: &str = "risk_alert_notify";

/// Submits a task through the job orchestration contract.
#[track_caller]
pub(crate) fn submit(caller: &Caller, task_type: &str, key: &str, payload: Value) -> String {
    let wish = json!({ "taskType": task_type, "payload": payload, "idempotencyKey": key });
    let made = caller.post("/jobs", &wish).data();
    assert_eq!(made["status"], "queued", "the answer does not wait for the work: {made}");
    text(&made, "taskId")
}

/// The task once it has ended.
#[track_caller]
pub(crate) fn ended(caller: &Caller, id: &str) -> Value {
    eventually("the task ends", || {
        let task = caller.get(&format!("/jobs/{id}")).data();
        let is_over = ["succeeded", "failed", "cancelled"].contains(&task["status"].as_str()?);
        is_over.then_some(task)
    })
}

/// Submits a task and waits for its end.
#[track_caller]
pub(crate) fn done(caller: &Caller, task_type: &str, key: &str, payload: Value) -> Value {
    ended(caller, &submit(caller, task_type, key, payload))
}

/// The code of a task that failed, after checking that all that leads to the cause is told.
#[track_caller]
pub(crate) fn failed(caller: &Caller, task: &Value, mode: &str) -> String {
    assert_eq!(task["status"], "failed", "{task}");
    let id = text(task, "taskId");
    assert_eq!(task["executor"]["name"], mode, "{task}");
    let dispatch = text(&task["executor"], "dispatchId");
    assert!(dispatch.starts_with(&format!("{id}:")), "{task}");
    assert!(!text(task, "traceId").is_empty() && task["finishedAt"].is_string(), "{task}");
    assert!(!text(&task["error"], "message").is_empty(), "{task}");
    let job = caller.job(&id);
    let item = caller.get(&format!("/api/v1/dlq/items/{}", text(&job, "dlq_id"))).data();
    let context = &item["context_snapshot"];
    let worker = text(context, "worker_id");
    assert!(worker.starts_with(&format!("executor-{mode}-")), "{context}");
    assert_eq!(context["trace_id"], task["traceId"]);
    assert!(dispatch.starts_with(&text(context, "execution_key")), "{context}");
    text(&task["error"], "code")
}

/// How long something sleeps on this store, which is odd enough to be a name: both stores are
/// tested at the same time, and each looks only for its own.
pub(crate) fn odd(store: Store, seconds: &str) -> String {
    let run = std::process::id();
    match store {
        Store::Memory => format!("{seconds}{run}1"),
        Store::Postgres => format!("{seconds}{run}2"),
    }
}

/// How many processes `sleep` with this argument there are.
pub(crate) fn sleepers(name: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line == format!("sleep\0{name}\0").as_bytes()
    };
    ids.filter(is_it).count()
}

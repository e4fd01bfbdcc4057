//! Every move of the job orchestration contract, by hand and by callback: exactly the legal ones
//! pass, by whom they may, and nothing else changes anything.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Response, Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::sync::{Arc, Barrier};

both_stores![
    o20_of_all_pairs_of_states_exactly_the_legal_ones_pass,
    o19_owners_cannot_fake_a_callback,
    o20_what_waits_for_its_next_try_is_neither_started_nor_ended_by_hand,
    o20_a_failed_task_is_done_again_once_as_a_new_one,
];

const STATES: [&str; 5] = ["queued", "running", "succeeded", "failed", "cancelled"];

fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")))
}

#[track_caller]
fn submit(caller: &Caller, key: &str) -> String {
    let wish = json!({ "taskType": "moves", "payload": { "n": 1 }, "idempotencyKey": key });
    text(&caller.post("/jobs", &wish).data(), "taskId")
}

fn task(caller: &Caller, id: &str) -> Value {
    caller.get(&format!("/jobs/{id}")).data()
}

fn shift(caller: &Caller, id: &str, to: &str) -> Response {
    caller.post(&format!("/jobs/{id}/transition"), &json!({ "toStatus": to }))
}

fn refused(answer: &Response) -> (u16, String) {
    let whole = answer.json();
    assert_eq!(whole["success"], false, "{whole}");
    (answer.status, text(&whole["error"], "code"))
}

/// A task of hers that stands there, brought about by moves by hand or by a worker's reports.
fn task_in(state: &str, ann: &Caller, worker: &Caller, key: &str, is_by_hand: bool) -> String {
    let id = submit(ann, key);
    match (state, is_by_hand) {
        ("queued", _) => {}
        ("cancelled", _) => drop(ann.poke(&format!("/jobs/{id}/cancel")).data()),
        ("running", true) => drop(shift(worker, &id, "running").data()),
        (ended, true) => {
            shift(worker, &id, "running").data();
            shift(worker, &id, ended).data();
        }
        (_, false) => {
            let grant = worker.pull_one("moves");
            assert_eq!(text(&grant, "job_id"), id);
            match state {
                "succeeded" => drop(worker.complete(&grant)),
                "failed" => drop(worker.fail(&grant, "NO_PAPER", false)),
                _ => {}
            }
        }
    }
    assert_eq!(task(ann, &id)["status"], state);
    id
}

fn o20_of_all_pairs_of_states_exactly_the_legal_ones_pass(store: Store) {
    let (mut passed, mut refusals) = (Vec::new(), 0);
    for is_by_hand in [false, true] {
        // Each way has a tenant of its own, so that a worker finds exactly one job.
        for (from, to) in STATES.iter().flat_map(|from| STATES.map(|to| (*from, to))) {
            let tenant = format!("o20-{is_by_hand}-{from}-{to}");
            let ann = server(store).caller(&tenant, "ann", &["submitter"]);
            let worker = server(store).caller(&tenant, "wim", &["worker"]);
            let id = task_in(from, &ann, &worker, "k", is_by_hand);
            let before = ann.get(&format!("/jobs/{id}")).body;
            let who = if matches!(to, "queued" | "cancelled") { &ann } else { &worker };
            let answer = shift(who, &id, to);
            let is_legal = matches!(
                (from, to),
                ("queued", "running" | "cancelled")
                    | ("running", "succeeded" | "failed" | "cancelled")
                    | ("failed", "queued")
            );
            if is_legal {
                let after = answer.data();
                assert_eq!((answer.status, &after["status"]), (200, &json!(to)), "{from} {to}");
                passed.push((from, to));
                continue;
            }
            let told = refused(&answer);
            assert_eq!(told, (409, "INVALID_TRANSITION".into()), "{from} to {to}");
            assert_eq!(
                ann.get(&format!("/jobs/{id}")).body,
                before,
                "{from} to {to} left no trace"
            );
            refusals += 1;
        }
    }
    println!("{} moves passed, {refusals} were refused", passed.len());
    assert_eq!((passed.len(), refusals), (12, 38));
}

fn o19_owners_cannot_fake_a_callback(store: Store) {
    let server = server(store);
    let ann = server.caller("o19", "ann", &["submitter", "operator", "viewer", "approver"]);
    let worker = server.caller("o19", "wim", &["worker"]);
    let id = submit(&ann, "k");
    let grant = worker.pull_one("moves");
    for (who, caller) in [("the owner", &ann), ("an admin", &server.admin())] {
        for to in ["running", "succeeded", "failed"] {
            let told = refused(&shift(caller, &id, to));
            assert_eq!(told, (403, "JOB_ACCESS_DENIED".into()), "{who} {to}");
        }
    }
    // Nor is there a field for it.
    for more in [json!({ "result": 1 }), json!({ "error": { "code": "X" } })] {
        let mut wish = json!({ "toStatus": "cancelled" });
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let told = refused(&ann.post(&format!("/jobs/{id}/transition"), &wish));
        assert_eq!(told, (422, "VALIDATION_ERROR".into()));
    }
    assert_eq!(task(&ann, &id)["status"], "running");
    worker.complete(&grant);
    assert_eq!(task(&ann, &id)["status"], "succeeded");
}

fn o20_what_waits_for_its_next_try_is_neither_started_nor_ended_by_hand(store: Store) {
    let ann = server(store).caller("o20-next", "ann", &["submitter"]);
    let worker = server(store).caller("o20-next", "wim", &["worker"]);
    let id = submit(&ann, "k");
    let grant = worker.pull_one("moves");
    let more = json!({ "retryable": true, "retry_delay_ms": 600_000 });
    assert_eq!(worker.report("fail", &grant, more)["status"], "retrying");
    let before = ann.get(&format!("/jobs/{id}")).body;
    for to in ["running", "succeeded", "failed", "queued"] {
        let who = if to == "queued" { &ann } else { &worker };
        assert_eq!(refused(&shift(who, &id, to)), (409, "INVALID_TRANSITION".into()), "{to}");
    }
    assert_eq!(ann.get(&format!("/jobs/{id}")).body, before);
    assert_eq!(shift(&ann, &id, "cancelled").data()["status"], "cancelled");
    assert_eq!(task(&ann, &id)["executor"]["dispatchId"], format!("{id}:0:1"));
}

fn o20_a_failed_task_is_done_again_once_as_a_new_one(store: Store) {
    let ann = server(store).caller("o20-again", "ann", &["submitter"]);
    let worker = server(store).caller("o20-again", "wim", &["worker"]);
    let old = task_in("failed", &ann, &worker, "k", false);
    // However many ask at once, there is one new task.
    let barrier = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (ann, old, barrier) = (ann.clone(), old.clone(), barrier.clone());
            std::thread::spawn(move || {
                barrier.wait();
                ann.poke(&format!("/jobs/{old}/retry"))
            })
        })
        .collect();
    let answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let (good, bad): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((good.len(), bad.len()), (1, 7));
    for answer in bad {
        assert_eq!(refused(answer), (409, "INVALID_TRANSITION".into()));
    }
    let new = good[0].data();
    let id = text(&new, "taskId");
    assert_ne!(id, old);
    assert_eq!((&new["status"], &new["retryOf"]), (&json!("queued"), &json!(old)));
    for nothing in ["result", "error", "executor", "startedAt", "finishedAt", "retriedAs"] {
        assert_eq!(new[nothing], Value::Null, "{nothing}");
    }
    assert_eq!((&new["payload"], &new["userId"]), (&json!({ "n": 1 }), &json!("ann")));
    // The old one keeps its history and names its successor, in a list, too.
    let listed: Vec<Value> = ann.get("/jobs").data().as_array().unwrap().clone();
    for told in [task(&ann, &old), listed[0].clone()] {
        assert_eq!((&told["taskId"], &told["status"]), (&json!(old), &json!("failed")));
        assert_eq!((&told["retriedAs"], &told["error"]["code"]), (&json!(id), &json!("NO_PAPER")));
    }
    assert_eq!(listed[1]["retryOf"], json!(old));
    let grant = worker.pull_one("moves");
    assert_eq!(text(&grant, "job_id"), id);
    worker.complete(&grant);
    assert_eq!(task(&ann, &id)["status"], "succeeded");
    for verb in ["retry", "cancel"] {
        let told = refused(&ann.poke(&format!("/jobs/{old}/{verb}")));
        assert_eq!(told, (409, "INVALID_TRANSITION".into()), "{verb}");
    }
    // The key still names the first.
    assert_eq!(submit(&ann, "k"), old);
    // It is told who did it, once.
    let viewer = server(store).caller("o20-again", "vic", &["viewer"]);
    let lines = items(viewer.get("/api/v1/audit?object_type=dlq_item").data());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        (&lines[0]["actor"]["user_id"], &lines[0]["outcome"]),
        (&json!("ann"), &json!("done"))
    );
    assert_eq!(lines[0]["evidence_refs"], json!([old]));
}

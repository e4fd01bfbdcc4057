//! Runs of the agent contract from outside: the document's samples, attempts, results, the index.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_agent/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use support::{
    EVERYTHING, FUTURE, RESULT_FIELDS, RUN_FIELDS, SNAPSHOT_FIELDS, STATUS_FIELDS, fields, ids,
    pull, pull_one, read, refused, report, run, send,
};

both_stores![
    a01_a03_the_documents_run_is_accepted_and_reproduced_field_for_field,
    a02_attempts_are_counted_before_a_run_is_queued_again,
    a02_a_retry_waits_as_long_as_it_says,
    a04_a_deferred_run_is_not_handed_out_before_its_time,
    a10_a11_a14_trace_and_trigger_come_through_to_result_and_index,
    a11_every_type_of_result_and_every_reason_of_failure_is_kept,
    a11_a_result_is_never_taken_as_new_input,
    a11_time_cancel_and_lost_workers_end_runs_as_the_document_says,
    a01_priority_orders_runs_and_three_of_a_tenant_run_at_a_time,
    a01_names_are_unique_in_a_tenant_and_strangers_learn_nothing,
    a14_the_index_is_exact_page_by_page,
    a01_a11_a14_the_worked_example_works_as_written,
];

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    let options = || store.options(env!("CARGO_BIN_EXE_mainspring"));
    SERVERS.get(store, || options().config("[agent]\nconcurrency = 100\n[types]\nstrict = true\n"))
}

/// The document's sample, with its dots filled in.
fn sample() -> Value {
    json!({
        "schemaVersion": 2,
        "id": "task-001",
        "type": "oneshot",
        "traceId": "trace-001",
        "parentTaskId": "planner-001",
        "prompt": "tidy \"up\"\n",
        "priority": 5,
        "createdAt": "2026-02-25T12:00:00.000000Z",
        "attempts": 0,
        "timeout": null,
        "deferUntil": null,
        "sourceTriggerId": "trigger-001",
        "triggeredAt": "2026-02-25T11:59:59.000000Z",
    })
}

fn only(value: &Value, names: &[&str]) -> Value {
    Value::Object(names.iter().map(|name| ((*name).to_owned(), value[*name].clone())).collect())
}

fn a01_a03_the_documents_run_is_accepted_and_reproduced_field_for_field(store: Store) {
    let ann = server(store).caller("a01", "ann", &EVERYTHING);
    let made = send(&ann, "/runs", &sample(), 201);
    for shown in [&made, &read(&ann, "/runs/task-001")] {
        assert_eq!(only(shown, &RUN_FIELDS), sample());
        assert_eq!(shown["status"], "queue");
    }
    assert!(fields(&made).is_superset(&BTreeSet::from(RUN_FIELDS)));
    // The same job, seen by the native contract.
    let job = ann.job(&text(&made, "jobId"));
    assert_eq!(
        (&job["subject"], &job["job_type"], &job["trace_id"]),
        (&json!("run:task-001"), &json!("agent_run"), &json!("trace-001"))
    );
    // What a worker is handed has the same thirteen fields, and a lease.
    let granted = pull_one(&ann);
    let mut running = sample();
    running["attempts"] = json!(1);
    assert_eq!(only(&granted, &RUN_FIELDS), running);
    assert_eq!(
        (text(&granted, "status"), granted["leaseToken"].is_string()),
        ("running".into(), true)
    );
    let beat = json!({ "worker_id": "w-1", "lease_ms": 60_000, "items": [
        { "job_id": granted["jobId"], "lease_token": granted["leaseToken"] }] });
    let renewed = ann.post("/api/v1/work/heartbeat", &beat).data();
    assert!(renewed["items"][0]["lease_expires_at"].is_string(), "{renewed}");

    // Version 1 is what has no version; version 2 is what is shown.
    let old = json!({ "id": "old", "prompt": "as ever" });
    let shown = send(&ann, "/runs", &old, 201);
    assert_eq!(
        only(&shown, &["schemaVersion", "type", "priority", "attempts", "timeout", "deferUntil"]),
        json!({ "schemaVersion": 2, "type": "oneshot", "priority": 5, "attempts": 0,
            "timeout": null, "deferUntil": null })
    );
    assert!(shown["createdAt"].is_string() && shown["traceId"].is_string());
    let refuse = |more: Value| {
        let mut body = json!({ "id": "bad", "prompt": "p" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        refused(&ann.post("/agent/runs", &body))
    };
    for bad in [
        json!({ "schemaVersion": 3 }),
        json!({ "priority": 11 }),
        json!({ "prompt": " " }),
        json!({ "timeout": 0 }),
        json!({ "deferUntil": "tomorrow" }),
        json!({ "deferUntil": "2031-02-25T12:00:00+08:00" }),
        json!({ "id": "a\u{0}b" }),
        json!({ "id": "x".repeat(161) }),
        json!({ "id": made["jobId"] }),
        json!({ "maxAttempts": 0 }),
        json!({ "schemaVersion": 2, "type": "recurring" }),
    ] {
        assert_eq!(refuse(bad.clone()), (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
}

fn a02_attempts_are_counted_before_a_run_is_queued_again(store: Store) {
    let ann = server(store).caller("a02", "ann", &EVERYTHING);
    let attempts = |id: &str| {
        let shown = read(&ann, &format!("/runs/{id}"));
        (text(&shown, "status"), shown["attempts"].as_u64().unwrap())
    };
    run(&ann, "twice", json!({ "maxAttempts": 2 }));
    assert_eq!(attempts("twice"), ("queue".into(), 0));
    let first = pull_one(&ann);
    assert_eq!((first["attempts"].as_u64(), attempts("twice").1), (Some(1), 1));
    let told = report(&ann, "runs", &first, json!({ "status": "failed", "error": "no luck" }));
    assert_eq!((&told["status"], &told["attempts"]), (&json!("queue"), &json!(2)));
    assert_eq!(attempts("twice"), ("queue".into(), 2));
    // It is in no index, and has no result, before it is final.
    assert_eq!(ids(&read(&ann, "/task-status")), Vec::<String>::new());
    assert_eq!(refused(&ann.get("/agent/runs/twice/result")), (409, "RUN_NOT_ENDED".into()));
    // The lease of the first attempt is worth nothing any more.
    let body = json!({ "status": "done", "leaseToken": first["leaseToken"] });
    assert_eq!(refused(&ann.post("/agent/runs/twice/result", &body)).0, 409);
    let second = pull_one(&ann);
    assert_eq!(second["attempts"], 2);
    report(&ann, "runs", &second, json!({ "status": "failed", "error": "again" }));
    assert_eq!(attempts("twice"), ("failed".into(), 2));
    assert_eq!(read(&ann, "/runs/twice/result")["attempts"], 2);
    assert_eq!(ids(&read(&ann, "/task-status")), ["twice"]);
    // One attempt is all that a run has that does not ask for more.
    run(&ann, "once", json!({}));
    let only_one = pull_one(&ann);
    report(&ann, "runs", &only_one, json!({ "status": "failed" }));
    assert_eq!(attempts("once"), ("failed".into(), 1));
    // A run that was queued elsewhere for its second try goes on from there.
    run(&ann, "moved", json!({ "attempts": 2, "maxAttempts": 3 }));
    assert_eq!(attempts("moved"), ("queue".into(), 2));
    let moved = pull_one(&ann);
    assert_eq!(moved["attempts"], 2);
    report(&ann, "runs", &moved, json!({ "status": "failed" }));
    assert_eq!(attempts("moved"), ("queue".into(), 3));
    let last = pull_one(&ann);
    report(&ann, "runs", &last, json!({ "status": "failed" }));
    assert_eq!(attempts("moved"), ("failed".into(), 3));
}

fn a02_a_retry_waits_as_long_as_it_says(store: Store) {
    let ann = server(store).caller("a02w", "ann", &EVERYTHING);
    run(&ann, "slow", json!({ "maxAttempts": 2, "backoffMs": 600_000 }));
    let granted = pull_one(&ann);
    let told = report(&ann, "runs", &granted, json!({ "status": "failed" }));
    assert_eq!(told["status"], "queue");
    let shown = read(&ann, "/runs/slow");
    let due: jiff::Timestamp = text(&shown, "deferUntil").parse().unwrap();
    let job = ann.job(&text(&shown, "jobId"));
    let failed: jiff::Timestamp = text(&job, "updated_at").parse().unwrap();
    assert_eq!((due - failed).total(jiff::Unit::Second).unwrap(), 600.0, "no jitter");
    assert_eq!(pull(&ann, json!({})), Vec::<Value>::new());
}

fn a04_a_deferred_run_is_not_handed_out_before_its_time(store: Store) {
    let ann = server(store).caller("a04", "ann", &EVERYTHING);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(1_500);
    run(&ann, "far", json!({ "deferUntil": FUTURE, "priority": 10 }));
    run(&ann, "soon", json!({ "deferUntil": soon.to_string() }));
    run(&ann, "past", json!({ "deferUntil": "2026-02-25T12:00:00Z", "priority": 0 }));
    assert_eq!(pull_one(&ann)["id"], "past");
    let granted = pull_one(&ann);
    assert_eq!(granted["id"], "soon");
    let job = ann.job(&text(&granted, "jobId"));
    let started: jiff::Timestamp = text(&job, "started_at").parse().unwrap();
    assert!(started >= soon, "{started} {soon}");
    assert_eq!(pull(&ann, json!({})), Vec::<Value>::new());
    let far = read(&ann, "/runs/far");
    assert_eq!(
        (&far["deferUntil"], &far["attempts"]),
        (&json!("2031-02-25T12:00:00.000000Z"), &json!(0))
    );
}

fn a10_a11_a14_trace_and_trigger_come_through_to_result_and_index(store: Store) {
    let ann = server(store).caller("a10", "ann", &EVERYTHING);
    send(&ann, "/runs", &sample(), 201);
    let granted = pull_one(&ann);
    let told = json!({ "status": "done", "resultType": "code_change",
        "result": { "files": ["a.rs"], "note": "ok" } });
    // A repeat of the report is answered again; another outcome is not taken.
    for _ in 0..2 {
        assert_eq!(report(&ann, "runs", &granted, told.clone())["status"], "done");
    }
    let body = json!({ "status": "failed", "leaseToken": granted["leaseToken"] });
    let answer = ann.post("/agent/runs/task-001/result", &body);
    assert_eq!(refused(&answer), (409, "REPORT_CONFLICT".into()));

    let result = read(&ann, "/runs/task-001/result");
    assert_eq!(fields(&result), BTreeSet::from(RESULT_FIELDS));
    let at = |field: &str| text(&result, field).parse::<jiff::Timestamp>().unwrap();
    let took = (at("completedAt") - at("startedAt")).total(jiff::Unit::Millisecond).unwrap();
    assert_eq!(result["durationMs"].as_f64().unwrap(), took.floor());
    assert_eq!(
        only(
            &result,
            &[
                "schemaVersion",
                "id",
                "status",
                "resultType",
                "result",
                "error",
                "failureReason",
                "attempts",
                "traceId",
                "sourceTriggerId"
            ]
        ),
        json!({ "schemaVersion": 2, "id": "task-001", "status": "done",
            "resultType": "code_change", "result": { "files": ["a.rs"], "note": "ok" },
            "error": null, "failureReason": null, "attempts": 1, "traceId": "trace-001",
            "sourceTriggerId": "trigger-001" })
    );
    assert_eq!(fields(&result["task"]), BTreeSet::from(SNAPSHOT_FIELDS));
    assert_eq!(result["task"], only(&sample(), &SNAPSHOT_FIELDS));

    let line = read(&ann, "/task-status/task-001");
    assert_eq!(fields(&line), BTreeSet::from(STATUS_FIELDS));
    let expected = json!({ "schemaVersion": 2, "id": "task-001", "status": "done",
        "completedAt": result["completedAt"], "resultId": "task-001",
        "sourceTriggerId": "trigger-001", "failureReason": null, "traceId": "trace-001" });
    assert_eq!(line, expected);
    let list = read(&ann, "/task-status");
    assert_eq!((&list["items"], &list["total"]), (&json!([expected]), &json!(1)));
    let of_trigger = read(&ann, "/runs?sourceTriggerId=trigger-001&traceId=trace-001");
    assert_eq!(ids(&of_trigger), ["task-001"]);
    assert_eq!(ids(&read(&ann, "/runs?sourceTriggerId=trigger-002")), Vec::<String>::new());
}

fn a11_every_type_of_result_and_every_reason_of_failure_is_kept(store: Store) {
    let ann = server(store).caller("a11", "ann", &EVERYTHING);
    for kind in ["text", "code_change", "analysis", "summary"] {
        run(&ann, kind, json!({}));
        let granted = pull_one(&ann);
        let value = json!({ "of": kind, "deep": [1, { "two": null }] });
        let told = json!({ "status": "done", "resultType": kind, "result": value });
        report(&ann, "runs", &granted, told);
        let result = read(&ann, &format!("/runs/{kind}/result"));
        assert_eq!((&result["resultType"], &result["result"]), (&json!(kind), &value));
    }
    for reason in ["timeout", "error", "killed"] {
        run(&ann, reason, json!({}));
        let granted = pull_one(&ann);
        let told = json!({ "status": "failed", "failureReason": reason, "error": "so it was",
            "result": "half of it" });
        report(&ann, "runs", &granted, told);
        let result = read(&ann, &format!("/runs/{reason}/result"));
        assert_eq!(
            only(&result, &["status", "failureReason", "error", "resultType", "result"]),
            json!({ "status": "failed", "failureReason": reason, "error": "so it was",
                "resultType": "text", "result": "half of it" })
        );
        assert_eq!(read(&ann, &format!("/task-status/{reason}"))["failureReason"], reason);
    }
    run(&ann, "wrong", json!({}));
    let granted = pull_one(&ann);
    for bad in [
        json!({ "status": "succeeded" }),
        json!({ "status": "done", "resultType": "poem" }),
        json!({ "status": "failed", "failureReason": "bad luck" }),
        json!({ "status": "done", "failureReason": "error" }),
    ] {
        let mut body = bad.clone();
        body["leaseToken"] = granted["leaseToken"].clone();
        let answer = ann.post("/agent/runs/wrong/result", &body);
        assert_eq!(refused(&answer), (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
    let body = json!({ "status": "done" });
    assert_eq!(refused(&ann.post("/agent/runs/wrong/result", &body)).0, 400, "no lease token");
    let body = json!({ "status": "done", "leaseToken": "1.00000000000000000000000000000000" });
    for id in ["wrong", "no-such-run"] {
        let answer = ann.post(&format!("/agent/runs/{id}/result"), &body);
        assert_eq!(refused(&answer), (409, "LEASE_LOST".into()), "{id}");
    }
    // What the server measures itself may come along, and is not believed.
    let mut whole = json!({ "schemaVersion": 2, "id": "wrong", "status": "done", "attempts": 7,
        "resultType": "text", "result": "ok", "startedAt": "2020-01-01T00:00:00Z",
        "completedAt": "2020-01-01T00:00:01Z", "durationMs": 1000, "traceId": "t",
        "sourceTriggerId": "s", "task": { "prompt": "another" } });
    whole["leaseToken"] = granted["leaseToken"].clone();
    send(&ann, "/runs/wrong/result", &whole, 200);
    let kept = read(&ann, "/runs/wrong/result");
    assert_eq!((&kept["attempts"], &kept["task"]["prompt"]), (&json!(1), &json!("do wrong")));
    assert!(text(&kept, "completedAt").as_str() > "2026");
}

fn a11_a_result_is_never_taken_as_new_input(store: Store) {
    let ann = server(store).caller("a11i", "ann", &EVERYTHING);
    run(&ann, "task-001", json!({}));
    let granted = pull_one(&ann);
    report(&ann, "runs", &granted, json!({ "status": "failed" }));
    let result = read(&ann, "/runs/task-001/result");
    let mut other = result.clone();
    other["id"] = json!("task-002");
    for body in [&result, &other] {
        let answer = ann.post("/agent/runs", body);
        assert_eq!(refused(&answer), (400, "REQ_VALIDATION_FAILED".into()));
    }
    // Nor does the snapshot bring the run back.
    let mut again = result["task"].clone();
    again["id"] = json!("task-001");
    let answer = send(&ann, "/runs", &again, 200);
    assert_eq!((&answer["idempotentHit"], &answer["status"]), (&json!(true), &json!("failed")));
    assert_eq!(pull(&ann, json!({})), Vec::<Value>::new());
    assert_eq!(read(&ann, "/runs")["total"], 1);
}

fn a11_time_cancel_and_lost_workers_end_runs_as_the_document_says(store: Store) {
    let ann = server(store).caller("a11t", "ann", &EVERYTHING);
    let ended = |id: &str| {
        let result = eventually("the run ends", || {
            let answer = ann.get(&format!("/agent/runs/{id}/result"));
            (answer.status == 200).then(|| answer.json())
        });
        (text(&result, "status"), text(&result, "failureReason"), result["error"].is_string())
    };
    run(&ann, "late", json!({ "timeout": 1 }));
    pull_one(&ann);
    run(&ann, "lost", json!({}));
    assert_eq!(pull(&ann, json!({ "lease_ms": 100 }))[0]["id"], "lost");
    assert_eq!(ended("late"), ("failed".into(), "timeout".into(), true));
    assert_eq!(ended("lost"), ("failed".into(), "killed".into(), true));
    // A run is cancelled whether it waits or runs, and once.
    for id in ["waits", "runs"] {
        run(&ann, id, json!({}));
        if id == "runs" {
            assert_eq!(pull_one(&ann)["id"], "runs");
        }
        let answer = ann.poke(&format!("/agent/runs/{id}/cancel")).json();
        assert_eq!((&answer["success"], &answer["status"]), (&json!(true), &json!("failed")));
        assert_eq!(ended(id), ("failed".into(), "killed".into(), true));
        let again = ann.poke(&format!("/agent/runs/{id}/cancel"));
        assert_eq!(refused(&again), (409, "JOB_CANCEL_CONFLICT".into()));
    }
}

fn a01_priority_orders_runs_and_three_of_a_tenant_run_at_a_time(store: Store) {
    let plain = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let ann = plain.caller("lanes", "ann", &EVERYTHING);
    for (id, priority) in [("p0", 0), ("p5", 5), ("p10", 10), ("p5b", 5), ("p9", 9)] {
        run(&ann, id, json!({ "priority": priority }));
    }
    let names =
        |pulled: &[Value]| -> Vec<String> { pulled.iter().map(|run| text(run, "id")).collect() };
    let first = pull(&ann, json!({}));
    assert_eq!(names(&first), ["p10", "p9", "p5"], "three at a time");
    assert_eq!(pull(&ann, json!({})), Vec::<Value>::new());
    // Another tenant's runs are not counted.
    let bob = plain.caller("other", "bob", &EVERYTHING);
    run(&bob, "p0", json!({}));
    assert_eq!(pull(&bob, json!({})).len(), 1);
    report(&ann, "runs", &first[0], json!({ "status": "done" }));
    assert_eq!(names(&pull(&ann, json!({}))), ["p5b"]);
    // Types that belong to the contract are no entries of the registry's list.
    assert_eq!(plain.admin().get("/api/v1/types").data()["items"], json!([]));
    let spec = plain.admin().get("/api/v1/types/agent_run").data();
    assert_eq!((&spec["concurrency_limit"], &spec["max_retries"]), (&json!(3), &json!(0)));
}

fn a01_names_are_unique_in_a_tenant_and_strangers_learn_nothing(store: Store) {
    let server = server(store);
    let ann = server.caller("own", "ann", &["submitter"]);
    let bob = server.caller("own", "bob", &["submitter"]);
    let eve = server.caller("else", "eve", &EVERYTHING);
    let made = run(&ann, "mine", json!({ "priority": 7 }));
    let hit =
        send(&ann, "/runs", &json!({ "id": "mine", "prompt": "do mine", "priority": 7 }), 200);
    assert_eq!((&hit["idempotentHit"], &hit["jobId"]), (&json!(true), &made["jobId"]));
    for other in [
        json!({ "id": "mine", "prompt": "do something else", "priority": 7 }),
        json!({ "id": "mine", "prompt": "do mine" }),
    ] {
        let answer = ann.post("/agent/runs", &other);
        assert_eq!(refused(&answer), (409, "IDEMPOTENCY_CONFLICT".into()));
        let answer = ann.post("/agent/plans", &json!({ "id": "mine", "prompt": "do mine" }));
        assert_eq!(refused(&answer).0, 409, "plans and runs share their names");
    }
    // A colleague who may not read it learns that it is there, and no more.
    let told =
        send(&bob, "/runs", &json!({ "id": "mine", "prompt": "do mine", "priority": 7 }), 200);
    assert_eq!(told, json!({ "id": "mine", "status": "queue", "idempotentHit": true }));
    // In another tenant the name is another's.
    assert_ne!(run(&eve, "mine", json!({}))["jobId"], made["jobId"]);
    let job = text(&made, "jobId");
    for path in ["", "/result"] {
        let unknown = bob.get(&format!("/agent/runs/nobodys{path}"));
        for (who, id) in [(&bob, "mine"), (&bob, job.as_str()), (&eve, job.as_str())] {
            let answer = who.get(&format!("/agent/runs/{id}{path}"));
            assert_eq!((answer.status, &answer.body), (403, &unknown.body), "{id}{path}");
        }
    }
    let unknown = bob.poke("/agent/runs/nobodys/cancel");
    assert_eq!((unknown.status, unknown.body), {
        let foreign = bob.poke("/agent/runs/mine/cancel");
        (403, foreign.body)
    });
    assert_eq!(read(&ann, "/runs/mine")["status"], "queue");
    assert_eq!(bob.get("/agent/task-status/mine").status, 403);
    assert_eq!(ids(&read(&bob, "/runs")), Vec::<String>::new());
    assert_eq!(bob.post("/agent/pull", &json!({ "worker_id": "w" })).status, 403);
    assert_eq!(ann.post("/agent/import", &json!({ "place": "queue", "items": [] })).status, 403);
}

fn a14_the_index_is_exact_page_by_page(store: Store) {
    let ann = server(store).caller("a14", "ann", &EVERYTHING);
    let mut expected = Vec::new();
    for at in 0..7 {
        let id = format!("r{at}");
        run(&ann, &id, json!({}));
        match at % 4 {
            0 => {
                report(&ann, "runs", &pull_one(&ann), json!({ "status": "done" }));
            }
            1 => {
                report(&ann, "runs", &pull_one(&ann), json!({ "status": "failed" }));
            }
            2 => {
                ann.poke(&format!("/agent/runs/{id}/cancel"));
            }
            // One that has not ended is not there.
            _ => {
                ann.poke(&format!("/agent/runs/{id}/cancel"));
                run(&ann, &format!("waits{at}"), json!({ "deferUntil": FUTURE }));
            }
        }
        expected.insert(0, id);
    }
    let mut seen = Vec::new();
    let mut path = "/task-status?limit=3".to_owned();
    loop {
        let page = read(&ann, &path);
        assert_eq!(page["total"], 7);
        seen.extend(ids(&page));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        assert_eq!(page["items"].as_array().unwrap().len(), 3, "full unless it is the last");
        path = format!("/task-status?limit=3&cursor={cursor}");
    }
    assert_eq!(seen, expected);
    assert_eq!(ids(&read(&ann, "/task-status?status=done")), ["r4", "r0"]);
    assert_eq!(read(&ann, "/task-status?status=failed")["total"], 5);
    assert_eq!(ids(&read(&ann, "/runs?status=queue")), ["waits3"]);
    let bad = ann.get("/agent/task-status?cursor=00");
    assert_eq!(refused(&bad), (400, "CURSOR_INVALID".into()));
}

const PAGES: [&str; 2] = [
    include_str!("../../../docs/contracts/agent.md"),
    include_str!("../../../docs/contracts/agent.zh-CN.md"),
];

/// The shell blocks that follow a mark.
fn blocks(page: &str) -> Vec<String> {
    let marked = page.split("<!-- test -->\n```sh\n").skip(1);
    let block = |rest: &str| {
        let lines = rest.split("```").next().unwrap().lines();
        lines.filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    };
    marked.map(block).collect()
}

fn a01_a11_a14_the_worked_example_works_as_written(store: Store) {
    let [english, chinese] = PAGES.map(blocks);
    assert_eq!(english, chinese, "both pages have the same commands");
    assert_eq!(english.len(), 3);
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let place = server.directory().join("reader");
    std::fs::create_dir_all(&place).unwrap();
    let ann = server.caller("reader", "ann", &EVERYTHING);
    let script = english.join("\n").replace("127.0.0.1:7070", &server.address.to_string());
    let ran = Command::new("sh")
        .args(["-e", "-u", "-c", &script])
        .env("MAINSPRING_TOKEN", &ann.token)
        .current_dir(&place)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(ran.status.success(), "{}{}", told(&ran.stdout), told(&ran.stderr));
    let kept = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(place.join(name)).unwrap()).unwrap()
    };
    assert_eq!(fields(&kept("result.json")), BTreeSet::from(RESULT_FIELDS));
    assert_eq!(kept("result.json")["result"], json!({ "files": ["a.rs"] }));
    assert_eq!(kept("plan.json")["status"], "needs_input");
    let done = kept("done.json");
    assert_eq!((&done["status"], &done["answer"]), (&json!("done"), &json!("blue")));
    assert_eq!(done["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(ids(&kept("index.json")), ["plan-001", "task-001"]);
}

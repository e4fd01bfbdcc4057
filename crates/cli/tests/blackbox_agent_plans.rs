//! Plans of the agent contract from outside: what they make, what they ask, and how they end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_agent/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use support::{EVERYTHING, ids, pull, pull_one, read, refused, report, run, send};

both_stores![
    a12_a_plan_that_is_done_makes_its_runs_all_or_none,
    a12_a_report_that_is_repeated_makes_nothing_twice,
    a12_a13_a_question_waits_for_its_answer_and_is_in_no_index,
    a12_the_default_counts_at_the_deadline_and_without_one_the_plan_ends,
    a12_a13_a_question_outlives_a_kill_and_is_answered_on_the_command_line,
    a12_a_plan_that_fails_is_told_of_and_never_tried_again,
    a12_only_who_may_reports_and_answers,
];

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")))
}

fn plan(who: &Caller, id: &str) -> Value {
    send(who, "/plans", &json!({ "id": id, "prompt": "think", "traceId": format!("t-{id}") }), 201)
}

fn a12_a_plan_that_is_done_makes_its_runs_all_or_none(store: Store) {
    let ann = server(store).caller("a12", "ann", &EVERYTHING);
    let made = plan(&ann, "planner-001");
    assert_eq!((&made["type"], &made["status"]), (&json!("plan"), &json!("queue")));
    let granted = pull_one(&ann);
    assert_eq!((&granted["id"], &granted["type"]), (&json!("planner-001"), &json!("plan")));
    run(&ann, "taken", json!({}));
    // One child that cannot be made, and none is; the plan is still the planner's.
    for bad in [
        json!({ "id": "taken", "prompt": "another" }),
        json!({ "prompt": "x", "priority": 99 }),
        json!({ "prompt": "x", "status": "done" }),
        json!({ "id": "child-a", "prompt": "x" }),
    ] {
        let body = json!({ "status": "done", "leaseToken": granted["leaseToken"],
            "tasks": [{ "id": "child-a", "prompt": "first" }, bad] });
        let answer = ann.post("/agent/plans/planner-001/result", &body);
        assert!(matches!(answer.status, 400 | 409), "{}", answer.text());
        assert_eq!(ann.get("/agent/runs/child-a").status, 403, "{}", answer.text());
    }
    assert_eq!(read(&ann, "/plans/planner-001")["status"], "running");
    let tasks = json!([
        { "id": "child-a", "prompt": "first", "priority": 9 },
        { "note": "nothing to do" },
        { "prompt": "  " },
        { "prompt": "second", "timeout": 30, "traceId": "not-this", "parentTaskId": "nor-this" },
    ]);
    let told = report(&ann, "plans", &granted, json!({ "status": "done", "tasks": tasks }));
    assert_eq!((&told["status"], &told["skipped"]), (&json!("done"), &json!(2)));
    let names: Vec<String> = serde_json::from_value(told["tasks"].clone()).unwrap();
    assert_eq!((names.len(), names[0].as_str()), (2, "child-a"));
    for (id, prompt, priority, timeout) in
        [(&names[0], "first", 9, json!(null)), (&names[1], "second", 5, json!(30))]
    {
        let child = read(&ann, &format!("/runs/{id}"));
        assert_eq!(
            (&child["prompt"], &child["priority"], &child["timeout"], &child["attempts"]),
            (&json!(prompt), &json!(priority), &timeout, &json!(0))
        );
        assert_eq!(
            (&child["traceId"], &child["parentTaskId"]),
            (&json!("t-planner-001"), &json!("planner-001"))
        );
    }
    assert_eq!(read(&ann, "/runs?parentTaskId=planner-001")["total"], 2);
    assert_eq!(read(&ann, "/plans/planner-001")["tasks"], told["tasks"]);
    assert_eq!(ids(&read(&ann, "/task-status")), ["planner-001"]);
    // Too many at once are refused.
    plan(&ann, "greedy");
    let many: Vec<Value> = (0..201).map(|_| json!({ "prompt": "x" })).collect();
    let answer =
        ann.post("/agent/plans/greedy/result", &json!({ "status": "done", "tasks": many }));
    assert_eq!(refused(&answer), (400, "REQ_VALIDATION_FAILED".into()));
}

fn a12_a_report_that_is_repeated_makes_nothing_twice(store: Store) {
    let ann = server(store).caller("a12r", "ann", &EVERYTHING);
    plan(&ann, "p");
    let granted = pull_one(&ann);
    let recurs =
        json!({ "type": "recurring", "prompt": "three", "schedule": { "interval": 3600 } });
    let told = json!({ "status": "done", "tasks": [{ "prompt": "one" }, { "prompt": "two" }, recurs],
        "triggers": [{ "id": "once", "type": "scheduled", "prompt": "four",
            "schedule": { "runAt": "2031-01-01T00:00:00Z" } }] });
    let first = report(&ann, "plans", &granted, told.clone());
    let second = report(&ann, "plans", &granted, told);
    assert_eq!((&first["tasks"], &first["triggers"]), (&second["tasks"], &second["triggers"]));
    assert_eq!(read(&ann, "/runs")["total"], 2);
    let triggers = read(&ann, "/triggers");
    assert_eq!((&triggers["total"], &first["triggers"][1]), (&json!(2), &json!("once")));
    for trigger in triggers["items"].as_array().unwrap() {
        let told = (&trigger["traceId"], &trigger["parentTaskId"]);
        assert_eq!(told, (&json!("t-p"), &json!("p")));
    }
    // A trigger that cannot be made: nothing is, not even the runs beside it.
    plan(&ann, "q");
    for bad in [
        json!({ "id": "once", "type": "scheduled", "prompt": "x",
        "schedule": { "runAt": "2032-01-01T00:00:00Z" } }),
        json!({ "type": "recurring", "prompt": "x" }),
    ] {
        let body = json!({ "status": "done", "tasks": [{ "id": "beside", "prompt": "y" }, bad] });
        let answer = ann.post("/agent/plans/q/result", &body);
        assert!(matches!(answer.status, 400 | 409), "{}", answer.text());
        assert_eq!(ann.get("/agent/runs/beside").status, 403);
        assert_eq!(read(&ann, "/plans/q")["status"], "queue");
    }
    // A plan that nobody was handed is reported on without a lease, once.
    plan(&ann, "unpulled");
    let body = json!({ "status": "done", "tasks": [{ "prompt": "three" }] });
    assert_eq!(send(&ann, "/plans/unpulled/result", &body, 200)["status"], "done");
    assert_eq!(ann.post("/agent/plans/unpulled/result", &body).status, 409);
    assert_eq!(read(&ann, "/runs")["total"], 3);
    assert_eq!(read(&ann, "/plans/unpulled")["attempts"], 1);
}

fn asks(more: Value) -> Value {
    let mut body = json!({ "status": "needs_input", "question": "which colour?",
        "options": ["blue", "green"], "default": "green" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn a12_a13_a_question_waits_for_its_answer_and_is_in_no_index(store: Store) {
    let ann = server(store).caller("a13", "ann", &EVERYTHING);
    plan(&ann, "p");
    let granted = pull_one(&ann);
    for _ in 0..2 {
        let told = report(&ann, "plans", &granted, asks(json!({})));
        assert_eq!(
            (&told["status"], &told["question"]),
            (&json!("needs_input"), &json!("which colour?"))
        );
    }
    let shown = read(&ann, "/plans/p");
    assert_eq!(
        (&shown["status"], &shown["options"], &shown["default"], &shown["answer"]),
        (&json!("needs_input"), &json!(["blue", "green"]), &json!("green"), &Value::Null)
    );
    let asked: jiff::Timestamp =
        text(&ann.job(&text(&shown, "jobId")), "updated_at").parse().unwrap();
    let deadline: jiff::Timestamp = text(&shown, "deadline").parse().unwrap();
    assert_eq!((deadline - asked).total(jiff::Unit::Second).unwrap(), 3600.0, "an hour");
    // It is handed to nobody, is in no index and has not ended.
    assert_eq!(pull(&ann, json!({})), Vec::<Value>::new());
    assert_eq!(read(&ann, "/task-status")["total"], 0);
    assert_eq!(refused(&ann.get("/agent/task-status/p")), (409, "RUN_NOT_ENDED".into()));
    assert_eq!(ids(&read(&ann, "/plans?status=needs_input")), ["p"]);
    let more = ann.get("/agent/plans?status=needs_input&traceId=t");
    assert_eq!(more.status, 400, "what waits is asked for by its state alone");
    // Nobody ends it without an answer, nor with one that is no choice.
    let answer = ann.post("/agent/plans/p/result", &json!({ "status": "done" }));
    assert_eq!(refused(&answer), (409, "LEASE_LOST".into()));
    for bad in ["red", ""] {
        let answer = ann.post("/agent/plans/p/answer", &json!({ "answer": bad }));
        assert_eq!(refused(&answer), (400, "REQ_VALIDATION_FAILED".into()));
    }
    for _ in 0..2 {
        let told = send(&ann, "/plans/p/answer", &json!({ "answer": "blue" }), 200);
        assert_eq!((&told["status"], &told["answer"]), (&json!("queue"), &json!("blue")));
        assert_eq!(told["answeredBy"], "ann");
    }
    let late = ann.post("/agent/plans/p/answer", &json!({ "answer": "green" }));
    assert_eq!(refused(&late), (409, "QUESTION_CONFLICT".into()));
    assert_eq!(ids(&read(&ann, "/plans?status=needs_input")), Vec::<String>::new());
    // The planner is told the answer; asking once more starts over.
    let again = pull_one(&ann);
    assert_eq!(
        (&again["question"], &again["answer"], &again["attempts"]),
        (&json!("which colour?"), &json!("blue"), &json!(1))
    );
    let told = report(
        &ann,
        "plans",
        &again,
        asks(json!({ "question": "sure?", "options": [],
        "default": null })),
    );
    assert_eq!((&told["question"], &told["answer"]), (&json!("sure?"), &Value::Null));
    send(&ann, "/plans/p/answer", &json!({ "answer": "quite" }), 200);
    let last = pull_one(&ann);
    assert_eq!(last["answer"], "quite");
    report(&ann, "plans", &last, json!({ "status": "done" }));
    assert_eq!(ids(&read(&ann, "/task-status")), ["p"]);
    // A question needs one, and no index has ever had it.
    plan(&ann, "mute");
    let told = send(&ann, "/plans/mute/result", &json!({ "status": "needs_input" }), 200);
    assert_eq!(
        (&told["status"], &told["error"]),
        (&json!("failed"), &json!("needs_input missing question"))
    );
    let none = ann.post("/agent/plans/mute/answer", &json!({ "answer": "x" }));
    assert_eq!(refused(&none), (409, "QUESTION_CONFLICT".into()));
}

fn a12_the_default_counts_at_the_deadline_and_without_one_the_plan_ends(store: Store) {
    let ann = server(store).caller("a12d", "ann", &EVERYTHING);
    let soon = || {
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(900);
        json!(at.to_string())
    };
    plan(&ann, "with");
    send(&ann, "/plans/with/result", &asks(json!({ "deadline": soon() })), 200);
    let granted = pull_one(&ann);
    assert_eq!((&granted["id"], &granted["answer"]), (&json!("with"), &json!("green")));
    let shown = read(&ann, "/plans/with");
    assert_eq!((&shown["answer"], &shown["answeredBy"]), (&json!("green"), &Value::Null));
    assert!(shown["answeredAt"].as_str() >= shown["deadline"].as_str(), "{shown}");
    report(&ann, "plans", &granted, json!({ "status": "done" }));

    plan(&ann, "without");
    let body = asks(json!({ "deadline": soon(), "default": null }));
    send(&ann, "/plans/without/result", &body, 200);
    let ended = eventually("the plan ends", || {
        let shown = read(&ann, "/plans/without");
        (shown["status"] != "needs_input").then_some(shown)
    });
    assert_eq!((&ended["status"], &ended["failureReason"]), (&json!("failed"), &json!("timeout")));
    let late = ann.post("/agent/plans/without/answer", &json!({ "answer": "blue" }));
    assert_eq!(refused(&late), (409, "QUESTION_CONFLICT".into()));
    assert_eq!(ids(&read(&ann, "/task-status")), ["without", "with"]);
}

fn a12_a13_a_question_outlives_a_kill_and_is_answered_on_the_command_line(store: Store) {
    let mut server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let ann = server.caller("default", "ann", &EVERYTHING);
    plan(&ann, "p");
    let granted = pull_one(&ann);
    report(&ann, "plans", &granted, asks(json!({})));
    server.kill9();
    server.restart();
    let listed = server.cli_as(&ann.token, &["plans", "list", "--status", "needs_input"]).expect(0);
    assert!(listed.stdout.contains("which colour?"), "{}", listed.stdout);
    assert_eq!(pull(&ann, json!({})), Vec::<Value>::new());
    server.cli_as(&ann.token, &["plans", "answer", "p", "red"]).expect(1);
    let told = server.cli_as(&ann.token, &["plans", "answer", "p", "blue", "-o", "json"]).expect(0);
    assert_eq!(told.json()["answer"], "blue");
    server.kill9();
    server.restart();
    let again = pull_one(&ann);
    assert_eq!((&again["id"], &again["answer"]), (&json!("p"), &json!("blue")));
    let got = server.cli_as(&ann.token, &["plans", "get", "p", "-o", "json"]).expect(0).json();
    assert_eq!((&got["status"], &got["answeredBy"]), (&json!("running"), &json!("ann")));
    let made = server.cli_as(&ann.token, &["runs", "create", "hello", "--id", "r", "-o", "json"]);
    assert_eq!(made.expect(0).json()["status"], "queue");
    server.cli_as(&ann.token, &["runs", "cancel", "r"]).expect(0);
    let result = server.cli_as(&ann.token, &["runs", "result", "r", "-o", "json"]).expect(0).json();
    assert_eq!(result["failureReason"], "killed");
    let runs = server.cli_as(&ann.token, &["runs", "list"]).expect(0).stdout;
    assert!(runs.contains("failed") && runs.contains("hello"), "{runs}");
}

fn a12_a_plan_that_fails_is_told_of_and_never_tried_again(store: Store) {
    let ann = server(store).caller("a12f", "ann", &EVERYTHING);
    plan(&ann, "fails");
    let granted = pull_one(&ann);
    report(&ann, "plans", &granted, json!({ "status": "failed", "error": "no idea" }));
    plan(&ann, "lost");
    assert_eq!(pull(&ann, json!({ "lease_ms": 100 })).len(), 1);
    eventually("the lease ends", || {
        (read(&ann, "/plans/lost")["status"] == "failed").then_some(())
    });
    plan(&ann, "cancelled");
    send(&ann, "/plans/cancelled/result", &asks(json!({})), 200);
    assert_eq!(ann.poke("/agent/runs/cancelled/cancel").status, 200);
    assert_eq!(read(&ann, "/plans/cancelled")["status"], "failed");
    assert_eq!(pull(&ann, json!({})), Vec::<Value>::new());
    let shown = read(&ann, "/plans/fails");
    assert_eq!((&shown["error"], &shown["attempts"]), (&json!("no idea"), &json!(1)));
    let reasons = ["cancelled", "lost", "fails"]
        .map(|id| text(&read(&ann, &format!("/task-status/{id}")), "failureReason"));
    assert_eq!(reasons, ["killed", "killed", "error"]);
    for more in [json!({ "maxAttempts": 3 }), json!({ "backoffMs": 5 })] {
        let mut body = json!({ "id": "again", "prompt": "p" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(refused(&ann.post("/agent/plans", &body)).0, 400, "a plan is tried once");
    }
}

fn a12_only_who_may_reports_and_answers(store: Store) {
    let server = server(store);
    let ann = server.caller("a12s", "ann", &["submitter"]);
    let bob = server.caller("a12s", "bob", &["submitter"]);
    let worker = server.caller("a12s", "w", &["worker"]);
    let judge = server.caller("a12s", "judge", &["approver"]);
    let eve = server.caller("a12e", "eve", &EVERYTHING);
    plan(&ann, "p");
    let unknown = bob.get("/agent/plans/nobodys");
    let done = json!({ "status": "done" });
    for who in [&bob, &eve] {
        assert_eq!(who.get("/agent/plans/p").body, unknown.body);
        let answer = who.post("/agent/plans/p/result", &done);
        assert_eq!((answer.status, &answer.body), (403, &unknown.body));
        let answer = who.post("/agent/plans/p/answer", &json!({ "answer": "x" }));
        assert_eq!((answer.status, &answer.body), (403, &unknown.body));
    }
    // Once it was handed out, the lease alone counts, even against its owner.
    let granted = pull_one(&worker);
    let answer = ann.post("/agent/plans/p/result", &done);
    assert_eq!(refused(&answer), (409, "LEASE_LOST".into()));
    let mut stolen = done;
    stolen["leaseToken"] = granted["leaseToken"].clone();
    let answer = eve.post("/agent/plans/p/result", &stolen);
    assert_eq!(refused(&answer), (409, "LEASE_LOST".into()), "another tenant's name");
    report(&worker, "plans", &granted, asks(json!({})));
    assert_eq!(worker.post("/agent/plans/p/answer", &json!({ "answer": "blue" })).status, 403);
    let told = send(&judge, "/plans/p/answer", &json!({ "answer": "blue" }), 200);
    assert_eq!(told["answeredBy"], "judge");
    for bad in [
        asks(json!({ "question": "x".repeat(9_000) })),
        asks(json!({ "default": "red" })),
        asks(json!({ "options": vec!["x"; 51] })),
        asks(json!({ "deadline": "soon" })),
        json!({ "status": "maybe" }),
    ] {
        let answer = ann.post("/agent/plans/p/result", &bad);
        assert_eq!(refused(&answer), (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
}

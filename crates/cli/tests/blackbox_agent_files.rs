//! Directories in the document's layout, from outside: taken over, looked at, written again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_agent/support.rs"]
mod support;

use mainspring_testkit::blackbox::{Caller, Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use support::{EVERYTHING, RUN_FIELDS, STATUS_FIELDS, fields, ids, pull, pull_one, read, send};

both_stores![
    a03_a15_a_directory_is_taken_over_once_and_written_again,
    a15_unreadable_records_are_told_and_passed_over,
    a14_a15_the_index_is_read_as_map_or_list_and_written_as_map,
];

fn put(directory: &Path, name: &str, document: &Value) {
    put_text(directory, name, &document.to_string());
}

fn put_text(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A result as the document's sample has it.
fn result(id: &str, status: &str) -> Value {
    let is_done = status == "done";
    json!({
        "schemaVersion": 2,
        "id": id,
        "status": status,
        "resultType": "analysis",
        "result": { "lines": [1, 2] },
        "error": if is_done { json!(null) } else { json!("ran into a wall") },
        "failureReason": if is_done { json!(null) } else { json!("timeout") },
        "attempts": 3,
        "traceId": "trace-001",
        "sourceTriggerId": "trigger-001",
        "startedAt": "2026-02-25T12:00:00.000000Z",
        "completedAt": "2026-02-25T12:00:12.345000Z",
        "durationMs": 12345,
        "task": {
            "prompt": "look at it",
            "priority": 7,
            "createdAt": "2026-02-25T11:00:00.000000Z",
            "timeout": 60,
            "traceId": "trace-001",
            "parentTaskId": "planner-001",
            "sourceTriggerId": "trigger-001",
            "triggeredAt": "2026-02-25T10:59:59.000000Z",
        }
    })
}

fn queued(id: &str) -> Value {
    json!({
        "schemaVersion": 2,
        "id": id,
        "type": "oneshot",
        "traceId": "trace-002",
        "parentTaskId": "planner-001",
        "prompt": "wait for it",
        "priority": 3,
        "createdAt": "2026-02-25T11:30:00.000000Z",
        "attempts": 2,
        "timeout": null,
        "deferUntil": "2031-01-01T00:00:00.000000Z",
        "sourceTriggerId": "trigger-001",
        "triggeredAt": "2026-02-25T11:29:59.000000Z",
    })
}

/// Imports `directory` and answers with what was told.
fn import(server: &Server, who: &Caller, directory: &Path) -> Value {
    let path = directory.to_str().unwrap();
    server.cli_as(&who.token, &["import", "agent", path, "-o", "json"]).expect(0).json()
}

/// Every document of a directory, by the name of its file.
fn documents(directory: &Path) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            let below = documents(&entry.path()).into_iter();
            found.extend(below.map(|(file, document)| (format!("{name}/{file}"), document)));
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            found.insert(name, serde_json::from_str(&text).unwrap());
        }
    }
    found
}

fn a03_a15_a_directory_is_taken_over_once_and_written_again(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let ann = server.caller("files", "ann", &EVERYTHING);
    let place = server.directory().join("mimi");
    put(&place, "worker/results/task-001.json", &result("task-001", "done"));
    put(&place, "worker/results/task-002.json", &result("task-002", "failed"));
    put(&place, "worker/queue/task-003.json", &queued("task-003"));
    // Version 1 has no version, and little else.
    put(&place, "worker/queue/old.json", &json!({ "id": "old", "prompt": "as ever" }));
    put(&place, "worker/running/task-004.json", &queued("task-004"));
    let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * 30);
    let asks = json!({ "schemaVersion": 2, "id": "planner-002", "status": "needs_input",
        "question": "which?", "options": ["a", "b"], "default": "a",
        "deadline": format!("{deadline:.6}"), "traceId": "trace-003" });
    put(&place, "planner/results/planner-002.json", &asks);
    let planned = json!({ "schemaVersion": 2, "id": "planner-001", "status": "done",
        "tasks": [{ "id": "task-001", "prompt": "look at it" }], "attempts": 1,
        "completedAt": "2026-02-25T10:00:00.000000Z", "traceId": "trace-001" });
    put(&place, "planner/results/planner-001.json", &planned);
    let line = json!({ "schemaVersion": 2, "id": "gone", "status": "done",
        "completedAt": "2026-01-01T00:00:00.000000Z", "resultId": "gone",
        "sourceTriggerId": null, "failureReason": null, "traceId": "trace-000" });
    let known =
        json!({ "id": "task-001", "status": "done", "completedAt": "2026-02-25T12:00:12Z" });
    put(&place, "task_status.json", &json!({ "gone": line, "task-001": known }));

    let told = import(&server, &ann, &place);
    assert_eq!((&told["imported"], &told["present"]), (&json!(8), &json!(1)), "{told}");
    assert_eq!(told["skipped"], json!([]));
    // What ended elsewhere has ended here, as it was, and is not done again.
    assert_eq!(read(&ann, "/runs/task-001/result"), result("task-001", "done"));
    assert_eq!(read(&ann, "/runs/task-002/result"), result("task-002", "failed"));
    let shown = read(&ann, "/runs/task-003");
    for field in RUN_FIELDS {
        assert_eq!(shown[field], queued("task-003")[field], "{field}");
    }
    let killed = read(&ann, "/task-status/task-004");
    assert_eq!((&killed["status"], &killed["failureReason"]), (&json!("failed"), &json!("killed")));
    let old = pull(&ann, json!({}));
    assert_eq!((old.len(), &old[0]["id"], &old[0]["schemaVersion"]), (1, &json!("old"), &json!(2)));
    let index = read(&ann, "/task-status");
    let names: BTreeSet<String> = ids(&index).into_iter().collect();
    let ended = ["gone", "planner-001", "task-001", "task-002", "task-004"];
    assert_eq!(names, ended.map(str::to_owned).into());
    assert_eq!(read(&ann, "/task-status/gone"), line);
    assert_eq!(read(&ann, "/plans/planner-001")["tasks"], json!(["task-001"]));
    let plan = read(&ann, "/plans/planner-002");
    assert_eq!((&plan["status"], &plan["question"]), (&json!("needs_input"), &json!("which?")));

    // Once more, and nothing changes.
    let before = (read(&ann, "/runs"), read(&ann, "/plans"), read(&ann, "/task-status"));
    let again = import(&server, &ann, &place);
    assert_eq!((&again["imported"], &again["present"]), (&json!(0), &json!(9)), "{again}");
    let after = (read(&ann, "/runs"), read(&ann, "/plans"), read(&ann, "/task-status"));
    assert_eq!(before, after);

    // Written again it is the same, and somebody else who takes it over has the same.
    let out = server.directory().join("out");
    server.cli_as(&ann.token, &["export", "agent", out.to_str().unwrap()]).expect(0);
    let written = documents(&out);
    assert_eq!(written["worker/results/task-001.json"], result("task-001", "done"));
    assert_eq!(written["worker/results/task-002.json"], result("task-002", "failed"));
    assert_eq!(written["worker/queue/task-003.json"], queued("task-003"));
    assert_eq!(fields(&written["worker/running/old.json"]), BTreeSet::from(RUN_FIELDS));
    let index = written["task_status.json"].as_object().unwrap();
    assert_eq!(index.len(), 5);
    assert!(index.iter().all(|(id, line)| {
        line["id"] == *id.as_str() && fields(line) == BTreeSet::from(STATUS_FIELDS)
    }));
    for field in ["status", "question", "options", "default", "deadline", "traceId"] {
        assert_eq!(written["planner/results/planner-002.json"][field], asks[field], "{field}");
    }
    assert!(!written.contains_key("planner/queue/planner-002.json"));
    let bob = server.caller("other", "bob", &EVERYTHING);
    let told = import(&server, &bob, &out);
    assert_eq!(told["skipped"], json!([]), "{told}");
    let copy = server.directory().join("copy");
    server.cli_as(&bob.token, &["export", "agent", copy.to_str().unwrap()]).expect(0);
    let mut copied = documents(&copy);
    let mut expected = written;
    // What was running is not gone on with.
    for all in [&mut copied, &mut expected] {
        all.remove("worker/running/old.json");
        all.remove("worker/results/old.json");
        all.get_mut("task_status.json").unwrap().as_object_mut().unwrap().remove("old");
    }
    assert_eq!(copied, expected);
    // A directory with something in it is left alone.
    server.cli_as(&ann.token, &["export", "agent", out.to_str().unwrap()]).expect(2);

    // The answer to what was asked elsewhere lets the plan go on here.
    send(&ann, "/plans/planner-002/answer", &json!({ "answer": "b" }), 200);
    let granted = pull_one(&ann);
    assert_eq!((&granted["id"], &granted["answer"]), (&json!("planner-002"), &json!("b")));
}

fn a15_unreadable_records_are_told_and_passed_over(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let ann = server.caller("broken", "ann", &EVERYTHING);
    let place = server.directory().join("mimi");
    put_text(&place, "worker/queue/half.json", "{\"id\": \"half\", \"pro");
    put(&place, "worker/queue/half.json.bak", &json!({ "id": "half", "prompt": "whole" }));
    put(&place, "worker/queue/lost.json.bak", &json!({ "id": "lost", "prompt": "found" }));
    put_text(&place, "worker/queue/torn.json", "{");
    put_text(&place, "worker/queue/torn.json.bak", "");
    put(&place, "worker/queue/nameless.json", &json!({ "prompt": "who am I" }));
    put(&place, "worker/queue/mute.json", &json!({ "id": "mute" }));
    put(&place, "worker/queue/list.json", &json!([1, 2]));
    put(&place, "worker/queue/nul.json", &json!({ "id": "a\u{0}b", "prompt": "p" }));
    put(
        &place,
        "worker/queue/new.json",
        &json!({ "schemaVersion": 9, "id": "new", "prompt": "p" }),
    );
    put(&place, "worker/results/odd.json", &json!({ "id": "odd", "status": "perhaps" }));
    put_text(&place, "worker/results/large.json", &"x".repeat(3 << 20));
    put_text(&place, "worker/queue/notes.txt", "not a record");
    fs::create_dir_all(place.join("worker/queue/folder.json")).unwrap();
    put(&place, "worker/queue/fine.json", &json!({ "id": "fine", "prompt": "p" }));
    put_text(&place, "task_status.json", "[}");
    let told = import(&server, &ann, &place);
    assert_eq!(told["imported"], 3, "{told}");
    let skipped: BTreeSet<&str> = told["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["place"].as_str().unwrap())
        .collect();
    let named = ["torn", "nameless", "mute", "list", "nul", "new", "folder"];
    let mut expected: BTreeSet<String> =
        named.iter().map(|name| format!("worker/queue/{name}.json")).collect();
    expected.extend(["odd", "large"].map(|name| format!("worker/results/{name}.json")));
    expected.insert("task_status.json".to_owned());
    assert_eq!(skipped, expected.iter().map(String::as_str).collect());
    assert!(told["skipped"].as_array().unwrap().iter().all(|it| it["reason"] != ""));
    assert_eq!(ids(&read(&ann, "/runs")).len(), 3);
    assert_eq!(read(&ann, "/runs/half")["prompt"], "whole");
    server.cli_as(&ann.token, &["import", "agent", "/no/such/place"]).expect(2);
    // Only who runs things for the tenant takes records over.
    let bob = server.caller("broken", "bob", &["submitter", "worker", "viewer"]);
    assert_eq!(bob.post("/agent/import", &json!({ "place": "queue", "items": [] })).status, 403);
    let bad = ann.post("/agent/import", &json!({ "place": "attic", "items": [] }));
    assert_eq!(bad.status, 400);
    let many: Vec<Value> = (0..1_001).map(|at| json!({ "id": at.to_string() })).collect();
    let bad = ann.post("/agent/import", &json!({ "place": "queue", "items": many }));
    assert_eq!(bad.status, 400);
}

fn a14_a15_the_index_is_read_as_map_or_list_and_written_as_map(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let line = |id: &str, status: &str| {
        json!({ "schemaVersion": 2, "id": id, "status": status,
            "completedAt": "2026-01-01T00:00:00.000000Z", "resultId": id,
            "sourceTriggerId": "trigger-001",
            "failureReason": if status == "done" { json!(null) } else { json!("killed") },
            "traceId": "trace-000" })
    };
    let (one, two) = (line("one", "done"), line("two", "failed"));
    for (tenant, index) in [
        ("map", json!({ "one": one, "two": two })),
        ("list", json!([one, two])),
        (
            "old",
            json!({ "one": { "status": "done", "completedAt": "2026-01-01T00:00:00Z",
            "sourceTriggerId": "trigger-001", "traceId": "trace-000" }, "two": two }),
        ),
    ] {
        let ann = server.caller(tenant, "ann", &EVERYTHING);
        let place = server.directory().join(tenant);
        put(&place, "task_status.json", &index);
        let told = import(&server, &ann, &place);
        assert_eq!((&told["imported"], &told["skipped"]), (&json!(2), &json!([])), "{told}");
        let out = server.directory().join(format!("{tenant}-out"));
        server.cli_as(&ann.token, &["export", "agent", out.to_str().unwrap()]).expect(0);
        let written = documents(&out);
        assert_eq!(written["task_status.json"], json!({ "one": one, "two": two }));
        assert_eq!(pull(&ann, json!({})), Vec::<Value>::new());
    }
}

//! The task contract from outside: the document's samples, its states, counters and events.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_tasks/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::{
    EVERYTHING, FUTURE, PAST, SAMPLE_FIELDS, at, created, fields, moves, states, task, told_no,
    transition, with,
};

both_stores![
    m10_m13_the_documents_samples_are_accepted_and_answered_field_for_field,
    m01_m02_m03_exactly_the_legal_moves_of_36_pass_and_the_rest_change_nothing,
    m04_m05_m06_m12_the_last_of_three_timeouts_is_the_documents_event,
    m07_the_scheduler_ends_an_attempt_that_runs_too_long,
    m06_m08_a_failure_has_the_workers_own_code_and_is_ready_again_at_once,
    m11_m12_every_change_is_one_event_in_order_by_itself_and_in_the_stream,
    m02_a_start_by_hand_keeps_to_the_limit_of_the_type,
];

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes"))
}

fn m10_m13_the_documents_samples_are_accepted_and_answered_field_for_field(store: Store) {
    let ann = server(store).caller("m10", "ann", &["submitter"]);
    let sample = r#"{
  "task_id": "task_20260225_0001",
  "schedule_type": "at",
  "scheduled_at": "2026-02-25T12:00:00Z",
  "timeout_ms": 30000,
  "max_retries": 2,
  "idempotency_key": "order_1001",
  "idempotency_scope": "tenant_a",
  "payload": {
    "channel": "dingtalk",
    "request_id": "req-1"
  }
}"#;
    let send = || {
        let request = ann.request("POST", "/tasks").header("content-type", "application/json");
        request.body(sample).send(ann.address)
    };
    let made = send();
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.json()["idempotent_hit"], false);
    let hit = send();
    assert_eq!(hit.status, 200, "{}", hit.text());
    let hit = hit.json();
    assert_eq!(fields(&hit), BTreeSet::from(["idempotent_hit", "task"]));
    assert_eq!(hit["idempotent_hit"], true);
    let shown = &hit["task"];
    assert_eq!(fields(shown), BTreeSet::from(SAMPLE_FIELDS));
    let mut expected = json!({
        "task_id": "task_20260225_0001", "schedule_type": "at", "state": "ready", "attempt": 1,
        "max_retries": 2, "timeout_ms": 30000, "idempotency_key": "order_1001",
        "last_error_code": null, "last_error_reason": null, "started_at": null,
        "finished_at": null,
    });
    for time in ["created_at", "updated_at"] {
        assert!(text(shown, time).parse::<jiff::Timestamp>().is_ok(), "{shown}");
        expected[time] = shown[time].clone();
    }
    assert_eq!(*shown, expected);
    // The whole record has the same, and the rest of what was asked for.
    let whole = task(&ann, "task_20260225_0001");
    for field in SAMPLE_FIELDS {
        assert_eq!(whole[field], shown[field], "{field}");
        assert_eq!(made.json()["task"][field], shown[field], "{field}");
    }
    assert_eq!(whole["scheduled_at"], "2026-02-25T12:00:00.000000Z");
    assert_eq!(whole["idempotency_scope"], "tenant_a");
    assert_eq!(whole["payload"], json!({ "channel": "dingtalk", "request_id": "req-1" }));
    assert_eq!(whole["max_attempts"], 3);
    // Nothing was created by the hit, and the payload is kept byte for byte.
    assert_eq!(items(ann.get("/api/v1/jobs").data()).len(), 1);
    let payload = "{\n    \"channel\": \"dingtalk\",\n    \"request_id\": \"req-1\"\n  }";
    assert_eq!(ann.job(&text(&whole, "job_id"))["payload_json"], payload);
}

fn m01_m02_m03_exactly_the_legal_moves_of_36_pass_and_the_rest_change_nothing(store: Store) {
    const ALL: [&str; 6] = ["pending", "ready", "running", "succeeded", "failed", "cancelled"];
    let legal = BTreeSet::from([
        ("pending", "ready"),
        ("pending", "cancelled"),
        ("ready", "running"),
        ("ready", "cancelled"),
        ("running", "succeeded"),
        ("running", "failed"),
        ("running", "ready"),
        ("running", "cancelled"),
    ]);
    let ivy = server(store).caller("m02", "ivy", &EVERYTHING);
    let mut passed = BTreeSet::new();
    for from in ALL {
        for to in ALL {
            let id = format!("{from}-{to}");
            let scheduled_at = if from == "pending" { FUTURE } else { PAST };
            created(&ivy, &at(&id, scheduled_at));
            let way: &[&str] = match from {
                "pending" | "ready" => &[],
                "running" => &["running"],
                "cancelled" => &["cancelled"],
                end => &["running", end],
            };
            for step in way {
                assert_eq!(transition(&ivy, &id, step).0, 200, "{id} by way of {step}");
            }
            let before = (task(&ivy, &id), moves(&ivy, &id));
            assert_eq!(before.0["state"], from);
            let (status, answer) = transition(&ivy, &id, to);
            let after = (task(&ivy, &id), moves(&ivy, &id));
            if status == 200 {
                passed.insert((from, to));
                assert_eq!((&answer["state"], &after.0["state"]), (&json!(to), &json!(to)));
                assert_eq!(after.1.len(), before.1.len() + 1, "one event: {:?}", after.1);
                assert_eq!(states(&after.1).last().unwrap(), &format!("{from}>{to}"));
                let attempt = if (from, to) == ("running", "ready") { 2 } else { 1 };
                assert_eq!(after.0["attempt"], attempt);
            } else {
                let error = told_no((status, answer), 409, "TASK_INVALID_TRANSITION");
                let told = (&error["from_state"], &error["to_state"], &error["retryable"]);
                assert_eq!(told, (&json!(from), &json!(to), &json!(false)));
                assert_eq!(after, before, "{id} changed nothing");
            }
        }
    }
    assert_eq!(passed, legal);
    let error = told_no(transition(&ivy, "ready-running", "done"), 422, "TASK_INVALID_FIELD");
    assert_eq!(error["field"], "to_state");
    // A task that was made ready by hand is handed out, and ends as any other.
    let granted = ivy.pull("task", 100);
    let is_it = |job: &&Value| job["labels"]["task_id"] == "pending-ready";
    ivy.complete(granted.iter().find(is_it).expect("it may be claimed"));
    let told = states(&moves(&ivy, "pending-ready"));
    assert_eq!(told, ["pending>ready", "ready>running", "running>succeeded"]);
    // No try left: a running task cannot be made ready again.
    created(&ivy, &with(at("once", PAST), json!({ "max_retries": 0 })));
    assert_eq!(transition(&ivy, "once", "running").0, 200);
    assert_eq!(transition(&ivy, "once", "ready").0, 409);
    // By request, too, a task ends once.
    created(&ivy, &at("twice", FUTURE));
    let path = "/tasks/twice/cancel";
    assert_eq!(ivy.poke(path).json()["state"], "cancelled");
    let again = ivy.poke(path);
    let again = told_no((again.status, again.json()), 409, "TASK_INVALID_TRANSITION");
    assert_eq!(
        (&again["from_state"], &again["to_state"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
}

fn m04_m05_m06_m12_the_last_of_three_timeouts_is_the_documents_event(store: Store) {
    let tim = server(store).caller("m12", "tim", &["submitter", "worker"]);
    let wish = with(at("task_20260225_0001", PAST), json!({ "timeout_ms": 50, "max_retries": 2 }));
    let made = created(&tim, &wish);
    assert_eq!((&made["attempt"], &made["max_attempts"]), (&json!(1), &json!(3)));
    for attempt in 1..=3 {
        let granted = tim.pull_one("task");
        assert_eq!(granted["attempt"], attempt);
    }
    let ended = eventually("the scheduler ends the last attempt", || {
        let shown = task(&tim, "task_20260225_0001");
        (shown["state"] == "failed").then_some(shown)
    });
    assert_eq!(ended["last_error_code"], "TASK_RETRY_EXHAUSTED");
    assert_eq!(ended["attempt"], 3);
    let events = moves(&tim, "task_20260225_0001");
    let expected = [
        "pending>ready",
        "ready>running",
        "running>ready",
        "ready>running",
        "running>ready",
        "ready>running",
        "running>failed",
    ];
    assert_eq!(states(&events), expected);
    let last = events.last().unwrap();
    for (field, value) in [
        ("type", "task_state_changed"),
        ("source", "gateway.scheduler"),
        ("session_key", "scheduler:default"),
    ] {
        assert_eq!(last[field], value);
    }
    let payload = &last["payload"];
    let expected = json!({
        "task_id": "task_20260225_0001", "from_state": "running", "to_state": "failed",
        "occurred_at": payload["occurred_at"], "attempt": 3,
        "reason_code": "TASK_RETRY_EXHAUSTED", "reason_message": payload["reason_message"],
        "idempotent_hit": false,
    });
    assert_eq!(*payload, expected);
    assert!(text(payload, "reason_message").contains("timeout"), "{payload}");
    assert_eq!(payload["occurred_at"], ended["finished_at"]);
    let retried = &events[2]["payload"];
    assert_eq!((&retried["reason_code"], &retried["attempt"]), (&json!("TASK_TIMEOUT"), &json!(1)));
}

fn m07_the_scheduler_ends_an_attempt_that_runs_too_long(store: Store) {
    let sue = server(store).caller("m07", "sue", &["submitter", "worker"]);
    created(&sue, &with(at("slow", PAST), json!({ "timeout_ms": 200, "max_retries": 5 })));
    let granted = sue.pull_one("task");
    // Whatever the worker does: it lives, and says so.
    let ended = eventually("the attempt is over", || {
        let beat = json!({ "worker_id": "w-1", "lease_ms": 60000, "items": [
            { "job_id": granted["job_id"], "lease_token": granted["lease_token"] } ] });
        sue.post("/api/v1/work/heartbeat", &beat);
        let shown = task(&sue, "slow");
        (shown["state"] != "running").then_some(shown)
    });
    assert_eq!((&ended["state"], &ended["attempt"]), (&json!("ready"), &json!(2)));
    assert_eq!(ended["last_error_code"], "TASK_TIMEOUT");
    assert_eq!(sue.complete(&granted)["error"]["code"], "LEASE_LOST", "too late");
    assert_eq!(task(&sue, "slow")["state"], "ready");
}

fn m06_m08_a_failure_has_the_workers_own_code_and_is_ready_again_at_once(store: Store) {
    let kim = server(store).caller("m08", "kim", &["submitter", "worker"]);
    created(&kim, &with(at("plain", PAST), json!({ "max_retries": 2 })));
    // Without a code it is the contract's own.
    let granted = kim.pull_one("task");
    kim.report("fail", &granted, json!({ "message": "no funds" }));
    let shown = task(&kim, "plain");
    assert_eq!((&shown["state"], &shown["attempt"]), (&json!("ready"), &json!(2)));
    assert_eq!(shown["last_error_code"], "TASK_EXECUTION_FAILED");
    assert_eq!(shown["last_error_reason"], "no funds");
    // No delay at all: the very next pull, which does not wait, has it.
    let granted = kim.pull("task", 1).pop().expect("ready at once");
    kim.fail(&granted, "CARD_REFUSED", true);
    assert_eq!(task(&kim, "plain")["last_error_code"], "CARD_REFUSED");
    let granted = kim.pull("task", 1).pop().expect("ready at once");
    kim.fail(&granted, "TASK_EXECUTION_FAILED", true);
    let shown = task(&kim, "plain");
    assert_eq!((&shown["state"], &shown["attempt"]), (&json!("failed"), &json!(3)));
    assert_eq!(shown["last_error_code"], "TASK_RETRY_EXHAUSTED");
    // What is not worth a retry keeps its own code, also at the last attempt.
    created(&kim, &with(at("hopeless", PAST), json!({ "max_retries": 0 })));
    kim.fail(&kim.pull_one("task"), "ADDRESS_UNKNOWN", false);
    let shown = task(&kim, "hopeless");
    assert_eq!(
        (&shown["state"], &shown["last_error_code"]),
        (&json!("failed"), &json!("ADDRESS_UNKNOWN"))
    );
    // Whatever is said about the type.
    let spec = json!({ "backoff_base_ms": 60000, "backoff_max_ms": 60000 });
    assert_eq!(server(store).admin().put("/api/v1/types/task", &spec).status, 200);
    created(&kim, &with(at("again", PAST), json!({ "max_retries": 1 })));
    kim.fail(&kim.pull_one("task"), "OOPS", true);
    kim.complete(&kim.pull("task", 1).pop().expect("ready at once"));
    assert_eq!(task(&kim, "again")["state"], "succeeded");
}

fn m11_m12_every_change_is_one_event_in_order_by_itself_and_in_the_stream(store: Store) {
    let eve = server(store).caller("m11", "eve", &["submitter", "worker"]);
    // One that waits for its time, one that is retried, one that is cancelled while it waits.
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(300);
    created(&eve, &at("soon", &soon.to_string()));
    let granted = eve.pull_one("task");
    eve.fail(&granted, "OOPS", true);
    eve.complete(&eve.pull_one("task"));
    created(&eve, &at("never", FUTURE));
    assert_eq!(eve.poke("/tasks/never/cancel").status, 200);
    let soon_events = moves(&eve, "soon");
    let expected =
        ["pending>ready", "ready>running", "running>ready", "ready>running", "running>succeeded"];
    assert_eq!(states(&soon_events), expected);
    // The time had come when it had come, not when somebody noticed.
    let told: jiff::Timestamp = text(&soon_events[0]["payload"], "occurred_at").parse().unwrap();
    assert_eq!(told.as_microsecond(), soon.as_microsecond());
    let never = moves(&eve, "never");
    assert_eq!(states(&never), ["pending>cancelled"]);
    let all: Vec<Value> = soon_events.iter().chain(&never).cloned().collect();
    let ids: BTreeSet<_> = all.iter().map(|event| text(event, "event_id")).collect();
    assert_eq!(ids.len(), all.len(), "every event has an id of its own");
    for event in &all {
        let envelope = [
            "type",
            "source",
            "session_key",
            "event_id",
            "payload",
            "version",
            "ets_keys",
            "ts",
            "meta",
        ];
        assert_eq!(fields(event), BTreeSet::from(envelope));
        let payload = &event["payload"];
        let at: jiff::Timestamp = text(payload, "occurred_at").parse().unwrap();
        assert_eq!(event["ts"], at.as_millisecond());
        assert_eq!(event["meta"], json!({ "audit": true, "replayable": true }));
        let keys = json!([
            payload["task_id"],
            payload["from_state"],
            payload["to_state"],
            "task_state_changed",
            "gateway.scheduler",
            "scheduler:default",
            event["event_id"]
        ]);
        assert_eq!(event["ets_keys"], keys);
    }
    for events in [&soon_events, &never] {
        let versions: Vec<_> =
            events.iter().map(|event| event["version"].as_u64().unwrap()).collect();
        assert!(versions.is_sorted_by(|one, next| one < next), "{versions:?}");
    }
    // The stream tells the same, to her and to nobody else, and goes on anywhere.
    let streamed = stream::until(&eve, "0", "cancelled");
    let told: Vec<Value> = streamed.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(told, all);
    let ids = streamed.iter().filter(|(id, _)| id.is_some()).count();
    assert_eq!(ids, all.len() - 1, "a move that shows as two has one position");
    let after = streamed
        .iter()
        .find_map(|(id, event)| id.clone().filter(|_| event["payload"]["to_state"] == "running"));
    let rest = stream::until(&eve, &after.unwrap(), "cancelled");
    let rest: Vec<Value> = rest.into_iter().map(|(_, event)| event).collect();
    assert_eq!(rest, all[2..]);
}

mod stream {
    use super::*;
    use mainspring_testkit::blackbox::http::Connection;

    /// The events of the stream of tasks from `position` on, until one leads to `end`.
    pub(super) fn until(who: &Caller, position: &str, end: &str) -> Vec<(Option<String>, Value)> {
        let request = who.request("GET", "/tasks/events").header("last-event-id", position);
        let mut stream = Connection::open(who.address).unwrap();
        stream.send(&request.bytes(who.address)).unwrap();
        assert_eq!(stream.head().unwrap(), 200);
        let mut all = String::new();
        loop {
            let seen = read(&all);
            if seen.iter().any(|(_, event)| event["payload"]["to_state"] == end) {
                return seen;
            }
            let piece = stream.chunk().unwrap().expect("the stream goes on");
            all.push_str(std::str::from_utf8(piece).unwrap());
        }
    }

    /// What stands in a stream: the id and the data of each event.
    fn read(text: &str) -> Vec<(Option<String>, Value)> {
        let event = |block: &str| {
            let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            let data = serde_json::from_str(line("data: ")?).ok()?;
            (line("event: ") == Some("task_state_changed"))
                .then(|| (line("id: ").map(str::to_owned), data))
        };
        text.split("\n\n").filter_map(event).collect()
    }
}

fn m02_a_start_by_hand_keeps_to_the_limit_of_the_type(store: Store) {
    // A server of its own: the limit is one of every task on it.
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes");
    let server = Server::start(options);
    let spec = json!({ "concurrency_limit": 1, "concurrency_scope": "user" });
    assert_eq!(server.admin().put("/api/v1/types/task", &spec).status, 200);
    let ann = server.caller("m02", "ann", &EVERYTHING);
    for id in ["first", "second"] {
        created(&ann, &at(id, PAST));
    }
    assert_eq!(transition(&ann, "first", "running").0, 200);
    let before = (task(&ann, "second"), moves(&ann, "second"));
    told_no(transition(&ann, "second", "running"), 409, "CONCURRENCY_LIMIT_EXCEEDED");
    assert_eq!((task(&ann, "second"), moves(&ann, "second")), before, "nothing has changed");
    // Another user has a limit of her own, and an end makes room.
    let bea = server.caller("m02", "bea", &EVERYTHING);
    created(&bea, &at("third", PAST));
    assert_eq!(transition(&bea, "third", "running").0, 200);
    assert_eq!(transition(&ann, "first", "succeeded").0, 200);
    assert_eq!(transition(&ann, "second", "running").0, 200);
}

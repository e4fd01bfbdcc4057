//! Governed objects and gates from outside: what is held, what is let go, and the ways around.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_scheduler/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, PerStore, Response, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use support::{
    EVERYTHING, at, enqueued, gate, held_by, ids, job, no, pulled, put, report, server, wish, with,
};

static SERVERS: PerStore = PerStore::new();

both_stores![
    d12_a_closed_gate_holds_jobs_on_high_risk_objects_and_nothing_else,
    d12_an_object_that_becomes_risky_takes_its_waiting_jobs_along,
    d12_a_gate_closed_after_the_pull_takes_the_job_back,
    d12_ways_around_the_gates_lead_nowhere,
    d12_no_claim_gets_past_a_gate_that_was_told_closed,
    d12_gates_and_objects_survive_a_restart,
    d13_an_uncertain_object_is_verified_within_its_budget,
    d13_a_risky_uncertain_object_is_only_verified,
    d14_what_cannot_be_known_is_tried_so_often_and_then_ends,
    d06_the_table_of_transitions_is_applied,
    d06_an_object_enqueues_its_next_action_by_itself,
];

const GATES: [&str; 4] = ["persona", "cognition", "risk", "social"];

fn d12_a_closed_gate_holds_jobs_on_high_risk_objects_and_nothing_else(store: Store) {
    let server = server(&SERVERS, store);
    let ann = server.caller("d12", "ann", &EVERYTHING);
    let other = server.caller("d12-other", "eve", &EVERYTHING);
    for (who, object) in [(&ann, "risky"), (&other, "risky")] {
        put(who, object, &json!({ "risk_tier": "high" }));
    }
    put(&ann, "middling", &json!({ "risk_tier": "medium" }));
    // Missing means pass.
    let all = ann.get("/scheduler/gates").json();
    let states: Vec<_> = all["items"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, [&json!("pass"); 4]);
    for (minute, name) in GATES.iter().enumerate() {
        gate(&ann, name, "block");
        let time = format!("01:{minute:02}:00");
        let risky = enqueued(&ann, &wish("risky", "verify", &time));
        let middling = enqueued(&ann, &wish("middling", "verify", &time));
        let plain = enqueued(&ann, &wish("plain", "verify", &time));
        let theirs = enqueued(&other, &wish("risky", "verify", &time));
        // Held at the head of everything, and nothing behind it waits for it.
        assert_eq!(ids(&pulled(&ann, json!({}))), [middling, plain]);
        assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
        assert_eq!(job(&ann, &risky)["status"], "queued");
        assert_eq!(ann.path(&risky), ["queued"], "nobody had it");
        assert_eq!(held_by(&ann, &risky)[0], "GATE_CLOSED");
        assert_eq!(ids(&pulled(&other, json!({}))), [theirs], "another tenant has other gates");
        gate(&ann, name, "pass");
        let granted = pulled(&ann, json!({}));
        assert_eq!(ids(&granted), [risky]);
        assert!(text(&granted[0], "decision_trace_id").starts_with("dtr_"));
    }
    let told = ann.put("/scheduler/gates/persona", &json!({ "state": "ajar" }));
    assert_eq!(told.status, 422, "{}", told.text());
    assert_eq!(ann.put("/scheduler/gates/front", &json!({ "state": "block" })).status, 403);
}

fn d12_an_object_that_becomes_risky_takes_its_waiting_jobs_along(store: Store) {
    let ann = server(&SERVERS, store).caller("d12-later", "ann", &EVERYTHING);
    gate(&ann, "persona", "block");
    let jobs: Vec<String> =
        ["verify", "decay"].map(|action| enqueued(&ann, &wish("m1", action, "00:00:00"))).into();
    put(&ann, "m1", &json!({ "risk_tier": "high" }));
    let behind = enqueued(&ann, &wish("m2", "verify", "00:00:01"));
    assert_eq!(ids(&pulled(&ann, json!({ "limit": 1 }))), [behind]);
    for id in &jobs {
        let shown = job(&ann, id);
        assert_eq!((&shown["status"], &shown["attempt"]), (&json!("queued"), &json!(0)));
        assert_eq!(held_by(&ann, id)[0], "GATE_CLOSED");
    }
    assert_eq!(ann.get("/scheduler/objects/memory/m1").json()["held_jobs"], 2);
    // Opening another gate changes nothing; opening this one lets them go.
    gate(&ann, "social", "pass");
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
    gate(&ann, "persona", "pass");
    let mut granted = ids(&pulled(&ann, json!({})));
    granted.sort();
    let mut expected = jobs;
    expected.sort();
    assert_eq!(granted, expected);
    assert_eq!(ann.get("/scheduler/objects/memory/m1").json()["held_jobs"], 0);
    // So does making the object harmless.
    gate(&ann, "risk", "block");
    let id = enqueued(&ann, &wish("m3", "verify", "00:00:02"));
    put(&ann, "m3", &json!({ "risk_tier": "high" }));
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
    put(&ann, "m3", &json!({ "risk_tier": "low" }));
    assert_eq!(ids(&pulled(&ann, json!({}))), [id]);
}

fn d12_a_gate_closed_after_the_pull_takes_the_job_back(store: Store) {
    let ann = server(&SERVERS, store).caller("d12-back", "ann", &EVERYTHING);
    put(&ann, "m1", &json!({ "risk_tier": "high" }));
    for verb in ["ack", "renew"] {
        let id = enqueued(&ann, &wish("m1", "verify", &format!("0{}:00:00", verb.len())));
        let grant = pulled(&ann, json!({})).pop().unwrap();
        gate(&ann, "cognition", "block");
        let body = json!({ "lease_token": grant["lease_token"] });
        let told = report(&ann, verb, &id, &body);
        assert_eq!(no(&told), (409, "GATE_CLOSED".to_owned()), "{}", told.text());
        let shown = job(&ann, &id);
        assert_eq!((&shown["status"], &shown["attempt"]), (&json!("queued"), &json!(0)));
        // The lease is gone for good, whatever is said under it.
        for verb in ["ack", "renew"] {
            assert_eq!(report(&ann, verb, &id, &body).status, 409);
        }
        assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
        gate(&ann, "cognition", "pass");
        let again = eventually("it is handed out again", || pulled(&ann, json!({})).pop());
        assert_eq!((text(&again, "job_id"), &again["attempt"]), (id.clone(), &json!(0)));
        assert_ne!(again["decision_trace_id"], grant["decision_trace_id"]);
        assert_eq!(report(&ann, "ack", &id, &json!({})).status, 200);
    }
}

/// In the words of other systems: take it as a message, drain its queue, have it wait.
fn others_words_get_it_not(id: &str, internal: &dyn Fn(&str, &str, &Value) -> Response) {
    for path in ["queue/scheduler/dequeue", "worker/queues/scheduler/drain-once?max_messages=100"] {
        let told = internal("POST", &format!("/api/v1/internal/{path}"), &json!({})).data();
        let none = told["messages"].as_array().is_none_or(Vec::is_empty);
        assert!(none && told["processed"].as_u64().is_none_or(|count| count == 0), "{told}");
    }
    let asked = internal(
        "POST",
        &format!("/api/v1/internal/jobs/{id}/interrupt"),
        &json!({ "question": "may it go?" }),
    );
    assert_eq!(asked.refusal(), (409, "JOB_GOVERNED".to_owned()));
}

/// Everything that somebody might try to get a held job done.
fn d12_ways_around_the_gates_lead_nowhere(store: Store) {
    let server = server(&SERVERS, store);
    let ann = server.caller("d12-around", "ann", &EVERYTHING);
    let ivy = server.caller("d12-around", "ivy", &["internal", "worker", "submitter"]);
    let admin = server.admin();
    put(&ann, "m1", &json!({ "risk_tier": "high" }));
    gate(&ann, "risk", "block");
    let id = enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    let job_type = text(&ann.job(&id), "job_type");
    let internal = |method: &str, path: &str, body: &Value| {
        let request = ivy.request(method, path).header("x-internal-debug", "true");
        request.json(body).send(ivy.address)
    };
    let native_pull = |who: &Caller, more: Value| {
        let wish = with(json!({ "worker_id": "w", "limit": 10 }), more);
        who.post("/api/v1/work/pull", &wish).data()["jobs"].as_array().unwrap().len()
    };
    let stays = |way: &str| {
        assert_eq!(job(&ann, &id)["status"], "queued", "{way}");
        assert_eq!(ann.path(&id), ["queued"], "{way}");
    };
    // 1, 2, 3: pull it natively, by its type, by its queue, by nothing at all.
    assert_eq!(native_pull(&ann, json!({ "types": [job_type] })), 0);
    assert_eq!(native_pull(&ann, json!({ "queues": ["scheduler"] })), 0);
    assert_eq!(native_pull(&ann, json!({})), 0);
    stays("native pulls");
    // 4: say that it is tomorrow.
    assert_eq!(pulled(&ann, json!({ "now": "2099-01-01T00:00:00Z" })).len(), 0);
    // 5, 6, 7: move it by hand, run it by hand, move it in the words of another contract.
    let moved = internal(
        "POST",
        &format!("/api/v1/internal/jobs/{id}/transition"),
        &json!({ "new_status": "running" }),
    );
    assert_ne!(moved.status, 200, "{}", moved.text());
    let ran = internal("POST", &format!("/api/v1/internal/jobs/{id}/run"), &json!({}));
    assert_ne!(ran.status, 200, "{}", ran.text());
    let shown = ivy.post(&format!("/jobs/{id}/transition"), &json!({ "toStatus": "running" }));
    assert_ne!(shown.status, 200, "{}", shown.text());
    let task =
        internal("POST", &format!("/tasks/{id}/transition"), &json!({ "to_state": "running" }));
    assert_ne!(task.status, 200, "{}", task.text());
    stays("moves by hand");
    others_words_get_it_not(&id, &internal);
    stays("other systems' words");
    // 8: resume the queue behind the gate, or set it, under any name it may have.
    for name in ["gate:risk", "gate:objects", "gate:risk:00000000000000000000000000000000"] {
        let set = admin.put(&format!("/api/v1/queues/{name}"), &json!({ "order": "aged" }));
        assert_ne!(set.status, 200, "{}", set.text());
        assert_ne!(admin.poke(&format!("/api/v1/queues/{name}/resume")).status, 200);
    }
    // 9: open the gate without being an operator, or in another tenant.
    for who in [&ivy, &server.caller("d12-around", "wes", &["worker", "submitter", "viewer"])] {
        assert_eq!(who.put("/scheduler/gates/risk", &json!({ "state": "pass" })).status, 403);
        let object = who.put("/scheduler/objects/memory/m1", &json!({ "risk_tier": "low" }));
        assert_eq!(object.status, 403);
    }
    let eve = server.caller("d12-elsewhere", "eve", &EVERYTHING);
    gate(&eve, "risk", "pass");
    assert_eq!(pulled(&ann, json!({})).len(), 0);
    // 10: enqueue it again under another key, or as another kind of action.
    let twin = with(wish("m1", "verify", "00:00:00"), json!({ "idempotency_key": "twin" }));
    enqueued(&ann, &twin);
    enqueued(&ann, &wish("m1", "archive", "00:00:00"));
    assert_eq!(pulled(&ann, json!({})).len(), 0);
    // 11: make such a job natively, with a key that looks like the contract's.
    let native = json!({
        "job_type": "scheduler.memory.verify.low", "payload": {}, "subject": "memory:m1",
        "idempotency_key": "m1", "idempotency_scope": "scheduler",
    });
    assert_eq!(ann.post("/api/v1/jobs", &native).status, 400);
    let schedule = json!({
        "job_type": "scheduler.memory.verify.low", "kind": "interval", "interval_seconds": 1,
    });
    assert_eq!(ann.post("/api/v1/schedules", &schedule).status, 400);
    // 12: let it fail first and requeue the dead letter, which is of the same kind.
    gate(&ann, "risk", "pass");
    let grant = pulled(&ann, json!({ "limit": 1 })).pop().unwrap();
    let held = text(&grant, "job_id");
    let item = json!({
        "items": [{ "job_id": held, "lease_token": grant["lease_token"], "error_code": "X",
                    "message": "x", "retryable": false }],
    });
    assert_eq!(ann.post("/api/v1/work/fail", &item).status, 200);
    assert_eq!(job(&ann, &held)["status"], "dead_letter");
    gate(&ann, "risk", "block");
    let items = ann.get("/api/v1/dlq/items?status=open").data();
    let dlq = text(&items["items"][0], "dlq_id");
    let again = ann.poke(&format!("/api/v1/dlq/items/{dlq}/requeue"));
    assert_eq!(again.status, 202, "{}", again.text());
    assert_eq!(pulled(&ann, json!({})).len(), 0);
    // 13: hand it out natively all the same, by all types there are.
    let types: Vec<String> = ["verify", "archive"]
        .iter()
        .flat_map(|action| ["low", "high"].map(|tier| format!("scheduler.memory.{action}.{tier}")))
        .collect();
    assert_eq!(native_pull(&ann, json!({ "types": types })), 0);
    gate(&ann, "risk", "pass");
    assert_eq!(pulled(&ann, json!({})).len(), 3, "nothing was lost by any of it");
}

/// Workers pull as fast as they can while a gate opens and closes: whatever is handed out was asked
/// for before the gate was told closed.
fn d12_no_claim_gets_past_a_gate_that_was_told_closed(store: Store) {
    let server = server(&SERVERS, store);
    let ann = server.caller("d12-race", "ann", &EVERYTHING);
    let stop = std::sync::atomic::AtomicBool::new(false);
    for index in 0..20 {
        put(&ann, &format!("o{index}"), &json!({ "risk_tier": "high" }));
    }
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (ann, stop) = (&ann, &stop);
            scope.spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let more = json!({ "worker_id": format!("w-{worker}"), "limit": 2 });
                    for grant in pulled(ann, more) {
                        report(ann, "ack", &text(&grant, "job_id"), &json!({}));
                    }
                }
            });
        }
        for round in 0..6 {
            gate(&ann, "risk", "block");
            let new: Vec<String> = (0..20)
                .map(|index| {
                    let time = format!("0{round}:00:{index:02}");
                    enqueued(&ann, &wish(&format!("o{index}"), "verify", &time))
                })
                .collect();
            // Enqueued behind the closed gate: none of them may move while it is.
            for id in &new {
                assert_eq!(ann.path(id), ["queued"]);
            }
            gate(&ann, "risk", "pass");
            eventually("all are done", || {
                let is_done = |id: &String| job(&ann, id)["status"] == "succeeded";
                new.iter().all(is_done).then_some(())
            });
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

fn d12_gates_and_objects_survive_a_restart(store: Store) {
    let config = "[scheduler]\nallow_client_clock = true\n";
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(config);
    let mut server = Server::start(options);
    let ann = server.caller("t", "ann", &EVERYTHING);
    gate(&ann, "risk", "block");
    let parked = enqueued(&ann, &wish("m1", "decay", "00:00:00"));
    put(&ann, "m1", &json!({ "risk_tier": "high", "status": "active", "auto_verify_budget": 7 }));
    let held = enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    assert_eq!(pulled(&ann, json!({})).len(), 0);
    let before = ann.get("/scheduler/objects/memory/m1").json();
    server.kill9();
    server.restart();
    let ann = Caller { address: server.address, token: ann.token };
    assert_eq!(ann.get("/scheduler/objects/memory/m1").json(), before);
    assert_eq!(ann.get("/scheduler/gates/risk").json()["state"], "block");
    assert_eq!(pulled(&ann, json!({})).len(), 0);
    gate(&ann, "risk", "pass");
    let mut granted = ids(&pulled(&ann, json!({})));
    granted.sort();
    let mut expected = [parked, held];
    expected.sort();
    assert_eq!(granted, expected);
}

fn d13_an_uncertain_object_is_verified_within_its_budget(store: Store) {
    let ann = server(&SERVERS, store).caller("d13", "ann", &EVERYTHING);
    put(&ann, "m1", &json!({ "epistemic": "uncertain", "unknown_type": "multipath" }));
    let jobs: Vec<String> = (0..5)
        .map(|index| enqueued(&ann, &wish("m1", "verify", &format!("00:00:0{index}"))))
        .collect();
    // The house gives two; asked for all at once, no more than that are handed out.
    assert_eq!(ids(&pulled(&ann, json!({}))), jobs[..2]);
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
    let object = ann.get("/scheduler/objects/memory/m1").json();
    assert_eq!((&object["auto_verify_used"], &object["held_jobs"]), (&json!(2), &json!(3)));
    for id in &jobs[2..] {
        assert_eq!(job(&ann, id)["status"], "queued");
        assert_eq!(held_by(&ann, id)[0], "AUTO_VERIFY_BUDGET");
    }
    // Other actions are no verification.
    let decay = enqueued(&ann, &wish("m1", "decay", "00:00:09"));
    assert_eq!(ids(&pulled(&ann, json!({}))), [decay]);
    // A failed verification has used its share up, too.
    report(&ann, "fail", &jobs[0], &json!({ "error": "x", "retry_delay_sec": 0 }));
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
    // Somebody gives it one more, and one more goes.
    put(&ann, "m1", &json!({ "auto_verify_budget": 1 }));
    assert_eq!(pulled(&ann, json!({})).len(), 1);
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
    // Once it is certain, everything goes.
    put(&ann, "m1", &json!({ "epistemic": "certain" }));
    assert_eq!(pulled(&ann, json!({})).len(), 3);
    // A budget of nothing is none.
    put(&ann, "m2", &json!({ "epistemic": "uncertain", "auto_verify_budget": 0 }));
    enqueued(&ann, &wish("m2", "verify", "00:00:00"));
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
}

fn d13_a_risky_uncertain_object_is_only_verified(store: Store) {
    let ann = server(&SERVERS, store).caller("d13-high", "ann", &EVERYTHING);
    let state = json!({ "risk_tier": "high", "epistemic": "uncertain" });
    put(&ann, "m1", &state);
    let jobs: Vec<(&str, String)> = ["decay", "archive", "revalidate", "reinstate-check"]
        .map(|action| (action, enqueued(&ann, &wish("m1", action, "00:00:00"))))
        .into();
    let verify = enqueued(&ann, &wish("m1", "verify", "00:00:01"));
    assert_eq!(ids(&pulled(&ann, json!({}))), [verify]);
    for (action, id) in &jobs {
        assert_eq!(held_by(&ann, id)[0], "OBJECT_UNCERTAIN", "{action}");
    }
    put(&ann, "m1", &json!({ "risk_tier": "medium" }));
    assert_eq!(pulled(&ann, json!({})).len(), 4);
}

fn d14_what_cannot_be_known_is_tried_so_often_and_then_ends(store: Store) {
    let ann = server(&SERVERS, store).caller("d14", "ann", &EVERYTHING);
    let state = json!({
        "epistemic": "uncertain", "unknown_type": "ontic_unknowable", "auto_verify_budget": 100,
    });
    put(&ann, "m1", &state);
    let mut tried = 0;
    let jobs: Vec<String> = (0..6)
        .map(|index| enqueued(&ann, &wish("m1", "verify", &format!("00:00:0{index}"))))
        .collect();
    while let Some(grant) = pulled(&ann, json!({ "limit": 1 })).pop() {
        tried += 1;
        let id = text(&grant, "job_id");
        let answer = match tried % 2 {
            0 => report(&ann, "ack", &id, &json!({})),
            _ => report(&ann, "fail", &id, &json!({ "error": "x", "retry_delay_sec": 0 })),
        };
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(tried <= 3, "the bound of the house is three");
    }
    assert_eq!(tried, 3);
    // All others are over, and nothing comes of asking again.
    let states: Vec<_> = jobs.iter().map(|id| text(&job(&ann, id), "status")).collect();
    let over = states.iter().filter(|state| *state == "dead_letter").count();
    assert!(over >= 4 && !states.contains(&"queued".to_owned()), "{states:?}");
    let late = enqueued(&ann, &wish("m1", "verify", "09:00:00"));
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
    let shown = job(&ann, &late);
    assert_eq!(shown["status"], "dead_letter");
    let events = ann.events(&late);
    let codes: Vec<_> = events.iter().map(|event| event["reason_code"].clone()).collect();
    assert!(codes.contains(&json!("UNKNOWABLE_TRIES_EXHAUSTED")), "{codes:?}");
    assert_eq!(ann.get("/scheduler/objects/memory/m1").json()["verify_tries"], 3);
}

fn d06_the_table_of_transitions_is_applied(store: Store) {
    let ann = server(&SERVERS, store).caller("d06-table", "ann", &EVERYTHING);
    let signal = json!({ "reinstate_signal": true });
    let table: &[(&str, &str, &str, &Value, &str, i64)] = &[
        ("memory", "verify", "candidate", &Value::Null, "verified", 14),
        ("memory", "verify", "poisoned", &Value::Null, "rejected_poisoned", 14),
        ("memory", "verify", "active", &Value::Null, "active", 14),
        ("memory", "revalidate", "stale", &signal, "active", 7),
        ("memory", "revalidate", "stale", &Value::Null, "stale_uncertain", 7),
        ("memory", "decay", "active", &Value::Null, "stale", 3),
        ("memory", "archive", "stale_uncertain", &Value::Null, "archived", 30),
        ("memory", "archive", "active", &Value::Null, "active", 30),
        ("memory", "reinstate-check", "stale", &signal, "active", 7),
        ("experience", "verify", "candidate", &Value::Null, "active", 14),
        ("experience", "revalidate", "needs_review", &json!({ "confidence": 0.6 }), "active", 7),
        ("experience", "revalidate", "candidate", &json!({ "confidence": 0.5 }), "needs_review", 7),
        ("experience", "decay", "active", &Value::Null, "needs_review", 3),
        ("experience", "archive", "invalidated", &Value::Null, "archived", 30),
        ("cognition", "verify", "candidate", &Value::Null, "candidate", 14),
    ];
    for (index, (kind, action, from, signals, to, days)) in table.iter().enumerate() {
        let path = format!("/scheduler/objects/{kind}/o{index}");
        let put = ann.put(&path, &json!({ "status": from, "signals": signals }));
        assert_eq!(put.status, 200, "{}", put.text());
        let wish =
            with(wish(&format!("o{index}"), action, "00:00:00"), json!({ "object_type": kind }));
        let id = enqueued(&ann, &wish);
        assert_eq!(ids(&pulled(&ann, json!({}))), std::slice::from_ref(&id));
        let acked = report(&ann, "ack", &id, &json!({}));
        assert_eq!(acked.status, 200, "{}", acked.text());
        let object = &acked.json()["object"];
        assert_eq!(object["status"], json!(to), "{kind} {action} of {from}");
        let next: jiff::Timestamp = text(object, "next_action_at").parse().unwrap();
        let hours = next.duration_since(jiff::Timestamp::now()).as_hours();
        assert!((days * 24 - 1..=days * 24).contains(&hours), "{action}: {hours} hours");
    }
}

fn d06_an_object_enqueues_its_next_action_by_itself(store: Store) {
    let ann = server(&SERVERS, store).caller("d06-alarm", "ann", &EVERYTHING);
    let soon = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() + 1).unwrap();
    let state = json!({ "next_action": "decay", "next_action_at": soon.to_string() });
    put(&ann, "m1", &state);
    let grant = eventually("it enqueues by itself", || {
        let pull = json!({ "worker_id": "w" });
        support::jobs(&ann.post("/scheduler/jobs/pull", &pull)).pop()
    });
    let shown = (&grant["object_id"], &grant["action"], &grant["run_at"]);
    assert_eq!(shown, (&json!("m1"), &json!("decay"), &json!(soon.to_string())));
    // Once; the next one is set by what was done.
    assert_eq!(ann.get("/scheduler/objects/memory/m1").json()["next_action_at"], Value::Null);
    let ack = json!({ "next_action_at": at("00:00:00") });
    assert_eq!(report(&ann, "ack", &text(&grant, "job_id"), &ack).status, 200);
    let object = ann.get("/scheduler/objects/memory/m1").json();
    assert_eq!(object["next_action_at"], at("00:00:00"));
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new(), "it is not due by the server's clock");
}

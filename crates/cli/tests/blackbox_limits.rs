//! Limits from outside: rates, keys, pauses of types, circuits; and that explain names each of
//! them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    a_rate_limit_holds_and_a_waiting_pull_is_woken_when_it_refills,
    each_key_has_a_rate_of_its_own,
    a_concurrency_limit_counts_each_key_and_names_the_holders,
    a_paused_type_says_who_paused_it,
    a_circuit_opens_is_seen_and_can_be_reset,
    one_job_is_tried_when_a_circuit_has_been_open_and_decides,
    what_makes_no_sense_is_refused,
    a_tenant_is_paused_weighed_and_bounded,
    retries_leave_fresh_jobs_nineteen_of_twenty_turns,
    an_explanation_says_when_a_job_may_be_expected_to_start,
];

/// One server per store for the whole file; every test has a tenant and types of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    let config = "[alerts]\ncheck = \"200ms\"\n";
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).config(config))
}

fn ann(store: Store, tenant: &str) -> Caller {
    server(store).caller(tenant, "ann", &["submitter", "worker", "operator"])
}

fn set(store: Store, name: &str, spec: &Value) -> Value {
    server(store).admin().put(&format!("/api/v1/types/{name}"), spec).data()
}

/// The reasons of an explanation, by code.
fn reasons(caller: &Caller, id: &str) -> Vec<(String, String)> {
    let told = caller.get(&format!("/api/v1/jobs/{id}/explain")).data();
    let reasons = told["reasons"].as_array().unwrap().clone();
    reasons.iter().map(|reason| (text(reason, "code"), text(reason, "message"))).collect()
}

fn message(caller: &Caller, id: &str, code: &str) -> String {
    let all = reasons(caller, id);
    let found = all.iter().find(|(found, _)| found == code);
    found.unwrap_or_else(|| panic!("{all:?} has no {code}")).1.clone()
}

fn a_rate_limit_holds_and_a_waiting_pull_is_woken_when_it_refills(store: Store) {
    let ann = ann(store, "rate");
    // Slow enough that the machine does not matter.
    let shown = set(store, "rated", &json!({ "rate_limit": { "per_second": 0.001, "burst": 2 } }));
    assert_eq!(shown["rate_limit"], json!({ "per_second": 0.001, "burst": 2 }));
    let ids: Vec<String> = (0..4).map(|_| ann.submit_plain("rated")).collect();
    assert_eq!(ann.pull("rated", 10).len(), 2, "the burst");
    assert!(ann.pull("rated", 10).is_empty());
    let told = message(&ann, &ids[3], "RATE_LIMITED");
    assert!(told.contains("rated") && told.contains(" s"), "{told}");
    let explained = ann.get(&format!("/api/v1/jobs/{}/explain", ids[3])).data();
    assert!(text(&explained, "earliest_at") > text(&ann.job(&ids[3]), "run_at"), "{explained}");
    // It waits for the bucket and for nothing else: no new job, no report comes.
    set(store, "refilled", &json!({ "rate_limit": { "per_second": 1, "burst": 1 } }));
    let ids: Vec<String> = (0..3).map(|_| ann.submit_plain("refilled")).collect();
    let started = |id: &String| {
        assert_eq!(ann.pull_one("refilled")["job_id"], id.as_str());
        text(&ann.job(id), "started_at").parse::<jiff::Timestamp>().unwrap()
    };
    let started: Vec<jiff::Timestamp> = ids.iter().map(started).collect();
    for two in started.windows(2) {
        let between = two[1].duration_since(two[0]);
        assert!(between.as_millis() >= 999, "{between:?}");
    }
}

fn each_key_has_a_rate_of_its_own(store: Store) {
    let ann = ann(store, "rate-key");
    let limit = json!({ "rate_limit": { "per_second": 0.01, "burst": 1, "key": "/to" } });
    set(store, "mailed", &limit);
    for to in ["a", "a", "a", "b", "c"] {
        ann.submit(&json!({ "job_type": "mailed", "payload": { "to": to } }));
    }
    let pulled = ann.pull("mailed", 10);
    let mut to: Vec<String> = pulled.iter().map(|job| text(&job["payload"], "to")).collect();
    to.sort_unstable();
    assert_eq!(to, ["a", "b", "c"]);
    assert!(ann.pull("mailed", 10).is_empty());
}

fn a_concurrency_limit_counts_each_key_and_names_the_holders(store: Store) {
    let ann = ann(store, "key");
    let spec = json!({ "concurrency_limit": 1, "concurrency_key": "customer" });
    assert_eq!(set(store, "per-key", &spec)["concurrency_key"], "customer");
    let submit = |more: Value| {
        let mut wish = json!({ "job_type": "per-key", "payload": 0 });
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        text(&ann.submit(&wish), "job_id")
    };
    let x: Vec<String> = (0..3).map(|_| submit(json!({ "labels": { "customer": "x" } }))).collect();
    let own = submit(json!({ "labels": { "customer": "x" }, "concurrency_key": "own" }));
    let plain = submit(json!({}));
    let grants = ann.pull("per-key", 10);
    let mut got: Vec<String> = grants.iter().map(|job| text(job, "job_id")).collect();
    got.sort_unstable();
    let mut wanted = vec![x[0].clone(), own, plain];
    wanted.sort_unstable();
    assert_eq!(got, wanted);
    let told = message(&ann, &x[2], "CONCURRENCY_LIMIT_EXCEEDED");
    assert!(told.contains("1 of 1") && told.contains("\"x\"") && told.contains(&x[0]), "{told}");
    let waiting = {
        let ann = ann.clone();
        std::thread::spawn(move || ann.pull_one("per-key"))
    };
    let first = grants.iter().find(|job| job["job_id"] == x[0].as_str()).unwrap();
    ann.complete(first);
    assert_eq!(waiting.join().unwrap()["job_id"], x[1].as_str());
    assert!(ann.pull("per-key", 10).is_empty());
    // Another tenant is not told whose jobs hold it up.
    let eve = self::ann(store, "key-2");
    let wish = json!({ "job_type": "per-key", "payload": 0, "concurrency_key": "x" });
    let id = text(&eve.submit(&wish), "job_id");
    let told = message(&eve, &id, "CONCURRENCY_LIMIT_EXCEEDED");
    assert!(!told.contains(&x[1]), "{told}");
}

fn a_paused_type_says_who_paused_it(store: Store) {
    let (admin, bob) = (server(store).admin(), ann(store, "paused-type"));
    set(store, "resting", &json!({}));
    let paused = admin.poke("/api/v1/types/resting/pause").data();
    let by = text(&paused, "paused_by");
    assert!(paused["paused_at"].is_string(), "{paused}");
    let id = bob.submit_plain("resting");
    assert!(bob.pull("resting", 5).is_empty());
    assert!(message(&bob, &id, "TYPE_PAUSED").contains(&by));
    // Whoever sets the type again does not resume it by that.
    assert_eq!(set(store, "resting", &json!({ "priority": 7 }))["paused_by"], by.as_str());
    let waiting = {
        let bob = bob.clone();
        std::thread::spawn(move || bob.pull_one("resting"))
    };
    let resumed = admin.poke("/api/v1/types/resting/resume").data();
    assert_eq!(resumed["paused_by"], Value::Null);
    assert_eq!(waiting.join().unwrap()["job_id"], id.as_str(), "a waiting pull is woken");
    let unknown = admin.poke("/api/v1/types/nobody-knows/pause");
    assert_eq!(unknown.refusal(), (404, "TYPE_NOT_FOUND".to_owned()));
    assert_eq!(bob.poke("/api/v1/types/resting/pause").status, 403);
}

fn a_circuit_opens_is_seen_and_can_be_reset(store: Store) {
    let (admin, bob) = (server(store).admin(), ann(store, "circuit"));
    let spec = json!({
        "max_retries": 0,
        "circuit": { "failure_ratio": 0.5, "min_calls": 2, "open_seconds": 3600 },
    });
    set(store, "breaking", &spec);
    let state = || admin.get("/api/v1/types/breaking").data()["circuit_state"].clone();
    assert_eq!(state(), json!({ "state": "closed", "until": null }));
    for _ in 0..3 {
        bob.submit_plain("breaking");
    }
    let grants = bob.pull("breaking", 2);
    for grant in &grants {
        bob.report("fail", grant, json!({ "error_code": "DOWN", "retryable": false }));
    }
    assert_eq!(state()["state"], "open");
    assert!(state()["until"].is_string());
    let id = bob.submit_plain("breaking");
    assert!(bob.pull("breaking", 5).is_empty());
    assert!(message(&bob, &id, "CIRCUIT_OPEN").contains("breaking"));
    eventually("an alert tells of it", || {
        let alerts = bob.get("/api/v1/alerts?state=open").data();
        let all = alerts["items"].as_array().unwrap().clone();
        all.into_iter().find(|alert| alert["rule"] == "circuit_open")
    });
    let waiting = {
        let bob = bob.clone();
        std::thread::spawn(move || bob.pull_one("breaking"))
    };
    let reset = admin.poke("/api/v1/types/breaking/circuit/reset").data();
    assert_eq!(reset["circuit_state"]["state"], "closed");
    waiting.join().unwrap();
    assert_eq!(bob.poke("/api/v1/types/breaking/circuit/reset").status, 403);
}

fn one_job_is_tried_when_a_circuit_has_been_open_and_decides(store: Store) {
    let (admin, bob) = (server(store).admin(), ann(store, "probe"));
    let spec = json!({
        "max_retries": 0,
        "circuit": { "failure_ratio": 1, "min_calls": 2, "open_seconds": 1 },
    });
    set(store, "probed", &spec);
    let state = || text(&admin.get("/api/v1/types/probed").data()["circuit_state"], "state");
    for _ in 0..7 {
        bob.submit_plain("probed");
    }
    let fail = |grant: &Value| {
        bob.report("fail", grant, json!({ "error_code": "DOWN", "retryable": false }));
    };
    bob.pull("probed", 2).iter().for_each(&fail);
    // Nothing but time lets the next one go, and only one.
    let first = bob.pull_one("probed");
    assert_eq!(state(), "half_open");
    assert!(bob.pull("probed", 5).is_empty(), "one is tried at a time");
    let waits = bob.submit_plain("probed");
    assert!(message(&bob, &waits, "CIRCUIT_OPEN").contains("being tried"));
    fail(&first);
    assert_ne!(state(), "closed", "it failed");
    let second = bob.pull_one("probed");
    assert!(bob.pull("probed", 5).is_empty());
    // Given back it decides nothing: the next is tried at once.
    bob.report("release", &second, json!({}));
    let third = bob.pull_one("probed");
    assert!(bob.pull("probed", 5).is_empty());
    bob.complete(&third);
    assert_eq!(state(), "closed");
    assert_eq!(bob.pull("probed", 9).len(), 4, "all that were left");
}

fn what_makes_no_sense_is_refused(store: Store) {
    let admin = server(store).admin();
    for (spec, field) in [
        (json!({ "rate_limit": { "per_second": 0 } }), "rate_limit.per_second"),
        (json!({ "rate_limit": { "per_second": 1, "burst": 10_001 } }), "rate_limit.burst"),
        (json!({ "rate_limit": { "per_second": 1, "key": "/a~2" } }), "rate_limit.key"),
        (json!({ "concurrency_key": "a\u{0}b" }), "concurrency_key"),
        (
            json!({ "circuit": { "failure_ratio": 2, "min_calls": 1, "open_seconds": 1 } }),
            "circuit.failure_ratio",
        ),
    ] {
        let refused = admin.put("/api/v1/types/senseless", &spec);
        assert!(refused.status == 400 || refused.status == 422, "{spec}: {}", refused.status);
        assert_eq!(refused.code(), "REQ_VALIDATION_FAILED");
        assert!(refused.text().contains(field), "{spec}: {}", refused.text());
    }
    let bob = ann(store, "senseless");
    for key in ["", "a\u{7}b", &"x".repeat(201)] {
        let wish = json!({ "job_type": "per-key", "payload": 0, "concurrency_key": key });
        let refused = bob.post("/api/v1/jobs", &wish);
        assert_eq!(refused.code(), "REQ_VALIDATION_FAILED", "{key:?}");
    }
}

fn a_tenant_is_paused_weighed_and_bounded(store: Store) {
    let (admin, bob) = (server(store).admin(), ann(store, "bounded"));
    set(store, "bounded", &json!({}));
    let plain = admin.get("/api/v1/tenants/bounded").data();
    assert_eq!((&plain["weight"], &plain["paused"]), (&json!(1), &json!(false)));
    let wish = json!({ "weight": 4, "backlog_max": 2, "paused": true });
    let set = admin.put("/api/v1/tenants/bounded", &wish).data();
    assert_eq!((&set["weight"], &set["backlog_max"]), (&json!(4), &json!(2)));
    let by = text(&set, "paused_by");
    let first = bob.submit_plain("bounded");
    bob.submit_plain("bounded");
    let refused = bob.post("/api/v1/jobs", &json!({ "job_type": "bounded", "payload": 0 }));
    assert_eq!(refused.refusal(), (429, "TENANT_BACKLOG_FULL".to_owned()));
    assert!(refused.header("retry-after").is_some());
    assert!(bob.pull("bounded", 5).is_empty());
    assert!(message(&bob, &first, "TENANT_PAUSED").contains(&by));
    eventually("the backlog is counted", || {
        let shown = admin.get("/api/v1/tenants/bounded").data();
        (shown["backlog"] == 2).then_some(())
    });
    for n in 0..4 {
        admin.put(&format!("/api/v1/tenants/paged-{n}"), &json!({ "weight": 2 })).data();
    }
    let (mut names, mut path) = (BTreeSet::new(), "/api/v1/tenants?limit=2".to_owned());
    loop {
        let page = admin.get(&path).data();
        let some = items(page.clone());
        assert!((1..=2).contains(&some.len()), "{page}");
        for tenant in &some {
            assert!(names.insert(text(tenant, "tenant_id")), "{tenant} comes twice");
        }
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/tenants?limit=2&cursor={cursor}");
    }
    let wanted = ["bounded", "paged-0", "paged-1", "paged-2", "paged-3"];
    assert!(wanted.iter().all(|name| names.contains(*name)), "{names:?}");
    assert_eq!(admin.get("/api/v1/tenants?cursor=nonsense").refusal().0, 400);
    let waiting = {
        let bob = bob.clone();
        std::thread::spawn(move || bob.pull_one("bounded"))
    };
    admin.put("/api/v1/tenants/bounded", &json!({ "backlog_max": 2 })).data();
    assert_eq!(waiting.join().unwrap()["job_id"], first.as_str(), "a waiting pull is woken");
    for bad in [json!({ "weight": 0 }), json!({ "weight": 101 }), json!({ "wait": 1 })] {
        assert!(admin.put("/api/v1/tenants/bounded", &bad).status >= 400, "{bad}");
    }
    assert_eq!(bob.get("/api/v1/tenants/bounded").status, 403);
    assert_eq!(bob.put("/api/v1/tenants/bounded", &json!({})).status, 403);
}

fn retries_leave_fresh_jobs_nineteen_of_twenty_turns(store: Store) {
    let ann = ann(store, "storm");
    let spec = json!({ "max_retries": 5, "backoff_base_ms": 10, "backoff_max_ms": 10 });
    set(store, "storming", &spec);
    let old: Vec<String> = (0..12).map(|_| ann.submit_plain("storming")).collect();
    for grant in ann.pull("storming", 12) {
        ann.report("fail", &grant, json!({ "error_code": "DOWN", "retryable": true }));
    }
    for id in &old {
        eventually("its next try is due", || {
            let waits = reasons(&ann, id).iter().any(|(code, _)| code == "RETRY_BACKOFF");
            (!waits).then_some(())
        });
    }
    for _ in 0..19 {
        ann.submit_plain("storming");
    }
    assert!(message(&ann, &old[11], "RETRY_BUDGET").contains("retry"));
    let pulled = ann.pull("storming", 20);
    let tried = pulled.iter().filter(|job| old.iter().any(|id| job["job_id"] == id.as_str()));
    assert_eq!((pulled.len(), tried.count()), (20, 1));
    let codes: Vec<String> = reasons(&ann, &old[11]).into_iter().map(|(code, _)| code).collect();
    assert!(!codes.iter().any(|code| code == "RETRY_BUDGET"), "{codes:?}");
    assert_eq!(ann.pull("storming", 20).len(), 11, "with nothing else to do, they go at once");
}

/// The estimate of an explanation: what it rests on, and when it is.
fn estimate(caller: &Caller, id: &str) -> (String, Option<jiff::Timestamp>) {
    let told = caller.get(&format!("/api/v1/jobs/{id}/explain")).data();
    let start = &told["estimated_start"];
    assert!(!text(start, "message").is_empty(), "{told}");
    let at = start["at"].as_str().map(|at| at.parse().unwrap());
    (text(start, "basis"), at)
}

fn an_explanation_says_when_a_job_may_be_expected_to_start(store: Store) {
    let ann = ann(store, "estimate");
    let at =
        |id: &str, field: &str| -> jiff::Timestamp { text(&ann.job(id), field).parse().unwrap() };
    set(store, "guessed", &json!({}));
    // Nobody asked for the type yet, so nobody can tell.
    let first = ann.submit_plain("guessed");
    assert_eq!(estimate(&ann, &first), ("unknown".to_owned(), None));
    let grant = ann.pull_one("guessed");
    assert_eq!(
        ann.get(&format!("/api/v1/jobs/{first}/explain")).data()["estimated_start"],
        Value::Null
    );
    ann.complete(&grant);
    let next = ann.submit_plain("guessed");
    let (basis, when) = estimate(&ann, &next);
    assert!(basis == "next_pull" && when.unwrap() >= at(&next, "created_at"), "{basis} {when:?}");
    // One was started within the last minutes: those that wait are expected at that pace.
    let later: Vec<String> = (0..3).map(|_| ann.submit_plain("guessed")).collect();
    let guesses: Vec<_> = later.iter().map(|id| estimate(&ann, id)).collect();
    assert!(guesses.iter().all(|(basis, _)| basis == "pace"), "{guesses:?}");
    assert!(guesses.windows(2).all(|two| two[0].1 < two[1].1), "in their order: {guesses:?}");
    let wish = json!({ "job_type": "guessed", "payload": 0, "delay_ms": 3_600_000 });
    let due = text(&ann.submit(&wish), "job_id");
    assert_eq!(estimate(&ann, &due), ("due".to_owned(), Some(at(&due, "run_at"))));
    let ran = server(store).cli_as(&ann.token, &["jobs", "explain", &due]).expect(0);
    assert!(ran.stdout.contains("estimate"), "{ran:?}");

    // A bucket gives one every hundred seconds, to those before it first.
    let rate = json!({ "rate_limit": { "per_second": 0.01, "burst": 1 } });
    set(store, "dripping", &rate);
    let ids: Vec<String> = (0..3).map(|_| ann.submit_plain("dripping")).collect();
    ann.complete(&ann.pull_one("dripping"));
    let (basis, when) = estimate(&ann, &ids[1]);
    let refill = when.unwrap().duration_since(at(&ids[0], "started_at")).as_secs();
    assert!(basis == "refill" && (99..=101).contains(&refill), "{basis} in {refill} s");
    let more = estimate(&ann, &ids[2]).1.unwrap().duration_since(when.unwrap()).as_secs();
    assert!((99..=101).contains(&more), "{more} s");

    server(store).admin().poke("/api/v1/types/dripping/pause").data();
    assert_eq!(estimate(&ann, &ids[2]), ("unknown".to_owned(), None), "somebody must resume it");
    let wait = json!({ "job_type": "guessed", "payload": 0, "after": [due] });
    let wait = text(&ann.submit(&wait), "job_id");
    assert_eq!(estimate(&ann, &wait), ("unknown".to_owned(), None));
}

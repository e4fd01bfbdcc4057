//! The task contract from outside: asking twice, asking wrongly, and asking for what is not one's
//! own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_tasks/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use support::{
    EVERYTHING, FUTURE, PAST, SAMPLE_FIELDS, at, created, fields, moves, post, states, task,
    told_no, transition, with,
};

both_stores![
    m09_a_hit_that_differs_is_a_duplicate_and_says_in_what,
    m14_a_key_is_one_task_per_scope,
    m13_of_64_concurrent_creations_exactly_one_creates,
    m10_what_makes_no_sense_is_refused_by_the_name_of_its_field,
    m01_a_task_is_a_job_for_the_native_contract_and_a_job_is_a_task,
    m02_doors_are_shut_alike_for_the_unknown_and_the_foreign,
    m13_names_and_keys_survive_kill_9,
];

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes"))
}

fn m09_a_hit_that_differs_is_a_duplicate_and_says_in_what(store: Store) {
    let joe = server(store).caller("m09", "joe", &["submitter"]);
    let more = json!({ "timeout_ms": 1000, "max_retries": 1, "idempotency_key": "k",
        "idempotency_scope": "s", "payload": { "n": 1 } });
    let wish = with(at("one", FUTURE), more);
    created(&joe, &wish);
    // The payload is not compared, nor is what the request does not carry.
    for same in [
        wish.clone(),
        with(wish.clone(), json!({ "payload": { "n": 2 } })),
        with(wish.clone(), json!({ "scheduled_at": "2031-02-25T12:00:00.000+00:00" })),
        with(wish.clone(), json!({ "task_id": "other" })),
        with(wish.clone(), json!({ "idempotency_key": "another" })),
        json!({ "task_id": "one" }),
        json!({ "task_id": "two", "idempotency_key": "k", "idempotency_scope": "s" }),
    ] {
        let (status, hit) = post(&joe, "/tasks", &same);
        assert_eq!((status, &hit["task"]["task_id"]), (200, &json!("one")), "{same}: {hit}");
    }
    for (change, conflicts) in [
        (json!({ "scheduled_at": PAST }), json!(["scheduled_at"])),
        (json!({ "timeout_ms": 1001, "max_retries": 2 }), json!(["timeout_ms", "max_retries"])),
        (
            json!({ "schedule_type": "cron", "cron_expr": "0 3 * * *", "timezone": "UTC",
                "next_run_at": FUTURE }),
            json!(["schedule_type", "cron_expr", "timezone"]),
        ),
    ] {
        let refused = post(&joe, "/tasks", &with(wish.clone(), change));
        let error = told_no(refused, 409, "TASK_DUPLICATE");
        assert_eq!(error["conflict_fields"], conflicts);
        assert_eq!(error["task"]["task_id"], "one");
        assert_eq!(fields(&error["task"]), BTreeSet::from(SAMPLE_FIELDS));
        assert!(error["reason"].is_string() && error["retryable"] == false);
    }
    // The id of one task with the key of another.
    created(&joe, &with(at("second", FUTURE), json!({ "idempotency_key": "l" })));
    for body in [
        with(at("one", FUTURE), json!({ "idempotency_key": "l" })),
        json!({ "task_id": "one", "idempotency_key": "l" }),
    ] {
        let error = told_no(post(&joe, "/tasks", &body), 409, "TASK_DUPLICATE");
        assert_eq!(error["conflict_fields"], json!(["task_id", "idempotency_key"]));
        assert_eq!(error["task"]["task_id"], "one");
    }
    assert_eq!(items(joe.get("/api/v1/jobs").data()).len(), 2);
    // Ids and keys are a tenant's; who may not read a task learns little from its name.
    let zoe = server(store).caller("m09", "zoe", &["submitter"]);
    let (status, hit) = post(&zoe, "/tasks", &wish);
    let expected =
        json!({ "idempotent_hit": true, "task": { "task_id": "one", "state": "pending" } });
    assert_eq!((status, hit), (200, expected));
    let refused = post(&zoe, "/tasks", &with(wish.clone(), json!({ "timeout_ms": 9 })));
    let error = told_no(refused, 409, "TASK_DUPLICATE");
    assert_eq!((&error["conflict_fields"], error.get("task")), (&json!([]), None));
    let far = server(store).caller("m09-far", "joe", &["submitter"]);
    created(&far, &wish);
}

fn m14_a_key_is_one_task_per_scope(store: Store) {
    let lea = server(store).caller("m14", "lea", &["submitter"]);
    let keyed = |id: &str, scope: Option<&str>| {
        with(at(id, FUTURE), json!({ "idempotency_key": "k", "idempotency_scope": scope }))
    };
    created(&lea, &keyed("a", Some("tenant_a")));
    created(&lea, &keyed("b", Some("tenant_b")));
    created(&lea, &keyed("c", None));
    for (id, scope, found) in
        [("d", Some("tenant_a"), "a"), ("e", None, "c"), ("f", Some("tenant_b"), "b")]
    {
        let (status, hit) = post(&lea, "/tasks", &keyed(id, scope));
        assert_eq!((status, &hit["task"]["task_id"]), (200, &json!(found)));
    }
    // A key of the native contract is another one.
    let native = json!({ "job_type": "m14", "payload": {}, "idempotency_key": "k",
        "idempotency_scope": "tenant_a" });
    assert_eq!(lea.post("/api/v1/jobs", &native).status, 201);
    // An empty key is none.
    for id in ["g", "h"] {
        created(&lea, &with(at(id, FUTURE), json!({ "idempotency_key": "" })));
    }
}

fn m13_of_64_concurrent_creations_exactly_one_creates(store: Store) {
    let max = server(store).caller("m13", "max", &["submitter"]);
    for (name, wish) in [
        (
            "id",
            Box::new(|_: usize| at("same", FUTURE)) as Box<dyn Fn(usize) -> Value + Send + Sync>,
        ),
        (
            "key",
            Box::new(|n| with(at(&format!("n-{n}"), FUTURE), json!({ "idempotency_key": "k" }))),
        ),
        ("both", Box::new(|_| with(at("both", FUTURE), json!({ "idempotency_key": "both" })))),
        (
            "plan",
            Box::new(|_| {
                json!({ "task_id": "plan", "schedule_type": "cron", "cron_expr": "0 3 1 1 *",
                    "timezone": "UTC", "next_run_at": FUTURE, "idempotency_key": "plan" })
            }),
        ),
    ] {
        let before = items(max.get("/api/v1/jobs?limit=100").data()).len();
        let (barrier, wish) = (Arc::new(Barrier::new(64)), Arc::new(wish));
        let threads: Vec<_> = (0..64)
            .map(|n| {
                let (max, barrier, wish) = (max.clone(), barrier.clone(), wish.clone());
                std::thread::spawn(move || {
                    barrier.wait();
                    post(&max, "/tasks", &wish(n))
                })
            })
            .collect();
        let answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let count = |status: u16, is_hit: bool| {
            let is_such = |it: &&(u16, Value)| it.0 == status && it.1["idempotent_hit"] == is_hit;
            answers.iter().filter(is_such).count()
        };
        assert_eq!((count(201, false), count(200, true)), (1, 63), "{name}: {answers:?}");
        let ids: BTreeSet<_> = answers.iter().map(|(_, it)| text(&it["task"], "task_id")).collect();
        assert_eq!(ids.len(), 1, "{name}: {ids:?}");
        assert_eq!(items(max.get("/api/v1/jobs?limit=100").data()).len(), before + 1, "{name}");
    }
    assert_eq!(items(max.get("/api/v1/schedules").data()).len(), 1, "one plan, one schedule");
}

fn m10_what_makes_no_sense_is_refused_by_the_name_of_its_field(store: Store) {
    let pat = server(store).caller("m10-bad", "pat", &["submitter"]);
    let good = at("x", PAST);
    for (change, field) in [
        (json!({ "schedule_type": "weekly" }), "schedule_type"),
        (json!({ "schedule_type": "every" }), "schedule_type"),
        (json!({ "schedule_type": null }), "schedule_type"),
        (json!({ "schedule_type": 1 }), "schedule_type"),
        (json!({ "scheduled_at": null }), "scheduled_at"),
        (json!({ "scheduled_at": "" }), "scheduled_at"),
        (json!({ "scheduled_at": "tomorrow" }), "scheduled_at"),
        (json!({ "scheduled_at": 1772020800 }), "scheduled_at"),
        (json!({ "scheduled_at": "2026-02-25T20:00:00+08:00" }), "scheduled_at"),
        (json!({ "scheduled_at": "2026-02-25T20:00:00" }), "scheduled_at"),
        (json!({ "scheduled_at": "9999-01-01T00:00:00Z" }), "scheduled_at"),
        (json!({ "next_run_at": "2026-02-25T20:00:00+08:00" }), "next_run_at"),
        (json!({ "timezone": " " }), "timezone"),
        (json!({ "cron_expr": "" }), "cron_expr"),
    ] {
        let error = told_no(
            post(&pat, "/tasks", &with(good.clone(), change)),
            422,
            "TASK_INVALID_SCHEDULE",
        );
        assert_eq!(error["field"], field, "{error}");
    }
    for (change, field) in [
        (json!({ "task_id": "" }), "task_id"),
        (json!({ "task_id": "  " }), "task_id"),
        (json!({ "task_id": 7 }), "task_id"),
        (json!({ "task_id": "a\u{0}b" }), "task_id"),
        (json!({ "task_id": "x".repeat(161) }), "task_id"),
        (json!({ "task_id": "events" }), "task_id"),
        (json!({ "task_id": "job_00000000000000000000000000" }), "task_id"),
        (json!({ "task_id": "daily@2026-02-25T12:00:00Z" }), "task_id"),
        (json!({ "idempotency_scope": "\u{84}" }), "idempotency_scope"),
        (json!({ "timeout_ms": 0 }), "timeout_ms"),
        (json!({ "timeout_ms": -1 }), "timeout_ms"),
        (json!({ "timeout_ms": "1" }), "timeout_ms"),
        (json!({ "max_retries": -1 }), "max_retries"),
        (json!({ "max_retries": 1001 }), "max_retries"),
        (json!({ "payload": [] }), "payload"),
        (json!({ "payload": "text" }), "payload"),
        (json!({ "idempotency_key": "a\tb" }), "idempotency_key"),
        (
            json!({ "idempotency_key": "k", "idempotency_scope": "x".repeat(600) }),
            "idempotency_scope",
        ),
        (json!({ "state": "succeeded" }), "state"),
        (json!({ "attempt": 3 }), "attempt"),
    ] {
        let error =
            told_no(post(&pat, "/tasks", &with(good.clone(), change)), 422, "TASK_INVALID_FIELD");
        assert_eq!(error["field"], field, "{error}");
    }
    let missing = post(&pat, "/tasks", &json!({ "schedule_type": "at", "scheduled_at": PAST }));
    assert_eq!(
        told_no(missing, 422, "TASK_INVALID_FIELD")["message"]
            .as_str()
            .map(|it| it.contains("task_id")),
        Some(true)
    );
    let request = pat.request("POST", "/tasks").header("content-type", "application/json");
    let broken = request.body("{").send(pat.address);
    told_no((broken.status, broken.json()), 400, "JSON_INVALID");
    assert!(items(pat.get("/api/v1/jobs").data()).is_empty(), "nothing was created");
}

fn m01_a_task_is_a_job_for_the_native_contract_and_a_job_is_a_task(store: Store) {
    let ned = server(store).caller("m01", "ned", &["submitter", "worker"]);
    let made =
        created(&ned, &with(at("mine", FUTURE), json!({ "timeout_ms": 7000, "max_retries": 4 })));
    let job = ned.job(&text(&made, "job_id"));
    for (field, value) in [
        ("job_type", json!("task")),
        ("status", json!("queued")),
        ("timeout_ms", json!(7000)),
        ("max_retries", json!(4)),
        ("retry_count", json!(0)),
        ("user_id", json!("ned")),
        ("run_at", json!("2031-02-25T12:00:00.000000Z")),
    ] {
        assert_eq!(job[field], value, "{field}");
    }
    assert_eq!(job["labels"]["task_id"], "mine");
    assert_eq!(items(ned.get("/api/v1/jobs?label=task_id%3Dmine").data()).len(), 1);
    // Cancelled there, ended here.
    assert_eq!(ned.poke(&format!("/api/v1/jobs/{}/cancel", text(&made, "job_id"))).status, 202);
    assert_eq!(task(&ned, "mine")["state"], "cancelled");
    // A native job goes by its id, and its labels are only labels.
    let wish = json!({ "job_type": "m01", "payload": [1], "delay_ms": 3600000,
        "labels": { "task_id": "mine", "scheduled_at": PAST } });
    let native = ned.submit(&wish);
    let id = text(&native, "job_id");
    let shown = task(&ned, &id);
    assert_eq!((&shown["task_id"], &shown["job_id"]), (&json!(id), &json!(id)));
    assert_eq!((&shown["state"], &shown["payload"]), (&json!("pending"), &json!([1])));
    assert_eq!(
        (&shown["schedule_type"], &shown["scheduled_at"]),
        (&json!("at"), &native["run_at"])
    );
    assert_eq!(ned.poke(&format!("/tasks/{id}/cancel")).json()["state"], "cancelled");
    assert_eq!(ned.job(&id)["status"], "cancelled");
    // The type is there without being registered, and its jobs are tasks, too.
    assert_eq!(server(store).admin().get("/api/v1/types/task").data()["backoff_base_ms"], 0);
    let plain = ned.submit_plain("task");
    ned.complete(&ned.pull_one("task"));
    let told = states(&moves(&ned, &plain));
    assert_eq!(told, ["pending>ready", "ready>running", "running>succeeded"]);
}

fn m02_doors_are_shut_alike_for_the_unknown_and_the_foreign(store: Store) {
    let own = server(store).caller("m02-own", "ann", &["submitter"]);
    let made = created(&own, &at("secret", FUTURE));
    let job = text(&made, "job_id");
    let strangers = [
        server(store).caller("m02-other", "eve", &EVERYTHING),
        server(store).caller("m02-own", "eve", &["submitter", "worker"]),
    ];
    let routes = [
        ("GET", "/tasks/{id}"),
        ("GET", "/tasks/{id}/events"),
        ("POST", "/tasks/{id}/cancel"),
        ("POST", "/tasks/{id}/transition"),
    ];
    let ask = |who: &Caller, method: &str, path: &str, id: &str| {
        let mut request = who.request(method, &path.replace("{id}", id));
        if path.ends_with("transition") {
            request = request.header("x-internal-debug", "true");
            request = request.json(&json!({ "to_state": "cancelled" }));
        }
        let answer = request.send(who.address);
        let mut headers = answer.headers.clone();
        let names = ["x-trace-id", "x-request-id", "date"];
        headers.retain(|(name, _)| !names.contains(&name.as_str()));
        (answer.status, headers, answer.text())
    };
    let mut compared = 0;
    for stranger in &strangers {
        for (method, path) in routes {
            let foreign = ask(stranger, method, path, "secret");
            assert_eq!(foreign.0, 403, "{method} {path}: {}", foreign.2);
            for id in ["unknown", &*job, "job_0000000000000000000000000z", "%2e%2e", "x%00y"] {
                assert_eq!(ask(stranger, method, path, id), foreign, "{method} {path} of {id}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 40);
    // Without a token there is nothing to be had, and every role has its doors.
    let nobody = Caller { address: own.address, token: "nonsense".to_owned() };
    for (method, path) in routes.into_iter().chain([("POST", "/tasks"), ("GET", "/tasks/events")]) {
        let (status, _, body) = ask(&nobody, method, path, "secret");
        assert_eq!(status, 401, "{method} {path}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"]["code"], "AUTH_UNAUTHORIZED");
        assert!(body.get("success").is_none() && body.get("meta").is_none(), "{body}");
    }
    let viewer = server(store).caller("m02-own", "vic", &["viewer"]);
    assert_eq!(ask(&viewer, "GET", "/tasks/{id}", "secret").0, 200);
    assert_eq!(ask(&viewer, "POST", "/tasks/{id}/cancel", "secret").0, 403);
    assert_eq!(post(&viewer, "/tasks", &at("y", PAST)).0, 403);
    assert_eq!(ask(&own, "POST", "/tasks/{id}/transition", "secret").0, 403, "no internal role");
    let bold = server(store).caller("m02-own", "bo", &EVERYTHING);
    let unsaid = bold.post("/tasks/secret/transition", &json!({ "to_state": "ready" }));
    assert_eq!(unsaid.status, 403, "the header is missing");
    // Admins are told, in the tenant they name.
    let admin = server(store).admin();
    assert_eq!(ask(&admin, "GET", "/tasks/{id}", "secret").0, 404);
    let request = admin.request("GET", "/tasks/secret").header("x-tenant-id", "m02-own");
    assert_eq!(request.send(admin.address).json()["task_id"], "secret");
    assert_eq!(task(&own, "secret")["state"], "pending", "nobody moved it");
}

fn m13_names_and_keys_survive_kill_9(store: Store) {
    let mut server =
        Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes"));
    let who = server.caller("m13-kill", "kat", &EVERYTHING);
    let keyed = |id: &str| with(at(id, FUTURE), json!({ "idempotency_key": id }));
    created(&who, &keyed("waits"));
    created(&who, &keyed("hastened"));
    assert_eq!(transition(&who, "hastened", "ready").0, 200);
    created(&who, &keyed("ended"));
    assert_eq!(who.poke("/tasks/ended/cancel").status, 200);
    let ids = ["waits", "hastened", "ended"];
    let before: Vec<_> = ids.iter().map(|id| (task(&who, id), moves(&who, id))).collect();
    server.kill9();
    server.restart();
    let who = Caller { address: server.admin().address, ..who };
    let after: Vec<_> = ids.iter().map(|id| (task(&who, id), moves(&who, id))).collect();
    assert_eq!(after, before);
    for id in ids {
        let (status, hit) = post(&who, "/tasks", &keyed(id));
        assert_eq!((status, &hit["task"]["task_id"]), (200, &json!(id)), "{hit}");
        let (status, hit) = post(&who, "/tasks", &with(keyed(id), json!({ "task_id": "new" })));
        assert_eq!((status, &hit["task"]["task_id"]), (200, &json!(id)), "{hit}");
    }
    let granted = who.pull_one("task");
    assert_eq!(granted["labels"]["task_id"], "hastened");
    assert_eq!(states(&moves(&who, "hastened")), ["pending>ready", "ready>running"]);
}

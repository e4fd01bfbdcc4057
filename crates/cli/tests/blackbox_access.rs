//! Who may do what, from outside: every route, every role, every kind of id that is not one's own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Request, Response, Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    o02_o04_every_route_opens_for_its_roles_and_for_nobody_else,
    o04_foreign_and_unknown_ids_get_one_and_the_same_answer_on_every_route,
    o04_a_lease_token_opens_its_own_attempt_and_nothing_else,
    o02_a_revoked_token_stops_at_once_and_is_never_shown_again,
    o02_o04_a_cancel_needs_the_right_to_steer_that_job,
    g11_no_way_around_the_second_person,
    g11_an_admin_alone_is_one_person,
];

/// One server per store for the whole file; every test has tenants and types of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes"))
}

const ROLES: [&str; 7] =
    ["submitter", "worker", "viewer", "operator", "approver", "internal", "admin"];

const ANYONE: &str = "submitter worker viewer operator approver internal admin";

/// Every route with the roles that get past its door. `lease` routes need no access token, `open`
/// ones need nothing at all. A route that is missing here fails the test below.
const DOORS: &[(&str, &str, &str)] = &[
    ("POST", "/api/v1/jobs", "submitter operator admin"),
    ("POST", "/api/v1/jobs/batch", "submitter operator admin"),
    ("GET", "/api/v1/jobs", ANYONE),
    ("GET", "/api/v1/jobs/{job_id}", ANYONE),
    ("GET", "/api/v1/jobs/{job_id}/events", ANYONE),
    ("GET", "/api/v1/jobs/{job_id}/explain", ANYONE),
    ("POST", "/api/v1/jobs/{job_id}/cancel", "submitter operator admin"),
    ("POST", "/api/v1/work/pull", "worker admin"),
    ("POST", "/api/v1/work/leave", "worker admin"),
    ("POST", "/api/v1/work/complete", "lease"),
    ("POST", "/api/v1/work/fail", "lease"),
    ("POST", "/api/v1/work/release", "lease"),
    ("POST", "/api/v1/work/heartbeat", "lease"),
    ("PUT", "/api/v1/work/effects/{job_id}/{name}", "lease"),
    ("GET", "/api/v1/work/effects/{job_id}/{name}", "lease"),
    ("GET", "/api/v1/types", ANYONE),
    ("GET", "/api/v1/types/{name}", ANYONE),
    ("PUT", "/api/v1/types/{name}", "admin"),
    ("POST", "/api/v1/types/{name}/pause", "admin"),
    ("POST", "/api/v1/types/{name}/resume", "admin"),
    ("POST", "/api/v1/types/{name}/circuit/reset", "admin"),
    ("GET", "/api/v1/tenants", "admin"),
    ("GET", "/api/v1/tenants/{tenant_id}", "admin"),
    ("PUT", "/api/v1/tenants/{tenant_id}", "admin"),
    ("GET", "/api/v1/queues", "admin"),
    ("PUT", "/api/v1/queues/{name}", "admin"),
    ("POST", "/api/v1/queues/{name}/pause", "admin"),
    ("POST", "/api/v1/queues/{name}/resume", "admin"),
    ("GET", "/api/v1/workers", "viewer operator approver internal admin"),
    ("GET", "/api/v1/dlq/items", ANYONE),
    ("GET", "/api/v1/dlq/items/{dlq_id}", ANYONE),
    ("POST", "/api/v1/dlq/items/{dlq_id}/requeue", "submitter operator admin"),
    ("POST", "/api/v1/dlq/items/{dlq_id}/discard", "operator internal admin"),
    ("POST", "/api/v1/dlq/items/{dlq_id}/approve", "approver admin"),
    ("POST", "/api/v1/dlq/items/{dlq_id}/reject", "approver admin"),
    ("POST", "/api/v1/dlq/items/{dlq_id}/break-glass", "admin"),
    ("POST", "/api/v1/schedules", "submitter operator admin"),
    ("GET", "/api/v1/schedules", ANYONE),
    ("POST", "/api/v1/schedules/preview", ANYONE),
    ("GET", "/api/v1/schedules/{schedule_id}", ANYONE),
    ("PUT", "/api/v1/schedules/{schedule_id}", "submitter operator admin"),
    ("DELETE", "/api/v1/schedules/{schedule_id}", "submitter operator admin"),
    ("POST", "/api/v1/schedules/{schedule_id}/pause", "submitter operator admin"),
    ("POST", "/api/v1/schedules/{schedule_id}/resume", "submitter operator admin"),
    ("POST", "/api/v1/schedules/{schedule_id}/stop", "submitter operator admin"),
    ("POST", "/api/v1/schedules/{schedule_id}/trigger", "submitter operator admin"),
    ("POST", "/api/v1/schedules/{schedule_id}/backfill", "submitter operator admin"),
    ("GET", "/api/v1/schedules/{schedule_id}/preview", ANYONE),
    ("GET", "/api/v1/schedules/{schedule_id}/history", ANYONE),
    ("GET", "/api/v1/objects", ANYONE),
    ("PUT", "/api/v1/objects/{object_type}/{object_id}", "operator admin"),
    ("GET", "/api/v1/objects/{object_type}/{object_id}", ANYONE),
    ("GET", "/api/v1/gates", ANYONE),
    ("PUT", "/api/v1/gates/{gate}", "operator admin"),
    ("GET", "/api/v1/gates/{gate}", ANYONE),
    ("GET", "/api/v1/audit", "viewer operator approver internal admin"),
    ("GET", "/api/v1/audit/verify", "viewer operator approver internal admin"),
    ("GET", "/api/v1/whoami", ANYONE),
    ("POST", "/api/v1/triggers", "submitter operator admin"),
    ("GET", "/api/v1/triggers", ANYONE),
    ("GET", "/api/v1/triggers/{trigger_id}", ANYONE),
    ("DELETE", "/api/v1/triggers/{trigger_id}", "submitter operator admin"),
    ("POST", "/api/v1/triggers/{trigger_id}/pause", "submitter operator admin"),
    ("POST", "/api/v1/triggers/{trigger_id}/resume", "submitter operator admin"),
    ("GET", "/api/v1/triggers/{trigger_id}/evaluations", ANYONE),
    ("GET", "/api/v1/triggers/{trigger_id}/explain", ANYONE),
    ("POST", "/api/v1/triggers/{trigger_id}/dry-run", ANYONE),
    ("GET", "/api/v1/dlq/groups", ANYONE),
    ("GET", "/api/v1/alerts", "viewer operator approver internal admin"),
    ("GET", "/api/v1/alerts/{alert_id}", "viewer operator approver internal admin"),
    ("POST", "/api/v1/alerts/{alert_id}/ack", "operator admin"),
    ("POST", "/api/v1/bulk", "operator admin"),
    ("GET", "/api/v1/bulk", "viewer operator approver internal admin"),
    ("GET", "/api/v1/bulk/{bulk_id}", "viewer operator approver internal admin"),
    ("GET", "/api/v1/bulk/{bulk_id}/items", "viewer operator approver internal admin"),
    ("POST", "/api/v1/bulk/{bulk_id}/approve", "approver admin"),
    ("POST", "/api/v1/bulk/{bulk_id}/stop", "operator admin"),
    ("POST", "/api/v1/subscriptions", "operator admin"),
    ("GET", "/api/v1/subscriptions", "viewer operator approver internal admin"),
    ("GET", "/api/v1/subscriptions/{subscription_id}", "viewer operator approver internal admin"),
    ("DELETE", "/api/v1/subscriptions/{subscription_id}", "operator admin"),
    ("POST", "/api/v1/subscriptions/{subscription_id}/pause", "operator admin"),
    ("POST", "/api/v1/subscriptions/{subscription_id}/resume", "operator admin"),
    ("POST", "/api/v1/subscriptions/{subscription_id}/rotate-secret", "operator admin"),
    ("POST", "/api/v1/tokens", "admin"),
    ("GET", "/api/v1/tokens", "admin"),
    ("DELETE", "/api/v1/tokens/{token_id}", "admin"),
    ("POST", "/api/v1/tokens/{token_id}/rotate", "admin"),
    ("GET", "/api/v1/events", ANYONE),
    ("GET", "/api/v1/runtime", "viewer operator approver internal admin"),
    ("POST", "/api/v1/internal/jobs/{job_id}/run", "internal"),
    ("POST", "/api/v1/internal/jobs/{job_id}/transition", "internal"),
    ("GET", "/api/v1/internal/outbox/events", "internal"),
    ("POST", "/api/v1/internal/outbox/events/{event_id}/publish", "internal"),
    ("POST", "/api/v1/internal/outbox/relay", "internal"),
    ("POST", "/api/v1/internal/queue/{queue_name}/enqueue", "internal"),
    ("POST", "/api/v1/internal/queue/{queue_name}/dequeue", "internal"),
    ("POST", "/api/v1/internal/queue/{queue_name}/ack", "internal"),
    ("POST", "/api/v1/internal/queue/{queue_name}/nack", "internal"),
    ("POST", "/api/v1/internal/worker/queues/{queue_name}/drain-once", "internal"),
    ("GET", "/api/v1/internal/workflows/{thread_id}/checkpoints", "internal"),
    ("POST", "/api/v1/internal/workflows/resume", "internal"),
    ("GET", "/api/v1/internal/ops/metrics/summary", "internal"),
    ("GET", "/api/v1/internal/audit/integrity", "internal"),
    ("POST", "/api/v1/internal/jobs/{job_id}/interrupt", "internal"),
    ("GET", "/api/v1/internal/jobs/{job_id}/interrupt", "internal"),
    ("POST", "/tasks", "submitter operator admin"),
    ("GET", "/tasks/events", ANYONE),
    ("GET", "/tasks/{task_id}", ANYONE),
    ("GET", "/tasks/{task_id}/events", ANYONE),
    ("POST", "/tasks/{task_id}/cancel", "submitter operator admin"),
    ("POST", "/tasks/{task_id}/transition", "internal"),
    ("GET", "/healthz", "open"),
    ("GET", "/readyz", "open"),
    ("GET", "/metrics", "open"),
    ("GET", "/openapi.json", "open"),
];

/// A body that is good enough to get past the reading of it.
fn body(path: &str) -> Value {
    match path {
        "/api/v1/jobs" => json!({ "job_type": "door", "payload": 0 }),
        "/api/v1/jobs/batch" => json!({ "jobs": [] }),
        "/api/v1/work/leave" => json!({ "worker_id": "w" }),
        "/api/v1/work/pull" => json!({ "worker_id": "w", "types": ["nothing"] }),
        "/api/v1/tokens" => json!({ "tenant_id": "d", "user_id": "d", "roles": ["viewer"] }),
        "/api/v1/queues/{name}" => json!({ "order": "aged" }),
        "/api/v1/schedules" | "/api/v1/schedules/preview" | "/api/v1/schedules/{schedule_id}" => {
            json!({ "job_type": "door", "kind": "at", "at": "2999-01-01T00:00:00Z" })
        }
        path if path.ends_with("/backfill") => {
            json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z" })
        }
        "/api/v1/triggers" => json!({ "type": "recurring", "prompt": "p",
            "schedule": { "interval_seconds": 3600 } }),
        "/api/v1/bulk" => {
            json!({ "action": "cancel", "filter": { "type": "door" }, "reason": "r" })
        }
        "/api/v1/subscriptions" => json!({ "name": "door", "url": "http://192.0.2.1/" }),
        "/tasks" => json!({ "task_id": "door", "schedule_type": "at",
            "scheduled_at": "2026-02-25T12:00:00Z" }),
        "/tasks/{task_id}/transition" => json!({ "to_state": "running" }),
        path if path.ends_with("/transition") => json!({ "new_status": "running" }),
        path if path.ends_with("/enqueue") => json!({ "job_type": "door" }),
        path if path.ends_with("/queue/{queue_name}/ack") || path.ends_with("/nack") => {
            json!({ "message_id": "door" })
        }
        path if path.ends_with("/interrupt") => json!({ "question": "q" }),
        path if path.ends_with("/workflows/resume") => {
            json!({ "resume_token": "t", "reviewer_id": "r", "answer": "a" })
        }
        path if path.ends_with("/discard") => json!({ "reason": "r" }),
        path if path.ends_with("/approve") => json!({ "version": 1 }),
        _ => json!({}),
    }
}

fn call(caller: &Caller, method: &str, path: &str, body: &Value) -> Response {
    let mut request = caller.request(method, path).header("x-internal-debug", "true");
    if method != "GET" {
        request = request.json(body);
    }
    request.send(caller.address)
}

fn o02_o04_every_route_opens_for_its_roles_and_for_nobody_else(store: Store) {
    let document = server(store).admin().get("/openapi.json").json();
    let mut served = BTreeSet::new();
    // The doors of `/jobs` are tried in `blackbox_orchestration.rs`, in its own words, those of
    // `/scheduler` in `blackbox_scheduler.rs` and those of `/agent` in `blackbox_agent_runs.rs`.
    let elsewhere = ["/jobs/", "/scheduler/", "/agent/"];
    let is_ours = |path: &&String| {
        *path != "/jobs" && !elsewhere.iter().any(|prefix| path.starts_with(prefix))
    };
    let paths = document["paths"].as_object().unwrap();
    for (path, operations) in paths.iter().filter(|(path, _)| is_ours(path)) {
        for method in operations.as_object().unwrap().keys() {
            served.insert((method.to_uppercase(), path.clone()));
        }
    }
    let known: BTreeSet<_> =
        DOORS.iter().map(|(method, path, _)| (method.to_string(), path.to_string())).collect();
    assert_eq!(served, known, "every route needs a row in DOORS, and every row a route");

    let callers = ROLES.map(|role| (role, server(store).caller("doors", role, &[role])));
    for (method, path, may) in DOORS {
        if ["open", "lease"].contains(may)
            || path.ends_with("v1/events")
            || *path == "/tasks/events"
        {
            continue;
        }
        let target =
            path.replace("{name}", "door").replace("{gate}", "risk").replace(['{', '}'], "");
        for (role, caller) in &callers {
            let answer = call(caller, method, &target, &body(path));
            assert!(answer.status < 500, "{role} {method} {path}: {}", answer.text());
            let is_let_in = may.split(' ').any(|name| name == *role);
            let is_shut = answer.status == 403;
            // Behind the door, an id that is not one's own gets the same 403; any name may be a
            // tenant's.
            let has_id = path.contains("_id}") && !path.contains("{tenant_id}");
            if !is_let_in {
                let code = &answer.json()["error"]["code"];
                assert_eq!(
                    (answer.status, code.as_str()),
                    (403, Some("AUTH_FORBIDDEN")),
                    "{role} {method} {path}"
                );
            } else if !has_id {
                assert!(!is_shut, "{role} {method} {path}: {}", answer.text());
            } else if *role == "admin" && (*method == "GET" || !path.contains("/objects/")) {
                assert_eq!(answer.status, 404, "{role} {method} {path}: {}", answer.text());
            }
        }
    }
}

/// What an answer shows apart from what names the request.
fn bare(answer: &Response) -> (u16, Vec<(String, String)>, String) {
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !["x-trace-id", "x-request-id", "date"].contains(&name.as_str()));
    let meta = answer.json()["meta"].clone();
    let mut body = answer.text();
    for name in ["trace_id", "request_id"] {
        // Of the same length, so that the length of the body is compared as well.
        let id = text(&meta, name);
        body = body.replace(&id, &"#".repeat(id.len()));
    }
    (answer.status, headers, body)
}

fn o04_foreign_and_unknown_ids_get_one_and_the_same_answer_on_every_route(store: Store) {
    let owner = server(store).caller("own", "ann", &["submitter", "worker"]);
    let live = owner.submit_plain("o04");
    let dead = owner.submit_plain("o04-dead");
    owner.fail(&owner.pull_one("o04-dead"), "BAD", false);
    let item = text(&owner.job(&dead), "dlq_id");
    let everything = ["submitter", "worker", "viewer", "operator", "approver", "internal"];
    // Somebody of another tenant with every role, and a neighbour without a view of the tenant.
    let strangers = [
        server(store).caller("other", "eve", &everything),
        server(store).caller("own", "eve", &["submitter", "worker"]),
    ];
    let unknown_job = "job_0000000000000000000000000z";
    let unknown_item = "dlq_0000000000000000000000000z";
    for stranger in &strangers {
        let mut compared = 0;
        for (method, path, may) in DOORS {
            let Some(name) = ["{job_id}", "{dlq_id}"].into_iter().find(|name| path.contains(name))
            else {
                continue;
            };
            let is_job = name == "{job_id}";
            let (foreign, unknown) =
                if is_job { (&live, unknown_job) } else { (&item, unknown_item) };
            let ask = |id: &str| {
                let target = path.replace(name, id).replace("{name}", "effect");
                bare(&call(stranger, method, &target, &effect_or(body(path), path)))
            };
            let answer = ask(foreign);
            for id in
                [unknown, "nonsense", "job_", "%2e%2e", "x%00y", if is_job { &dead } else { "1" }]
            {
                assert_eq!(ask(id), answer, "{method} {path} with {id}");
            }
            let expected = if *may == "lease" && *method == "PUT" { 409 } else { 403 };
            assert_eq!(answer.0, expected, "{method} {path}: {}", answer.2);
            compared += 1;
        }
        assert_eq!(compared, 16);
        assert!(
            items(stranger.get("/api/v1/jobs?limit=100").data())
                .iter()
                .all(|job| job["user_id"] == "eve")
        );
        assert!(items(stranger.get("/api/v1/dlq/items").data()).is_empty());
    }
    assert_eq!(owner.job(&live)["status"], "queued");
    assert_eq!(owner.get(&format!("/api/v1/dlq/items/{item}")).data()["status"], "open");
    // Whoever may see every tenant is told the difference.
    let admin = server(store).admin();
    assert_eq!(admin.job(&live)["user_id"], "ann");
    let unknown = admin.get(&format!("/api/v1/jobs/{unknown_job}"));
    assert_eq!(unknown.refusal(), (404, "JOB_NOT_FOUND".into()));
}

fn effect_or(body: Value, path: &str) -> Value {
    if path.contains("/effects/") { json!({ "value": 1, "lease_token": "1" }) } else { body }
}

fn o04_a_lease_token_opens_its_own_attempt_and_nothing_else(store: Store) {
    let ann = server(store).caller("lease-a", "ann", &["submitter", "worker"]);
    let bob = server(store).caller("lease-b", "bob", &["submitter", "worker"]);
    let (one, two) = (ann.submit_plain("lease"), ann.submit_plain("lease"));
    let grants = ann.pull("lease", 2);
    let theirs = bob.submit_plain("lease");
    let foreign = bob.pull_one("lease");
    let first = json!({ "job_id": one, "lease_token": grants[0]["lease_token"] });
    for (job, token) in [
        (&two, &grants[0]["lease_token"]),
        (&one, &grants[1]["lease_token"]),
        (&one, &foreign["lease_token"]),
        (&theirs, &grants[0]["lease_token"]),
    ] {
        let crossed = json!({ "job_id": job, "lease_token": token });
        for verb in ["complete", "fail", "release"] {
            assert_eq!(ann.report(verb, &crossed, json!({}))["error"]["code"], "LEASE_LOST");
        }
        let effect = json!({ "value": 1, "lease_token": token });
        let put = ann.put(&format!("/api/v1/work/effects/{job}/e"), &effect);
        assert_eq!(put.refusal(), (409, "LEASE_LOST".into()));
    }
    // Its own job it opens without any access token, until the attempt is over.
    let put = Request::new("PUT", &format!("/api/v1/work/effects/{one}/e"))
        .header("x-lease-token", first["lease_token"].as_str().unwrap())
        .json(&json!({ "value": 1 }));
    assert_eq!(server(store).send(&put).data()["is_first"], true);
    let read = Request::new("GET", &format!("/api/v1/work/effects/{one}/e"))
        .header("x-lease-token", first["lease_token"].as_str().unwrap());
    assert_eq!(server(store).send(&read).data()["value"], 1);
    assert_eq!(ann.complete(&first)["status"], "succeeded");
    assert_eq!(server(store).send(&put).refusal(), (409, "LEASE_LOST".into()));
    assert_eq!(server(store).send(&read).refusal(), (409, "LEASE_LOST".into()));
    assert_eq!(ann.job(&two)["status"], "running");
    assert_eq!(bob.job(&theirs)["status"], "running");
}

fn o02_a_revoked_token_stops_at_once_and_is_never_shown_again(store: Store) {
    let admin = server(store).admin();
    let wish = json!({ "tenant_id": "tok", "user_id": "ann", "roles": ["viewer", "submitter"] });
    let made = admin.post("/api/v1/tokens", &wish);
    assert_eq!(made.status, 201);
    let (id, secret) = (text(&made.data(), "token_id"), text(&made.data(), "token"));
    let ann = Caller { address: admin.address, token: secret.clone() };
    ann.submit_plain("tok");
    let listed = admin.get("/api/v1/tokens?limit=100").text();
    assert!(listed.contains(&id) && !listed.contains(&secret));
    let half = &secret[..secret.len() - 1];
    let forged = Caller { address: admin.address, token: format!("{half}x") };
    assert_eq!(forged.get("/api/v1/jobs").refusal(), (401, "AUTH_UNAUTHORIZED".into()));
    let revoked = admin.delete(&format!("/api/v1/tokens/{id}")).data();
    assert!(revoked["revoked_at"].is_string());
    assert_eq!(ann.get("/api/v1/jobs").refusal(), (401, "AUTH_UNAUTHORIZED".into()));
    assert_eq!(admin.delete(&format!("/api/v1/tokens/{id}")).status, 200, "twice is fine");
    let unknown = admin.delete("/api/v1/tokens/tok_0000000000000000000000000z").refusal();
    assert_eq!(unknown, (404, "TOKEN_NOT_FOUND".into()));
    // Nothing in the store or in the log has the secret, plain or in hexadecimal digits.
    let tail = secret.rsplit('_').next().unwrap();
    let digits: String = tail.bytes().map(|byte| format!("{byte:02x}")).collect();
    let has = |bytes: &[u8], part: &str| bytes.windows(part.len()).any(|at| at == part.as_bytes());
    let is_told = |bytes: &[u8]| has(bytes, tail) || has(bytes, &digits);
    assert!(!is_told(server(store).log().as_bytes()));
    let kept = kept(server(store));
    assert!(kept.iter().any(|(_, bytes)| has(bytes, "tok")), "something is kept");
    for (place, bytes) in kept {
        assert!(!is_told(&bytes), "{place}");
    }
}

/// Seeing a job is not the right to end it.
fn o02_o04_a_cancel_needs_the_right_to_steer_that_job(store: Store) {
    let ann = server(store).caller("steer", "ann", &["submitter"]);
    for role in ROLES {
        for roles in [vec![role], vec![role, "submitter"]] {
            for (tenant, user) in [("steer", "ann"), ("steer", "bob"), ("elsewhere", "ann")] {
                let id = ann.submit_plain("steer");
                let caller = server(store).caller(tenant, user, &roles);
                let answer = caller.poke(&format!("/api/v1/jobs/{id}/cancel"));
                let may = match role {
                    "admin" => true,
                    "operator" => tenant == "steer",
                    _ => (tenant, user) == ("steer", "ann") && roles.contains(&"submitter"),
                };
                let expected = if may { (202, "cancelled") } else { (403, "queued") };
                let found = (answer.status, text(&ann.job(&id), "status"));
                assert_eq!((found.0, &*found.1), expected, "{roles:?} {tenant}/{user}");
            }
        }
    }
}

/// Everything the server keeps: the files of its directory, or what its database has.
fn kept(server: &Server) -> Vec<(String, Vec<u8>)> {
    if let Some(database) = server.database() {
        return vec![(database.name.clone(), database.dump().into_bytes())];
    }
    let entries = std::fs::read_dir(server.data_dir()).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

/// A dead letter of `ann`, as its path.
fn dead_letter(ann: &Caller, job_type: &str) -> String {
    let id = ann.submit_plain(job_type);
    ann.fail(&ann.pull_one(job_type), "BAD", false);
    format!("/api/v1/dlq/items/{}", text(&ann.job(&id), "dlq_id"))
}

/// A token that `issuer` makes for `user`.
fn mint(issuer: &Caller, tenant: &str, user: &str, roles: &[&str]) -> Caller {
    let wish = json!({ "tenant_id": tenant, "user_id": user, "roles": roles });
    let made = issuer.post("/api/v1/tokens", &wish).data();
    Caller { address: issuer.address, token: text(&made, "token") }
}

/// Approves what `who` reads now.
fn approve(who: &Caller, item: &str) -> Response {
    let version = who.get(item).json()["data"]["version"].clone();
    who.post(&format!("{item}/approve"), &json!({ "version": version }))
}

fn g11_no_way_around_the_second_person(store: Store) {
    let ann = server(store).caller("two", "ann", &["submitter", "worker", "operator", "approver"]);
    let others: Vec<_> =
        (0..8).map(|n| server(store).caller("two", &format!("p-{n}"), &["approver"])).collect();
    let item = dead_letter(&ann, "two");
    let status = || text(&ann.get(&item).data(), "status");
    // Somebody in another tenant is another person, but sees nothing.
    let stranger = server(store).caller("elsewhere", "bob", &["approver"]);
    ann.post(&format!("{item}/discard"), &json!({ "reason": "r" })).data();
    let same = (409, "APPROVAL_SAME_PERSON".to_owned());
    assert_eq!(approve(&ann, &item).refusal(), same);
    let rotated = server(store).caller("two", "ann", &["approver"]);
    assert_eq!(approve(&rotated, &item).refusal(), same);
    let as_admin = server(store).caller("two", "ann", &["admin"]);
    assert_eq!(approve(&as_admin, &item).refusal(), same, "admins are not exempt");
    for name in ["ann ", " ann", "ann\u{a0}", "\tann", "an\u{0}n", ""] {
        let wish = json!({ "tenant_id": "two", "user_id": name, "roles": ["approver"] });
        let refused = server(store).admin().post("/api/v1/tokens", &wish).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{name:?} looks like ann");
    }
    for name in ["Ann", "\u{ff21}NN", "a\u{200b}nn", "\u{430}nn", "an\u{ad}n"] {
        let double = server(store).caller("two", name, &["approver"]);
        assert_eq!(approve(&double, &item).refusal(), same, "{name:?} is ann");
    }
    let version = json!({ "version": 2 });
    let unseen = stranger.post(&format!("{item}/approve"), &version).refusal();
    assert_eq!(unseen, (403, "AUTH_FORBIDDEN".into()));
    let forged = json!({ "reason": "r", "reviewer_id": "x", "reviewer_id_2": "y" });
    let refused = ann.post(&format!("{item}/discard"), &forged).refusal();
    assert_eq!(refused, (403, "AUTH_FORBIDDEN".into()));
    assert_eq!(status(), "discard_requested");

    // Rejected and asked for again, it is another version: what was read before is not approved.
    ann.poke(&format!("{item}/reject")).data();
    ann.post(&format!("{item}/discard"), &json!({ "reason": "another reason" })).data();
    let stale = others[0].post(&format!("{item}/approve"), &version).refusal();
    assert_eq!(stale, (409, "DLQ_VERSION_CONFLICT".into()));
    // Two approvals at once: one counts.
    let threads: Vec<_> = others
        .into_iter()
        .map(|caller| {
            let item = item.clone();
            std::thread::spawn(move || approve(&caller, &item).status)
        })
        .collect();
    let statuses: Vec<u16> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(status(), "discarded");
    // Nothing of this was done in the dark: three times herself, five doubles, one reviewer for
    // another, one version, and seven who came second. A stranger is told of at home.
    let told = denials(&ann, &item);
    assert_eq!(told.len(), 3 + 5 + 1 + 1 + 7, "{told:#?}");
    assert_eq!(denials(&server(store).caller("elsewhere", "eve", &["viewer"]), &item).len(), 1);
}

/// The lines of the audit trail that tell of refused attempts at an item.
fn denials(who: &Caller, item: &str) -> Vec<Value> {
    let lines = items(who.get("/api/v1/audit?action=access.denied&limit=100").data());
    let about = |line: &Value| text(line, "object_id").contains(item);
    let lines: Vec<Value> = lines.into_iter().filter(about).collect();
    for line in &lines {
        assert_eq!(line["outcome"], "denied");
        assert!(text(line, "reason").contains(": "), "it says why: {line}");
        assert!(text(&line["actor"], "token_id").starts_with("tok_"), "{line}");
    }
    lines
}

/// The four ways in which one admin used to discard alone, and what an admin may do alone.
fn g11_an_admin_alone_is_one_person(store: Store) {
    let root = server(store).admin();
    let zoe = mint(&root, "solo", "zoe", &["admin", "submitter", "worker"]);
    let bob = mint(&root, "solo", "bob", &["approver"]);
    let made = (409, "APPROVAL_NOT_INDEPENDENT".to_owned());
    let ask = |item: &str| zoe.post(&format!("{item}/discard"), &json!({ "reason": "r" }));

    // A token for an invented person, made long before; and through a second admin of her own.
    let invented = mint(&zoe, "solo", "invented", &["approver"]);
    let second = mint(&zoe, "solo", "second", &["admin"]);
    let child = mint(&second, "solo", "child", &["operator", "approver"]);
    let item = dead_letter(&zoe, "solo");
    ask(&item).data();
    for own in [&invented, &second, &child] {
        assert_eq!(approve(own, &item).refusal(), made);
    }
    // Ask, mint, reject, ask again: by whomever the token was made.
    let late = mint(&root, "solo", "late", &["approver"]);
    zoe.poke(&format!("{item}/reject")).data();
    ask(&item).data();
    assert_eq!(approve(&late, &item).refusal(), (409, "APPROVAL_TOKEN_TOO_NEW".into()));
    // Her own creature asks, and she agrees.
    zoe.poke(&format!("{item}/reject")).data();
    child.post(&format!("{item}/discard"), &json!({ "reason": "r" })).data();
    assert_eq!(approve(&zoe, &item).refusal(), made);
    assert_eq!(approve(&second, &item).refusal(), made);
    // A self-made internal token that names reviewers: invented ones, her own, and herself.
    let internal = mint(&zoe, "solo", "replay", &["internal"]);
    for (one, two) in
        [("x", "y"), ("bob", "y"), ("bob", "replay"), ("zoe", "child"), ("bob", "zoe")]
    {
        let wish = json!({ "reason": "r", "reviewer_id": one, "reviewer_id_2": two });
        let refused = internal.post(&format!("{item}/discard"), &wish).refusal();
        assert_eq!(refused, (400, "APPROVAL_REQUIRED".into()), "{one} {two}");
    }
    assert_eq!(zoe.get(&item).data()["status"], "discard_requested");
    assert_eq!(approve(&bob, &item).data()["status"], "discarded", "bob is somebody else");
    // Three of her own, one that came late, two ways round, and five pairs of reviewers.
    let viewer = server(store).caller("solo", "vic", &["viewer"]);
    assert_eq!(denials(&viewer, &item).len(), 3 + 1 + 2 + 5);

    // Where nobody else could approve, the request itself is refused: the first admin made them
    // all.
    let nobody = mint(&root, "lonely", "una", &["submitter", "worker", "operator"]);
    let item = dead_letter(&nobody, "lonely");
    let refused = root.post(&format!("{item}/discard"), &json!({ "reason": "r" })).refusal();
    assert_eq!(refused, (409, "APPROVAL_NO_SECOND_PERSON".into()));
    // Breaking the glass is for admins, takes a reason, and stays visible.
    let path = format!("{item}/break-glass");
    let why = json!({ "reason": "the disk is full" });
    assert_eq!(nobody.post(&path, &why).refusal().0, 403);
    assert_eq!(root.post(&path, &json!({})).refusal(), (400, "APPROVAL_REQUIRED".into()));
    assert_eq!(root.post(&path, &why).data()["status"], "discarded");
    let mark = nobody.get(&item).data();
    assert_eq!(mark["break_glass"]["by"], "admin", "{mark}");
    assert_eq!(mark["break_glass"]["reason"], "the disk is full");
    assert!(mark["break_glass"]["at"].is_string() && mark["approved_by"].is_null());
    assert!(server(store).log().contains("break-glass"), "it is logged");
}

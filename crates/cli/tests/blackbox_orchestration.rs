//! The job orchestration contract from outside: submit, poll, list, keys, other people's jobs, the
//! way from submission to callback, and what a restart leaves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, PerStore, Response, Server, Store, eventually, http};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

both_stores![
    o01_o07_o08_tasks_of_two_domains_are_submitted_polled_and_moved_alike,
    o02_o04_other_peoples_tasks_and_those_that_are_not_there_are_told_alike,
    o03_a_key_again_is_the_same_task_and_is_remembered_over_a_restart,
    o05_o06_of_64_concurrent_submissions_of_one_key_exactly_one_creates,
    o15_o25_a_task_runs_although_its_submitter_has_gone,
    o16_o21_what_goes_wrong_ends_in_failed_with_a_code_and_its_context,
    o09_o11_types_are_listed_in_camel_case,
    o01_lists_begin_with_the_oldest_and_go_on_by_cursor,
    o01_what_is_wrong_is_told_in_this_contracts_words,
    o12_a_task_that_waits_for_others_says_so,
    o01_native_and_orchestrated_jobs_are_each_others,
    o22_the_runtime_tells_mode_counters_and_what_was_there,
];

const QUANT: &str = include_str!("../../../examples/quant.toml");
const ANALYZE: &str = "strategy_performance_analyze";
const NOTIFY: &str = "risk_alert_notify";

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).config(QUANT))
}

fn wish(task_type: &str, key: &str) -> Value {
    json!({ "taskType": task_type, "payload": { "n": 1 }, "idempotencyKey": key })
}

#[track_caller]
fn submit(caller: &Caller, task_type: &str, key: &str) -> String {
    text(&caller.post("/jobs", &wish(task_type, key)).data(), "taskId")
}

#[track_caller]
fn task(caller: &Caller, id: &str) -> Value {
    caller.get(&format!("/jobs/{id}")).data()
}

/// Status and code of a refusal in this contract's envelope, which has nothing else in it.
#[track_caller]
fn refused(answer: &Response) -> (u16, String) {
    let whole = answer.json();
    assert_eq!(whole["success"], false, "{}: {whole}", answer.status);
    assert_eq!(whole.as_object().map(|it| it.len()), Some(2), "{whole}");
    assert_eq!(whole["error"].as_object().map(|it| it.len()), Some(2), "{whole}");
    assert!(answer.header("x-request-id").is_some());
    (answer.status, text(&whole["error"], "code"))
}

/// The tasks of a list.
#[track_caller]
fn tasks(answer: &Response) -> Vec<Value> {
    answer.data().as_array().expect("a bare list").clone()
}

fn ids(list: &[Value]) -> Vec<String> {
    list.iter().map(|task| text(task, "taskId")).collect()
}

fn o01_o07_o08_tasks_of_two_domains_are_submitted_polled_and_moved_alike(store: Store) {
    let ann = server(store).caller("o01", "ann", &["submitter"]);
    let worker = server(store).caller("o01", "w", &["worker"]);
    let mut shapes = Vec::new();
    for kind in [ANALYZE, NOTIFY] {
        let made = ann.post("/jobs", &wish(kind, kind));
        assert_eq!(made.status, 200);
        let whole = made.json();
        assert_eq!((&whole["success"], &whole["message"]), (&json!(true), &json!("ok")));
        let id = text(&whole["data"], "taskId");
        let first = &whole["data"];
        assert_eq!(first["id"], first["taskId"]);
        assert_eq!((&first["userId"], &first["taskType"]), (&json!("ann"), &json!(kind)));
        assert_eq!((&first["payload"], &first["status"]), (&json!({ "n": 1 }), &json!("queued")));
        assert_eq!(
            (&first["idempotencyKey"], &first["idempotentHit"]),
            (&json!(kind), &json!(false))
        );
        for nothing in ["result", "error", "executor", "startedAt", "finishedAt", "retryOf"] {
            assert_eq!(first[nothing], Value::Null, "{nothing}");
        }
        let keys: Vec<String> = first.as_object().unwrap().keys().cloned().collect();

        let mut seen = vec![text(&task(&ann, &id), "status")];
        let grant = worker.pull_one(kind);
        let running = task(&ann, &id);
        seen.push(text(&running, "status"));
        assert_eq!(running["executor"]["name"], "pull");
        let key = text(&grant, "execution_key");
        assert_eq!(running["executor"]["dispatchId"], format!("{key}:1"));
        worker.report("complete", &grant, json!({ "result": { "score": 7 } }));
        let done = task(&ann, &id);
        seen.push(text(&done, "status"));
        assert_eq!((&done["result"], &done["error"]), (&json!({ "score": 7 }), &Value::Null));
        assert_eq!(done["executor"], running["executor"]);
        for time in ["startedAt", "finishedAt", "createdAt", "updatedAt"] {
            assert!(text(&done, time).parse::<jiff::Timestamp>().is_ok(), "{time}");
        }
        let cancel = refused(&ann.poke(&format!("/jobs/{id}/cancel")));
        assert_eq!(cancel, (409, "INVALID_TRANSITION".into()));
        shapes.push((keys, seen));
    }
    assert_eq!(shapes[0], shapes[1], "the domain makes no difference");
    assert_eq!(shapes[0].1, ["queued", "running", "succeeded"]);
}

fn o02_o04_other_peoples_tasks_and_those_that_are_not_there_are_told_alike(store: Store) {
    let server = server(store);
    let ann = server.caller("o04", "ann", &["submitter"]);
    let job = submit(&ann, NOTIFY, "mine");
    let unknown = "job_00000000000000000000000000";
    let strangers = [
        ("another user", server.caller("o04", "bob", &["submitter"])),
        ("another tenant", server.caller("o04-b", "ann", &["submitter"])),
        ("another tenant's operator", server.caller("o04-b", "eve", &["operator", "viewer"])),
        ("a worker of it", server.caller("o04", "wim", &["worker"])),
        ("another tenant's worker", server.caller("o04-b", "wim", &["worker", "internal"])),
    ];
    let mut compared = 0;
    for (who, stranger) in &strangers {
        for (method, path, body) in [
            ("GET", "/jobs/{}", None),
            ("POST", "/jobs/{}/cancel", None),
            ("POST", "/jobs/{}/retry", None),
            ("POST", "/jobs/{}/transition", Some("queued")),
            ("POST", "/jobs/{}/transition", Some("cancelled")),
            ("POST", "/jobs/{}/transition", Some("running")),
            ("POST", "/jobs/{}/transition", Some("succeeded")),
            ("POST", "/jobs/{}/transition", Some("failed")),
        ] {
            // A worker of the tenant may say what became of any of its jobs.
            let is_callback = matches!(body, Some("running" | "succeeded" | "failed"));
            if *who == "a worker of it" && is_callback {
                continue;
            }
            let ask = |id: &str| {
                let request = stranger.request(method, &path.replace("{}", id));
                match body {
                    Some(to) => request.json(&json!({ "toStatus": to })),
                    None => request,
                }
                .send(stranger.address)
            };
            let answers = [ask(&job), ask(unknown), ask("nonsense"), ask("%00")];
            for answer in &answers {
                let told = (403, "JOB_ACCESS_DENIED".into());
                assert_eq!(refused(answer), told, "{who} {method} {path} {body:?}");
                assert_eq!(answer.body, answers[0].body, "{who} {method} {path} {body:?}");
                assert_eq!(names(answer), names(&answers[0]));
            }
            compared += answers.len();
        }
        assert!(tasks(&stranger.get("/jobs")).is_empty(), "{who}");
    }
    println!("{compared} answers about what is not one's own were the same");
    assert_eq!(task(&ann, &job)["status"], "queued", "nothing changed");

    // Whoever may see every tenant learns that there is nothing.
    let admin = server.admin();
    let told = refused(&admin.get(&format!("/jobs/{unknown}")));
    assert_eq!(told, (404, "JOB_NOT_FOUND".into()));
    assert_eq!(admin.get(&format!("/jobs/{job}")).status, 200);

    // Nobody is nobody, wherever.
    let document = admin.get("/openapi.json").json();
    let mut tried = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        if path != "/jobs" && !path.starts_with("/jobs/") {
            continue;
        }
        let path = path.replace("{taskId}", &job).replace(['{', '}'], "");
        for method in operations.as_object().unwrap().keys() {
            for token in [None, Some("nonsense")] {
                let mut request = http::Request::new(&method.to_uppercase(), &path);
                if let Some(token) = token {
                    request = request.token(token);
                }
                let told = refused(&server.send(&request.json(&json!({}))));
                assert_eq!(told, (401, "UNAUTHORIZED".into()), "{method} {path}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 16, "only {tried} calls were tried");
}

/// The names of the headers of an answer.
fn names(answer: &Response) -> Vec<&str> {
    answer.headers.iter().map(|(name, _)| name.as_str()).collect()
}

fn o03_a_key_again_is_the_same_task_and_is_remembered_over_a_restart(store: Store) {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(QUANT);
    let mut server = Server::start(options);
    let ann = server.caller("o03", "ann", &["submitter", "worker"]);
    let first = submit(&ann, NOTIFY, "once");
    let again = ann.post("/jobs", &wish(NOTIFY, "once"));
    assert_eq!(again.status, 200);
    let again = again.data();
    assert_eq!((&again["taskId"], &again["idempotentHit"]), (&json!(first), &json!(true)));
    // Another meaning under the same key is a conflict, whichever half of it differs.
    let other_payload = json!({ "taskType": NOTIFY, "payload": {}, "idempotencyKey": "once" });
    for other in [&other_payload, &wish(ANALYZE, "once")] {
        assert_eq!(refused(&ann.post("/jobs", other)), (409, "IDEMPOTENCY_CONFLICT".into()));
    }
    // The spelling of a payload is no meaning.
    let body =
        format!(r#"{{ "idempotencyKey":"once", "payload":{{ "n" : 1 }}, "taskType":"{NOTIFY}" }}"#);
    let spelled = ann.request("POST", "/jobs").header("content-type", "application/json");
    let spelled = spelled.body(body).send(ann.address);
    assert_eq!(spelled.data()["taskId"], json!(first));
    // Keys are a user's own, and this contract's own.
    let bob = server.caller("o03", "bob", &["submitter"]);
    assert_ne!(submit(&bob, NOTIFY, "once"), first);
    let native = json!({ "job_type": NOTIFY, "payload": 1, "idempotency_key": "once" });
    assert_eq!(ann.post("/api/v1/jobs", &native).status, 201);

    server.restart();
    let hit = ann.post("/jobs", &wish(NOTIFY, "once")).data();
    assert_eq!((&hit["taskId"], &hit["idempotentHit"]), (&json!(first), &json!(true)));
    assert_eq!(tasks(&ann.get("/jobs")).len(), 2, "one by each contract");
}

fn o05_o06_of_64_concurrent_submissions_of_one_key_exactly_one_creates(store: Store) {
    let cat = server(store).caller("o06", "cat", &["submitter"]);
    let barrier = Arc::new(Barrier::new(64));
    let threads: Vec<_> = (0..64)
        .map(|_| {
            let (cat, barrier) = (cat.clone(), barrier.clone());
            std::thread::spawn(move || {
                barrier.wait();
                let answer = cat.post("/jobs", &wish(NOTIFY, "one"));
                let job = answer.data();
                (answer.status, job["idempotentHit"] == true, text(&job, "taskId"))
            })
        })
        .collect();
    let answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let hits = answers.iter().filter(|(status, is_hit, _)| *status == 200 && *is_hit).count();
    assert_eq!(hits, 63);
    assert_eq!(answers.iter().map(|(_, _, id)| id).collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(tasks(&cat.get("/jobs")).len(), 1);
}

fn o15_o25_a_task_runs_although_its_submitter_has_gone(store: Store) {
    let eve = server(store).caller("o15", "eve", &["submitter", "worker"]);
    // The submitter hangs up once its task is there, and never reads the answer.
    let request = eve.request("POST", "/jobs").json(&wish(NOTIFY, "gone"));
    let mut stream = http::connect(eve.address).unwrap();
    std::io::Write::write_all(&mut stream, &request.bytes(eve.address)).unwrap();
    let id = eventually("the task is accepted", || ids(&tasks(&eve.get("/jobs"))).pop());
    drop(stream);
    // Nothing works on it before a worker asks.
    assert_eq!(task(&eve, &id)["status"], "queued");
    let grant = eve.pull_one(NOTIFY);
    assert_eq!(text(&grant, "job_id"), id);
    eve.complete(&grant);
    assert_eq!(task(&eve, &id)["status"], "succeeded");
}

fn o16_o21_what_goes_wrong_ends_in_failed_with_a_code_and_its_context(store: Store) {
    let server = server(store);
    let ann = server.caller("o21", "ann", &["submitter", "worker"]);
    let traced = |key: &str| {
        let request = ann.request("POST", "/jobs").header("x-trace-id", "trace-o21");
        text(&request.json(&wish(NOTIFY, key)).send(ann.address).data(), "taskId")
    };

    // The executor's own code, and what it had done by then.
    let id = traced("own code");
    let grant = ann.pull_one(NOTIFY);
    let more = json!({ "error_code": "MARKET_DATA_SYNC_FAILED", "message": "no feed",
        "retryable": false, "result": { "rows": 3 } });
    assert_eq!(ann.report("fail", &grant, more.clone())["status"], "failed");
    assert_eq!(ann.report("fail", &grant, more)["status"], "failed", "a repeat is answered again");
    let failed = task(&ann, &id);
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"], json!({ "code": "MARKET_DATA_SYNC_FAILED", "message": "no feed" }));
    assert_eq!(failed["result"], json!({ "rows": 3 }));
    assert_eq!(failed["executor"]["dispatchId"], format!("{id}:0:1"));
    assert_eq!(failed["traceId"], "trace-o21");
    assert!(!text(&failed, "finishedAt").is_empty());
    // Another result under the same lease is another report.
    let other = json!({ "error_code": "MARKET_DATA_SYNC_FAILED", "message": "no feed",
        "retryable": false, "result": { "rows": 4 } });
    assert_eq!(ann.report("fail", &grant, other)["error"]["code"], "REPORT_CONFLICT");
    assert_eq!(task(&ann, &id)["result"], json!({ "rows": 3 }));

    // No code at all.
    let id = traced("no code");
    let grant = ann.pull_one(NOTIFY);
    ann.report("fail", &grant, json!({ "retryable": false }));
    assert_eq!(task(&ann, &id)["error"]["code"], "EXECUTION_FAILED");

    // A worker that breaks off in the middle: `risk_alert_notify` has no retries.
    let id = traced("lost");
    let wish = json!({ "worker_id": "w-1", "types": [NOTIFY], "lease_ms": 100 });
    let grant = eventually("a grant", || ann.pull_with(wish.clone()).pop());
    let failed = eventually("the lease runs out", || {
        Some(task(&ann, &id)).filter(|task| task["status"] == "failed")
    });
    assert_eq!(failed["error"]["code"], "TASK_LEASE_LOST");
    assert_eq!(failed["executor"], json!({ "name": "pull", "dispatchId": format!("{id}:0:1") }));
    assert_eq!(ann.complete(&grant)["error"]["code"], "LEASE_LOST", "a late callback is refused");
    assert_eq!(task(&ann, &id), failed);

    // After the last try the last real code counts, and the dispatch is the last one.
    let spec = json!({ "max_retries": 1, "backoff_base_ms": 1, "backoff_max_ms": 1 });
    assert_eq!(server.admin().put("/api/v1/types/o21_twice", &spec).status, 200);
    let body = json!({ "taskType": "o21_twice", "idempotencyKey": "twice" });
    let id = text(&ann.post("/jobs", &body).data(), "taskId");
    ann.fail(&ann.pull_one("o21_twice"), "FIRST", true);
    let between = task(&ann, &id);
    assert_eq!((&between["status"], &between["error"]), (&json!("running"), &Value::Null));
    assert_eq!(between["executor"]["dispatchId"], format!("{id}:0:1"));
    ann.fail(&ann.pull_one("o21_twice"), "SECOND", true);
    let failed = task(&ann, &id);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("SECOND")));
    assert_eq!(failed["executor"]["dispatchId"], format!("{id}:1:2"));
}

fn o09_o11_types_are_listed_in_camel_case(store: Store) {
    let ann = server(store).caller("o09", "ann", &["viewer"]);
    let types = tasks(&ann.get("/jobs/task-types"));
    let names: Vec<String> = types.iter().map(|row| text(row, "taskType")).collect();
    assert!(names.is_sorted() && names.len() >= 31, "{names:?}");
    let row = types.iter().find(|row| row["taskType"] == "backtest_run").unwrap();
    let wanted = json!({ "taskType": "backtest_run", "domain": "backtest", "schedulable": true,
        "priority": 100, "timeoutSeconds": 1800, "maxRetries": 1, "concurrencyLimit": 1 });
    assert_eq!(*row, wanted);
}

fn o01_lists_begin_with_the_oldest_and_go_on_by_cursor(store: Store) {
    let ann = server(store).caller("o01-list", "ann", &["submitter", "worker"]);
    let bob = server(store).caller("o01-list", "bob", &["submitter", "operator"]);
    // Of a type that nobody pulls here: a worker gets whatever its tenant has.
    submit(&bob, "risk_report_generate", "not hers");
    let mut made = Vec::new();
    for n in 0..12 {
        let kind = if n % 3 == 0 { ANALYZE } else { NOTIFY };
        made.push(submit(&ann, kind, &format!("k-{n}")));
    }
    // A batch shares its millisecond.
    let batch: Vec<Value> =
        (0..40).map(|n| json!({ "job_type": NOTIFY, "payload": { "n": n } })).collect();
    let batch = ann.post("/api/v1/jobs/batch", &json!({ "jobs": batch })).data();
    made.extend(batch["items"].as_array().unwrap().iter().map(|item| text(item, "job_id")));

    let whole = ann.get("/jobs");
    assert_eq!(ids(&tasks(&whole)), made, "her own, the oldest first");
    assert_eq!(whole.header("x-next-cursor"), None);
    assert_eq!(whole.header("content-type"), Some("application/json"));
    for limit in [1, 7, 13, 51, 52, 53] {
        assert_eq!(walked(&ann, &format!("/jobs?limit={limit}")), made, "{limit} at a time");
    }
    let analyses: Vec<_> = made[..12].iter().step_by(3).cloned().collect();
    assert_eq!(walked(&ann, &format!("/jobs?limit=3&taskType={ANALYZE}")), analyses);

    // What runs and what waits for another try are both running; both ends are found.
    let grant = ann.pull_one(ANALYZE);
    ann.report("release", &grant, json!({}));
    let grant = ann.pull_with(json!({ "worker_id": "w", "types": [NOTIFY], "limit": 2 }));
    ann.fail(&grant[0], "NO", false);
    let (failed, running) = (text(&grant[0], "job_id"), text(&grant[1], "job_id"));
    let released = analyses.iter().find(|id| task(&ann, id)["status"] == "running").unwrap();
    let mut both = vec![released.clone(), running];
    both.sort();
    assert_eq!(walked(&ann, "/jobs?limit=1&status=running"), both);
    assert_eq!(walked(&ann, "/jobs?status=failed"), [failed]);
    assert_eq!(walked(&ann, "/jobs?status=queued&limit=20").len(), made.len() - 3);
    assert_eq!(walked(&ann, "/jobs?status=cancelled").len(), 0);

    // A cursor is of one list and one caller.
    let page = ann.get("/jobs?limit=2");
    let cursor = page.header("x-next-cursor").unwrap();
    for (caller, query) in [(&ann, "&status=queued"), (&ann, "&taskType=x"), (&bob, "")] {
        let told = refused(&caller.get(&format!("/jobs?cursor={cursor}{query}")));
        assert_eq!(told, (422, "VALIDATION_ERROR".into()), "{query}");
    }
}

/// All ids of a list, page by page; every page but the last has a cursor.
fn walked(caller: &Caller, path: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut page = caller.get(path);
    loop {
        all.extend(ids(&tasks(&page)));
        let Some(cursor) = page.header("x-next-cursor").map(str::to_owned) else { return all };
        page = caller.get(&format!("{path}&cursor={cursor}"));
    }
}

fn o01_what_is_wrong_is_told_in_this_contracts_words(store: Store) {
    let ann = server(store).caller("o01-wrong", "ann", &["submitter"]);
    let id = submit(&ann, NOTIFY, "there");
    let long = "k".repeat(600);
    let deep = format!("{}1{}", "[".repeat(80), "]".repeat(80));
    for (body, status, code) in [
        (json!({}).to_string(), 422, "VALIDATION_ERROR"),
        ("[1]".to_owned(), 422, "VALIDATION_ERROR"),
        ("{".to_owned(), 422, "VALIDATION_ERROR"),
        (json!({ "taskType": NOTIFY }).to_string(), 422, "VALIDATION_ERROR"),
        (wish(NOTIFY, "").to_string(), 422, "VALIDATION_ERROR"),
        (wish(NOTIFY, "a\0b").to_string(), 422, "VALIDATION_ERROR"),
        (wish(NOTIFY, &long).to_string(), 422, "VALIDATION_ERROR"),
        (wish("", "k").to_string(), 422, "VALIDATION_ERROR"),
        (wish("nobody_knows", "k").to_string(), 400, "INVALID_ARGUMENT"),
        (
            json!({ "taskType": NOTIFY, "payload": [], "idempotencyKey": "k" }).to_string(),
            422,
            "VALIDATION_ERROR",
        ),
        (
            json!({ "taskType": NOTIFY, "payload": 1, "idempotencyKey": "k" }).to_string(),
            422,
            "VALIDATION_ERROR",
        ),
        (
            json!({ "taskType": NOTIFY, "userId": "bob", "idempotencyKey": "k" }).to_string(),
            422,
            "VALIDATION_ERROR",
        ),
        (
            format!(r#"{{"taskType":"{NOTIFY}","payload":{{"a":{deep}}},"idempotencyKey":"k"}}"#),
            422,
            "VALIDATION_ERROR",
        ),
        (
            format!(r#"{{"taskType":"{NOTIFY}","payload":{{"a":1,"a":2}},"idempotencyKey":"k"}}"#),
            422,
            "VALIDATION_ERROR",
        ),
    ] {
        let request = ann.request("POST", "/jobs").header("content-type", "application/json");
        let answer = request.body(body.clone()).send(ann.address);
        assert_eq!(refused(&answer), (status, code.into()), "{body}");
        let error = answer.json();
        assert_eq!(error.as_object().unwrap().len(), 2, "{error}");
        assert_eq!(error["error"].as_object().unwrap().len(), 2, "{error}");
    }
    for (path, status, code) in [
        ("/jobs?status=retrying", 422, "VALIDATION_ERROR"),
        ("/jobs?state=queued", 422, "VALIDATION_ERROR"),
        ("/jobs?limit=0", 422, "VALIDATION_ERROR"),
        ("/jobs?limit=1001", 422, "VALIDATION_ERROR"),
        ("/jobs?cursor=x", 422, "VALIDATION_ERROR"),
        ("/jobs/a/b/c", 404, "REQ_NOT_FOUND"),
        ("/jobs/runtime", 403, "ADMIN_REQUIRED"),
    ] {
        assert_eq!(refused(&ann.get(path)), (status, code.into()), "{path}");
    }
    assert_eq!(refused(&ann.delete(&format!("/jobs/{id}"))), (405, "METHOD_NOT_ALLOWED".into()));
    for to in ["", "done", "dlq_pending", "Queued"] {
        let told = ann.post(&format!("/jobs/{id}/transition"), &json!({ "toStatus": to }));
        assert_eq!(refused(&told), (422, "VALIDATION_ERROR".into()), "{to}");
    }
    let viewer = server(store).caller("o01-wrong", "vic", &["viewer"]);
    assert_eq!(viewer.get(&format!("/jobs/{id}")).status, 200);
    for told in [
        refused(&viewer.post("/jobs", &wish(NOTIFY, "k"))),
        refused(&viewer.poke(&format!("/jobs/{id}/cancel"))),
        refused(
            &viewer.post(&format!("/jobs/{id}/transition"), &json!({ "toStatus": "cancelled" })),
        ),
    ] {
        assert_eq!(told, (403, "JOB_ACCESS_DENIED".into()));
    }
    assert_eq!(ids(&tasks(&ann.get("/jobs"))), [id], "nothing else was made");
}

fn o12_a_task_that_waits_for_others_says_so(store: Store) {
    let server = server(store);
    let ann = server.caller("o12", "ann", &["submitter", "worker"]);
    let spec = json!({ "concurrency_limit": 1, "concurrency_scope": "user" });
    assert_eq!(server.admin().put("/api/v1/types/o12_alone", &spec).status, 200);
    let (first, second) = (submit(&ann, "o12_alone", "1"), submit(&ann, "o12_alone", "2"));
    assert_eq!(task(&ann, &second)["error"], Value::Null, "nobody runs yet");
    let grant = ann.pull_one("o12_alone");
    assert_eq!(text(&grant, "job_id"), first);
    let waiting = task(&ann, &second);
    assert_eq!(
        (&waiting["status"], &waiting["error"]["code"]),
        (&json!("queued"), &json!("CONCURRENCY_LIMIT_EXCEEDED"))
    );
    let listed = tasks(&ann.get("/jobs?taskType=o12_alone"));
    assert_eq!((&listed[0]["error"], &listed[1]["error"]), (&Value::Null, &waiting["error"]));
    // Nor is it started by hand beyond the limit.
    let path = format!("/jobs/{second}/transition");
    let told = refused(&ann.post(&path, &json!({ "toStatus": "running" })));
    assert_eq!(told, (409, "CONCURRENCY_LIMIT_EXCEEDED".into()));
    ann.complete(&grant);
    assert_eq!(task(&ann, &second)["error"], Value::Null);
}

fn o01_native_and_orchestrated_jobs_are_each_others(store: Store) {
    let ann = server(store).caller("o01-both", "ann", &["submitter", "worker"]);
    let here = submit(&ann, ANALYZE, "here");
    let native = ann.job(&here);
    assert_eq!((&native["job_type"], &native["status"]), (&json!(ANALYZE), &json!("queued")));
    assert_eq!(
        (&native["idempotency_key"], &native["idempotency_scope"]),
        (&json!("here"), &json!("user:ann"))
    );
    let there = ann.submit(&json!({ "job_type": ANALYZE, "payload": [1, 2] }));
    let there = text(&there, "job_id");
    let shown = task(&ann, &there);
    assert_eq!((&shown["payload"], &shown["status"]), (&json!([1, 2]), &json!("queued")));
    assert_eq!(shown["idempotencyKey"], Value::Null);
    assert_eq!(ids(&tasks(&ann.get("/jobs"))), [here.clone(), there.clone()]);
    // What one contract does the other shows.
    assert_eq!(ann.poke(&format!("/jobs/{there}/cancel")).data()["status"], "cancelled");
    assert_eq!(ann.job(&there)["status"], "cancelled");
    assert_eq!(ann.poke(&format!("/api/v1/jobs/{here}/cancel")).status, 202);
    assert_eq!(task(&ann, &here)["status"], "cancelled");
    assert_eq!(ann.path(&here), ["queued", "cancelled"]);
}

fn o22_the_runtime_tells_mode_counters_and_what_was_there(store: Store) {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(QUANT);
    let mut server = Server::start(options);
    let ann = server.caller("o22", "ann", &["submitter", "worker"]);
    let admin = server.admin();
    let runtime = || admin.get("/jobs/runtime").data();
    let fresh = runtime();
    assert_eq!(fresh["executor"], json!({ "name": "pull", "mode": "pull" }));
    assert_eq!(fresh["scheduler"], json!({ "running": true }));
    let nothing = json!({ "dispatched": 0, "succeeded": 0, "failed": 0, "lastDispatchedAt": null,
        "lastFinishedAt": null, "lastErrorCode": null });
    assert_eq!(fresh["execution"], nothing);
    let recovered = |runtime: &Value| {
        let names = ["recoveredRunningJobs", "recoveredSchedules", "recoveredSystemTemplates"];
        names.map(|name| runtime["recovery"][name].as_u64())
    };
    assert_eq!(recovered(&fresh), [Some(0), Some(0), Some(0)]);
    assert_eq!(fresh["systemSchedules"], json!({ "total": 4, "active": 4 }));

    for (key, is_good) in [("good", true), ("bad", false)] {
        submit(&ann, NOTIFY, key);
        let grant = ann.pull_one(NOTIFY);
        if is_good {
            ann.complete(&grant)
        } else {
            ann.fail(&grant, "NO_PAPER", false)
        };
    }
    let held = submit(&ann, ANALYZE, "held");
    let grant = ann.pull_one(ANALYZE);
    let counted = runtime();
    let execution = &counted["execution"];
    let numbers = ["dispatched", "succeeded", "failed"].map(|name| execution[name].as_u64());
    assert_eq!(numbers, [Some(3), Some(1), Some(1)]);
    assert_eq!(execution["lastErrorCode"], "NO_PAPER");
    for time in ["lastDispatchedAt", "lastFinishedAt"] {
        assert!(text(execution, time).parse::<jiff::Timestamp>().is_ok(), "{time}");
    }

    // Counters are of this process; what was running goes on, and ends as if nothing had been.
    server.restart();
    let again = runtime();
    assert_eq!(again["execution"], nothing);
    assert_eq!(recovered(&again), [Some(1), Some(4), Some(4)]);
    assert_eq!(again["systemSchedules"], json!({ "total": 4, "active": 4 }));
    assert_eq!(task(&ann, &held)["status"], "running");
    ann.complete(&grant);
    assert_eq!(task(&ann, &held)["status"], "succeeded");
    assert_eq!(runtime()["execution"]["succeeded"], 1);
}

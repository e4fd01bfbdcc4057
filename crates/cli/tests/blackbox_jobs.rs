//! Jobs from outside: submitting, listing, reading, explaining, cancelling, waiting.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::http::Connection;
use mainspring_testkit::blackbox::{PerStore, Request, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

both_stores![
    g01_a_job_has_the_ten_fields_and_its_payload_byte_for_byte,
    o02_no_call_works_without_an_identity_and_jobs_carry_their_owner,
    o06_of_64_concurrent_submissions_of_one_key_exactly_one_creates,
    o15_o20_a_job_runs_whether_or_not_its_submitter_stays,
    o25_a_submission_answers_before_any_work_and_waiting_is_only_looking,
    o19_nobody_can_mark_a_job_succeeded_but_the_worker_that_holds_it,
    o15_o20_a_list_is_filtered_and_walked_by_cursor,
    o20_waiting_is_explained_and_cancelling_ends_it_once,
    o20_a_batch_answers_item_by_item_in_order,
    o15_the_stream_of_events_shows_every_move_and_goes_on_where_it_ended,
];

/// One server per store for the whole file; every test has a tenant and types of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes"))
}

fn g01_a_job_has_the_ten_fields_and_its_payload_byte_for_byte(store: Store) {
    let ann = server(store).caller("g01", "ann", &["submitter"]);
    let payload = r#"{ "z":1.0,  "a":[1e2,"\u00e9"],"big":123456789012345678901234567890 }"#;
    let body = format!(r#"{{"job_type":"g01","payload":{payload},"idempotency_key":"k-1"}}"#);
    let made = ann
        .request("POST", "/api/v1/jobs")
        .header("content-type", "application/json")
        .body(body)
        .send(ann.address);
    assert_eq!(made.status, 201);
    let job = ann.job(&text(&made.data(), "job_id"));
    assert!(text(&job, "job_id").starts_with("job_"));
    assert_eq!(job["tenant_id"], "g01");
    assert_eq!(job["user_id"], "ann");
    assert_eq!(job["job_type"], "g01");
    assert_eq!(job["status"], "queued");
    assert_eq!(job["retry_count"], 0);
    assert_eq!(job["idempotency_key"], "k-1");
    assert!(!text(&job, "trace_id").is_empty());
    assert_eq!(job["error_code"], Value::Null);
    assert_eq!(job["payload_json"], payload);
    for time in ["created_at", "updated_at"] {
        assert!(text(&job, time).parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
    let raw = ann.get(&format!("/api/v1/jobs/{}", text(&job, "job_id"))).text();
    assert!(raw.contains(&format!("\"payload\":{payload},")), "{raw}");
}

fn o02_no_call_works_without_an_identity_and_jobs_carry_their_owner(store: Store) {
    let document = server(store).admin().get("/openapi.json").json();
    let open = ["/healthz", "/readyz", "/metrics", "/openapi.json"];
    let mut tried = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        // A lease token stands for an identity; what it opens is tested with the leases.
        let is_for_leases = path.starts_with("/api/v1/work/") && path != "/api/v1/work/pull";
        // Other contracts have their own words for it, and tests of their own.
        let is_elsewhere = !path.starts_with("/api/");
        if open.contains(&path.as_str()) || is_for_leases || is_elsewhere {
            continue;
        }
        let path =
            path.replace("{job_id}", "job_00000000000000000000000000").replace(['{', '}'], "");
        for method in operations.as_object().unwrap().keys() {
            for header in [None, Some("Bearer nonsense"), Some("Basic YTpi"), Some("")] {
                let mut request = Request::new(&method.to_uppercase(), &path).json(&json!({}));
                if let Some(value) = header {
                    request = request.header("authorization", value);
                }
                let refused = server(store).send(&request).refusal();
                assert_eq!(refused, (401, "AUTH_UNAUTHORIZED".into()), "{method} {path}");
                tried += 1;
            }
        }
    }
    assert!(tried > 80, "only {tried} calls were tried");

    let bob = server(store).caller("o02", "bob", &["submitter"]);
    let job = bob.job(&bob.submit_plain("o02"));
    assert_eq!((&job["tenant_id"], &job["user_id"]), (&json!("o02"), &json!("bob")));
    for field in ["tenant_id", "user_id", "status", "retry_count", "job_id"] {
        let wish = json!({ "job_type": "o02", "payload": {}, field: "x" });
        let refused = bob.post("/api/v1/jobs", &wish).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{field}");
    }
}

fn o06_of_64_concurrent_submissions_of_one_key_exactly_one_creates(store: Store) {
    let cat = server(store).caller("o06", "cat", &["submitter"]);
    let barrier = Arc::new(Barrier::new(64));
    let threads: Vec<_> = (0..64)
        .map(|_| {
            let (cat, barrier) = (cat.clone(), barrier.clone());
            std::thread::spawn(move || {
                barrier.wait();
                let wish = json!({ "job_type": "o06", "payload": 1, "idempotency_key": "one" });
                let answer = cat.post("/api/v1/jobs", &wish);
                let job = answer.data();
                (answer.status, job["idempotent_hit"] == true, text(&job, "job_id"))
            })
        })
        .collect();
    let answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let created = answers.iter().filter(|(status, hit, _)| *status == 201 && !hit).count();
    let hits = answers.iter().filter(|(status, hit, _)| *status == 200 && *hit).count();
    assert_eq!((created, hits), (1, 63));
    let ids: BTreeSet<_> = answers.iter().map(|(_, _, id)| id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(items(cat.get("/api/v1/jobs?type=o06").data()).len(), 1);

    // The same key with another meaning is a conflict; in another scope or by another user it is
    // another key. A header says the same as the field.
    let other = json!({ "job_type": "o06", "payload": 2, "idempotency_key": "one" });
    assert_eq!(cat.post("/api/v1/jobs", &other).refusal(), (409, "IDEMPOTENCY_CONFLICT".into()));
    let scoped = json!({
        "job_type": "o06", "payload": 2, "idempotency_key": "one", "idempotency_scope": "s"
    });
    assert_eq!(cat.post("/api/v1/jobs", &scoped).status, 201);
    let dan = server(store).caller("o06", "dan", &["submitter"]);
    assert_eq!(dan.post("/api/v1/jobs", &other).status, 201);
    let plain = json!({ "job_type": "o06", "payload": 1 });
    let by_header = cat.request("POST", "/api/v1/jobs").header("idempotency-key", "one");
    let by_header = by_header.json(&plain).send(cat.address);
    assert_eq!((by_header.status, &by_header.data()["idempotent_hit"]), (200, &json!(true)));
}

fn o15_o20_a_job_runs_whether_or_not_its_submitter_stays(store: Store) {
    let eve = server(store).caller("o15", "eve", &["submitter", "worker"]);
    // The submitter stays on the line for the end of the job, then hangs up before it.
    let wish = json!({ "job_type": "o15", "payload": "left" });
    let request = eve.request("POST", "/api/v1/jobs?wait_ms=60000").json(&wish);
    let mut stream = Connection::open(eve.address).unwrap();
    stream.send(&request.bytes(eve.address)).unwrap();
    eventually("the job is accepted", || {
        (items(eve.get("/api/v1/jobs?type=o15").data()).len() == 1).then_some(())
    });
    drop(stream);
    let grant = eve.pull_one("o15");
    let id = text(&grant, "job_id");
    assert_eq!(eve.job(&id)["status"], "running");
    assert_eq!(eve.job(&id)["lease"]["worker_id"], "w-1");
    let done = eve.report("complete", &grant, json!({ "result": { "n": 7 } }));
    assert_eq!(done, json!({ "job_id": id, "status": "succeeded" }));
    let job = eve.job(&id);
    assert_eq!((&job["status"], &job["result"]["n"]), (&json!("succeeded"), &json!(7)));
    assert_eq!(eve.path(&id), ["queued", "running", "succeeded"]);

    let failing = eve.submit_plain("o15");
    assert_eq!(eve.job(&failing)["status"], "queued");
    let grant = eve.pull_one("o15");
    assert_eq!(eve.fail(&grant, "NO_LUCK", false)["status"], "failed");
    let failed = eve.job(&failing);
    assert_eq!((&failed["status"], &failed["error_code"]), (&json!("failed"), &json!("NO_LUCK")));
}

fn o25_a_submission_answers_before_any_work_and_waiting_is_only_looking(store: Store) {
    let fay = server(store).caller("o25", "fay", &["submitter", "worker"]);
    let wish = json!({ "job_type": "o25", "payload": {} });
    // Nobody works: the answer comes all the same, and nothing has run.
    let made = fay.post("/api/v1/jobs?wait_ms=200", &wish);
    assert_eq!(made.status, 201);
    let job = made.data();
    assert_eq!((&job["status"], &job["started_at"]), (&json!("queued"), &Value::Null));
    // Somebody works: whoever waits sees the end, made by the worker.
    let waiting = {
        let fay = fay.clone();
        let wish = json!({ "job_type": "o25-waited", "payload": {} });
        std::thread::spawn(move || fay.post("/api/v1/jobs?wait_ms=30000", &wish).data())
    };
    let grant = fay.pull_one("o25-waited");
    fay.report("complete", &grant, json!({ "result": "done" }));
    let ended = waiting.join().unwrap();
    assert_eq!((&ended["status"], &ended["result"]), (&json!("succeeded"), &json!("done")));
}

fn o19_nobody_can_mark_a_job_succeeded_but_the_worker_that_holds_it(store: Store) {
    let gil = server(store).caller("o19", "gil", &["submitter", "viewer", "operator", "approver"]);
    let id = gil.submit_plain("o19");
    let before = (gil.job(&id), gil.events(&id));
    let path = format!("/api/v1/jobs/{id}");
    for (method, path) in [("PUT", &*path), ("PATCH", &*path), ("POST", &*path), ("DELETE", &*path)]
    {
        let request = gil.request(method, path).json(&json!({ "status": "succeeded" }));
        assert_eq!(request.send(gil.address).refusal(), (405, "METHOD_NOT_ALLOWED".into()));
    }
    for callback in ["complete", "fail", "release"] {
        for token in ["", "lease_0", "1", &id] {
            let grant = json!({ "job_id": id, "lease_token": token });
            let answer = gil.report(callback, &grant, json!({}));
            assert_eq!(answer["error"]["code"], "LEASE_LOST", "{callback} {token:?}");
        }
    }
    // Moving by hand is for the internal role itself: not even an admin may.
    for caller in [&gil, &server(store).admin()] {
        for (verb, body) in [("run", json!({})), ("transition", json!({"new_status": "running"}))] {
            let path = format!("/api/v1/internal/jobs/{id}/{verb}");
            let request = caller.request("POST", &path).header("x-internal-debug", "true");
            let refused = request.json(&body).send(gil.address).refusal();
            assert_eq!(refused, (403, "AUTH_FORBIDDEN".into()), "{verb}");
        }
    }
    assert_eq!((gil.job(&id), gil.events(&id)), before);
}

fn o15_o20_a_list_is_filtered_and_walked_by_cursor(store: Store) {
    let hal = server(store).caller("list", "hal", &["submitter", "worker"]);
    let ivy = server(store).caller("list", "ivy", &["submitter"]);
    let ids: Vec<String> = (0..25).map(|_| hal.submit_plain("listed")).collect();
    ivy.submit_plain("listed");
    let labels = json!({ "team": "red", "site": "a=b" });
    let other = json!({ "job_type": "other", "payload": {}, "queue": "q-2", "trace_id": "t-9",
        "labels": labels, "max_retries": 0 });
    std::thread::sleep(std::time::Duration::from_millis(3)); // paced: ids count milliseconds
    let failed = hal.submit(&other);
    let grant = hal.pull_one("other");
    hal.fail(&grant, "NO_PAPER", false);
    let then = text(&failed, "created_at");
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let data = hal.get(&format!("/api/v1/jobs?type=listed&limit=10{cursor}")).data();
        assert_eq!(data["total"], 25, "of hal's own, and no stranger's");
        seen.extend(items(data.clone()).iter().map(|job| text(job, "job_id")));
        match data["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let newest_first: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(seen, newest_first, "hal sees his own jobs, newest first, each once");
    hal.complete(&hal.pull_one("listed"));
    for (query, count) in [
        ("status=succeeded", 1),
        ("status=queued&type=listed&limit=100", 24),
        ("queue=q-2", 1),
        ("trace_id=t-9", 1),
        ("trace_id=nobody", 0),
        ("status=dlq_pending", 0),
        ("label=team%3Dred", 1),
        ("label=team%3Dred&label=site%3Da%3Db", 1),
        ("label=team%3Dred&label=site%3Dc", 0),
        ("error_code=NO_PAPER", 1),
        ("error_code=NO_PAPER&status=failed&type=other", 1),
        ("error_code=NO_PAPER&status=succeeded", 0),
        ("user_id=hal&type=other", 1),
        ("user_id=ivy", 0),
        (&*format!("created_after={then}&type=other"), 1),
        (&*format!("created_before={then}&type=other"), 0),
        (&*format!("created_before={then}&limit=100"), 25),
    ] {
        let data = hal.get(&format!("/api/v1/jobs?{query}")).data();
        assert_eq!(data["total"], count, "{query}");
        assert_eq!(items(data).len(), count, "{query}");
    }
    // Those that were made from one: by hal as he sees them, and a page at a time.
    let parent = &ids[3];
    let child = json!({ "job_type": "child", "payload": {}, "parent_id": parent });
    let children: Vec<String> = (0..5).map(|_| text(&hal.submit(&child), "job_id")).collect();
    let mine = hal.get(&format!("/api/v1/jobs?parent_id={parent}&limit=3")).data();
    assert_eq!((&mine["total"], items(mine.clone()).len()), (&json!(5), 3));
    let rest = format!("parent_id={parent}&limit=3&cursor={}", text(&mine, "next_cursor"));
    let rest = items(hal.get(&format!("/api/v1/jobs?{rest}")).data());
    assert_eq!(
        rest.iter().map(|job| text(job, "job_id")).collect::<Vec<_>>(),
        [&*children[1], &*children[0]]
    );
    let none = format!("/api/v1/jobs?parent_id={}", children[0]);
    assert_eq!(hal.get(&none).data()["total"], 0);
    let other = format!("/api/v1/jobs?parent_id={parent}&status=succeeded");
    assert_eq!(hal.get(&other).data()["total"], 0);
    let refused = hal.get("/api/v1/jobs?parent_id=seven").refusal();
    assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()));
    let listed = server(store).cli_as(&hal.token, &["jobs", "list", "--parent", parent]).expect(0);
    assert!(children.iter().all(|id| listed.stdout.contains(id.as_str())), "{listed:?}");
    let operator = server(store).caller("list", "olga", &["operator"]);
    assert_eq!(operator.get("/api/v1/jobs?user_id=ivy").data()["total"], 1);
    assert_eq!(operator.get("/api/v1/dlq/items?label=team%3Dred").data()["total"], 1);
    assert_eq!(operator.get("/api/v1/dlq/items?error_code=NO_PAPER&queue=q-2").data()["total"], 1);
    assert_eq!(operator.get("/api/v1/dlq/items?status=requeued&type=other").data()["total"], 0);
    let page = operator.get("/api/v1/jobs?type=listed&limit=1").data();
    let cursor = text(&page, "next_cursor");
    let path = format!("/api/v1/jobs?type=listed&cursor={cursor}");
    assert_eq!(operator.get(&path).data()["total"], 26);
    assert_eq!(hal.get(&path).refusal(), (400, "CURSOR_INVALID".into()), "it is olga's");
}

fn o20_waiting_is_explained_and_cancelling_ends_it_once(store: Store) {
    let jan = server(store).caller("explain", "jan", &["submitter", "worker", "operator"]);
    let later = json!({ "job_type": "explained", "payload": {}, "delay_ms": 3_600_000 });
    let id = text(&jan.submit(&later), "job_id");
    let told = jan.get(&format!("/api/v1/jobs/{id}/explain")).data();
    assert_eq!((&told["job_id"], &told["status"]), (&json!(id), &json!("queued")));
    assert_eq!(told["reasons"][0]["code"], "NOT_DUE");
    assert_eq!(told["earliest_at"], jan.job(&id)["run_at"]);

    let path = format!("/api/v1/jobs/{id}/cancel");
    let cancelled = jan.post(&path, &json!({ "reason": "changed my mind" }));
    assert_eq!((cancelled.status, &cancelled.data()["status"]), (202, &json!("cancelled")));
    assert_eq!(jan.job(&id)["error_code"], "JOB_CANCELLED");
    assert_eq!(jan.events(&id)[1]["reason_message"], "changed my mind");
    assert_eq!(jan.poke(&path).refusal(), (409, "JOB_CANCEL_CONFLICT".into()));

    // Cancelled under the worker's hands: the worker hears of it, and cannot complete it.
    let id = jan.submit_plain("explained");
    let grant = jan.pull_one("explained");
    jan.poke(&format!("/api/v1/jobs/{id}/cancel")).data();
    let beat = json!({
        "worker_id": "w-1", "items": [{ "job_id": id, "lease_token": grant["lease_token"] }]
    });
    let heard = items(jan.post("/api/v1/work/heartbeat", &beat).data());
    assert_eq!(heard, [json!({ "job_id": id, "cancelled": true })]);
    assert!(jan.complete(&grant)["error"]["code"].is_string());
    assert_eq!(jan.job(&id)["status"], "cancelled");
}

fn o20_a_batch_answers_item_by_item_in_order(store: Store) {
    let kim = server(store).caller("batch", "kim", &["submitter"]);
    let jobs = json!({ "jobs": [
        { "job_type": "batched", "payload": 1, "idempotency_key": "a" },
        { "job_type": "batched", "payload": 1, "idempotency_key": "a" },
        { "job_type": "batched", "payload": 2, "idempotency_key": "a" },
        { "job_type": "", "payload": 1 },
        { "job_type": "batched" },
        { "job_type": "batched", "payload": 3, "priority": 256 },
        { "job_type": "batched", "payload": 4 },
    ]});
    let answered = kim.post("/api/v1/jobs/batch", &jobs);
    assert_eq!(answered.status, 200);
    let answers = items(answered.data());
    assert_eq!(answers.len(), 7);
    let id = text(&answers[0], "job_id");
    let made = json!({ "job_id": id, "status": "queued", "idempotent_hit": false });
    let hit = json!({ "job_id": id, "status": "queued", "idempotent_hit": true });
    assert_eq!((&answers[0], &answers[1]), (&made, &hit));
    assert_eq!(answers[2]["error"]["code"], "IDEMPOTENCY_CONFLICT");
    for refused in &answers[3..6] {
        assert_eq!(refused["error"]["code"], "REQ_VALIDATION_FAILED", "{refused}");
        assert!(refused["job_id"].is_null());
    }
    assert_eq!(answers[6]["idempotent_hit"], false);
    assert_eq!(items(kim.get("/api/v1/jobs?type=batched").data()).len(), 2);
}

fn o15_the_stream_of_events_shows_every_move_and_goes_on_where_it_ended(store: Store) {
    let lou = server(store).caller("stream", "lou", &["submitter", "worker"]);
    let from = |position: &str| -> Vec<Value> {
        let request = lou.request("GET", "/api/v1/events").header("last-event-id", position);
        let mut stream = Connection::open(lou.address).unwrap();
        stream.send(&request.bytes(lou.address)).unwrap();
        assert_eq!(stream.head().unwrap(), 200);
        let mut seen: Vec<Value> = Vec::new();
        let mut all = String::new();
        while seen.iter().all(|event| event["to_state"] != "succeeded") {
            let piece = stream.chunk().unwrap().expect("the stream goes on");
            all.push_str(std::str::from_utf8(piece).unwrap());
            let lines = all.lines().filter_map(|line| line.strip_prefix("data:"));
            let read = |line: &str| serde_json::from_str(line.trim()).ok();
            seen = lines
                .filter_map(read)
                .filter(|event: &Value| event["job_id"].is_string())
                .collect();
        }
        seen
    };
    let id = lou.submit_plain("streamed");
    lou.complete(&lou.pull_one("streamed"));
    let all = from("0");
    let states: Vec<_> = all.iter().map(|event| text(event, "to_state")).collect();
    assert_eq!(states, ["queued", "running", "succeeded"]);
    assert!(all.iter().all(|event| event["job_id"] == id.as_str()), "only her own jobs");
    let ids: BTreeSet<_> = all.iter().map(|event| text(event, "event_id")).collect();
    assert_eq!(ids.len(), 3);
    let rest = from(&all[0]["position"].to_string());
    assert_eq!(rest, all[1..]);
    eventually("the streams are closed again", || {
        server(store).admin().get("/api/v1/runtime").data()["version"].is_string().then_some(())
    });
}

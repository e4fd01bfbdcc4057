//! The internal routes: queues, outbox, checkpoints, numbers and jobs that wait for a person, all
//! of them other words for the same jobs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Response, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    internal_routes_are_for_the_internal_role_and_only_where_they_are_wanted,
    a_message_is_a_job_that_is_taken_acknowledged_and_refused,
    a_message_that_nobody_acknowledges_comes_again,
    draining_a_queue_ends_attempts_by_the_rules,
    g17_each_consumer_is_told_of_each_submission_once,
    an_event_can_be_published_before_its_turn,
    relays_at_once_tell_of_nothing_twice,
    g12_checkpoints_tell_what_replay_goes_by,
    the_numbers_of_a_tenant_are_its_own,
    a_job_waits_for_a_person_and_goes_on_once,
    what_was_told_and_asked_survives_a_crash,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const ROLES: [&str; 6] = ["submitter", "worker", "operator", "viewer", "internal", "approver"];

fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || {
        store.options(BINARY).config("[types]\nstrict = false").arg("--internal-routes")
    })
}

fn person(store: Store, tenant: &str) -> Caller {
    server(store).caller(tenant, "ida", &ROLES)
}

fn internal(who: &Caller, method: &str, path: &str, body: Option<&Value>) -> Response {
    let request = who.request(method, &format!("/api/v1/internal{path}"));
    let request = request.header("x-internal-debug", "true");
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    request.send(who.address)
}

#[track_caller]
fn told(who: &Caller, path: &str, body: &Value) -> Value {
    let answer = internal(who, "POST", path, Some(body));
    assert!(answer.status < 300, "{path}: {}", answer.text());
    answer.data()
}

#[track_caller]
fn poked(who: &Caller, path: &str) -> Value {
    let answer = internal(who, "POST", path, None);
    assert!(answer.status < 300, "{path}: {}", answer.text());
    answer.data()
}

#[track_caller]
fn read(who: &Caller, path: &str) -> Value {
    let answer = internal(who, "GET", path, None);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.data()
}

fn dequeue(who: &Caller, queue: &str, more: Value) -> Vec<Value> {
    let data = told(who, &format!("/queue/{queue}/dequeue"), &more);
    data["messages"].as_array().unwrap().clone()
}

fn internal_routes_are_for_the_internal_role_and_only_where_they_are_wanted(store: Store) {
    let admin = server(store).admin();
    let other = server(store).caller("roles", "olga", &["operator", "worker", "approver"]);
    let paths = [
        ("GET", "/outbox/events"),
        ("POST", "/outbox/relay"),
        ("POST", "/queue/q/dequeue"),
        ("POST", "/worker/queues/q/drain-once"),
        ("GET", "/workflows/t/checkpoints"),
        ("GET", "/ops/metrics/summary"),
        ("GET", "/audit/integrity"),
    ];
    for (method, path) in paths {
        for who in [&admin, &other] {
            let answer = internal(who, method, path, None);
            assert_eq!(answer.refusal(), (403, "AUTH_FORBIDDEN".to_owned()), "{path}");
        }
        let ida = person(store, "roles");
        let answer = ida.request(method, &format!("/api/v1/internal{path}")).send(ida.address);
        assert_eq!(answer.status, 403, "{path} without the header");
        assert_eq!(internal(&ida, method, path, None).status, 200, "{path}");
    }
    let plain = Server::start(store.options(BINARY));
    let ida = plain.caller("t", "ida", &ROLES);
    assert_eq!(internal(&ida, "GET", "/outbox/events", None).status, 404);
}

fn a_message_is_a_job_that_is_taken_acknowledged_and_refused(store: Store) {
    let ida = person(store, "queues");
    let wish = json!({ "job_type": "parse", "payload": { "n": 1 }, "max_retries": 3 });
    let made = told(&ida, "/queue/docs/enqueue", &wish);
    assert_eq!((&made["queue_name"], &made["attempt"]), (&json!("docs"), &json!(1)));
    let job = text(&made, "job_id");
    assert_eq!(ida.job(&job)["queue"], "docs");
    assert!(dequeue(&ida, "other", json!({})).is_empty(), "it is in another queue");
    let first = dequeue(&ida, "docs", json!({ "max_messages": 5 }));
    assert_eq!(first.len(), 1);
    assert_eq!((&first[0]["job_id"], &first[0]["payload"]), (&json!(job), &json!({ "n": 1 })));
    assert!(dequeue(&ida, "docs", json!({})).is_empty(), "it is hidden");
    // Refused, it comes again as the next attempt; what was taken before counts no more.
    let id = text(&first[0], "message_id");
    let nack = json!({ "message_id": id, "delay_ms": 0 });
    let back = told(&ida, "/queue/docs/nack", &nack);
    assert_eq!((&back["status"], &back["attempt"]), (&json!("retrying"), &json!(2)));
    let again = eventually("it comes again", || dequeue(&ida, "docs", json!({})).pop());
    assert_eq!(again["attempt"], 2);
    assert_ne!(again["message_id"], id);
    let stale = internal(&ida, "POST", "/queue/docs/ack", Some(&json!({ "message_id": id })));
    assert_eq!(stale.refusal(), (409, "REPORT_CONFLICT".to_owned()));
    // Nobody of another tenant, and nobody through another queue, acknowledges it.
    let ack = json!({ "message_id": again["message_id"] });
    let foreign = internal(&person(store, "strangers"), "POST", "/queue/docs/ack", Some(&ack));
    assert_eq!(foreign.status, 403, "{}", foreign.text());
    assert_eq!(internal(&ida, "POST", "/queue/other/ack", Some(&ack)).status, 409);
    for bad in ["", "msg_", made["message_id"].as_str().unwrap()] {
        let ack = json!({ "message_id": bad });
        assert_eq!(internal(&ida, "POST", "/queue/docs/ack", Some(&ack)).status, 409, "{bad}");
    }
    assert_eq!(told(&ida, "/queue/docs/ack", &ack)["status"], "succeeded");
    // The repeat is answered again.
    assert_eq!(told(&ida, "/queue/docs/ack", &ack)["status"], "succeeded");
    // Refused for good, it is a dead letter.
    told(&ida, "/queue/docs/enqueue", &json!({ "job_type": "parse", "payload": {} }));
    let last = dequeue(&ida, "docs", json!({}));
    let nack = json!({ "message_id": last[0]["message_id"], "requeue": false });
    assert_eq!(told(&ida, "/queue/docs/nack", &nack)["status"], "failed");
    let items = items(ida.get("/api/v1/dlq/items").data());
    assert_eq!((items.len(), &items[0]["error_code"]), (1, &json!("QUEUE_NACK")));
    // Hidden until it is available; the same key is the same message.
    let later = json!({ "job_type": "parse", "payload": {}, "delay_ms": 3_600_000, "idempotency_key": "k" });
    let one = told(&ida, "/queue/docs/enqueue", &later);
    let two = internal(&ida, "POST", "/queue/docs/enqueue", Some(&later));
    assert_eq!((two.status, &two.data()["message_id"]), (200, &one["message_id"]));
    assert!(dequeue(&ida, "docs", json!({})).is_empty());
    let wrong = json!({ "job_type": "parse", "payload": {}, "queue": "else" });
    assert_eq!(internal(&ida, "POST", "/queue/docs/enqueue", Some(&wrong)).status, 400);
    for most in [0, 101] {
        let wish = json!({ "max_messages": most });
        assert_eq!(internal(&ida, "POST", "/queue/docs/dequeue", Some(&wish)).status, 400);
    }
}

fn a_message_that_nobody_acknowledges_comes_again(store: Store) {
    let ida = person(store, "crashing");
    told(&ida, "/queue/q/enqueue", &json!({ "job_type": "t", "payload": {} }));
    let taken = dequeue(&ida, "q", json!({ "visibility_ms": 50 }));
    assert_eq!(taken.len(), 1);
    let again = eventually("it comes again", || dequeue(&ida, "q", json!({})).pop());
    assert_eq!(again["job_id"], taken[0]["job_id"]);
    let ack = json!({ "message_id": taken[0]["message_id"] });
    assert_eq!(internal(&ida, "POST", "/queue/q/ack", Some(&ack)).status, 409);
    let ack = json!({ "message_id": again["message_id"] });
    assert_eq!(told(&ida, "/queue/q/ack", &ack)["status"], "succeeded");
}

fn draining_a_queue_ends_attempts_by_the_rules(store: Store) {
    let ida = person(store, "draining");
    for _ in 0..4 {
        told(
            &ida,
            "/queue/q/enqueue",
            &json!({ "job_type": "t", "payload": {}, "max_retries": 3 }),
        );
    }
    let drain = |more: &str| poked(&ida, &format!("/worker/queues/q/drain-once{more}"));
    let numbers = |told: &Value| {
        ["processed", "succeeded", "retrying", "failed", "acked", "requeued"]
            .map(|name| told[name].as_u64().unwrap())
    };
    let told = drain("?transient_fail=true");
    assert_eq!(numbers(&told), [1, 0, 1, 0, 0, 1]);
    assert_eq!(numbers(&drain("?force_fail=true")), [1, 0, 0, 1, 1, 0]);
    assert_eq!(
        numbers(&drain("?transient_fail=true&error_code=TEXT_ENCODING_UNSUPPORTED")),
        [1, 0, 0, 1, 1, 0],
        "a permanent code is never retried"
    );
    let told = drain("?max_messages=100");
    assert_eq!(numbers(&told)[..2], [1, 1]);
    assert_eq!(told["message_ids"].as_array().unwrap().len(), 1);
    assert_eq!(numbers(&drain("")), [0; 6]);
    for bad in ["?max_messages=0", "?max_messages=101", "?force_fail=true&transient_fail=true"] {
        let answer = internal(&ida, "POST", &format!("/worker/queues/q/drain-once{bad}"), None);
        assert_eq!(answer.status, 400, "{bad}");
    }
}

/// Relays until there is no more; what was told of.
fn relay(who: &Caller, more: &str) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let told = poked(who, &format!("/outbox/relay?limit=2{more}"));
        let ids = told["message_ids"].as_array().unwrap();
        assert_eq!(told["published_count"], json!(ids.len()));
        all.extend(ids.iter().map(|id| id.as_str().unwrap().to_owned()));
        if told["has_more"] == false {
            return all;
        }
    }
}

fn submit(who: &Caller, queue: &str) -> String {
    text(&who.submit(&json!({ "job_type": "t", "payload": {}, "queue": queue })), "job_id")
}

fn messages(jobs: &[String]) -> Vec<String> {
    jobs.iter().map(|job| job.replace("job_", "msg_")).collect()
}

fn g17_each_consumer_is_told_of_each_submission_once(store: Store) {
    let (ida, other) = (person(store, "outbox"), person(store, "others"));
    submit(&other, "a");
    let jobs: Vec<String> = ["a", "b", "a"].iter().map(|queue| submit(&ida, queue)).collect();
    let pending = read(&ida, "/outbox/events?status=pending");
    let events = pending["items"].as_array().unwrap();
    assert_eq!(events.len(), 3);
    assert!(events.iter().all(|event| event["event_type"] == "job.created"
        && event["aggregate_type"] == "job"
        && event["tenant_id"] == "outbox"
        && event["status"] == "pending"));
    let named: Vec<&str> =
        events.iter().map(|event| event["aggregate_id"].as_str().unwrap()).collect();
    assert_eq!(named, jobs);
    assert_eq!(relay(&ida, ""), messages(&jobs));
    assert!(relay(&ida, "").is_empty(), "each once");
    assert_eq!(relay(&ida, "&consumer_name=second"), messages(&jobs), "each consumer");
    assert_eq!(relay(&ida, "&queue_name=b"), messages(&jobs[1..2]));
    assert!(read(&ida, "/outbox/events?status=pending")["items"].as_array().unwrap().is_empty());
    let page = read(&ida, "/outbox/events?limit=2");
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let next = read(&ida, &format!("/outbox/events?limit=2&after={}", page["next_after"]));
    assert_eq!(next["items"][0]["aggregate_id"], jobs[2].as_str());
    assert!(next["items"].as_array().unwrap().iter().all(|event| event["status"] == "published"));
    let more = submit(&ida, "a");
    assert_eq!(relay(&ida, ""), messages(&[more]));
    // A consumer is a subscription that nothing is sent for, and cannot be taken away.
    let known = items(ida.get("/api/v1/subscriptions").data());
    let consumer = known.iter().find(|it| it["name"] == "second").unwrap();
    assert_eq!(
        (&consumer["target"], &consumer["delivered_count"]),
        (&json!("consumer"), &json!(3))
    );
    let gone = ida.delete(&format!("/api/v1/subscriptions/{}", text(consumer, "subscription_id")));
    assert_eq!(gone.refusal(), (409, "SUBSCRIPTION_CONFLICT".into()));
}

fn an_event_can_be_published_before_its_turn(store: Store) {
    let ida = person(store, "ahead");
    let jobs: Vec<String> = (0..3).map(|_| submit(&ida, "q")).collect();
    let event = |job: &str| format!("{}_1", job.replace("job_", "evt_"));
    let publish = |who: &Caller, event: &str| {
        internal(who, "POST", &format!("/outbox/events/{event}/publish"), None)
    };
    for _ in 0..2 {
        let told = publish(&ida, &event(&jobs[1])).data();
        assert_eq!(
            (&told["status"], &told["consumer_name"]),
            (&json!("published"), &json!("default"))
        );
    }
    let statuses = || {
        let events = read(&ida, "/outbox/events");
        let status = |it: &Value| text(it, "status");
        events["items"].as_array().unwrap().iter().map(status).collect::<Vec<_>>()
    };
    assert_eq!(statuses(), ["pending", "published", "pending"]);
    assert_eq!(relay(&ida, ""), messages(&[jobs[0].clone(), jobs[2].clone()]));
    assert_eq!(statuses(), ["published"; 3]);
    assert_eq!(publish(&ida, &event(&jobs[0])).status, 200, "told already");
    for bad in [&event(&jobs[0]).replace("_1", "_2"), "evt_nonsense_1", &jobs[0]] {
        assert_eq!(publish(&ida, bad).status, 403, "{bad}");
    }
    assert_eq!(publish(&person(store, "others"), &event(&jobs[0])).status, 403);
    let admin = server(store).caller("ahead", "root", &["admin", "internal"]);
    let none = publish(&admin, "evt_00000000000000000000000000_1");
    assert_eq!(none.refusal(), (404, "OUTBOX_EVENT_NOT_FOUND".to_owned()));
}

fn relays_at_once_tell_of_nothing_twice(store: Store) {
    let ida = person(store, "racing");
    let jobs: BTreeSet<String> = (0..40).map(|_| submit(&ida, "q")).collect();
    let told = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut all = Vec::new();
                    loop {
                        let answer = internal(&ida, "POST", "/outbox/relay?limit=3", None);
                        if answer.status == 409 {
                            continue;
                        }
                        let told = answer.data();
                        let ids = told["message_ids"].as_array().unwrap().clone();
                        all.extend(ids.iter().map(|id| id.as_str().unwrap().to_owned()));
                        if told["has_more"] == false {
                            return all;
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let once: BTreeSet<String> = told.iter().map(|id| id.replace("msg_", "job_")).collect();
    assert_eq!(told.len(), 40, "nothing twice");
    assert_eq!(once, jobs);
}

fn g12_checkpoints_tell_what_replay_goes_by(store: Store) {
    let ida = person(store, "replay");
    let wish = json!({ "job_type": "t", "payload": {}, "trace_id": "thread-1", "max_retries": 1 });
    let job = text(&ida.submit(&wish), "job_id");
    for _ in 0..2 {
        poked(&ida, &format!("/jobs/{job}/run?transient_fail=true"));
    }
    let second = text(&ida.submit(&wish), "job_id");
    poked(&ida, &format!("/jobs/{second}/run"));
    let told = read(&ida, "/workflows/thread-1/checkpoints");
    let shown: Vec<(String, u64, String)> = told["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let payload = &it["payload"];
            assert_eq!(
                (&it["thread_id"], &payload["trace_id"]),
                (&json!("thread-1"), &json!("thread-1"))
            );
            let retries = payload["retry_count"].as_u64().unwrap();
            (text(it, "node"), retries, text(payload, "status_transition"))
        })
        .collect();
    let step = |node: &str, retries: u64, step: &str| (node.to_owned(), retries, step.to_owned());
    assert_eq!(
        shown,
        [
            step("job_started", 0, "queued->running"),
            step("job_retrying", 1, "running->retrying"),
            step("job_started", 1, "retrying->running"),
            step("job_failed", 1, "dlq_recorded->failed"),
            step("job_started", 0, "queued->running"),
            step("job_succeeded", 0, "running->succeeded"),
        ]
    );
    let first = read(&ida, "/workflows/thread-1/checkpoints?limit=1");
    assert_eq!(first["items"].as_array().unwrap().len(), 4);
    let cursor = text(&first, "next_cursor");
    let rest = read(&ida, &format!("/workflows/thread-1/checkpoints?limit=1&cursor={cursor}"));
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next_cursor"]), (2, &Value::Null));
    let other = read(&person(store, "others"), "/workflows/thread-1/checkpoints");
    assert!(other["items"].as_array().unwrap().is_empty());
}

fn the_numbers_of_a_tenant_are_its_own(store: Store) {
    let ida = person(store, "numbers");
    submit(&person(store, "others"), "default");
    let jobs: Vec<String> = (0..5).map(|_| submit(&ida, "default")).collect();
    poked(&ida, &format!("/jobs/{}/run", jobs[0]));
    poked(&ida, &format!("/jobs/{}/run?force_fail=true", jobs[1]));
    poked(&ida, &format!("/jobs/{}/run?transient_fail=true", jobs[2]));
    let told = read(&ida, "/ops/metrics/summary");
    assert_eq!(
        told["api"],
        json!({ "total_jobs": 5, "succeeded_jobs": 1, "failed_jobs": 1, "error_rate": 0.5 })
    );
    let worker = &told["worker"];
    assert_eq!(
        (&worker["retrying_jobs"], &worker["dlq_open"], &worker["queue_pending"]),
        (&json!(1), &json!(1), &json!(2))
    );
    assert_eq!(
        (&worker["max_retries"], &worker["retry_backoff_base_ms"], &worker["retry_backoff_max_ms"]),
        (&json!(3), &json!(1000), &json!(30000))
    );
    assert_eq!((&worker["queue_name"], &worker["outbox_pending"]), (&json!("default"), &json!(5)));
    assert_eq!(told["slo"]["success_rate"], 0.5);
    assert_eq!(told["observability"]["backlog_jobs"], 3);
    relay(&ida, "");
    assert_eq!(read(&ida, "/ops/metrics/summary")["worker"]["outbox_pending"], 0);
    assert_eq!(read(&ida, "/audit/integrity")["valid"], true);
}

fn a_job_waits_for_a_person_and_goes_on_once(store: Store) {
    let ida = person(store, "gate");
    let job = text(
        &ida.submit(&json!({ "job_type": "review", "payload": {}, "max_retries": 0 })),
        "job_id",
    );
    let grant = ida.pull_one("review");
    let path = format!("/jobs/{job}/interrupt");
    let unasked = internal(&ida, "GET", &path, None);
    assert_eq!(unasked.refusal(), (409, "QUESTION_CONFLICT".to_owned()));
    let wish = json!({ "question": "ship it?", "options": ["yes", "no"],
        "lease_token": grant["lease_token"] });
    let without = json!({ "question": "ship it?" });
    assert_eq!(internal(&ida, "POST", &path, Some(&without)).status, 409, "a worker holds it");
    let waits = told(&ida, &path, &wish);
    assert_eq!((&waits["status"], &waits["question"]), (&json!("open"), &json!("ship it?")));
    assert!(ida.pull("review", 1).is_empty(), "it waits");
    let token = text(&waits, "resume_token");
    assert_eq!(text(&read(&ida, &path), "resume_token"), token);
    let resume = |who: &Caller, token: &str, reviewer: Value, answer: &str| {
        let wish = json!({ "resume_token": token, "reviewer_id": reviewer, "answer": answer });
        internal(who, "POST", "/workflows/resume", Some(&wish))
    };
    for nobody in [json!(""), json!("  ")] {
        let answer = resume(&ida, &token, nobody, "yes");
        assert_eq!(answer.refusal(), (400, "WF_INTERRUPT_REVIEWER_REQUIRED".to_owned()));
    }
    let invalid = (409, "WF_INTERRUPT_RESUME_INVALID".to_owned());
    let flipped = match token.strip_suffix('0') {
        Some(start) => format!("{start}1"),
        None => format!("{}0", &token[..token.len() - 1]),
    };
    for bad in ["", "rsm_", &flipped, &token.to_uppercase(), &token.replace("_1_", "_2_")] {
        assert_eq!(resume(&ida, bad, json!("rita"), "yes").refusal(), invalid, "{bad}");
    }
    let stranger = person(store, "others");
    assert_eq!(resume(&stranger, &token, json!("rita"), "yes").refusal(), invalid);
    assert_eq!(resume(&ida, &token, json!("rita"), "perhaps").status, 400, "not an option");
    let done = resume(&ida, &token, json!("rita"), "yes").data();
    assert_eq!((&done["answer"], &done["reviewer_id"]), (&json!("yes"), &json!("rita")));
    assert_eq!(done["resume_token"], Value::Null);
    for again in ["yes", "no"] {
        assert_eq!(resume(&ida, &token, json!("rita"), again).refusal(), invalid, "used");
    }
    // It goes on, and no try was used.
    let grant = ida.pull_one("review");
    assert_eq!((&grant["job_id"], &grant["retry_count"]), (&json!(job), &json!(0)));
    ida.complete(&grant);
    let lines = items(ida.get("/api/v1/audit?action=resume_submitted").data());
    assert_eq!((lines.len(), &lines[0]["object_id"]), (1, &json!(job)));
    // One that nobody works on waits, too; a second question has another token.
    let queued = text(&ida.submit(&json!({ "job_type": "later", "payload": {} })), "job_id");
    let one = told(&ida, &format!("/jobs/{queued}/interrupt"), &json!({ "question": "a?" }));
    assert_eq!(resume(&ida, &text(&one, "resume_token"), json!("rita"), "b").status, 200);
    let grant = ida.pull_one("later");
    let wish = json!({ "question": "c?", "lease_token": grant["lease_token"] });
    let two = told(&ida, &format!("/jobs/{queued}/interrupt"), &wish);
    assert_ne!(one["resume_token"], two["resume_token"]);
    assert_eq!(resume(&ida, &text(&one, "resume_token"), json!("rita"), "b").refusal(), invalid);
    ida.poke(&format!("/api/v1/jobs/{queued}/cancel"));
    assert_eq!(resume(&ida, &text(&two, "resume_token"), json!("rita"), "d").refusal(), invalid);
}

fn what_was_told_and_asked_survives_a_crash(store: Store) {
    let options = store.options(BINARY).config("[types]\nstrict = false").arg("--internal-routes");
    let mut server = Server::start(options);
    let ida = server.caller("t", "ida", &ROLES);
    let jobs: Vec<String> = (0..3).map(|_| submit(&ida, "q")).collect();
    assert_eq!(relay(&ida, ""), messages(&jobs));
    let last = submit(&ida, "q");
    let waits = told(&ida, &format!("/jobs/{last}/interrupt"), &json!({ "question": "a?" }));
    let event = format!("{}_1", last.replace("job_", "evt_"));
    poked(&ida, &format!("/outbox/events/{event}/publish"));
    server.kill9();
    server.restart();
    let ida = Caller { address: server.admin().address, ..ida };
    assert!(relay(&ida, "").is_empty(), "all were told of");
    let wish = json!({ "resume_token": waits["resume_token"], "reviewer_id": "r", "answer": "b" });
    assert_eq!(told(&ida, "/workflows/resume", &wish)["answer"], "b");
}

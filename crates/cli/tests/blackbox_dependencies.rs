//! Bounds on waiting, what a worker leaves for the next try, snoozes, and jobs that wait for
//! others, from outside.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![
    o07_a_job_that_nobody_takes_in_time_ends_with_a_code_of_its_own,
    o07_a_deadline_ends_a_job_over_all_its_tries,
    o08_the_next_try_gets_the_checkpoint,
    o08_a_snooze_uses_no_try,
    o11_a_job_starts_when_the_jobs_before_it_are_done,
    o11_a_failure_before_it_cancels_a_job_and_whatever_waits_for_that,
    o11_foreign_and_unknown_jobs_cannot_be_waited_for,
    o11_a_batch_is_followed_by_one_job_and_taken_whole,
    o11_a_thousand_jobs_wait_for_one,
    o11_a_killed_server_releases_what_waited,
    o11_ends_on_several_servers_at_once_release_what_waited,
    the_command_line_knows_of_bounds_and_dependencies,
];

fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")))
}

fn ann(store: Store, tenant: &str) -> Caller {
    server(store).caller(tenant, "ann", &["submitter", "worker", "operator"])
}

fn wish(job_type: &str, more: Value) -> Value {
    let mut wish = json!({ "job_type": job_type, "payload": {} });
    wish.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    wish
}

fn submit(caller: &Caller, job_type: &str, more: Value) -> String {
    text(&caller.submit(&wish(job_type, more)), "job_id")
}

fn ended(caller: &Caller, id: &str, status: &str) -> Value {
    eventually(&format!("{id} is {status}"), || {
        let job = caller.job(id);
        (job["status"] == status).then_some(job)
    })
}

fn explained(caller: &Caller, id: &str) -> Value {
    caller.get(&format!("/api/v1/jobs/{id}/explain")).data()
}

/// An instant this long after the server's now.
fn ahead(caller: &Caller, ms: u64) -> String {
    text(&caller.submit(&wish("clock", json!({ "delay_ms": ms }))), "run_at")
}

fn o07_a_job_that_nobody_takes_in_time_ends_with_a_code_of_its_own(store: Store) {
    let ann = ann(store, "queue-timeout");
    let id = submit(&ann, "late", json!({ "queue_timeout_ms": 300 }));
    let job = ended(&ann, &id, "cancelled");
    assert_eq!(job["error_code"], "QUEUE_TIMEOUT");
    assert_eq!(job["queue_timeout_ms"], 300);
    assert_eq!(ann.events(&id)[1]["reason_code"], "QUEUE_TIMEOUT");
    assert!(ann.pull("late", 1).is_empty());
    // Each try waits anew, and one that was started is a dead letter.
    let id = submit(&ann, "late", json!({ "queue_timeout_ms": 1500 }));
    let grant = ann.pull_one("late");
    let more = json!({ "error_code": "BUSY", "retryable": true, "retry_delay_ms": 10 });
    assert_eq!(ann.report("fail", &grant, more)["status"], "retrying");
    let job = ended(&ann, &id, "failed");
    assert_eq!(job["error_code"], "QUEUE_TIMEOUT");
    assert!(text(&job["last_error"], "message").contains("BUSY"));
    for wrong in [json!(0), json!(2_592_000_001_u64)] {
        let wish = wish("late", json!({ "queue_timeout_ms": wrong }));
        assert_eq!(ann.post("/api/v1/jobs", &wish).refusal().0, 400);
    }
}

fn o07_a_deadline_ends_a_job_over_all_its_tries(store: Store) {
    let ann = ann(store, "deadline");
    let at = ahead(&ann, 1_200);
    let untried = submit(&ann, "never", json!({ "deadline_at": at }));
    let tried = submit(&ann, "total", json!({ "deadline_at": at, "max_retries": 100 }));
    let grant = ann.pull_one("total");
    assert_eq!(text(&grant, "deadline_at"), at, "no attempt outlives the job");
    let more = json!({ "error_code": "BUSY", "retryable": true, "retry_delay_ms": 60000 });
    ann.report("fail", &grant, more);
    let held = submit(&ann, "total", json!({ "deadline_at": at }));
    assert_eq!(text(&ann.pull_one("total"), "job_id"), held);
    assert_eq!(ended(&ann, &untried, "cancelled")["error_code"], "TOTAL_TIMEOUT");
    for id in [tried, held] {
        let job = ended(&ann, &id, "failed");
        assert_eq!(job["last_error"]["code"], "TOTAL_TIMEOUT");
        assert_eq!(job["last_error"]["retryable"], false);
    }
    let past = wish("total", json!({ "deadline_at": "2001-01-01T00:00:00Z" }));
    assert_eq!(ann.post("/api/v1/jobs", &past).refusal().0, 400);
}

fn beat(caller: &Caller, grant: &Value, progress: Value) -> Value {
    let item = json!({
        "job_id": grant["job_id"], "lease_token": grant["lease_token"], "progress": progress,
    });
    let wish = json!({ "worker_id": "w-1", "lease_ms": 30000, "items": [item] });
    items(caller.post("/api/v1/work/heartbeat", &wish).data()).pop().unwrap()
}

fn o08_the_next_try_gets_the_checkpoint(store: Store) {
    let ann = ann(store, "checkpoint");
    let id = submit(&ann, "rows", json!({}));
    let first = ann.pull_one("rows");
    assert_eq!(first["checkpoint"], Value::Null);
    let told =
        beat(&ann, &first, json!({ "percent": 40, "message": "row 7", "checkpoint": {"row": 7} }));
    assert!(told["lease_expires_at"].is_string(), "{told}");
    beat(&ann, &first, json!(50));
    let job = ann.job(&id);
    assert_eq!((&job["progress_pct"], &job["progress_message"]), (&json!(50), &json!("row 7")));
    let too_much = beat(&ann, &first, json!({ "checkpoint": "x".repeat(70_000) }));
    assert_eq!(too_much["error"]["code"], "REQ_VALIDATION_FAILED", "{too_much}");
    let wrong = beat(&ann, &first, json!({ "percents": 4 }));
    assert_eq!(wrong["error"]["code"], "REQ_VALIDATION_FAILED", "{wrong}");
    ann.report("fail", &first, json!({ "retryable": true, "retry_delay_ms": 0 }));
    let second = ann.pull_one("rows");
    assert_eq!(second["checkpoint"], json!({ "row": 7 }));
    // A report brings the next job, and what was left for it, in one answer.
    let other = submit(&ann, "rows", json!({}));
    ann.report("release", &second, json!({}));
    let held = ann.pull_one("rows");
    let next = json!({
        "items": [{ "job_id": held["job_id"], "lease_token": held["lease_token"] }],
        "pull": { "worker_id": "w-1", "types": ["rows"], "limit": 5 },
    });
    let answer = ann.post("/api/v1/work/complete", &next).data();
    let both = [&held, &answer["jobs"][0]];
    for grant in both {
        let wanted =
            if grant["job_id"] == other.as_str() { Value::Null } else { json!({"row": 7}) };
        assert_eq!(grant["checkpoint"], wanted, "{grant}");
    }
}

fn o08_a_snooze_uses_no_try(store: Store) {
    let ann = ann(store, "snooze");
    let id = submit(&ann, "nap", json!({ "max_retries": 0 }));
    for nth in 1..=2 {
        let grant = ann.pull_one("nap");
        assert_eq!((&grant["attempt"], &grant["retry_count"]), (&json!(1), &json!(0)));
        let told = ann.report("fail", &grant, json!({ "snooze_ms": 50, "message": "not yet" }));
        assert_eq!(told["status"], "retrying");
        assert_eq!(ann.job(&id)["snooze_count"], nth);
    }
    let event = &ann.events(&id)[2];
    assert_eq!(
        (&event["reason_code"], &event["reason_message"]),
        (&json!("SNOOZED"), &json!("not yet"))
    );
    let grant = ann.pull_one("nap");
    let both = ann.report("fail", &grant, json!({ "snooze_ms": 50, "retry_delay_ms": 5 }));
    assert_eq!(both["error"]["code"], "REQ_VALIDATION_FAILED");
    let long = ann.report("fail", &grant, json!({ "snooze_ms": 9_999_999_999_u64 }));
    assert_eq!(long["error"]["code"], "REQ_VALIDATION_FAILED");
    assert_eq!(ann.complete(&grant)["status"], "succeeded");
}

fn o11_a_job_starts_when_the_jobs_before_it_are_done(store: Store) {
    let ann = ann(store, "after");
    let first = submit(&ann, "one", json!({}));
    let second = submit(&ann, "one", json!({}));
    let last = ann.submit(&wish("two", json!({ "after": [first, second, first] })));
    let id = text(&last, "job_id");
    assert_eq!(last["status"], "queued");
    let mut named: Vec<String> = serde_json::from_value(last["after"].clone()).unwrap();
    named.sort();
    let mut both = vec![first.clone(), second.clone()];
    both.sort();
    assert_eq!((named, &last["after_condition"]), (both, &json!("success")));
    let why = explained(&ann, &id);
    assert_eq!(why["reasons"][0]["code"], "WAITS_FOR", "{why}");
    assert!(text(&why["reasons"][0], "message").contains("2 jobs"), "{why}");
    let held = [ann.pull_one("one"), ann.pull_one("one")];
    ann.complete(&held[0]);
    eventually("one is left", || {
        let why = explained(&ann, &id);
        let message = text(&why["reasons"][0], "message");
        (message.contains("1 job has") && message.contains(&text(&held[1], "job_id"))).then_some(())
    });
    assert!(ann.pull("two", 1).is_empty());
    ann.complete(&held[1]);
    let grant = ann.pull_one("two");
    assert_eq!(text(&grant, "job_id"), id);
    assert_eq!(ann.complete(&grant)["status"], "succeeded");
    let events = ann.events(&id);
    assert_eq!(events[1]["reason_code"], "DEPENDENCIES_MET");
    assert_eq!(ann.path(&id), ["queued", "queued", "running", "succeeded"]);
    // What has ended counts at once.
    let at_once = submit(&ann, "two", json!({ "after": [first, id] }));
    assert_eq!(text(&ann.pull_one("two"), "job_id"), at_once);
}

fn o11_a_failure_before_it_cancels_a_job_and_whatever_waits_for_that(store: Store) {
    let ann = ann(store, "culprit");
    let first = submit(&ann, "bad", json!({}));
    let second = submit(&ann, "good", json!({ "after": [first] }));
    let third = submit(&ann, "good", json!({ "after": [second] }));
    let anyway = submit(&ann, "tidy", json!({ "after": [third], "after_condition": "end" }));
    ann.fail(&ann.pull_one("bad"), "BROKEN", false);
    let grant = ann.pull_one("tidy");
    assert_eq!(text(&grant, "job_id"), anyway);
    for (id, culprit) in [(&second, &first), (&third, &second)] {
        let job = ended(&ann, id, "cancelled");
        assert_eq!(job["error_code"], "DEPENDENCY_FAILED");
        let event = ann.events(id).pop().unwrap();
        assert_eq!(event["reason_code"], "DEPENDENCY_FAILED");
        assert!(text(&event, "reason_message").contains(culprit.as_str()), "{event}");
    }
    let late = submit(&ann, "good", json!({ "after": [first] }));
    assert_eq!(ann.job(&late)["status"], "cancelled");
}

fn o11_foreign_and_unknown_jobs_cannot_be_waited_for(store: Store) {
    let ann = ann(store, "mine");
    let bob = server(store).caller("mine", "bob", &["submitter"]);
    let eve = server(store).caller("others", "eve", &["submitter", "operator"]);
    let own = submit(&ann, "one", json!({}));
    let foreign = submit(&eve, "one", json!({}));
    let unknown = "job_00000000000000000000000000";
    let refused = |caller: &Caller, id: &str| {
        let answer = caller.post("/api/v1/jobs", &wish("two", json!({ "after": [own, id] })));
        answer.refusal()
    };
    let stranger = refused(&ann, &foreign);
    assert_eq!(stranger.0, 403);
    assert_eq!(refused(&ann, unknown), stranger);
    assert_eq!(refused(&bob, &own), stranger, "ann's job is not bob's to name");
    assert_eq!(refused(&ann, "job_7").0, 400);
    assert_eq!(refused(&ann, "#0").0, 400, "only in a batch");
    let many: Vec<String> = (0..101).map(|_| own.clone()).collect();
    assert_eq!(ann.post("/api/v1/jobs", &wish("two", json!({ "after": many }))).refusal().0, 400);
    let batch =
        json!({ "jobs": [wish("two", json!({})), wish("two", json!({ "after": [foreign] }))] });
    let answers = items(ann.post("/api/v1/jobs/batch", &batch).data());
    assert!(answers[0]["job_id"].is_string());
    assert_eq!(answers[1]["error"]["code"], stranger.1.as_str(), "each item stands for itself");
}

fn o11_a_batch_is_followed_by_one_job_and_taken_whole(store: Store) {
    let ann = ann(store, "then");
    let plain = |n: usize| (0..n).map(|_| wish("part", json!({}))).collect::<Vec<_>>();
    let batch = json!({ "jobs": plain(300), "then": wish("whole", json!({})) });
    let answers = items(ann.post("/api/v1/jobs/batch", &batch).data());
    assert_eq!(answers.len(), 301);
    let then = text(&answers[300], "job_id");
    assert_eq!(ann.job(&then)["after_batch"], 300);
    let why = explained(&ann, &then);
    assert!(text(&why["reasons"][0], "message").starts_with("300 jobs"), "{why}");
    for grants in ann.pull("part", 300).chunks(100) {
        assert!(ann.pull("whole", 1).is_empty());
        let done: Vec<Value> = grants
            .iter()
            .map(|it| json!({ "job_id": it["job_id"], "lease_token": it["lease_token"] }))
            .collect();
        ann.post("/api/v1/work/complete", &json!({ "items": done })).data();
    }
    assert_eq!(text(&ann.pull_one("whole"), "job_id"), then);
    // Jobs of a batch may name earlier ones.
    let chain = json!({ "jobs": [
        wish("chain", json!({})),
        wish("chain", json!({ "after": ["#0"] })),
        wish("chain", json!({ "after": ["#1", "#0"], "after_condition": "end" })),
    ] });
    let answers = items(ann.post("/api/v1/jobs/batch", &chain).data());
    for answer in &answers {
        let grant = ann.pull_one("chain");
        assert_eq!(grant["job_id"], answer["job_id"]);
        assert!(ann.pull("chain", 5).is_empty());
        ann.complete(&grant);
    }
    for wrong in [
        json!({ "jobs": [wish("none", json!({ "after": ["#1"] })), wish("none", json!({}))] }),
        json!({ "jobs": [wish("none", json!({ "after": ["#0"] }))] }),
        json!({ "jobs": [wish("none", json!({})), json!({ "job_type": 7 })], "then": wish("none", json!({})) }),
        json!({ "jobs": [wish("none", json!({}))], "then": wish("none", json!({ "after": ["#0"] })) }),
    ] {
        assert_eq!(ann.post("/api/v1/jobs/batch", &wrong).refusal().0, 400, "{wrong}");
    }
    assert!(ann.pull("none", 5).is_empty(), "all or none");
    // Sent again, it is the same batch.
    let keyed = |n: usize| wish("again", json!({ "idempotency_key": format!("part-{n}") }));
    let then = wish("again", json!({ "idempotency_key": "then" }));
    let batch = json!({ "jobs": [keyed(0), keyed(1)], "then": then });
    let first = items(ann.post("/api/v1/jobs/batch", &batch).data());
    let second = items(ann.post("/api/v1/jobs/batch", &batch).data());
    let ids = |answers: &[Value]| answers.iter().map(|it| text(it, "job_id")).collect::<Vec<_>>();
    assert_eq!(ids(&first), ids(&second));
    assert!(second.iter().all(|it| it["idempotent_hit"] == true));
}

fn o11_a_thousand_jobs_wait_for_one(store: Store) {
    let ann = ann(store, "fan-out");
    let first = submit(&ann, "start", json!({}));
    let waiting: Vec<Value> =
        (0..1_200).map(|_| wish("many", json!({ "after": [first] }))).collect();
    ann.post("/api/v1/jobs/batch", &json!({ "jobs": waiting })).data();
    assert!(ann.pull("many", 1).is_empty());
    ann.complete(&ann.pull_one("start"));
    let mut seen = 0;
    eventually("all of them are ready", || {
        seen += ann.pull("many", 2_000).len();
        (seen == 1_200).then_some(())
    });
}

fn o11_a_killed_server_releases_what_waited(store: Store) {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring"));
    let mut server = Server::start(options);
    let mut ids = Vec::new();
    for round in 0..3 {
        let ann = server.caller("killed", "ann", &["submitter", "worker", "operator"]);
        let parts: Vec<Value> = (0..40).map(|_| wish("part", json!({}))).collect();
        let batch = json!({ "jobs": parts, "then": wish("whole", json!({})) });
        let answers = items(ann.post("/api/v1/jobs/batch", &batch).data());
        let whole = text(&answers[40], "job_id");
        let after = submit(&ann, "whole", json!({ "after": [text(&answers[7], "job_id"), whole] }));
        ids.extend([whole, after]);
        let grants = ann.pull("part", 40);
        for (nth, grant) in grants.iter().enumerate() {
            let last = nth + 1 == grants.len();
            assert_eq!(ann.complete(grant)["status"], "succeeded", "round {round}");
            if last {
                // Between the end of the last one and the release, most likely.
                server.kill9();
            }
        }
        server.restart();
    }
    let ann = server.caller("killed", "ann", &["submitter", "worker", "operator"]);
    for _ in 0..ids.len() {
        let grant = ann.pull_one("whole");
        ann.complete(&grant);
    }
    for id in &ids {
        ended(&ann, id, "succeeded");
    }
}

fn o11_ends_on_several_servers_at_once_release_what_waited(store: Store) {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring"));
    let count = if store == Store::Postgres { 3 } else { 1 };
    let servers: Vec<Server> = (0..count).map(|_| Server::start(options.clone())).collect();
    let made = servers[0].caller("race", "ann", &["submitter", "worker", "operator"]);
    let at =
        |nth: usize| Caller { address: servers[nth % count].address, token: made.token.clone() };
    for round in 0..8 {
        let parts: Vec<Value> = (0..12).map(|_| wish("part", json!({}))).collect();
        let batch = json!({ "jobs": parts, "then": wish("whole", json!({})) });
        let answers = items(at(round).post("/api/v1/jobs/batch", &batch).data());
        let ids: Vec<String> = answers[..12].iter().map(|it| text(it, "job_id")).collect();
        let grants = eventually("all parts are handed out", || {
            let grants = at(round + 1).pull("part", 12);
            (grants.len() == 12).then_some(grants)
        });
        let named = std::thread::scope(|scope| {
            for (nth, grant) in grants.iter().enumerate() {
                let at = &at;
                scope.spawn(move || at(nth).complete(grant));
            }
            // Named while they end: whichever comes last sees the other.
            submit(&at(round + 2), "whole", json!({ "after": ids }))
        });
        let mut got =
            [at(0).pull_one("whole"), at(1).pull_one("whole")].map(|it| text(&it, "job_id"));
        got.sort();
        let mut wanted = [text(&answers[12], "job_id"), named];
        wanted.sort();
        assert_eq!(got, wanted, "round {round}");
    }
}

fn the_command_line_knows_of_bounds_and_dependencies(store: Store) {
    let ann = ann(store, "cli-after");
    let first = submit(&ann, "one", json!({}));
    let args = [
        "jobs",
        "submit",
        "two",
        "{}",
        "--after",
        &first,
        "--after-condition",
        "end",
        "--deadline",
        "2099-01-01T00:00:00Z",
        "--queue-timeout",
        "1h",
        "--output",
        "json",
    ];
    let job = server(store).cli_as(&ann.token, &args).expect(0).json();
    assert_eq!((&job["after"], &job["after_condition"]), (&json!([first]), &json!("end")));
    assert_eq!(job["queue_timeout_ms"], 3_600_000);
    let explain = ["jobs", "explain", job["job_id"].as_str().unwrap(), "--output", "json"];
    let why = server(store).cli_as(&ann.token, &explain).expect(0).json();
    assert_eq!(why["reasons"][0]["code"], "WAITS_FOR");
}

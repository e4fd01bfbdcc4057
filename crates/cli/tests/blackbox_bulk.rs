//! Bulk operations from outside: looking first, doing, a second person, a few first, ending, and a
//! crash in the middle.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    g10_a_bulk_requeue_is_looked_at_first_and_does_each_item_once,
    g10_a_bulk_requeue_survives_crashes_and_does_each_item_once,
    g10_a_few_go_first_and_decide_about_the_others,
    g11_a_bulk_discard_asks_for_each_item_and_drops_none,
    g11_many_things_take_a_second_person,
    jobs_are_cancelled_by_filter_and_others_are_left_alone,
    jobs_are_paused_by_filter_until_they_are_resumed,
    what_is_too_wide_or_says_no_reason_is_refused,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const EVERYTHING: [&str; 4] = ["submitter", "worker", "operator", "viewer"];
const CONFIG: &str = "[types]\nstrict = false\n[bulk]\napproval_above = 120\n";

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(BINARY).config(CONFIG))
}

fn submit(who: &Caller, job_type: &str, count: usize) -> Vec<String> {
    let wishes: Vec<Value> =
        (0..count).map(|n| json!({ "job_type": job_type, "payload": { "n": n } })).collect();
    let made = items(who.post("/api/v1/jobs/batch", &json!({ "jobs": wishes })).data());
    made.iter().map(|item| text(item, "job_id")).collect()
}

/// Has `count` jobs fail for good with `code`.
fn bury(who: &Caller, job_type: &str, count: usize, code: &str) {
    submit(who, job_type, count);
    let mut left = count;
    while left > 0 {
        let grants = who.pull(job_type, left);
        let failed: Vec<Value> = grants
            .iter()
            .map(|grant| {
                json!({
                    "job_id": grant["job_id"], "lease_token": grant["lease_token"],
                    "error_code": code, "message": "broken", "retryable": false,
                })
            })
            .collect();
        left -= failed.len();
        who.post("/api/v1/work/fail", &json!({ "items": failed })).data();
    }
}

fn create(who: &Caller, wish: &Value) -> Value {
    let made = who.post("/api/v1/bulk", wish);
    assert_eq!(made.status, 201, "{}", made.text());
    made.data()
}

fn requeue(code: &str) -> Value {
    json!({ "action": "requeue", "filter": { "error_code": code }, "reason": "mended" })
}

fn read(who: &Caller, bulk: &Value) -> Value {
    who.get(&format!("/api/v1/bulk/{}", text(bulk, "bulk_id"))).data()
}

/// The operation once it is in this state.
#[track_caller]
fn once(who: &Caller, bulk: &Value, status: &str) -> Value {
    eventually(&format!("the operation is {status}"), || {
        Some(read(who, bulk)).filter(|bulk| bulk["status"] == status)
    })
}

/// What became of each thing, page by page.
fn outcomes(who: &Caller, bulk: &Value) -> Vec<Value> {
    let path = format!("/api/v1/bulk/{}/items?limit=99", text(bulk, "bulk_id"));
    let (mut all, mut next) = (Vec::new(), String::new());
    loop {
        let page = who.get(&format!("{path}{next}")).data();
        let cursor = page["next_cursor"].as_str().map(|cursor| format!("&cursor={cursor}"));
        all.extend(items(page));
        match cursor {
            Some(cursor) => next = cursor,
            None => return all,
        }
    }
}

fn total(who: &Caller, path: &str) -> u64 {
    who.get(path).data()["total"].as_u64().unwrap()
}

/// Distinct values of a field.
fn distinct(all: &[Value], field: &str) -> usize {
    all.iter().map(|it| text(it, field)).collect::<BTreeSet<_>>().len()
}

fn g10_a_bulk_requeue_is_looked_at_first_and_does_each_item_once(store: Store) {
    let server = server(store);
    let ann = server.caller("g10", "ann", &EVERYTHING);
    let eve = server.caller("g10-eve", "eve", &EVERYTHING);
    bury(&ann, "t", 110, "AWAY");
    bury(&ann, "t", 3, "OTHER");
    bury(&eve, "t", 2, "AWAY");
    let mut wish = requeue("AWAY");
    wish["dry_run"] = json!(true);
    let preview = ann.post("/api/v1/bulk", &wish);
    assert_eq!(preview.status, 200);
    let preview = preview.data();
    assert_eq!((&preview["status"], &preview["matched"]), (&json!("preview"), &json!(110)));
    assert_eq!(preview["needs_approval"], false);
    let samples: Vec<Value> = serde_json::from_value(preview["samples"].clone()).unwrap();
    assert_eq!((samples.len(), &samples[0]["error_message"]), (10, &json!("broken")));
    assert_eq!(items(ann.get("/api/v1/bulk").data()), Vec::<Value>::new(), "nothing was begun");
    assert_eq!(total(&ann, "/api/v1/dlq/items?status=open"), 113);

    let made = create(&ann, &requeue("AWAY"));
    assert_eq!((&made["matched"], &made["requested_by"]), (&json!(110), &json!("ann")));
    let done = once(&ann, &made, "done");
    assert_eq!((&done["done"], &done["failed"]), (&json!(110), &json!(0)));
    assert_eq!(total(&ann, "/api/v1/dlq/items?status=open"), 3, "the others wait");
    assert_eq!(total(&eve, "/api/v1/dlq/items?status=open"), 2, "so does another tenant");
    let all = outcomes(&ann, &made);
    assert_eq!((all.len(), distinct(&all, "id"), distinct(&all, "job_id")), (110, 110, 110));
    assert!(all.iter().all(|it| it["outcome"] == "done"), "{all:?}");
    let one = ann.get(&format!("/api/v1/dlq/items/{}", text(&all[60], "id"))).data();
    assert_eq!((&one["status"], &one["requeued_job_id"]), (&json!("requeued"), &all[60]["job_id"]));
    let job = ann.job(&text(&all[60], "job_id"));
    assert_eq!((&job["source_dlq_id"], &job["status"]), (&all[60]["id"], &json!("queued")));
    assert_eq!(total(&ann, "/api/v1/jobs?status=queued"), 110);
    // There is nothing left to do.
    let again = create(&ann, &requeue("AWAY"));
    assert_eq!(once(&ann, &again, "done")["matched"], 0);
    // The trail says who and why; nobody else sees anything.
    let lines = items(ann.get("/api/v1/audit?action=bulk.requeue").data());
    assert_eq!((lines.len(), &lines[0]["reason"]), (2, &json!("mended")));
    assert_eq!(lines[0]["after"]["error_code"], "AWAY");
    for id in [&*text(&made, "bulk_id"), "blk_0", "nonsense", "%00"] {
        for answer in [
            eve.get(&format!("/api/v1/bulk/{id}")),
            eve.get(&format!("/api/v1/bulk/{id}/items")),
            eve.poke(&format!("/api/v1/bulk/{id}/stop")),
        ] {
            assert_eq!(answer.refusal(), (403, "AUTH_FORBIDDEN".into()), "{id}");
        }
    }
    assert_eq!(items(eve.get("/api/v1/bulk").data()), Vec::<Value>::new());
    let first = ann.get("/api/v1/bulk?limit=1").data();
    assert_eq!((&first["total"], &first["items"][0]["bulk_id"]), (&json!(2), &again["bulk_id"]));
    let next = text(&first, "next_cursor");
    let rest = items(ann.get(&format!("/api/v1/bulk?limit=1&cursor={next}")).data());
    assert_eq!(rest[0]["bulk_id"], made["bulk_id"]);
    assert_eq!(items(ann.get("/api/v1/bulk?status=running").data()).len(), 0);
    // The command line does the same.
    let cli =
        |args: &[&str]| server.cli_as(&ann.token, &[&["bulk"], args, &["-o", "json"]].concat());
    let wish = ["requeue", "--error-code", "OTHER", "--reason", "mended, too"];
    let told = cli(&[&["preview"], &wish[..]].concat()).expect(0).json();
    assert_eq!(told["matched"], 3);
    let begun = cli(&[&["start"], &wish[..]].concat()).expect(0).json();
    let id = text(&begun, "bulk_id");
    once(&ann, &begun, "done");
    assert_eq!(cli(&["show", &id]).expect(0).json()["done"], 3);
    assert_eq!(items(cli(&["items", &id]).expect(0).json()).len(), 3);
    assert_eq!(items(cli(&["list"]).expect(0).json()).len(), 3);
    let refused = cli(&["stop", &id]);
    assert!(refused.code != Some(0) && refused.stderr.contains("BULK_CONFLICT"), "{refused:?}");
}

fn g10_a_bulk_requeue_survives_crashes_and_does_each_item_once(store: Store) {
    const COUNT: usize = 1_500;
    let config = "[types]\nstrict = false\n[bulk]\napproval_above = 100000\n";
    let mut server = Server::start(store.options(BINARY).config(config));
    let token = server.caller("crash", "ann", &EVERYTHING).token;
    let ann = |server: &Server| Caller { address: server.address, token: token.clone() };
    bury(&ann(&server), "t", COUNT, "AWAY");
    let made = create(&ann(&server), &requeue("AWAY"));
    let mut seen = Vec::new();
    for _ in 0..6 {
        let now = read(&ann(&server), &made);
        seen.push(now["done"].as_u64().unwrap());
        if now["status"] == "done" {
            break;
        }
        server.restart();
    }
    println!("done at each crash: {seen:?} of {COUNT}");
    let ann = ann(&server);
    let done = once(&ann, &made, "done");
    assert_eq!((&done["done"], &done["failed"]), (&json!(COUNT), &json!(0)));
    let all = outcomes(&ann, &made);
    assert_eq!((all.len(), distinct(&all, "id"), distinct(&all, "job_id")), (COUNT, COUNT, COUNT));
    assert_eq!(total(&ann, "/api/v1/jobs?status=queued"), COUNT as u64, "no job came twice");
    assert_eq!(total(&ann, "/api/v1/dlq/items?status=open"), 0);
    assert_eq!(total(&ann, "/api/v1/dlq/items?status=requeued"), COUNT as u64);
}

fn g10_a_few_go_first_and_decide_about_the_others(store: Store) {
    let ann = server(store).caller("canary", "ann", &EVERYTHING);
    let begin = |job_type: &str, ratio: f64| {
        bury(&ann, job_type, 8, job_type);
        let mut wish = requeue(job_type);
        wish["canary"] = json!({ "first": 3, "max_failure_ratio": ratio });
        let made = create(&ann, &wish);
        let waits = once(&ann, &made, "canary");
        assert_eq!(waits["done"], 3);
        (made, ann.pull(job_type, 10))
    };
    // One of three fails: more than a quarter.
    let (made, grants) = begin("bad", 0.25);
    assert_eq!(grants.len(), 3, "and no others yet");
    ann.fail(&grants[0], "AGAIN", false);
    let stopped = once(&ann, &made, "stopped");
    assert_eq!(stopped["stopped_reason"], "1 of the first 3 jobs failed");
    assert_eq!((&stopped["done"], &stopped["stopped_by"]), (&json!(3), &Value::Null));
    assert_eq!(total(&ann, "/api/v1/dlq/items?status=open&error_code=bad"), 5);
    // One of three may fail.
    let (made, grants) = begin("good", 0.5);
    ann.fail(&grants[0], "AGAIN", false);
    ann.complete(&grants[1]);
    assert_eq!(read(&ann, &made)["status"], "canary", "the third has not ended");
    ann.complete(&grants[2]);
    let done = once(&ann, &made, "done");
    assert_eq!((&done["done"], &done["canary"]["first"]), (&json!(8), &json!(3)));
    // It can be ended while it waits, and then does nothing more.
    let (made, _) = begin("ended", 0.0);
    let path = format!("/api/v1/bulk/{}/stop", text(&made, "bulk_id"));
    let vic = server(store).caller("canary", "vic", &["viewer"]);
    assert_eq!(vic.poke(&path).refusal(), (403, "AUTH_FORBIDDEN".into()));
    let ended = ann.post(&path, &json!({ "reason": "wrong one" })).data();
    assert_eq!((&ended["status"], &ended["stopped_by"]), (&json!("stopped"), &json!("ann")));
    assert_eq!(ann.poke(&path).refusal(), (409, "BULK_CONFLICT".into()));
    assert_eq!(total(&ann, "/api/v1/dlq/items?status=open&error_code=ended"), 5);
}

fn g11_a_bulk_discard_asks_for_each_item_and_drops_none(store: Store) {
    let ann = server(store).caller("g11", "ann", &EVERYTHING);
    let bob = server(store).caller("g11", "bob", &["approver"]);
    bury(&ann, "t", 4, "JUNK");
    let wish = json!({ "action": "discard", "filter": { "type": "t" }, "reason": "junk" });
    let done = once(&ann, &create(&ann, &wish), "done");
    assert_eq!(done["done"], 4);
    let asked = items(ann.get("/api/v1/dlq/items?status=discard_requested").data());
    assert_eq!(asked.len(), 4);
    assert_eq!((&asked[0]["requested_by"], &asked[0]["reason"]), (&json!("ann"), &json!("junk")));
    // Each still takes its second person, and nobody can be both.
    let path = format!("/api/v1/dlq/items/{}/approve", text(&asked[0], "dlq_id"));
    let version = json!({ "version": asked[0]["version"] });
    let other = server(store).caller("g11", "ann", &["approver"]);
    assert_eq!(other.post(&path, &version).refusal(), (409, "APPROVAL_SAME_PERSON".into()));
    assert_eq!(bob.post(&path, &version).data()["status"], "discarded");
}

fn g11_many_things_take_a_second_person(store: Store) {
    let server = server(store);
    let ann = server.caller("second", "ann", &EVERYTHING);
    let double = server.caller("second", "ANN", &["approver", "operator"]);
    bury(&ann, "t", 121, "AWAY");
    let mut wish = requeue("AWAY");
    wish["dry_run"] = json!(true);
    assert_eq!(ann.post("/api/v1/bulk", &wish).data()["needs_approval"], true);
    let refused = ann.post("/api/v1/bulk", &requeue("AWAY")).refusal();
    assert_eq!(refused, (409, "APPROVAL_NO_SECOND_PERSON".into()), "only herself");
    let bob = server.caller("second", "bob", &["approver"]);
    let made = create(&ann, &requeue("AWAY"));
    assert_eq!(made["status"], "awaiting_approval");
    let new = server.caller("second", "cyd", &["approver"]);
    let path = format!("/api/v1/bulk/{}", text(&made, "bulk_id"));
    let approve = |who: &Caller, version: &Value| {
        who.post(&format!("{path}/approve"), &json!({ "version": version }))
    };
    let version = &made["version"];
    assert_eq!(approve(&ann, version).refusal(), (403, "AUTH_FORBIDDEN".into()));
    assert_eq!(approve(&double, version).refusal(), (409, "APPROVAL_SAME_PERSON".into()));
    assert_eq!(approve(&new, version).refusal(), (409, "APPROVAL_TOKEN_TOO_NEW".into()));
    assert_eq!(approve(&bob, &json!(9)).refusal(), (409, "ENTITY_CHANGED".into()));
    let eve = server.caller("second-eve", "eve", &["approver"]);
    assert_eq!(approve(&eve, version).refusal(), (403, "AUTH_FORBIDDEN".into()));
    assert_eq!(total(&ann, "/api/v1/dlq/items?status=open"), 121, "nothing was done");
    // What fails in the meantime was not shown to anybody, and is left alone.
    bury(&ann, "later", 3, "AWAY");
    let agreed = approve(&bob, version).data();
    assert_eq!(agreed["approved_by"], "bob");
    assert_eq!(approve(&bob, &agreed["version"]).refusal(), (409, "BULK_CONFLICT".into()));
    assert_eq!(once(&ann, &made, "done")["done"], 121);
    let left = items(ann.get("/api/v1/dlq/items?status=open").data());
    let types: Vec<String> = left.iter().map(|item| text(item, "job_type")).collect();
    assert_eq!(types, ["later"; 3], "those that came later");
    let lines = items(ann.get("/api/v1/audit?object_type=bulk").data());
    let told: Vec<_> = lines.iter().rev().map(|it| text(it, "action")).collect();
    assert_eq!(told, ["bulk.requeue", "bulk.approve"]);
    // Whoever was refused for want of a second person, or of the role, is told of; and so is an
    // approval of what it no longer was.
    let denied = items(ann.get("/api/v1/audit?action=access.denied").data());
    assert_eq!(denied.len(), 6, "{denied:?}");
}

fn jobs_are_cancelled_by_filter_and_others_are_left_alone(store: Store) {
    let ann = server(store).caller("cancel", "ann", &EVERYTHING);
    let jobs = submit(&ann, "wrong", 60);
    let right = submit(&ann, "right", 2);
    let held = ann.pull("wrong", 1);
    let cancel = |status: &str| {
        let filter = json!({ "type": "wrong", "status": status });
        json!({ "action": "cancel", "filter": filter, "reason": "wrong ones" })
    };
    let done = once(&ann, &create(&ann, &cancel("queued")), "done");
    assert_eq!((&done["matched"], &done["done"]), (&json!(59), &json!(59)));
    assert_eq!(ann.job(&text(&held[0], "job_id"))["status"], "running", "it was not queued");
    assert_eq!(total(&ann, "/api/v1/jobs?status=cancelled&type=wrong"), 59);
    assert_eq!(ann.job(&right[0])["status"], "queued");
    let other = jobs.iter().find(|id| **id != text(&held[0], "job_id")).unwrap();
    let last = ann.events(other).pop().unwrap();
    assert_eq!(
        (&last["to_state"], &last["reason_message"]),
        (&json!("cancelled"), &json!("wrong ones"))
    );
    // What came later is left alone, whatever the filter admits.
    let done = once(&ann, &create(&ann, &cancel("running")), "done");
    assert_eq!(done["done"], 1);
}

fn jobs_are_paused_by_filter_until_they_are_resumed(store: Store) {
    let ann = server(store).caller("pause", "ann", &EVERYTHING);
    let jobs = submit(&ann, "stop", 30);
    let others = submit(&ann, "go", 2);
    let tomorrow = json!({ "job_type": "stop", "payload": {}, "delay_ms": 86_400_000 });
    let later = text(&ann.submit(&tomorrow), "job_id");
    let held = text(&ann.pull("stop", 1)[0], "job_id");
    let wish = |action: &str, status: &str| {
        let filter = json!({ "type": "stop", "status": status });
        json!({ "action": action, "filter": filter, "reason": "the bank is shut" })
    };
    let done = once(&ann, &create(&ann, &wish("pause", "queued")), "done");
    assert_eq!(
        (&done["matched"], &done["done"], &done["failed"]),
        (&json!(30), &json!(30), &json!(0))
    );
    assert_eq!(ann.job(&held)["status"], "running", "who works goes on");
    assert_eq!(ann.pull("stop", 100), Vec::<Value>::new(), "nobody else begins");
    assert_eq!(ann.pull("go", 100).len(), others.len());
    let one = jobs.iter().find(|id| **id != held).unwrap();
    let why = ann.get(&format!("/api/v1/jobs/{one}/explain")).data();
    assert_eq!(why["reasons"][0]["code"], "PAUSED", "{why}");
    assert!(text(&why["reasons"][0], "message").contains("the bank is shut"), "{why}");
    let tries = ann.job(one)["retry_count"].clone();
    assert_eq!(tries, 0, "no try is used up");
    // What comes later is not paused.
    let fresh = submit(&ann, "stop", 1);
    assert_eq!(text(&ann.pull("stop", 100)[0], "job_id"), fresh[0]);
    let done = once(&ann, &create(&ann, &wish("resume", "retrying")), "done");
    assert_eq!((&done["done"], &done["failed"]), (&json!(30), &json!(0)));
    let mut free = BTreeSet::new();
    eventually("all that are due are handed out", || {
        free.extend(ann.pull("stop", 100).iter().map(|job| text(job, "job_id")));
        (free.len() == 29).then_some(())
    });
    assert!(!free.contains(&later), "tomorrow is tomorrow");
    assert_eq!(ann.job(&later)["status"], "retrying");
    let lines = items(ann.get("/api/v1/audit?object_type=bulk").data());
    let told: Vec<_> = lines.iter().rev().map(|it| text(it, "action")).collect();
    assert_eq!(told, ["bulk.pause", "bulk.resume"]);
}

fn what_is_too_wide_or_says_no_reason_is_refused(store: Store) {
    let ann = server(store).caller("narrow", "ann", &EVERYTHING);
    let wish =
        |action: &str, filter: Value| json!({ "action": action, "filter": filter, "reason": "r" });
    let canary = |first: u32, ratio: f64| {
        let mut wish = requeue("E");
        wish["canary"] = json!({ "first": first, "max_failure_ratio": ratio });
        wish
    };
    for bad in [
        wish("requeue", json!({})),
        wish("requeue", json!({ "status": "open" })),
        wish("requeue", json!({ "type": "t", "status": "requeued" })),
        wish("requeue", json!({ "type": "" })),
        wish("requeue", json!({ "type": "t", "odd": 1 })),
        wish("requeue", json!({ "label": [] })),
        wish("requeue", json!({ "label": ["x"] })),
        wish("requeue", json!({ "label": ["a=b", "a=b", "a=b", "a=b", "a=b"] })),
        wish("requeue", json!({ "signature": "x" })),
        wish("requeue", json!({ "trace_id": "a\u{0}" })),
        wish("requeue", json!({ "error_code": "a b" })),
        wish("cancel", json!({ "type": "t" })),
        wish("cancel", json!({ "status": "queued" })),
        wish("cancel", json!({ "type": "t", "status": "succeeded" })),
        wish("cancel", json!({ "type": "t", "status": "open" })),
        wish("cancel", json!({ "signature": "0123456789abcdef", "status": "queued" })),
        wish("pause", json!({ "type": "t" })),
        json!({ "action": "requeue", "filter": { "type": "t" } }),
        json!({ "action": "requeue", "filter": { "type": "t" }, "reason": " " }),
        json!({ "action": "requeue", "filter": { "type": "t" }, "reason": "x".repeat(5000) }),
        json!({ "action": "requeue", "reason": "r" }),
        canary(0, 0.0),
        canary(101, 0.0),
        canary(1, 1.5),
        canary(1, -0.1),
    ] {
        let refused = ann.post("/api/v1/bulk", &bad).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
    let sub = server(store).caller("narrow", "sub", &["submitter", "worker", "viewer"]);
    let denied = sub.post("/api/v1/bulk", &requeue("E")).refusal();
    assert_eq!(denied, (403, "AUTH_FORBIDDEN".into()));
    assert_eq!(items(sub.get("/api/v1/bulk").data()), Vec::<Value>::new());
    for bad in ["status=odd", "limit=0", "x=1"] {
        let refused = ann.get(&format!("/api/v1/bulk?{bad}")).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
}

/// Two servers, each of which goes on with whatever goes on: what one has done the other leaves alone.
fn g10_two_servers_do_each_item_of_two_operations_once() {
    const COUNT: usize = 700;
    let config = "[types]\nstrict = false\n[bulk]\napproval_above = 100000\n";
    let both = Store::Postgres.options(BINARY).config(config);
    let (one, two) = (Server::start(both.clone()), Server::start(both));
    let here = one.caller("two", "ann", &EVERYTHING);
    let there = Caller { address: two.address, token: here.token.clone() };
    for code in ["HERE", "THERE"] {
        bury(&here, "t", COUNT, code);
    }
    let made = [create(&here, &requeue("HERE")), create(&there, &requeue("THERE"))];
    for bulk in &made {
        let done = once(&here, bulk, "done");
        assert_eq!((&done["done"], &done["failed"]), (&json!(COUNT), &json!(0)));
        let all = outcomes(&here, bulk);
        let distinct = (all.len(), distinct(&all, "id"), distinct(&all, "job_id"));
        assert_eq!(distinct, (COUNT, COUNT, COUNT));
    }
    assert_eq!(total(&here, "/api/v1/dlq/items?status=open"), 0);
    assert_eq!(total(&here, "/api/v1/jobs?status=queued"), 2 * COUNT as u64, "no job came twice");
}

/// What only several servers can show, which only PostgreSQL has.
mod several_servers {
    mod postgres {
        #[test]
        fn g10_two_servers_do_each_item_of_two_operations_once() {
            crate::g10_two_servers_do_each_item_of_two_operations_once();
        }
    }
}

//! Who is told of alerts: a receiver by signed requests, and the stream; and alerts about the
//! server itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(dead_code, reason = "the receiver is shared with other tests")]

#[path = "blackbox_executor/receiver.rs"]
mod receiver;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Options, Server, Store, eventually};
use mainspring_testkit::both_stores;
use receiver::{Receiver, answer, base64};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

both_stores![
    g15_an_alert_is_sent_once_when_it_is_raised_and_once_when_it_is_over,
    a_receiver_that_was_away_is_told_and_a_crash_tells_nothing_twice,
    a_full_backlog_keeps_no_alert_back,
    without_a_receiver_the_stream_tells_of_alerts,
    nobody_but_the_server_tells_of_alerts,
    a_death_is_told_of_at_the_next_start,
    dead_letters_of_all_servers_count_together,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const SECRET: [u8; 32] = [7; 32];
const ROLES: [&str; 4] = ["submitter", "worker", "operator", "viewer"];

fn config(webhook: &str) -> String {
    let secret = format!("whsec_{}", base64(&SECRET));
    format!(
        "[types]\nstrict = false\n[alerts]\ndlq_growth_per_minute = 3\ncheck = \"50ms\"\n\
         no_worker = \"200ms\"\nquiet = \"2s\"\nwebhook_url = {webhook:?}\n\
         [webhooks]\nallow_private = true\nsecrets = [{secret:?}]\n"
    )
}

fn options(store: Store, webhook: &str) -> Options {
    store.options(BINARY).config(&config(webhook))
}

/// Has `count` jobs fail for good.
fn bury(who: &Caller, count: usize) {
    for _ in 0..count {
        who.submit_plain("mill");
    }
    for grant in who.pull("mill", count) {
        who.fail(&grant, "BROKEN", false);
    }
}

/// What a receiver was told of alerts, in the order in which it came.
fn told(receiver: &Receiver) -> Vec<Value> {
    receiver.received().iter().map(|it| it.json()["payload"].clone()).collect()
}

fn g15_an_alert_is_sent_once_when_it_is_raised_and_once_when_it_is_over(store: Store) {
    let receiver = Receiver::start(|_| answer("204 No Content", "", ""));
    let server = Server::start(options(store, &format!("http://{}/alerts", receiver.address)));
    let ann = server.caller("acme", "ann", &ROLES);
    ann.submit_plain("lonely");
    // Something out of the ordinary, so that it is looked at once.
    bury(&ann, 1);
    let raised = eventually("it is told", || told(&receiver).into_iter().next());
    let alerts = items(ann.get("/api/v1/alerts").data());
    assert_eq!(alerts.len(), 1);
    assert_eq!(raised["alert_id"], alerts[0]["alert_id"]);
    for (field, value) in [
        ("event", json!("alert.raised")),
        ("rule", json!("no_worker")),
        ("severity", json!("P2")),
        ("tenant_id", json!("acme")),
        ("subject", json!("lonely")),
        ("value", json!(1.0)),
        ("threshold", json!(1.0)),
        ("count", json!(1)),
    ] {
        assert_eq!(raised[field], value, "{raised}");
    }
    let request = &receiver.received()[0];
    assert!(request.is_signed_with(&SECRET) && !request.is_signed_with(&[8; 32]));
    assert_eq!(request.line, "POST /alerts HTTP/1.1");
    // An acknowledgement is no news. Somebody comes for the job, and it is over.
    let path = format!("/api/v1/alerts/{}/ack", text(&raised, "alert_id"));
    assert_eq!(ann.post(&path, &json!({ "note": "on it" })).status, 200);
    ann.complete(&ann.pull_one("lonely"));
    let cleared = eventually("that it is over is told", || told(&receiver).into_iter().nth(1));
    assert_eq!((&cleared["event"], &cleared["count"]), (&json!("alert.cleared"), &json!(1)));
    assert_eq!(
        (&cleared["state"], &cleared["acknowledged_by"]),
        (&json!("cleared"), &json!("ann"))
    );
    assert_eq!(told(&receiver).len(), 2);
}

fn a_receiver_that_was_away_is_told_and_a_crash_tells_nothing_twice(store: Store) {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let receiver = Receiver::start(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => answer("503 Service Unavailable", "retry-after: 1\r\n", ""),
        _ => answer("200 OK", "", "{}"),
    });
    let url = format!("http://{}/", receiver.address);
    let mut server = Server::start(options(store, &url));
    let ann = server.caller("acme", "ann", &ROLES);
    ann.submit_plain("lonely");
    // Something out of the ordinary, so that it is looked at once.
    bury(&ann, 1);
    eventually("the receiver is back", || (told(&receiver).len() >= 2).then_some(()));
    let of_job = |it: &receiver::Received| text(&it.json(), "job_id");
    let jobs: Vec<String> = receiver.received().iter().map(of_job).collect();
    assert_eq!(jobs[0], jobs[1], "the same job, tried again");
    server.kill9();
    server.restart();
    let ann = Caller { address: server.admin().address, ..ann };
    // Whatever is looked at anew has been told of: what follows is that it is over.
    ann.complete(&ann.pull_one("lonely"));
    let news = |event: &str| told(&receiver).into_iter().filter(|it| it["event"] == event).count();
    eventually("it is over", || (news("alert.cleared") == 1).then_some(()));
    let told_of = items(ann.get("/api/v1/jobs?type=mainspring.alert").data());
    assert_eq!(told_of.len(), 2, "one for each: {told_of:?}");
}

fn a_full_backlog_keeps_no_alert_back(store: Store) {
    let receiver = Receiver::start(|_| answer("204 No Content", "", ""));
    let server = Server::start(options(store, &format!("http://{}/", receiver.address)));
    let ann = server.caller("acme", "ann", &ROLES);
    ann.submit_plain("lonely");
    bury(&ann, 1);
    // Also if somebody makes the cap smaller than what waits already.
    server.admin().put("/api/v1/tenants/acme", &json!({ "backlog_max": 0 })).data();
    let wish = json!({ "job_type": "lonely", "payload": {} });
    assert_eq!(ann.post("/api/v1/jobs", &wish).refusal().1, "TENANT_BACKLOG_FULL");
    let raised = eventually("it is told all the same", || told(&receiver).into_iter().next());
    assert_eq!((&raised["rule"], &raised["tenant_id"]), (&json!("no_worker"), &json!("acme")));
    ann.complete(&ann.pull_one("lonely"));
    let cleared = eventually("that it is over, too", || told(&receiver).into_iter().nth(1));
    assert_eq!(cleared["event"], "alert.cleared");
}

fn without_a_receiver_the_stream_tells_of_alerts(store: Store) {
    let server = Server::start(store.options(BINARY).config(
        "[alerts]\ndlq_growth_per_minute = 1\ncheck = \"50ms\"\n[types.mill]\ndomain = \"d\"\n",
    ));
    let ann = server.caller("acme", "ann", &ROLES);
    bury(&ann, 1);
    let job = eventually("there is one", || {
        items(ann.get("/api/v1/jobs?type=mainspring.alert").data()).pop()
    });
    assert_eq!((&job["status"], &job["user_id"]), (&json!("succeeded"), &json!("mainspring")));
    let alert = items(ann.get("/api/v1/alerts").data()).remove(0);
    assert_eq!(job["subject"], alert["alert_id"]);
    let path = ann.path(&text(&job, "job_id"));
    assert_eq!(path.first().map(String::as_str), Some("queued"), "{path:?}");
}

fn nobody_but_the_server_tells_of_alerts(store: Store) {
    let server = Server::start(store.options(BINARY).config("[types]\nstrict = false"));
    let ann = server.caller("acme", "ann", &ROLES);
    let forged = json!({ "job_type": "mainspring.alert", "payload": { "event": "alert.raised" } });
    for wish in [
        forged.clone(),
        json!({ "job_type": "mainspring.alert", "payload": {}, "idempotency_key": "k", "idempotency_scope": "alert" }),
    ] {
        let refused = ann.post("/api/v1/jobs", &wish);
        assert_eq!(refused.refusal(), (400, "REQ_VALIDATION_FAILED".to_owned()), "{wish}");
    }
    let every =
        json!({ "job_type": "mainspring.alert", "kind": "interval", "interval_seconds": 60 });
    assert_eq!(ann.post("/api/v1/schedules", &every).status, 400);
    let no_secret = server.cli(&["config", "check"]);
    assert_eq!(no_secret.code, Some(0));
    // A receiver without a secret to sign with is refused before anything starts.
    let file = server.directory().join("unsigned.toml");
    std::fs::write(&file, "[alerts]\nwebhook_url = \"https://a.example/\"\n").unwrap();
    let checked = server.cli(&["config", "check", "--config", file.to_str().unwrap()]);
    assert_ne!(checked.code, Some(0), "{}", checked.stdout);
    std::fs::write(&file, "[alerts]\nwebhook_url = \"nonsense\"\n").unwrap();
    let checked = server.cli(&["config", "check", "--config", file.to_str().unwrap()]);
    assert_ne!(checked.code, Some(0), "{}", checked.stdout);
}

fn a_death_is_told_of_at_the_next_start(store: Store) {
    let mut server = Server::start(store.options(BINARY));
    server.kill9();
    // What a server leaves behind when one of its parts dies.
    let place = match store {
        Store::Memory => server.data_dir(),
        Store::Postgres => server.directory().join("mainspring-data"),
    };
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("died"), "the keeper died: \u{7} out of paper\n").unwrap();
    server.restart();
    let admin = server.admin();
    let alert = eventually("it is told of", || {
        items(admin.get("/api/v1/alerts?rule=part_died").data()).pop()
    });
    assert_eq!((&alert["severity"], &alert["state"]), (&json!("P1"), &json!("open")));
    assert_eq!(alert["subject"], "the keeper died:  out of paper");
    assert!(!place.join("died").exists(), "it is told of once");
    server.restart();
    assert_eq!(items(server.admin().get("/api/v1/alerts?rule=part_died").data())[0]["count"], 1);
}

fn dead_letters_of_all_servers_count_together(store: Store) {
    let first = Server::start(options(store, ""));
    let ann = first.caller("acme", "ann", &ROLES);
    // What another server wrote counts: here it is what was there before this one looked.
    bury(&ann, 2);
    assert!(items(ann.get("/api/v1/alerts").data()).is_empty());
    bury(&ann, 1);
    let alert = eventually("it is raised", || items(ann.get("/api/v1/alerts").data()).pop());
    assert_eq!((&alert["rule"], &alert["value"]), (&json!("dlq_growth"), &json!(3.0)));
}

//! Events over NATS JetStream, with a real server that is killed and started again under load.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_bus/nats.rs"]
mod nats;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::both_stores;
use nats::NatsServer;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    d18_a_nats_server_that_is_killed_under_load_has_everything_once_and_in_order,
    d18_what_nobody_stores_waits_and_a_wrong_password_is_told,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

fn server(store: Store, url: &str) -> Server {
    let config = format!("[types]\nstrict = false\n[nats]\nurl = {url:?}\n");
    Server::start(store.options(BINARY).config(&config))
}

fn submitted(who: &Caller, count: usize) -> Vec<String> {
    let jobs: Vec<Value> = (0..count).map(|n| json!({ "job_type": "n", "payload": n })).collect();
    let made = items(who.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data());
    made.iter().map(|job| text(job, "job_id")).collect()
}

fn worked_off(who: &Caller, count: usize) {
    let mut done = 0;
    while done < count {
        let wish = json!({ "worker_id": "w", "types": ["n"], "limit": 100, "wait_ms": 10000 });
        let grants = who.pull_with(wish);
        let reports: Vec<Value> = grants
            .iter()
            .map(|it| json!({ "job_id": it["job_id"], "lease_token": it["lease_token"] }))
            .collect();
        who.post("/api/v1/work/complete", &json!({ "items": reports })).data();
        done += grants.len();
    }
}

fn d18_a_nats_server_that_is_killed_under_load_has_everything_once_and_in_order(store: Store) {
    let mut nats = NatsServer::start();
    nats.client().make("EVENTS", "mainspring.>");
    let server = server(store, &nats.url());
    let (admin, ann) =
        (server.admin(), server.caller("acme", "ann", &["submitter", "worker", "operator"]));
    let wish = json!({ "name": "bus", "nats_subject": "mainspring.acme",
        "filter": { "all_tenants": true } });
    let made = admin.post("/api/v1/subscriptions", &wish).data();
    assert_eq!((&made["target"], made.get("secret")), (&json!("nats"), None));
    let id = text(&made, "subscription_id");
    let rotated = admin.poke(&format!("/api/v1/subscriptions/{id}/rotate-secret"));
    assert_eq!(rotated.refusal(), (409, "SUBSCRIPTION_CONFLICT".into()), "nothing is signed");
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let before = nats.client().count("EVENTS");
        jobs.extend(submitted(&ann, 150));
        eventually("some of it is stored", || {
            (nats.client().count("EVENTS") > before).then_some(())
        });
        nats.kill();
        worked_off(&ann, 150);
        eventually("it is seen to fail", || {
            let seen = admin.get(&format!("/api/v1/subscriptions/{id}")).data();
            (seen["status"] == "failing").then_some(())
        });
        nats.revive();
    }
    let wanted: BTreeSet<String> =
        jobs.iter().flat_map(|job| ann.events(job)).map(|event| text(&event, "event_id")).collect();
    assert_eq!(wanted.len(), 3 * jobs.len());
    let mut client = nats.client();
    let seen = eventually("everything is stored", || {
        let seen = admin.get(&format!("/api/v1/subscriptions/{id}")).data();
        (seen["lag"] == 0).then_some(seen)
    });
    assert_eq!(client.count("EVENTS"), wanted.len() as u64, "a repeat is stored once");
    let (mut newest, mut ids) = (0, BTreeSet::new());
    for seq in 1..=wanted.len() as u64 {
        let (subject, head, body) = client.message("EVENTS", seq);
        let (data, name) = (&body["data"], text(&body, "type"));
        assert_eq!(subject, format!("mainspring.acme.{name}"));
        let id = text(data, "event_id");
        assert!(head.contains(&format!("Nats-Msg-Id: {id}\r\n")), "{head}");
        let position = data["position"].as_u64().unwrap();
        assert!(position > newest, "{position} after {newest}");
        newest = position;
        ids.insert(id);
    }
    assert_eq!(ids, wanted);
    println!("{} events, {} tries failed", ids.len(), seen["failed_count"]);
}

fn d18_what_nobody_stores_waits_and_a_wrong_password_is_told(store: Store) {
    let nats = NatsServer::start();
    let mut server = server(store, &nats.url().replace("s3cret", "wrong"));
    let admin = server.admin();
    let wish = json!({ "name": "bus", "nats_subject": "later" });
    let id = text(&admin.post("/api/v1/subscriptions", &wish).data(), "subscription_id");
    let path = format!("/api/v1/subscriptions/{id}");
    let failing = |why: &str| {
        eventually(why, || {
            let seen = admin.get(&path).data();
            seen["last_error"].as_str()?.contains(why).then_some(())
        });
    };
    admin.submit_plain("n");
    failing("Authorization Violation");
    let config = server.cli(&["config", "--config", "config.toml"]).stdout;
    assert!(!config.contains("wrong"), "no password is shown: {config}");
    let url = nats.url();
    server.restart_with(|options| {
        options.config = format!("[types]\nstrict = false\n[nats]\nurl = {url:?}\n");
    });
    failing("no stream of JetStream");
    let mut client = nats.client();
    client.make("LATER", "later.>");
    eventually("it is stored", || (client.count("LATER") == 1).then_some(()));
    assert_eq!(client.message("LATER", 1).0, "later.job.submitted");
    server.restart_with(|options| options.config = "[types]\nstrict = false\n".to_owned());
    admin.submit_plain("n");
    failing("knows no NATS server");
    assert!(!server.log().contains("s3cret"));
}

//! Subscriptions from outside: what they pass on, whose they are, how they rest and go on, how a
//! secret is replaced, what is written down of it, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_bus/inbox.rs"]
mod inbox;

use inbox::Inbox;
use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Options, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    d18_only_what_is_asked_for_is_told_and_only_of_the_own_tenant,
    d18_a_subscription_rests_and_goes_on_where_it_was,
    d18_a_secret_is_replaced_without_a_request_that_nobody_can_check,
    d18_every_change_is_in_the_audit_trail_and_the_command_line_has_it,
    d18_what_is_wrong_foreign_or_too_much_is_refused,
    d18_no_event_goes_where_it_should_not,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

fn options(store: Store) -> Options {
    let config = "[types]\nstrict = false\n[webhooks]\nallow_private = true\n";
    store.options(BINARY).config(config)
}

fn person(server: &Server, tenant: &str, user: &str) -> Caller {
    server.caller(tenant, user, &["submitter", "worker", "operator"])
}

fn subscribed(who: &Caller, wish: &Value) -> (String, Value) {
    let made = who.post("/api/v1/subscriptions", wish);
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.data();
    (text(&made, "subscription_id"), made)
}

fn standing(who: &Caller, id: &str) -> Value {
    who.get(&format!("/api/v1/subscriptions/{id}")).data()
}

fn settled(who: &Caller, id: &str) -> Value {
    eventually("it has caught up", || {
        let seen = standing(who, id);
        (seen["lag"] == 0).then_some(seen)
    })
}

/// Names and jobs of what was taken.
fn told(inbox: &Inbox) -> Vec<(String, String)> {
    let pair = |it: Value| (text(&it, "type"), text(&it["data"], "job_id"));
    inbox.taken().iter().map(|it| pair(it.json())).collect()
}

fn d18_only_what_is_asked_for_is_told_and_only_of_the_own_tenant(store: Store) {
    let server = Server::start(options(store));
    let (ann, eve) = (person(&server, "acme", "ann"), person(&server, "other", "eve"));
    let inboxes: Vec<Inbox> = (0..4).map(|_| Inbox::start()).collect();
    let (all, _) = subscribed(&ann, &json!({ "name": "all", "url": inboxes[0].url() }));
    let ends = json!({ "name": "ends", "url": inboxes[1].url(),
        "events": ["job.succeeded", "job.failed"] });
    let (ends, made) = subscribed(&ann, &ends);
    assert_eq!(made["events"], json!(["job.succeeded", "job.failed"]));
    let some = json!({ "name": "some", "url": inboxes[2].url(),
        "filter": { "types": ["mail", "print"], "queues": ["fast"] } });
    let (some, _) = subscribed(&ann, &some);
    let every = json!({ "name": "every", "url": inboxes[3].url(),
        "events": ["job.submitted"], "filter": { "all_tenants": true } });
    let (every, made) = subscribed(&server.admin(), &every);
    assert_eq!(made["filter"], json!({ "types": [], "queues": [], "all_tenants": true }));

    let submit = |who: &Caller, kind: &str, queue: &str| {
        text(&who.submit(&json!({ "job_type": kind, "queue": queue, "payload": 1 })), "job_id")
    };
    let mail = submit(&ann, "mail", "fast");
    let slow = submit(&ann, "mail", "slow");
    let other = submit(&ann, "other", "fast");
    let foreign = submit(&eve, "mail", "fast");
    ann.complete(&ann.pull_one("other"));
    for (id, who) in [(&all, &ann), (&ends, &ann), (&some, &ann), (&every, &server.admin())] {
        settled(who, id);
    }
    let pairs = |pairs: &[(&str, &String)]| -> BTreeSet<(String, String)> {
        pairs.iter().map(|(name, job)| ((*name).to_owned(), (*job).clone())).collect()
    };
    let seen = |nth: usize| told(&inboxes[nth]).into_iter().collect::<BTreeSet<_>>();
    let submitted = [("job.submitted", &mail), ("job.submitted", &slow), ("job.submitted", &other)];
    let moved = [("job.running", &other), ("job.succeeded", &other)];
    assert_eq!(seen(0), pairs(&[&submitted[..], &moved[..]].concat()));
    assert_eq!(seen(1), pairs(&moved[1..]));
    assert_eq!(seen(2), pairs(&submitted[..1]));
    assert_eq!(seen(3), pairs(&[&submitted[..], &[("job.submitted", &foreign)]].concat()));
    // Whoever comes later may begin earlier.
    let again = Inbox::start();
    let wish = json!({ "name": "again", "url": again.url(), "after": 0 });
    settled(&ann, &subscribed(&ann, &wish).0);
    assert_eq!(told(&again), told(&inboxes[0]), "the same events in the same order");
}

fn d18_a_subscription_rests_and_goes_on_where_it_was(store: Store) {
    let server = Server::start(options(store));
    let (ann, inbox) = (person(&server, "rest", "ann"), Inbox::start());
    let wish = json!({ "name": "rest", "url": inbox.url(), "events": ["job.submitted"] });
    let (id, _) = subscribed(&ann, &wish);
    let one = ann.submit_plain("rest");
    eventually("it is told", || (told(&inbox).len() == 1).then_some(()));
    let paused =
        ann.post(&format!("/api/v1/subscriptions/{id}/pause"), &json!({ "note": "lunch" }));
    let paused = paused.data();
    assert_eq!((&paused["status"], &paused["pause_note"]), (&json!("paused"), &json!("lunch")));
    assert_eq!(paused["paused_by"], "ann");
    let two = ann.submit_plain("rest");
    // Another subscription that does not rest shows that what is to be told would have been.
    let beside = Inbox::start();
    subscribed(&ann, &json!({ "name": "beside", "url": beside.url(), "after": 0 }));
    eventually("the other one is told", || (told(&beside).len() >= 2).then_some(()));
    assert_eq!(told(&inbox).len(), 1);
    let listed = items(ann.get("/api/v1/subscriptions?status=paused").data());
    assert_eq!(listed.len(), 1);
    let resumed = ann.poke(&format!("/api/v1/subscriptions/{id}/resume")).data();
    assert_eq!(resumed["status"], "active");
    eventually("it goes on", || (told(&inbox).len() >= 2).then_some(()));
    let jobs: Vec<String> = told(&inbox).into_iter().map(|(_, job)| job).collect();
    assert_eq!(jobs, [one, two]);

    // A receiver that says that it is gone is not asked again until somebody says so.
    inbox.answers(410);
    let three = ann.submit_plain("rest");
    let seen = eventually("it rests by itself", || {
        let seen = standing(&ann, &id);
        (seen["status"] == "paused").then_some(seen)
    });
    assert_eq!((&seen["paused_by"], &seen["failed_count"]), (&json!(null), &json!(1)));
    assert!(text(&seen, "last_error").contains("gone"));
    inbox.answers(204);
    ann.poke(&format!("/api/v1/subscriptions/{id}/resume")).data();
    eventually("it goes on", || (told(&inbox).last()?.1 == three).then_some(()));
    let removed = ann.delete(&format!("/api/v1/subscriptions/{id}")).data();
    assert_eq!(removed, json!({ "subscription_id": id, "status": "deleted" }));
    assert_eq!(ann.get(&format!("/api/v1/subscriptions/{id}")).status, 403);
}

fn d18_a_secret_is_replaced_without_a_request_that_nobody_can_check(store: Store) {
    let mut server = Server::start(options(store));
    let (ann, inbox) = (person(&server, "keys", "ann"), Inbox::start());
    let wish = json!({ "name": "keys", "url": inbox.url(), "events": ["job.submitted"] });
    let (id, made) = subscribed(&ann, &wish);
    let rotate = |overlap: Value| {
        let path = format!("/api/v1/subscriptions/{id}/rotate-secret");
        let made = ann.post(&path, &overlap).data();
        (text(&made, "secret"), made["former_secret_until"].clone())
    };
    let next = || {
        let job = ann.submit_plain("keys");
        eventually("it is told", || {
            inbox.taken().into_iter().find(|it| it.json()["data"]["job_id"] == json!(job))
        })
    };
    let first = text(&made, "secret");
    assert!(next().is_signed_with(&first));
    let (second, until) = rotate(json!({}));
    assert!(until.is_string() && first != second);
    let told = next();
    assert!(told.is_signed_with(&first) && told.is_signed_with(&second), "both, for a while");
    // Secrets are kept: receivers need not be told anew after a restart.
    server.restart();
    let told = next();
    assert!(told.is_signed_with(&first) && told.is_signed_with(&second));
    let (third, until) = rotate(json!({ "overlap_seconds": 0 }));
    assert_eq!(until, json!(null));
    let told = next();
    assert!(told.is_signed_with(&third));
    assert!(!told.is_signed_with(&first) && !told.is_signed_with(&second), "a leaked one is out");
    let shown = standing(&ann, &id).to_string();
    assert!(!shown.contains("whsec_"), "{shown}");
    assert!(!server.log().contains("whsec_"));
}

fn d18_every_change_is_in_the_audit_trail_and_the_command_line_has_it(store: Store) {
    let server = Server::start(options(store));
    let (ann, inbox) = (person(&server, "desk", "ann"), Inbox::start());
    let cli = |args: &[&str]| server.cli_as(&ann.token, args).expect(0);
    let url = inbox.url();
    let made = cli(&[
        "subscriptions",
        "create",
        "mine",
        "--webhook",
        &url,
        "--event",
        "job.submitted",
        "--type",
        "mail",
        "-o",
        "json",
    ])
    .json();
    let id = text(&made, "subscription_id");
    assert!(text(&made, "secret").starts_with("whsec_"));
    ann.submit_plain("mail");
    eventually("it is told", || (told(&inbox).len() == 1).then_some(()));
    let listed = cli(&["subscriptions", "list", "--status", "active"]).stdout;
    assert!(listed.contains(&id) && listed.contains("mine"), "{listed}");
    cli(&["subscriptions", "pause", &id, "--note", "why not"]);
    assert!(cli(&["subscriptions", "get", &id]).stdout.contains("why not"));
    cli(&["subscriptions", "resume", &id]);
    let rotated = cli(&["subscriptions", "rotate-secret", &id, "--overlap", "1h"]).stdout;
    assert!(rotated.contains("whsec_"), "{rotated}");
    cli(&["subscriptions", "delete", &id]);
    server.cli_as(&ann.token, &["subscriptions", "get", &id]).expect(4);

    let lines = items(ann.get(&format!("/api/v1/audit?object_id={id}")).data());
    let actions: Vec<String> = lines.iter().rev().map(|line| text(line, "action")).collect();
    assert_eq!(
        actions,
        [
            "subscription.create",
            "subscription.pause",
            "subscription.resume",
            "subscription.rotate_secret",
            "subscription.delete",
        ]
    );
    assert!(!json!(lines).to_string().contains("whsec_"));
    // Who tries without being allowed to is written down, too.
    let bob = server.caller("desk", "bob", &["submitter"]);
    assert_eq!(bob.post("/api/v1/subscriptions", &json!({})).status, 403);
    let lines = items(ann.get("/api/v1/audit?actor=bob").data());
    assert_eq!(text(&lines[0], "action"), "access.denied");
    assert_eq!(ann.get("/api/v1/audit/verify").data()["valid"], true);
}

fn d18_what_is_wrong_foreign_or_too_much_is_refused(store: Store) {
    let server = Server::start(options(store));
    let (ann, eve) = (person(&server, "mine", "ann"), person(&server, "yours", "eve"));
    let url = "https://a.example/x";
    let long = "x".repeat(201);
    let types: Vec<String> = (0..101).map(|n| format!("t{n}")).collect();
    for wrong in [
        json!({ "name": "n" }),
        json!({ "url": url }),
        json!({ "name": "n", "url": url, "nats_subject": "a" }),
        json!({ "name": "", "url": url }),
        json!({ "name": long, "url": url }),
        json!({ "name": "a\u{0}b", "url": url }),
        json!({ "name": "n", "url": "ftp://a.example" }),
        json!({ "name": "n", "url": "https://me@a.example" }),
        json!({ "name": "n", "url": format!("https://a.example/{}", "x".repeat(2_048)) }),
        json!({ "name": "n", "url": "https://a.example/\u{1}" }),
        json!({ "name": "n", "url": url, "events": ["job.exploded"] }),
        json!({ "name": "n", "url": url, "filter": { "types": [""] } }),
        json!({ "name": "n", "url": url, "filter": { "types": types } }),
        json!({ "name": "n", "url": url, "after": 999 }),
        json!({ "name": "n", "url": url, "after": u64::MAX }),
        json!({ "name": "n", "url": url, "secret": "whsec_mine" }),
    ] {
        let refused = ann.post("/api/v1/subscriptions", &wrong);
        assert_eq!(refused.refusal(), (400, "REQ_VALIDATION_FAILED".to_owned()), "{wrong}");
    }
    for subject in ["", "a..b", ".a", "a.*", "a.>", "$JS.API", "_INBOX.x", "a b", "a\r\nPUB b 0"] {
        let wish = json!({ "name": "n", "nats_subject": subject });
        let refused = server.admin().post("/api/v1/subscriptions", &wish);
        assert_eq!(refused.status, 400, "{subject:?}");
    }
    // What reaches beyond a tenant is for those who may.
    for beyond in [
        json!({ "name": "n", "nats_subject": "a.b" }),
        json!({ "name": "n", "url": url, "filter": { "all_tenants": true } }),
    ] {
        let refused = ann.post("/api/v1/subscriptions", &beyond);
        assert_eq!(refused.refusal(), (403, "AUTH_FORBIDDEN".to_owned()), "{beyond}");
    }

    // Foreign and unknown ids are one case.
    let (id, _) = subscribed(&ann, &json!({ "name": "mine", "url": url }));
    let unknown = id.chars().rev().skip(1).collect::<Vec<_>>();
    let unknown: String = unknown.into_iter().rev().chain(['0']).collect();
    let calls = |id: &str| {
        let path = format!("/api/v1/subscriptions/{id}");
        let post = |verb: &str| eve.post(&format!("{path}/{verb}"), &json!({}));
        [eve.get(&path), eve.delete(&path), post("pause"), post("resume"), post("rotate-secret")]
            .map(|answer| (answer.refusal(), answer.json()["error"]["message"].clone()))
    };
    assert_eq!(calls(&id), calls(&unknown));
    assert_eq!(calls(&id), calls("sub_nonsense"));
    assert_eq!(calls(&id)[0].0.0, 403);
    assert!(items(eve.get("/api/v1/subscriptions").data()).is_empty());
    assert_eq!(standing(&ann, &id)["version"], standing(&ann, &id)["version"]);

    for n in 1..50 {
        subscribed(&ann, &json!({ "name": format!("n{n}"), "url": url }));
    }
    let refused = ann.post("/api/v1/subscriptions", &json!({ "name": "more", "url": url }));
    assert_eq!(refused.refusal(), (409, "TOO_MANY_SUBSCRIPTIONS".to_owned()));
    subscribed(&eve, &json!({ "name": "others have room", "url": url }));
    let page = ann.get("/api/v1/subscriptions?limit=20").data();
    assert_eq!((page["items"].as_array().unwrap().len(), &page["total"]), (20, &json!(50)));
    let cursor = text(&page, "next_cursor");
    let path = format!("/api/v1/subscriptions?limit=100&cursor={cursor}");
    assert_eq!(items(ann.get(&path).data()).len(), 30);
    assert_eq!(eve.get(&path).status, 400, "a cursor is whose it is");
}

/// A server that may not call its own network does not, whatever a URL says.
fn d18_no_event_goes_where_it_should_not(store: Store) {
    let server = Server::start(store.options(BINARY));
    let (ann, inbox) = (person(&server, "trap", "ann"), Inbox::start());
    let port = inbox.address.port();
    for host in ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "localhost"] {
        let url = format!("http://{host}:{port}/latest/meta-data");
        let (id, _) = subscribed(&ann, &json!({ "name": host, "url": url, "after": 0 }));
        ann.submit_plain("trap");
        let seen = eventually("it is seen to fail", || {
            let seen = standing(&ann, &id);
            (seen["status"] == "failing").then_some(seen)
        });
        assert!(text(&seen, "last_error").contains("no public address"), "{seen}");
    }
    assert!(inbox.taken().is_empty());
}

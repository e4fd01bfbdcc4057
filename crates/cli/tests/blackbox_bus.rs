//! The event bus from outside: what is told to a webhook, that a receiver which dies gets
//! everything nevertheless and in order, and that the stream behind it has no gaps and no repeats.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_bus/inbox.rs"]
mod inbox;
#[path = "blackbox_bus/stream.rs"]
mod stream;

use inbox::Inbox;
use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Options, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

both_stores![
    d18_scheduling_and_execution_are_separated_by_the_bus,
    d18_a_receiver_that_is_killed_under_load_gets_everything_in_order,
    d18_what_a_receiver_has_not_taken_outlives_the_server,
    d18_a_thousand_reconnects_leave_no_gap_and_repeat_nothing,
    d18_a_stream_tells_of_its_own_tenant_at_once_and_of_what_it_does_not_know,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const CONFIG: &str = "[types]\nstrict = false\n[webhooks]\nallow_private = true\n\
    [store]\nsegment_bytes = 262144\nsnapshot_bytes_min = 262144\n";

fn options(store: Store) -> Options {
    store.options(BINARY).config(CONFIG)
}

/// Somebody who may do everything in one tenant.
fn person(server: &Server, tenant: &str) -> Caller {
    server.caller(tenant, "ann", &["submitter", "worker", "operator"])
}

fn subscribed(who: &Caller, wish: &Value) -> Value {
    let made = who.post("/api/v1/subscriptions", wish);
    assert_eq!(made.status, 201, "{}", made.text());
    made.data()
}

fn standing(who: &Caller, id: &str) -> Value {
    who.get(&format!("/api/v1/subscriptions/{id}")).data()
}

/// Submits so many jobs and answers with their ids.
fn submitted(who: &Caller, job_type: &str, count: usize) -> Vec<String> {
    let jobs: Vec<Value> =
        (0..count).map(|n| json!({ "job_type": job_type, "payload": n })).collect();
    let made = items(who.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data());
    made.iter().map(|job| text(job, "job_id")).collect()
}

/// Pulls and completes so many jobs.
fn worked_off(who: &Caller, job_type: &str, count: usize) {
    let mut done = 0;
    while done < count {
        let grants = who.pull_with(json!({
            "worker_id": "w", "types": [job_type], "limit": 100.min(count - done), "wait_ms": 10000,
        }));
        let reports: Vec<Value> = grants
            .iter()
            .map(|it| json!({ "job_id": it["job_id"], "lease_token": it["lease_token"] }))
            .collect();
        who.post("/api/v1/work/complete", &json!({ "items": reports })).data();
        done += grants.len();
    }
}

/// The ids of all events of these jobs.
fn events_of(who: &Caller, jobs: &[String]) -> BTreeSet<String> {
    jobs.iter().flat_map(|job| who.events(job)).map(|event| text(&event, "event_id")).collect()
}

/// What is taken first is taken in the order of the stream, and what comes again is the same.
fn assert_in_order(inbox: &Inbox) {
    let (mut newest, mut bodies) = (0, BTreeMap::new());
    for received in inbox.taken() {
        match bodies.get(received.id()) {
            Some(body) => assert_eq!(*body, received.body, "a repeat is the same"),
            None => {
                assert!(received.position() > newest, "{} after {newest}", received.position());
                newest = received.position();
                bodies.insert(received.id().to_owned(), received.body.clone());
            }
        }
    }
}

/// One who does the work sees events alone; the engine goes on while nobody listens.
fn d18_scheduling_and_execution_are_separated_by_the_bus(store: Store) {
    let server = Server::start(options(store));
    let ann = person(&server, "bus");
    let mut inbox = Inbox::start();
    let made = subscribed(&ann, &json!({ "name": "doer", "url": inbox.url() }));
    let (id, secret) = (text(&made, "subscription_id"), text(&made, "secret"));
    assert_eq!((&made["status"], &made["target"]), (&json!("active"), &json!("webhook")));

    // Execution is triggered by what comes over the bus.
    let job = ann.submit_plain("greet");
    let told = eventually("the submission is told", || inbox.named("job.submitted").pop());
    assert!(told.is_signed_with(&secret) && !told.is_signed_with("whsec_AAAA"));
    assert_eq!(told.json()["data"]["job_id"], json!(job));
    assert_eq!(told.header("webhook-id"), text(&ann.events(&job)[0], "event_id"));
    ann.complete(&ann.pull_one("greet"));
    eventually("the end is told", || inbox.named("job.succeeded").pop());

    // While nobody listens, everything goes on: jobs are taken in, done and ended.
    inbox.kill();
    let jobs = submitted(&ann, "greet", 200);
    worked_off(&ann, "greet", 200);
    let failing = eventually("it is seen to fail", || {
        let seen = standing(&ann, &id);
        (seen["status"] == "failing").then_some(seen)
    });
    assert!(!text(&failing, "last_error").is_empty() && failing["lag"] != json!(0));
    assert!(jobs.iter().all(|job| ann.job(job)["status"] == "succeeded"));

    inbox.revive();
    let wanted: BTreeSet<String> = &events_of(&ann, &jobs) | &events_of(&ann, &[job]);
    eventually("everything is told", || (inbox.ids() == wanted).then_some(()));
    assert_in_order(&inbox);
    let seen = eventually("it is active again", || {
        let seen = standing(&ann, &id);
        (seen["status"] == "active" && seen["lag"] == 0).then_some(seen)
    });
    assert_eq!((&seen["missed_count"], &seen["gaps"]), (&json!(0), &json!([])));
    assert!(seen["delivered_count"].as_u64().unwrap() >= wanted.len() as u64, "{seen}");
    assert!(seen.get("secret").is_none(), "a secret is shown once");
    // What is told is what the stream tells, in the same words.
    let streamed = stream::all(&ann, 0, wanted.len());
    let first: BTreeMap<u64, Value> =
        inbox.taken().iter().map(|it| (it.position(), it.json()["data"].clone())).collect();
    for (position, _, data) in streamed {
        for (field, value) in data.as_object().unwrap() {
            assert_eq!(first[&position][field], *value, "{field}");
        }
    }
}

fn d18_a_receiver_that_is_killed_under_load_gets_everything_in_order(store: Store) {
    let server = Server::start(options(store));
    let ann = person(&server, "load");
    let mut inbox = Inbox::start();
    subscribed(&ann, &json!({ "name": "all", "url": inbox.url() }));
    let mut jobs = Vec::new();
    for round in 0..4 {
        jobs.extend(submitted(&ann, "load", 150));
        let before = inbox.taken().len();
        eventually("some of it is told", || (inbox.taken().len() > before + 20).then_some(()));
        inbox.kill();
        worked_off(&ann, "load", 150);
        inbox.revive();
        if round == 2 {
            // An answer that is no success is a failure like any other.
            inbox.answers(503);
            eventually("it is seen to fail", || {
                let listed = ann.get("/api/v1/subscriptions?status=failing").data();
                items(listed).pop()
            });
            inbox.answers(200);
        }
    }
    let wanted = events_of(&ann, &jobs);
    assert_eq!(wanted.len(), 3 * jobs.len());
    eventually("everything is told", || (inbox.ids() == wanted).then_some(()));
    assert_in_order(&inbox);
    println!("{} events, {} requests", wanted.len(), inbox.taken().len());
}

fn d18_what_a_receiver_has_not_taken_outlives_the_server(store: Store) {
    let mut server = Server::start(options(store));
    let ann = person(&server, "kept");
    let mut inbox = Inbox::start();
    inbox.kill();
    let made = subscribed(&ann, &json!({ "name": "kept", "url": inbox.url() }));
    let id = text(&made, "subscription_id");
    let mut jobs = Vec::new();
    for _ in 0..3 {
        // Enough for the memory store to take snapshots, which forget the journal before them.
        for _ in 0..3 {
            jobs.extend(submitted(&ann, "kept", 500));
            worked_off(&ann, "kept", 500);
        }
        server.restart();
    }
    inbox.revive();
    ann.poke(&format!("/api/v1/subscriptions/{id}/resume")).data();
    eventually("everything is told", || (inbox.taken().len() >= 3 * jobs.len()).then_some(()));
    let seen = eventually("all of it is noted", || {
        let seen = standing(&ann, &id);
        (seen["lag"] == 0).then_some(seen)
    });
    assert_eq!(seen["missed_count"], 0, "{seen}");
    assert_in_order(&inbox);
    assert_eq!(inbox.ids().len(), 3 * jobs.len());
    assert_eq!(
        inbox.ids(),
        stream::all(&ann, 0, 3 * jobs.len())
            .iter()
            .map(|(_, _, data)| { text(data, "event_id") })
            .collect()
    );
    if store == Store::Memory {
        let files = std::fs::read_dir(server.data_dir()).unwrap().flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let count = names.filter(|name| name.ends_with(".moves")).count();
        assert!(count > 0, "the stream behind the snapshots is in files");
        println!("{count} files of the stream");
    }
}

fn d18_a_thousand_reconnects_leave_no_gap_and_repeat_nothing(store: Store) {
    let mut server = Server::start(options(store));
    let ann = person(&server, "again");
    let jobs = submitted(&ann, "again", 700);
    worked_off(&ann, "again", 350);
    let (mut position, mut told) = (0, Vec::new());
    let total = 700 + 2 * 700;
    let mut reconnects = 0;
    for few in [1, 2, 1, 3].into_iter().cycle() {
        if told.len() == 1_000 {
            // Also over a restart, with what comes after it.
            server.restart();
            worked_off(&ann, "again", 350);
        }
        let most = few.min(total - told.len()).min(if told.len() < 1_000 {
            1_000 - told.len()
        } else {
            total
        });
        let more = stream::read(&ann, position, most);
        assert_eq!(more.len(), most, "after {position}");
        position = more.last().unwrap().0;
        told.extend(more);
        reconnects += 1;
        if told.len() == total {
            break;
        }
    }
    assert!(reconnects >= 1_000, "{reconnects}");
    assert!(told.iter().all(|(_, kind, _)| kind == "job_moved"), "no reset, no gap");
    let positions: Vec<u64> = told.iter().map(|(position, ..)| *position).collect();
    assert!(positions.windows(2).all(|two| two[0] < two[1]), "in order, nothing twice");
    let ids: BTreeSet<String> = told.iter().map(|(.., data)| text(data, "event_id")).collect();
    assert_eq!(ids, events_of(&ann, &jobs));
    println!("{reconnects} reconnects, {} events", told.len());
}

fn d18_a_stream_tells_of_its_own_tenant_at_once_and_of_what_it_does_not_know(store: Store) {
    let server = Server::start(options(store));
    let (ann, eve) = (person(&server, "own"), person(&server, "foreign"));
    // More than is read or sent in one go, and others' moves between them.
    let mut jobs = submitted(&ann, "own", 300);
    submitted(&eve, "foreign", 40);
    jobs.extend(submitted(&ann, "own", 600));
    let told = stream::read(&ann, 0, 900);
    let seen: Vec<String> = told.iter().map(|(.., data)| text(data, "job_id")).collect();
    assert_eq!(seen.len(), 900, "the rest does not wait for the next move");
    assert_eq!(seen.iter().collect::<BTreeSet<_>>(), jobs.iter().collect::<BTreeSet<_>>());
    assert_eq!(stream::read(&eve, 0, 40).len(), 40);
    // What a client has seen counts, whatever its address says.
    let (second, third) = (told[1].0, told[2].0);
    let more = stream::read_from(&ann, "/api/v1/events?after=0", second, 1);
    assert_eq!(more[0].0, third);
    // A position that was never reached is of another life: the client begins anew.
    let newest = told.last().unwrap().0;
    let (position, kind, data) = stream::read(&ann, newest + 1_000, 1).remove(0);
    assert_eq!((position, &*kind, &data["position"]), (newest, "reset", &json!(newest)));
    // Whoever has seen everything is told of the next move when it is made.
    let mut open = stream::Open::at(&ann, "/api/v1/events", newest);
    for _ in 0..5 {
        let job = submitted(&ann, "own", 1).remove(0);
        assert_eq!(open.next_event().map(|(.., data)| text(&data, "job_id")), Some(job));
    }
}

/// Who comes too late is told what is missing, and that is written down.
#[test]
fn d18_events_that_are_no_longer_kept_are_a_gap_that_is_told_and_noted() {
    let server = Server::start(options(Store::Memory).ephemeral());
    let ann = person(&server, "late");
    for _ in 0..4 {
        submitted(&ann, "late", 10_000);
    }
    let newest = 40_000_u64;
    let inbox = Inbox::start();
    let wish = json!({ "name": "late", "url": inbox.url(), "after": 5, "events": ["job.failed"] });
    let id = text(&subscribed(&ann, &wish), "subscription_id");
    let seen = eventually("the gap is noted", || {
        let seen = standing(&ann, &id);
        (seen["lag"] == 0).then_some(seen)
    });
    let kept = 1 << 15;
    let (from, to) = (json!(6), json!(newest - kept));
    assert_eq!(seen["missed_count"], json!(newest - kept - 5));
    assert_eq!((&seen["gaps"][0]["from"], &seen["gaps"][0]["to"]), (&from, &to), "{seen}");
    let told = inbox.named("bus.gap");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].json()["data"], json!({ "from": from, "to": to }));
    assert_eq!(inbox.taken().len(), 1, "nothing else was asked for");
    // A position that was never reached is no place to begin.
    let wish = json!({ "name": "early", "url": inbox.url(), "after": newest + 1 });
    let refused = ann.post("/api/v1/subscriptions", &wish);
    assert_eq!(refused.refusal(), (400, "REQ_VALIDATION_FAILED".to_owned()));
}

/// Two servers on one database: one of them sends, and the other one takes over.
#[test]
fn d18_one_server_sends_for_a_subscription_and_another_takes_over() {
    let options = options(Store::Postgres);
    let mut servers = [Server::start(options.clone()), Server::start(options)];
    let ann = person(&servers[0], "two");
    let inbox = Inbox::start();
    subscribed(&ann, &json!({ "name": "two", "url": inbox.url(), "events": ["job.submitted"] }));
    let mut jobs = submitted(&ann, "two", 300);
    eventually("all is told", || (inbox.ids().len() == 300).then_some(()));
    assert_eq!(inbox.taken().len(), 300, "nobody tells anything twice while all goes well");
    for nth in 0..2 {
        servers[nth].kill9();
        let other = Caller { address: servers[1 - nth].address, ..ann.clone() };
        jobs.extend(submitted(&other, "two", 100));
        eventually("the other one goes on", || (inbox.ids().len() == jobs.len()).then_some(()));
        servers[nth].restart();
    }
    assert_in_order(&inbox);
    println!("{} events, {} requests", jobs.len(), inbox.taken().len());
}

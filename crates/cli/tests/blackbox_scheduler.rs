//! The due-driven scheduler from outside: the document's samples, the order of what is due, leases,
//! failures, and what a job leaves behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_scheduler/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use support::{
    EVERYTHING, at, enqueued, ids, job, jobs, no, pulled, put, report, server, wish, with,
};

static SERVERS: PerStore = PerStore::new();

both_stores![
    d01_d02_the_documents_samples_are_accepted_and_answered,
    d02_d08_a_key_is_one_job_for_ever_whatever_else_is_said,
    d03_a_time_in_the_past_is_refused_and_this_second_is_not,
    d04_what_is_due_comes_by_time_and_then_by_priority,
    d04_a_pull_picks_by_action_object_type_and_risk,
    d05_the_callers_clock_narrows_and_never_widens,
    d06_an_ack_is_taken_once_and_sets_the_next_action,
    d07_d09_a_third_failure_is_a_dead_letter_and_blocks_nobody,
    d11_the_five_numbers_have_their_names,
    d15_shards_are_queues_of_their_own,
    d16_a_million_seconds_ahead_cost_a_pull_nothing,
    d17_leases_are_held_renewed_lost_and_never_stolen,
    d10_the_moves_of_a_job_are_told_with_who_and_why,
    d01_nonsense_is_refused_and_foreign_ids_look_unknown,
];

const FIELDS: [&str; 11] = [
    "job_id",
    "object_type",
    "object_id",
    "action",
    "run_at",
    "priority",
    "attempt",
    "max_attempts",
    "idempotency_key",
    "status",
    "last_error",
];

fn d01_d02_the_documents_samples_are_accepted_and_answered(store: Store) {
    let ann = server(&SERVERS, store).caller("d01", "ann", &EVERYTHING);
    let sample = json!({
        "object_type": "cognition", "object_id": "cg_123", "action": "revalidate",
        "run_at": "2030-02-21T00:00:00Z", "priority": "medium",
    });
    let made = ann.post("/scheduler/jobs", &sample);
    assert_eq!(made.status, 201, "{}", made.text());
    let id = text(&made.json(), "job_id");
    let key = "cg_123:revalidate:2030-02-21T00:00:00Z";
    let expected = json!({
        "deduplicated": false, "job_id": id, "status": "queued", "idempotency_key": key,
    });
    assert_eq!(made.json(), expected);
    assert!(id.starts_with("job_"));
    let hit = ann.post("/scheduler/jobs", &sample);
    let expected = json!({ "deduplicated": true, "job_id": id, "status": "queued" });
    assert_eq!((hit.status, hit.json()), (200, expected));
    let shown = job(&ann, &id);
    let values = FIELDS.map(|field| shown[field].clone());
    let expected = json!([
        id,
        "cognition",
        "cg_123",
        "revalidate",
        "2030-02-21T00:00:00Z",
        "medium",
        0,
        3,
        key,
        "queued",
        null,
    ]);
    assert_eq!(json!(values), expected);
    // The document's pull: due at its instant, and running from then on.
    let pull = json!({ "now": "2030-02-21T00:00:10Z", "limit": 100, "worker_id": "worker-1" });
    let got = jobs(&ann.post("/scheduler/jobs/pull", &pull));
    assert_eq!(ids(&got), std::slice::from_ref(&id));
    assert_eq!((&got[0]["status"], &got[0]["worker_id"]), (&json!("running"), &json!("worker-1")));
    assert_eq!(jobs(&ann.post("/scheduler/jobs/pull", &pull)), Vec::<Value>::new());
    // The document's ack.
    let ack = json!({
        "result": "succeeded", "audit_event_id": "aud_789",
        "next_action_at": "2030-02-28T00:00:00Z",
    });
    let done = report(&ann, "ack", &id, &ack);
    assert_eq!(
        (done.status, &done.json()["status"]),
        (200, &json!("succeeded")),
        "{}",
        done.text()
    );
    assert_eq!(job(&ann, &id)["status"], "succeeded");
    // It is a job like any other to who looks at it natively.
    let native = ann.job(&id);
    assert_eq!(native["status"], "succeeded");
    assert_eq!(native["subject"], "cognition:cg_123");
}

fn d02_d08_a_key_is_one_job_for_ever_whatever_else_is_said(store: Store) {
    let server = server(&SERVERS, store);
    let ann = server.caller("d02", "ann", &EVERYTHING);
    let first =
        enqueued(&ann, &with(wish("m1", "verify", "01:00:00"), json!({ "idempotency_key": "k" })));
    for other in [
        wish("m1", "verify", "01:00:00"),
        wish("m2", "archive", "09:00:00"),
        with(wish("m1", "verify", "01:00:00"), json!({ "object_type": "experience" })),
    ] {
        let hit = ann.post("/scheduler/jobs", &with(other, json!({ "idempotency_key": "k" })));
        assert_eq!((hit.status, &hit.json()["job_id"]), (200, &json!(first)), "{}", hit.text());
    }
    // The default key goes by the second, however the time is spelled.
    let id = enqueued(&ann, &wish("m3", "decay", "02:00:00"));
    for spelled in
        ["2030-02-21T02:00:00.000Z", "2030-02-21T04:00:00+02:00", "2030-02-21T02:00:00.7Z"]
    {
        let again = with(wish("m3", "decay", "02:00:00"), json!({ "run_at": spelled }));
        let hit = ann.post("/scheduler/jobs", &again);
        assert_eq!((hit.status, &hit.json()["job_id"]), (200, &json!(id)), "{spelled}");
    }
    // Done is no reason to do it again.
    assert_eq!(ids(&pulled(&ann, json!({ "limit": 2 }))), [first.clone(), id.clone()]);
    assert_eq!(report(&ann, "ack", &first, &json!({})).status, 200);
    let again = with(wish("m1", "verify", "01:00:00"), json!({ "idempotency_key": "k" }));
    let hit = ann.post("/scheduler/jobs", &again).json();
    assert_eq!(hit, json!({ "deduplicated": true, "job_id": first, "status": "succeeded" }));
    // Another tenant has keys of its own, and many at once are one job.
    let other = server.caller("d02-other", "eve", &EVERYTHING);
    assert_ne!(enqueued(&other, &again), first);
    let racing: Vec<_> = std::thread::scope(|scope| {
        let ask = || ann.post("/scheduler/jobs", &wish("m9", "verify", "03:00:00")).json();
        let asked: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let new = racing.iter().filter(|told| told["deduplicated"] == false).count();
    let same: std::collections::BTreeSet<_> =
        racing.iter().map(|told| text(told, "job_id")).collect();
    assert_eq!((new, same.len()), (1, 1), "{racing:?}");
}

fn d03_a_time_in_the_past_is_refused_and_this_second_is_not(store: Store) {
    let ann = server(&SERVERS, store).caller("d03", "ann", &EVERYTHING);
    for past in ["2026-02-21T00:00:00Z", "1970-01-01T00:00:00Z"] {
        let wish = with(wish("m1", "verify", "00:00:00"), json!({ "run_at": past }));
        let told = ann.post("/scheduler/jobs", &wish);
        assert_eq!(no(&told), (422, "REQ_VALIDATION_FAILED".to_owned()), "{}", told.text());
        assert_eq!(told.json()["error"]["field"], "run_at");
    }
    // The start of this second is accepted; the second may turn while one asks.
    let is_taken = || {
        let now = jiff::Timestamp::now();
        let second = jiff::Timestamp::from_second(now.as_second()).unwrap();
        let wish = with(wish("m2", "verify", "00:00:00"), json!({ "run_at": second.to_string() }));
        let told = ann.post("/scheduler/jobs", &wish);
        (told.status == 201).then(|| (text(&told.json(), "job_id"), second.to_string()))
    };
    let (id, second) = eventually("this second is accepted", is_taken);
    assert_eq!(job(&ann, &id)["run_at"], second, "it is kept as it was said");
    let now = jobs(&ann.post("/scheduler/jobs/pull", &json!({ "worker_id": "w" })));
    assert_eq!(ids(&now), [id]);
    // A repeat is a repeat, even when its time has passed meanwhile.
    let again = with(wish("m2", "verify", "00:00:00"), json!({ "run_at": second }));
    assert_eq!(ann.post("/scheduler/jobs", &again).status, 200);
}

fn d04_what_is_due_comes_by_time_and_then_by_priority(store: Store) {
    let ann = server(&SERVERS, store).caller("d04", "ann", &EVERYTHING);
    let mut wanted = Vec::new();
    // Enqueued in an order that is neither, of all types and actions.
    let actions = ["verify", "revalidate", "decay", "archive", "reinstate-check"];
    let kinds = ["memory", "experience", "cognition"];
    for index in 0..60_usize {
        let minute = (index * 7) % 20;
        let priority = ["low", "high", "medium"][index % 3];
        let more = json!({
            "priority": priority, "object_type": kinds[index % 3], "object_id": format!("o{index}"),
        });
        let wish = wish("-", actions[index % 5], &format!("05:{minute:02}:00"));
        let id = enqueued(&ann, &with(wish, more));
        let rank = ["high", "medium", "low"].iter().position(|it| *it == priority).unwrap();
        wanted.push((minute, rank, index, id));
    }
    wanted.sort();
    let wanted: Vec<String> = wanted.into_iter().map(|(.., id)| id).collect();
    // Only what is due by then, and only so many, but the first of them.
    let early = json!({ "now": at("05:09:59"), "limit": 7 });
    let first = pulled(&ann, early.clone());
    assert_eq!(ids(&first), wanted[..7]);
    let rest = pulled(&ann, json!({ "now": at("05:09:59"), "limit": 1000 }));
    assert_eq!(ids(&rest), wanted[7..30]);
    assert_eq!(ids(&pulled(&ann, early)), Vec::<String>::new());
    assert_eq!(ids(&pulled(&ann, json!({ "limit": 1000 }))), wanted[30..]);
    for job in first.iter().chain(&rest) {
        assert_eq!(job["status"], "running");
    }
}

fn d04_a_pull_picks_by_action_object_type_and_risk(store: Store) {
    let ann = server(&SERVERS, store).caller("d04-pick", "ann", &EVERYTHING);
    put(&ann, "risky", &json!({ "risk_tier": "high" }));
    let risky = enqueued(&ann, &wish("risky", "decay", "00:00:01"));
    let verify = enqueued(&ann, &wish("a", "verify", "00:00:02"));
    let archive = enqueued(&ann, &wish("a", "archive", "00:00:03"));
    let experience = with(wish("a", "archive", "00:00:04"), json!({ "object_type": "experience" }));
    let experience = enqueued(&ann, &experience);
    let none = json!({ "actions": [] });
    assert_eq!(ids(&pulled(&ann, none)), Vec::<String>::new());
    let picked = pulled(&ann, json!({ "actions": ["archive"], "object_types": ["experience"] }));
    assert_eq!(ids(&picked), [experience]);
    assert_eq!(ids(&pulled(&ann, json!({ "risk_tiers": ["high"] }))), [risky]);
    assert_eq!(ids(&pulled(&ann, json!({ "actions": ["archive", "decay"] }))), [archive]);
    assert_eq!(ids(&pulled(&ann, json!({ "risk_tiers": ["low", "medium"] }))), [verify]);
}

fn d05_the_callers_clock_narrows_and_never_widens(store: Store) {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring"));
    let server = Server::start(options);
    let ann = server.caller("d05", "ann", &EVERYTHING);
    enqueued(&ann, &wish("later", "verify", "00:00:00"));
    // Far ahead by the caller's clock, and not due by the server's.
    assert_eq!(pulled(&ann, json!({})), Vec::<Value>::new());
    let is_taken = || {
        let soon = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() + 1).unwrap();
        let wish = with(wish("soon", "verify", "00:00:00"), json!({ "run_at": soon.to_string() }));
        let told = ann.post("/scheduler/jobs", &wish);
        (told.status == 201).then(|| text(&told.json(), "job_id"))
    };
    let id = eventually("it is taken", is_taken);
    let by_clock = json!({ "worker_id": "w", "now": "2026-01-01T00:00:00Z" });
    eventually("the server's clock has come", || {
        // A caller whose clock is behind gets nothing, however due it is.
        assert_eq!(jobs(&ann.post("/scheduler/jobs/pull", &by_clock)), Vec::<Value>::new());
        let now = jobs(&ann.post("/scheduler/jobs/pull", &json!({ "worker_id": "w" })));
        (!now.is_empty()).then(|| assert_eq!(ids(&now), std::slice::from_ref(&id)))
    });
}

fn d06_an_ack_is_taken_once_and_sets_the_next_action(store: Store) {
    let server = server(&SERVERS, store);
    let ann = server.caller("d06", "ann", &EVERYTHING);
    put(&ann, "m1", &json!({ "status": "candidate" }));
    let id = enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    assert_eq!(pulled(&ann, json!({})).len(), 1);
    let body = json!({
        "result": { "found": 3 }, "audit_event_id": "aud_1", "next_action_at": at("12:00:00"),
    });
    let done = report(&ann, "ack", &id, &body);
    assert_eq!(done.status, 200, "{}", done.text());
    let object = ann.get("/scheduler/objects/memory/m1").json();
    assert_eq!(object["next_action_at"], at("12:00:00"));
    assert_eq!(
        (&object["status"], &object["audit_event_id"]),
        (&json!("verified"), &json!("aud_1"))
    );
    let shown = job(&ann, &id);
    assert_eq!((&shown["status"], &shown["result"]), (&json!("succeeded"), &json!({ "found": 3 })));
    // Said again it is answered again; said otherwise it is refused; nothing changes twice.
    for _ in 0..2 {
        assert_eq!(report(&ann, "ack", &id, &body).json(), done.json());
    }
    let other = with(body.clone(), json!({ "next_action_at": at("13:00:00") }));
    assert_eq!(no(&report(&ann, "ack", &id, &other)), (409, "REPORT_CONFLICT".to_owned()));
    let after = ann.get("/scheduler/objects/memory/m1").json();
    assert_eq!(after, object);
    // What the table has no move for is done all the same, and the next action is set by it.
    let id = enqueued(&ann, &wish("m1", "reinstate-check", "00:00:01"));
    assert_eq!(pulled(&ann, json!({})).len(), 1);
    assert_eq!(report(&ann, "ack", &id, &json!({})).status, 200);
    let object = ann.get("/api/v1/objects/memory/m1").data();
    assert_eq!(object["status"], "verified");
    let next: jiff::Timestamp = text(&object, "next_action_at").parse().unwrap();
    let days = next.duration_since(jiff::Timestamp::now()).as_hours();
    assert!((7 * 24 - 1..=7 * 24).contains(&days), "{next} is {days} hours ahead");
}

fn d07_d09_a_third_failure_is_a_dead_letter_and_blocks_nobody(store: Store) {
    let ann = server(&SERVERS, store).caller("d07", "ann", &EVERYTHING);
    let id = enqueued(&ann, &wish("m1", "verify", "06:00:00"));
    let behind = enqueued(&ann, &wish("m2", "verify", "07:00:00"));
    let body = json!({ "error": "timeout while verifying evidence", "retry_delay_sec": 60 });
    for (attempt, due) in [(1, "06:01:00"), (2, "06:02:00")] {
        assert_eq!(ids(&pulled(&ann, json!({ "limit": 1 }))), std::slice::from_ref(&id));
        let told = report(&ann, "fail", &id, &body);
        let expected = json!({
            "job_id": id, "status": "queued", "attempt": attempt, "max_attempts": 3,
            "run_at": at(due),
        });
        assert_eq!((told.status, told.json()), (200, expected), "{}", told.text());
        // Said again it is answered again.
        assert_eq!(report(&ann, "fail", &id, &body).json(), told.json());
        assert_eq!(pulled(&ann, json!({ "now": at("06:00:59") })), Vec::<Value>::new());
        let shown = job(&ann, &id);
        assert_eq!(shown["last_error"], "timeout while verifying evidence");
    }
    assert_eq!(pulled(&ann, json!({ "limit": 1 })).len(), 1);
    let told = report(&ann, "fail", &id, &body).json();
    let standing = (&told["status"], &told["attempt"]);
    assert_eq!(standing, (&json!("dead_letter"), &json!(3)));
    assert_eq!(job(&ann, &id)["status"], "dead_letter");
    // It is found where dead letters are, and what was behind it goes on.
    let items = ann.get("/api/v1/dlq/items?status=open").data();
    assert_eq!(items["items"][0]["job_id"], json!(id), "{items}");
    assert_eq!(ids(&pulled(&ann, json!({}))), [behind]);
    // A delay that is past already counts from now.
    let now = || jiff::Timestamp::now();
    let is_taken = || {
        let second = jiff::Timestamp::from_second(now().as_second()).unwrap();
        let wish = with(wish("m3", "verify", "00:00:00"), json!({ "run_at": second.to_string() }));
        let told = ann.post("/scheduler/jobs", &wish);
        (told.status == 201).then(|| text(&told.json(), "job_id"))
    };
    let late = eventually("it is taken", is_taken);
    assert_eq!(pulled(&ann, json!({})).len(), 1);
    let before = now();
    let body = json!({ "error": "x", "retry_delay_sec": 0 });
    let told = report(&ann, "fail", &late, &body).json();
    let due: jiff::Timestamp = text(&told, "run_at").parse().unwrap();
    assert!(due >= before && due <= now(), "{due}");
}

fn d11_the_five_numbers_have_their_names(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let ann = server.caller("d11", "ann", &EVERYTHING);
    enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    let page = server.admin().get("/metrics").text();
    for name in [
        "jobs_due_count",
        "jobs_lag_seconds",
        "job_success_rate",
        "job_retry_rate",
        "dead_letter_count",
    ] {
        assert!(page.contains(&format!("\n{name} ")), "{name} is missing in {page}");
    }
    let stats = ann.get("/scheduler/stats").json();
    let expected =
        json!({ "queued": 1, "running": 0, "succeeded": 0, "failed": 0, "dead_letter": 0 });
    assert_eq!(stats["counts"], expected);
    assert_eq!(stats["oldest_queued_run_at"], at("00:00:00"));
    // A gate is no queue, to whom it may concern.
    support::gate(&ann, "risk", "block");
    assert!(!server.admin().get("/metrics").text().contains("gate:"));
    let queues = server.admin().get("/api/v1/queues").data();
    assert!(!queues.to_string().contains("gate:"), "{queues}");
}

fn d15_shards_are_queues_of_their_own(store: Store) {
    for (shards, expected) in [
        ("object_type", ["scheduler.experience", "scheduler.memory"]),
        ("risk_tier", ["scheduler.high", "scheduler.low"]),
    ] {
        let config = format!("[scheduler]\nallow_client_clock = true\nshards = {shards:?}\n");
        let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(&config);
        let server = Server::start(options);
        let ann = server.caller("d15", "ann", &EVERYTHING);
        ann.put("/scheduler/objects/experience/e1", &json!({ "risk_tier": "high" }));
        let experience =
            with(wish("e1", "verify", "00:00:02"), json!({ "object_type": "experience" }));
        let [one, other] =
            [&experience, &wish("m1", "verify", "00:00:01")].map(|wish| enqueued(&ann, wish));
        let queue = |id: &str| text(&ann.job(id), "queue");
        let mut queues = [queue(&one), queue(&other)];
        queues.sort();
        assert_eq!(queues, expected);
        let queues = server.admin().get("/api/v1/queues").data();
        for queue in queues["items"].as_array().unwrap() {
            assert_eq!(queue["order"], "due", "{queues}");
        }
        // One shard can be paused, and the other goes on.
        let paused = server.admin().poke(&format!("/api/v1/queues/{}/pause", queue(&one)));
        assert_eq!(paused.status, 200, "{}", paused.text());
        assert_eq!(ids(&pulled(&ann, json!({}))), [other]);
        server.admin().poke(&format!("/api/v1/queues/{}/resume", queue(&one)));
        assert_eq!(ids(&pulled(&ann, json!({}))), [one]);
    }
}

fn d16_a_million_seconds_ahead_cost_a_pull_nothing(store: Store) {
    let ann = server(&SERVERS, store).caller("d16", "ann", &EVERYTHING);
    // Many that are not due yet stand before none that is.
    for index in 0..400 {
        let wish = with(
            wish(&format!("o{index}"), "verify", "00:00:00"),
            json!({ "run_at": format!("2031-01-01T00:{:02}:{:02}Z", index / 60, index % 60) }),
        );
        enqueued(&ann, &wish);
    }
    let due = enqueued(&ann, &wish("now", "verify", "00:00:00"));
    assert_eq!(ids(&pulled(&ann, json!({ "limit": 1000 }))), [due]);
    assert_eq!(pulled(&ann, json!({ "limit": 1000 })), Vec::<Value>::new());
}

fn d17_leases_are_held_renewed_lost_and_never_stolen(store: Store) {
    let server = server(&SERVERS, store);
    let ann = server.caller("d17", "ann", &EVERYTHING);
    let eve = server.caller("d17", "eve", &["worker"]);
    let id = enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    let grant = pulled(&ann, json!({ "lease_sec": 600 })).pop().unwrap();
    // Somebody else's report counts with the token only, and never under another name.
    for verb in ["ack", "fail", "renew"] {
        let body = if verb == "fail" { json!({ "error": "x" }) } else { json!({}) };
        assert_eq!(no(&report(&eve, verb, &id, &body)), (409, "LEASE_LOST".to_owned()), "{verb}");
        let named = with(body.clone(), json!({ "worker_id": "w-2" }));
        assert_eq!(no(&report(&ann, verb, &id, &named)).1, "LEASE_LOST");
        let stale = with(body, json!({ "lease_token": "1.00000000000000000000000000000000" }));
        assert_eq!(no(&report(&ann, verb, &id, &stale)).1, "LEASE_LOST");
    }
    let token = json!({ "lease_token": grant["lease_token"], "extend_sec": 900 });
    let renewed = report(&eve, "renew", &id, &token);
    assert_eq!(renewed.status, 200, "{}", renewed.text());
    assert_eq!(renewed.json()["extended_by_sec"], 900);
    assert_eq!(report(&ann, "renew", &id, &json!({ "extend_sec": 1_000 })).status, 200);
    assert_eq!(renewed.json()["status"], "running");
    // The native routes do not get around the contract.
    let lease = json!({ "job_id": id, "lease_token": grant["lease_token"] });
    assert_eq!(ann.complete(&lease)["error"]["code"], "JOB_GOVERNED");
    // A worker that falls silent loses its job, which is due again at once, one attempt later.
    let short = enqueued(&ann, &wish("m2", "verify", "00:00:00"));
    let first = pulled(&ann, json!({ "lease_sec": 1 })).pop().unwrap();
    assert_eq!(text(&first, "job_id"), short);
    let again = eventually("it comes back", || pulled(&ann, json!({})).pop());
    assert_eq!((text(&again, "job_id"), &again["attempt"]), (short.clone(), &json!(1)));
    let late = json!({ "lease_token": first["lease_token"] });
    assert_eq!(no(&report(&ann, "ack", &short, &late)), (409, "LEASE_LOST".to_owned()));
    let now = json!({ "lease_token": again["lease_token"] });
    assert_eq!(report(&ann, "ack", &short, &now).status, 200);
}

fn d10_the_moves_of_a_job_are_told_with_who_and_why(store: Store) {
    let ann = server(&SERVERS, store).caller("d10", "ann", &EVERYTHING);
    let id = enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    let grant = pulled(&ann, json!({})).pop().unwrap();
    report(&ann, "fail", &id, &json!({ "error": "no evidence", "retry_delay_sec": 1 }));
    assert_eq!(pulled(&ann, json!({})).len(), 1);
    report(&ann, "ack", &id, &json!({ "audit_event_id": "aud_9" }));
    let told = ann.get(&format!("/scheduler/audits?job_id={id}&limit=100")).json();
    let lines = told["items"].as_array().unwrap();
    let moves: Vec<_> = lines
        .iter()
        .rev()
        .map(|line| (line["before"].as_str().unwrap_or("-"), text(line, "after")))
        .collect();
    let expected = [
        ("-", "queued"),
        ("queued", "running"),
        ("running", "queued"),
        ("queued", "running"),
        ("running", "succeeded"),
    ];
    assert_eq!(moves, expected.map(|(from, to)| (from, to.to_owned())));
    let last = &lines[0];
    assert_eq!(last["actor"], json!({ "type": "worker", "id": "w-1" }));
    assert_eq!(last["evidence_refs"], json!([id, "aud_9"]));
    assert_eq!(lines[3]["decision_trace_id"], grant["decision_trace_id"]);
    assert!(text(&lines[2], "reason").contains("no evidence"), "{told}");
    let all = ann.get("/scheduler/audits?object_type=memory&object_id=m1").json();
    assert_eq!(all["items"].as_array().unwrap().len(), 5);
    for half in ["object_type=memory", "object_id=m1"] {
        assert_eq!(ann.get(&format!("/scheduler/audits?{half}")).status, 422, "{half}");
    }
}

fn d01_nonsense_is_refused_and_foreign_ids_look_unknown(store: Store) {
    let server = server(&SERVERS, store);
    let ann = server.caller("d01-no", "ann", &EVERYTHING);
    let long = "x".repeat(161);
    for (field, value) in [
        ("object_type", json!("person")),
        ("object_id", json!("")),
        ("object_id", json!(long)),
        ("object_id", json!("a\u{0}b")),
        ("action", json!("delete")),
        ("run_at", json!("tomorrow")),
        ("run_at", json!("9999-12-31T23:59:59Z")),
        ("priority", json!("urgent")),
        ("max_attempts", json!(0)),
        ("max_attempts", json!(5000)),
        ("idempotency_key", json!("k".repeat(600))),
        ("surprise", json!(1)),
    ] {
        let wish = with(wish("m1", "verify", "00:00:00"), json!({ field: value }));
        let told = ann.post("/scheduler/jobs", &wish);
        assert_eq!(no(&told), (422, "REQ_VALIDATION_FAILED".to_owned()), "{field} {}", told.text());
    }
    for pull in [
        json!({}),
        json!({ "worker_id": "w", "limit": 0 }),
        json!({ "worker_id": "w", "limit": 1001 }),
        json!({ "worker_id": "w", "lease_sec": 0 }),
        json!({ "worker_id": "w", "actions": ["delete"] }),
        json!({ "worker_id": "w", "now": "soon" }),
        json!({ "worker_id": "" }),
    ] {
        let told = ann.post("/scheduler/jobs/pull", &pull);
        assert_eq!(told.status, 422, "{pull} {}", told.text());
    }
    // What is somebody else's, what is nobody's and what is no governed job look the same.
    let eve = server.caller("d01-eve", "eve", &EVERYTHING);
    let id = enqueued(&ann, &wish("m1", "verify", "00:00:00"));
    let plain = eve.submit_plain("plain");
    let unknown = "job_01j00000000000000000000000";
    let mut told = std::collections::BTreeSet::new();
    for id in [id.as_str(), unknown, plain.as_str(), "nonsense"] {
        let read = eve.get(&format!("/scheduler/jobs/{id}"));
        told.insert((read.status, read.text()));
        for verb in ["ack", "fail", "renew"] {
            let body = if verb == "fail" { json!({ "error": "x" }) } else { json!({}) };
            let told_verb = report(&eve, verb, id, &body);
            told.insert((told_verb.status, told_verb.text()));
        }
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told.first().unwrap().0, 403);
    assert_eq!(eve.get("/scheduler/objects/memory/m1").status, 403);
    // Nobody makes such jobs past the contract.
    let wish = json!({ "job_type": "scheduler.memory.verify.low", "payload": {} });
    let told = ann.post("/api/v1/jobs", &wish);
    assert_eq!((told.status, told.code()), (400, "REQ_VALIDATION_FAILED".to_owned()));
    // Every door opens for its roles and for nobody else.
    let looking = "viewer operator approver internal";
    let doors = [
        ("POST", "/scheduler/jobs", "submitter operator"),
        ("POST", "/scheduler/jobs/pull", "worker"),
        ("GET", "/scheduler/stats", looking),
        ("GET", "/scheduler/audits", looking),
        ("PUT", "/scheduler/gates/risk", "operator"),
        ("PUT", "/scheduler/objects/memory/door", "operator"),
        ("GET", "/scheduler/gates", "submitter worker viewer operator approver internal"),
    ];
    for role in ["submitter", "worker", "viewer", "operator", "approver", "internal"] {
        let one = server.caller("d01-doors", role, &[role]);
        for (method, path, may) in doors {
            let mut request = one.request(method, path);
            if method != "GET" {
                request = request.json(&json!({}));
            }
            let is_let_in = request.send(one.address).status != 403;
            assert_eq!(is_let_in, may.split(' ').any(|it| it == role), "{role} {method} {path}");
        }
    }
}

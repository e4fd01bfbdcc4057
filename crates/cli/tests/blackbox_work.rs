//! Working from outside: leases, heartbeats, releases, limits, order, turns, metrics.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::postgres::Database;
use serde_json::{Value, json};

both_stores![
    d17_a_dead_workers_job_comes_back_and_its_late_report_is_refused,
    d17_a_lease_is_renewed_by_heartbeats_and_never_beyond_the_deadline,
    d17_a_released_job_comes_back_without_having_used_a_try,
    d17_reporting_and_fetching_is_one_request_and_each_item_stands_for_itself,
    d16_a_long_poll_ends_when_a_job_comes_or_becomes_due,
    d16_jobs_that_are_not_due_cost_a_pull_nothing,
    d11_the_five_metrics_say_what_is_so,
    d16_priority_and_due_order_decide_who_is_next,
    d16_tenants_take_turns_and_a_paused_queue_hands_out_nothing,
    d17_a_concurrency_limit_counts_live_leases_in_its_scope,
    o04_workers_of_one_name_in_two_tenants_do_not_hide_each_other,
];

/// One server per store for the whole file; every test has a tenant and types of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")))
}

fn both(store: Store, tenant: &str) -> Caller {
    server(store).caller(tenant, "ann", &["submitter", "worker", "operator"])
}

fn ids(jobs: &[Value]) -> Vec<String> {
    jobs.iter().map(|job| text(job, "job_id")).collect()
}

fn beat(caller: &Caller, grant: &Value, lease_ms: u32, more: Value) -> Value {
    let mut item = json!({ "job_id": grant["job_id"], "lease_token": grant["lease_token"] });
    item.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    let wish = json!({ "worker_id": "w-1", "lease_ms": lease_ms, "items": [item] });
    items(caller.post("/api/v1/work/heartbeat", &wish).data()).pop().unwrap()
}

fn d17_a_dead_workers_job_comes_back_and_its_late_report_is_refused(store: Store) {
    let ann = both(store, "d17");
    let id = ann.submit_plain("d17");
    let wish = json!({ "worker_id": "dies", "types": ["d17"], "lease_ms": 300 });
    let old = ann.pull_with(wish).pop().unwrap();
    assert!(ann.pull("d17", 1).is_empty(), "one lease at a time");
    let new = ann.pull_one("d17");
    assert_eq!((&new["job_id"], &new["retry_count"]), (&json!(id), &json!(1)));
    assert_ne!(new["lease_token"], old["lease_token"]);
    let running = ann.job(&id);
    for verb in ["complete", "fail", "release"] {
        let refused = ann.report(verb, &old, json!({}));
        assert_eq!(refused["error"]["code"], "LEASE_LOST", "{verb}");
        assert_eq!(refused["job_id"], id.as_str());
    }
    assert_eq!(beat(&ann, &old, 1_000, json!({})), json!({ "job_id": id, "lost": true }));
    assert_eq!(ann.job(&id), running, "nothing a stale token says changes anything");
    assert_eq!(ann.complete(&new)["status"], "succeeded");
    let events = ann.events(&id);
    assert_eq!(events[2]["reason_code"], "TASK_LEASE_LOST");
    assert_eq!(events[1]["actor"], "worker:dies");
}

fn d17_a_lease_is_renewed_by_heartbeats_and_never_beyond_the_deadline(store: Store) {
    let bob = both(store, "renew");
    let id = bob.submit_plain("renew");
    let wish = json!({ "worker_id": "w-1", "types": ["renew"], "lease_ms": 1500 });
    let grant = bob.pull_with(wish).pop().unwrap();
    let first = text(&grant, "lease_expires_at");
    // Renewed over and over until well behind the end of the first lease.
    eventually("the first lease would be over", || {
        let beaten = beat(&bob, &grant, 1500, json!({ "progress": 40 }));
        let now = text(&bob.submit(&json!({ "job_type": "clock", "payload": 0 })), "created_at");
        assert!(text(&beaten, "lease_expires_at") > now, "{beaten}");
        (now > first).then_some(())
    });
    let job = bob.job(&id);
    assert_eq!((&job["status"], &job["retry_count"]), (&json!("running"), &json!(0)));
    assert_eq!(job["progress_pct"], 40);
    assert_eq!(bob.complete(&grant)["status"], "succeeded");

    let short = json!({ "job_type": "renew", "payload": 0, "timeout_ms": 300, "max_retries": 0 });
    let id = text(&bob.submit(&short), "job_id");
    let grant = bob.pull_one("renew");
    let beaten = beat(&bob, &grant, 60_000, json!({}));
    assert!(text(&beaten, "lease_expires_at") <= text(&grant, "deadline_at"), "{beaten}");
    eventually("the timeout ends it, heartbeats or not", || {
        (beat(&bob, &grant, 60_000, json!({}))["lost"] == true).then_some(())
    });
    eventually("it failed", || (bob.job(&id)["status"] == "failed").then_some(()));
}

fn d17_a_released_job_comes_back_without_having_used_a_try(store: Store) {
    let cat = both(store, "release");
    let id = cat.submit_plain("release");
    let grant = cat.pull_one("release");
    let given_back = cat.report("release", &grant, json!({ "reason": "shutting down" }));
    assert_eq!(given_back, json!({ "job_id": id, "status": "retrying" }));
    let again = cat.pull_one("release");
    assert_eq!((&again["retry_count"], &again["attempt"]), (&json!(0), &json!(1)));
    assert_eq!(cat.events(&id)[2]["reason_code"], "RELEASED");
    // The first token has said its last word already.
    assert_eq!(cat.complete(&grant)["error"]["code"], "REPORT_CONFLICT");
    assert_eq!(cat.complete(&again)["status"], "succeeded");
}

fn d17_reporting_and_fetching_is_one_request_and_each_item_stands_for_itself(store: Store) {
    let dan = both(store, "fetch");
    let submitted: Vec<_> = (0..4).map(|_| dan.submit_plain("fetch")).collect();
    let grants = dan.pull("fetch", 2);
    assert_eq!(ids(&grants), submitted[..2]);
    let fields = [
        "attempt",
        "deadline_at",
        "execution_key",
        "job_id",
        "job_type",
        "labels",
        "lease_expires_at",
        "lease_token",
        "payload",
        "retry_count",
        "trace_id",
    ];
    assert_eq!(grants[0].as_object().unwrap().keys().collect::<Vec<_>>(), fields);
    let wish = json!({
        "items": [
            { "job_id": grants[0]["job_id"], "lease_token": grants[0]["lease_token"] },
            { "job_id": grants[1]["job_id"], "lease_token": grants[0]["lease_token"] },
            { "job_id": grants[1]["job_id"], "lease_token": grants[1]["lease_token"], "result": 5 },
        ],
        "pull": { "worker_id": "w-1", "types": ["fetch"], "limit": 10 },
    });
    let answer = dan.post("/api/v1/work/complete", &wish).data();
    let codes: Vec<_> = answer["items"].as_array().unwrap().iter().collect();
    assert_eq!(*codes[0], json!({ "job_id": submitted[0], "status": "succeeded" }));
    assert_eq!(codes[1]["error"]["code"], "LEASE_LOST");
    assert_eq!(*codes[2], json!({ "job_id": submitted[1], "status": "succeeded" }));
    assert_eq!(ids(answer["jobs"].as_array().unwrap()), submitted[2..]);
    // A lease token is enough to report, but not to fetch.
    let lease_only = |pull: Value| {
        let grant = &answer["jobs"][0];
        let item = json!({ "job_id": grant["job_id"], "lease_token": grant["lease_token"] });
        let mut wish = json!({ "items": [item] });
        if !pull.is_null() {
            wish["pull"] = pull;
        }
        let request = mainspring_testkit::blackbox::Request::new("POST", "/api/v1/work/complete");
        request.json(&wish).send(dan.address)
    };
    let refused = lease_only(json!({ "worker_id": "w-1" })).refusal();
    assert_eq!(refused, (401, "AUTH_UNAUTHORIZED".into()));
    assert_eq!(dan.job(&submitted[2])["status"], "running", "refused as a whole");
    assert_eq!(lease_only(Value::Null).data()["items"][0]["status"], "succeeded");
}

fn d16_a_long_poll_ends_when_a_job_comes_or_becomes_due(store: Store) {
    let eve = both(store, "poll");
    let waiting = {
        let eve = eve.clone();
        std::thread::spawn(move || eve.pull_one("poll"))
    };
    eventually("the pull waits", || {
        let runtime = server(store).admin().get("/api/v1/runtime").data();
        (runtime["counters"]["parked_pulls"].as_u64() > Some(0)).then_some(())
    });
    let id = eve.submit_plain("poll");
    assert_eq!(waiting.join().unwrap()["job_id"], id.as_str());
    let soon = json!({ "job_type": "poll", "payload": 0, "delay_ms": 300 });
    let soon = eve.submit(&soon);
    assert!(eve.pull("poll", 1).is_empty(), "not before its time");
    let grant = eve.pull_one("poll");
    assert_eq!(grant["job_id"], soon["job_id"]);
    assert!(eve.job(&text(&soon, "job_id"))["started_at"].as_str() >= soon["run_at"].as_str());
}

/// Processor time used so far by the server, and by the processes of its database that serve it,
/// in ticks of their kernel.
fn ticks(server: &Server) -> u64 {
    let used = |pid: u32| {
        // A connection of the pool may end while we look.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let behind_the_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let fields = behind_the_name.split_whitespace().skip(11).take(2);
        fields.map(|field| field.parse::<u64>().unwrap()).sum::<u64>()
    };
    let back_ends = server.database().map(Database::back_ends).unwrap_or_default();
    used(server.pid().unwrap()) + back_ends.into_iter().map(used).sum::<u64>()
}

/// Submits due jobs one by one and pulls them one by one; answers with the processor time of the
/// pulls. The server's own counters say that a pull is one claim and nothing besides.
fn pulls(server: &Server, caller: &Caller, count: usize) -> u64 {
    let due: Vec<_> = (0..count).map(|_| caller.submit_plain("d16")).collect();
    let counters = || server.admin().get("/api/v1/runtime").data()["counters"].take();
    let (counted, before) = (counters(), ticks(server));
    let pulled: Vec<_> = (0..count).flat_map(|_| ids(&caller.pull("d16", 1))).collect();
    let (used, after) = (ticks(server).saturating_sub(before), counters());
    assert_eq!(pulled, due, "exactly the due ones, in order");
    assert!(caller.pull("d16", 10_000).is_empty(), "and none of the others");
    let grown = |name: &str| after[name].as_u64().unwrap() - counted[name].as_u64().unwrap();
    assert_eq!(grown("claims"), count as u64);
    assert!(grown("commits") <= count as u64, "{after} after {counted}");
    used
}

fn d16_jobs_that_are_not_due_cost_a_pull_nothing(store: Store) {
    let own = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).ephemeral());
    let fay = own.caller("d16", "fay", &["submitter", "worker", "operator"]);
    let alone = pulls(&own, &fay, 400);
    let far: Vec<Value> = (0..10_000)
        .map(|n| json!({ "job_type": "d16", "payload": n, "delay_ms": 86_400_000 + n }))
        .collect();
    let far = json!({ "jobs": far });
    for _ in 0..20 {
        let answer = fay.post("/api/v1/jobs/batch", &far).data();
        assert_eq!(answer["items"].as_array().unwrap().len(), 10_000);
    }
    let queues = items(own.admin().get("/api/v1/queues").data());
    let pending = queues.iter().find(|queue| queue["name"] == "default").unwrap();
    assert_eq!(pending["pending"], 200_000);
    let among = pulls(&own, &fay, 400);
    // Work, not waiting: looking through 200,000 jobs 400 times would take hundreds of ticks.
    assert!(among <= 5 * alone + 20, "{among} ticks among 200,000 waiting jobs, {alone} alone");
}

fn d11_the_five_metrics_say_what_is_so(store: Store) {
    let own = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).ephemeral());
    let gil = own.caller("d11", "gil", &["submitter", "worker"]);
    let metric = |name: &str| -> f64 {
        let page = gil.get("/metrics").text();
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
    };
    assert_eq!((metric("jobs_due_count"), metric("jobs_lag_seconds")), (0.0, 0.0));
    for _ in 0..4 {
        gil.submit_plain("d11");
    }
    gil.submit(&json!({ "job_type": "d11", "payload": 0, "delay_ms": 3_600_000 }));
    assert_eq!(metric("jobs_due_count"), 4.0);
    let lag = metric("jobs_lag_seconds");
    assert!(lag > 0.0);
    eventually("the lag grows", || (metric("jobs_lag_seconds") > lag).then_some(()));
    let grants = gil.pull("d11", 10);
    gil.complete(&grants[0]);
    gil.complete(&grants[1]);
    gil.fail(&grants[2], "BAD", false);
    gil.fail(&grants[3], "LATER", true);
    let gone = "mainspring_jobs{state=\"cancelled\"}";
    assert_eq!(metric(gone), 0.0);
    assert_eq!(metric("jobs_due_count"), 0.0);
    assert!((metric("job_success_rate") - 2.0 / 3.0).abs() < 1e-9);
    assert!((metric("job_retry_rate") - 1.0 / 5.0).abs() < 1e-9);
    assert_eq!(metric("dead_letter_count"), 1.0);
}

fn d16_priority_and_due_order_decide_who_is_next(store: Store) {
    let hal = both(store, "order");
    // A queue in due order: run_at first, whatever the priority says.
    server(store).admin().put("/api/v1/queues/order-due", &json!({ "order": "due" })).data();
    let later = |delay_ms: u64, priority: u8| {
        let wish = json!({
            "job_type": "due", "payload": 0, "queue": "order-due", "delay_ms": delay_ms,
            "priority": priority
        });
        text(&hal.submit(&wish), "job_id")
    };
    let (third, first, second) = (later(400, 255), later(0, 1), later(200, 200));
    eventually("all are due", || {
        let queues = items(server(store).admin().get("/api/v1/queues").data());
        let due = queues.iter().find(|queue| queue["name"] == "order-due")?;
        (due["ready"] == 3).then_some(())
    });
    assert_eq!(ids(&hal.pull("due", 3)), [first, second, third]);
    let low = text(&hal.submit(&json!({ "job_type": "o", "payload": 0, "priority": 1 })), "job_id");
    let high =
        text(&hal.submit(&json!({ "job_type": "o", "payload": 0, "priority": 200 })), "job_id");
    let same =
        text(&hal.submit(&json!({ "job_type": "o", "payload": 0, "priority": 200 })), "job_id");
    assert_eq!(ids(&hal.pull("o", 3)), [high, same, low]);
}

fn d16_tenants_take_turns_and_a_paused_queue_hands_out_nothing(store: Store) {
    // Only an admin pulls over tenants: a flood of one does not keep another waiting.
    let flood = both(store, "turns-a");
    let quiet = both(store, "turns-b");
    for _ in 0..50 {
        flood.submit_plain("turns");
    }
    let first = quiet.submit_plain("turns");
    let second = quiet.submit_plain("turns");
    let pulled = ids(&server(store).admin().pull("turns", 6));
    assert!(pulled.contains(&first) && pulled.contains(&second), "{pulled:?}");

    let ivy = both(store, "paused");
    let id = text(
        &ivy.submit(&json!({ "job_type": "paused", "payload": 0, "queue": "paused-q" })),
        "job_id",
    );
    assert_eq!(server(store).admin().poke("/api/v1/queues/paused-q/pause").data()["paused"], true);
    assert!(ivy.pull("paused", 1).is_empty());
    let told = ivy.get(&format!("/api/v1/jobs/{id}/explain")).data();
    assert_eq!(told["reasons"][0]["code"], "QUEUE_PAUSED", "{told}");
    let waiting = {
        let ivy = ivy.clone();
        std::thread::spawn(move || ivy.pull_one("paused"))
    };
    assert_eq!(
        server(store).admin().poke("/api/v1/queues/paused-q/resume").data()["paused"],
        false
    );
    assert_eq!(waiting.join().unwrap()["job_id"], id.as_str(), "a waiting pull is woken");
}

fn d17_a_concurrency_limit_counts_live_leases_in_its_scope(store: Store) {
    let jan = both(store, "limit");
    let spec = json!({ "concurrency_limit": 2, "concurrency_scope": "tenant" });
    server(store).admin().put("/api/v1/types/limited", &spec).data();
    let held: Vec<_> = (0..4).map(|_| jan.submit_plain("limited")).collect();
    let grants = jan.pull("limited", 10);
    assert_eq!(grants.len(), 2);
    let told = jan.get(&format!("/api/v1/jobs/{}/explain", held[3])).data();
    let codes: Vec<_> =
        told["reasons"].as_array().unwrap().iter().map(|r| text(r, "code")).collect();
    assert!(codes.contains(&"CONCURRENCY_LIMIT_EXCEEDED".to_owned()), "{codes:?}");
    assert_eq!(jan.job(&held[3])["status"], "queued", "a held job stays queued");
    let other = both(store, "limit-2");
    other.submit_plain("limited");
    assert_eq!(other.pull("limited", 10).len(), 1, "another tenant has its own two");
    let waiting = {
        let jan = jan.clone();
        std::thread::spawn(move || jan.pull_one("limited"))
    };
    jan.complete(&grants[0]);
    assert_eq!(waiting.join().unwrap()["job_id"], held[2].as_str());
    assert!(jan.pull("limited", 10).is_empty());
}

fn o04_workers_of_one_name_in_two_tenants_do_not_hide_each_other(store: Store) {
    let (one, two) = (both(store, "names-a"), both(store, "names-b"));
    let wish = |types: &str| json!({ "worker_id": "same-name", "types": [types] });
    one.pull_with(wish("names-a"));
    two.pull_with(wish("names-b"));
    for (caller, tenant) in [(&one, "names-a"), (&two, "names-b")] {
        let seen = items(caller.get("/api/v1/workers").data());
        assert_eq!(seen.len(), 1, "{tenant} sees its own worker and no other");
        assert_eq!(
            (&seen[0]["worker_id"], &seen[0]["tenant_id"]),
            (&json!("same-name"), &json!(tenant))
        );
        assert_eq!(seen[0]["types"], json!([tenant]));
    }
}

//! Leases over an outage: while nobody could reach the database nobody could renew one, so that
//! time does not count. Whoever could have asked another server has lost and gains nothing.

use super::{ANY_TYPE, BINARY, Nodes, await_probe, eventually, submit_until_taken};
use mainspring_testkit::blackbox::Caller;
use mainspring_testkit::blackbox::caller::items;
use mainspring_testkit::load::Stopwatch;
use mainspring_testkit::postgres::{ClusterOptions, Proxy};
use serde_json::{Value, json};
use std::time::Duration;

/// How long each lease is.
const LEASE: Duration = Duration::from_millis(1_500);

/// Jobs of a type of their own, each under a lease.
fn running(caller: &Caller, job_type: &str, count: usize) -> Vec<Value> {
    let jobs: Vec<Value> =
        (0..count).map(|n| json!({ "job_type": job_type, "payload": n })).collect();
    caller.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
    let wish = json!({
        "worker_id": "w", "types": [job_type], "limit": count, "wait_ms": 10_000,
        "lease_ms": LEASE.as_millis() as u64
    });
    let grants = caller.pull_with(wish);
    assert_eq!(grants.len(), count);
    grants
}

/// The answer to a heartbeat.
fn beat(caller: &Caller, grant: &Value) -> Value {
    let item = json!({ "job_id": grant["job_id"], "lease_token": grant["lease_token"] });
    let wish = json!({ "worker_id": "w", "lease_ms": 60_000, "items": [item] });
    items(caller.post("/api/v1/work/heartbeat", &wish).data()).pop().expect("an answer")
}

fn status(caller: &Caller, grant: &Value) -> String {
    let job = caller.job(grant["job_id"].as_str().expect("an id"));
    job["status"].as_str().expect("a status").to_owned()
}

/// How many silences the servers have agreed on.
fn silences(nodes: &Nodes) -> usize {
    let ends = nodes.database.sql("SELECT cardinality(silences_us) FROM mainspring.clock");
    ends.parse::<usize>().expect("a number") / 2
}

/// What workers may do after an outage of all servers: those that come back keep their jobs, at
/// whichever server; one that does not loses it soon.
fn come_back(nodes: &Nodes, outage: impl FnOnce()) {
    let callers: Vec<Caller> = (0..nodes.servers.len()).map(|nth| nodes.admin(nth)).collect();
    let grants = running(&callers[0], "held", 2 * callers.len() + 1);
    let (known, began) = (silences(nodes), Stopwatch::start());
    outage();
    let lasted = began.elapsed();
    assert!(lasted > 2 * LEASE, "too short to prove anything: {lasted:?}");
    let back = Stopwatch::start();
    let (returning, silent) = grants.split_at(2 * callers.len());
    for (pair, caller) in returning.chunks(2).zip(&callers) {
        let beaten = beat(caller, &pair[0]);
        assert_ne!(beaten["lost"], true, "after {:?}: {beaten}", back.elapsed());
        assert_eq!(caller.complete(&pair[1])["status"], "succeeded");
    }
    assert_eq!(silences(nodes), known + 1, "one outage, counted once");
    // The grace is no second lease.
    let [silent] = silent else { panic!("one keeps silent") };
    eventually("the lease ends", || (status(&callers[0], silent) != "running").then_some(()));
    println!("lost {:?} after an outage of {lasted:?}", back.elapsed());
    assert_eq!(beat(&callers[0], silent)["lost"], true);
    for (pair, caller) in returning.chunks(2).zip(&callers) {
        assert_eq!(status(caller, &pair[0]), "running", "it was renewed for a minute");
        assert_eq!(caller.complete(&pair[0])["status"], "succeeded");
    }
}

fn refuse_all(nodes: &Nodes, span: Duration) {
    nodes.proxies.iter().for_each(Proxy::refuse);
    std::thread::sleep(span); // paced: no heartbeat gets through
    nodes.proxies.iter().for_each(Proxy::heal);
    nodes.servers.iter().for_each(|server| await_probe(server, "/readyz", 200));
}

pub(super) fn o15_a_lease_that_ran_out_in_an_outage_has_a_grace_after_it() {
    let nodes = Nodes::start(BINARY, 1, &ClusterOptions::default(), ANY_TYPE);
    come_back(&nodes, || refuse_all(&nodes, Duration::from_millis(3_500)));
    // What was asked while the database was away waits for it, and counts.
    let admin = nodes.admin(0);
    let grants = running(&admin, "asked", 2);
    nodes.proxies.iter().for_each(Proxy::refuse);
    std::thread::sleep(2 * LEASE); // paced: the leases run out meanwhile
    std::thread::scope(|scope| {
        let beaten = scope.spawn(|| beat(&admin, &grants[0]));
        let done = scope.spawn(|| admin.complete(&grants[1]));
        std::thread::sleep(Duration::from_millis(500)); // paced: both have begun to wait
        nodes.proxies.iter().for_each(Proxy::heal);
        let (beaten, done) = (beaten.join().expect("an answer"), done.join().expect("an answer"));
        assert_ne!(beaten["lost"], true, "{beaten}");
        assert_eq!(done["status"], "succeeded", "{done}");
    });
}

pub(super) fn o15_after_an_outage_of_all_servers_leases_are_good_at_each_of_them() {
    let mut nodes = Nodes::start(BINARY, 2, &ClusterOptions::default(), ANY_TYPE);
    come_back(&nodes, || refuse_all(&nodes, Duration::from_millis(3_500)));
    // And so they are when it was the database itself that died.
    let admin = nodes.admin(1);
    let grants = running(&admin, "died", 2);
    nodes.cluster.kill9();
    std::thread::sleep(2 * LEASE); // paced: the leases run out meanwhile
    nodes.cluster.start_again();
    nodes.servers.iter().for_each(|server| await_probe(server, "/readyz", 200));
    for (nth, grant) in grants.iter().enumerate() {
        assert_ne!(beat(&nodes.admin(nth), grant)["lost"], true);
    }
}

/// A process that stood still could not be asked, either.
pub(super) fn o15_a_server_that_stood_still_alone_takes_nobodys_job() {
    let nodes = Nodes::start(BINARY, 1, &ClusterOptions::default(), ANY_TYPE);
    come_back(&nodes, || {
        nodes.servers[0].pause();
        std::thread::sleep(Duration::from_secs(7)); // paced: longer than servers go without a look
        nodes.servers[0].resume();
        // What was under way when it stopped has failed by now, and it has looked.
        submit_until_taken(&nodes.admin(0), "after");
        await_probe(&nodes.servers[0], "/readyz", 200);
    });
}

/// Only one server is away: workers can ask the other one, so a lease that is not renewed ends as
/// always, and nothing is longer for it after.
pub(super) fn o15_a_server_that_was_away_alone_extends_no_lease() {
    let nodes = Nodes::start(BINARY, 2, &ClusterOptions::default(), ANY_TYPE);
    let (first, second) = (nodes.admin(0), nodes.admin(1));
    let grants = running(&first, "alone", 2);
    // The one that granted them is cut off.
    nodes.proxies[0].refuse();
    await_probe(&nodes.servers[0], "/readyz", 503);
    let beaten = beat(&second, &grants[0]);
    assert_ne!(beaten["lost"], true, "the other server takes it: {beaten}");
    eventually("the lease ends", || (status(&second, &grants[1]) != "running").then_some(()));
    let began = Stopwatch::start();
    while began.elapsed() < Duration::from_secs(6) {
        // The second one looks every two seconds.
        std::thread::sleep(Duration::from_millis(100)); // paced: an outage of the first alone
    }
    nodes.proxies[0].heal();
    await_probe(&nodes.servers[0], "/readyz", 200);
    assert_eq!(silences(&nodes), 0, "there was none");
    assert_eq!(beat(&first, &grants[1])["lost"], true);
    assert_eq!(first.complete(&grants[0])["status"], "succeeded");
}

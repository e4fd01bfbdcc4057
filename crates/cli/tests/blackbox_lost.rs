//! A grant whose answer never arrives: the server that gave it is killed, or the answer is lost on
//! the way after the commit. The job comes back when its lease ends, and that is soon for whoever
//! uses the SDK or the worker command: their first lease is short, whatever they ask for later.

use mainspring_testkit::blackbox::command::{Background, prepare};
use mainspring_testkit::blackbox::{Caller, Nodes, Server, Store, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::load::Stopwatch;
use mainspring_testkit::postgres::{Admin, ClusterOptions, Proxy};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

both_stores![
    d17_a_job_whose_grant_is_lost_on_the_way_comes_back_in_seconds,
    d17_a_plain_caller_waits_for_the_lease_it_asked_for,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const ANY_TYPE: &str = "[types]\nstrict = false\n";
/// The first lease of five seconds, the first retry's delay, and what a busy machine adds.
const SECONDS: Duration = Duration::from_secs(20);

/// A network that can be made to fail, between workers and a server.
fn network(server: &Server) -> Proxy {
    let (host, port) = (server.address.ip().to_string(), server.address.port());
    Proxy::start(&Admin { host, port, role: String::new() })
}

/// A worker that asks for leases of ten minutes.
fn worker(url: &str, caller: &Caller, server: &Server, name: &str) -> Background {
    let args = ["worker", "--type", "lost", "--id", name, "--lease-ms", "600000", "--", "true"];
    let env = [("MAINSPRING_URL", url), ("MAINSPRING_TOKEN", &*caller.token)];
    let mut command = prepare(BINARY, &args, &env, server.directory());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Background(child.expect("the worker starts"))
}

fn await_waiting(server: &Server) {
    eventually("the pull waits", || {
        let told = server.admin().get("/api/v1/runtime").data();
        (told["counters"]["parked_pulls"].as_u64()? > 0).then_some(())
    });
}

fn await_status(caller: &Caller, job: &str, status: &str) -> Value {
    eventually(&format!("the job is {status}"), || {
        Some(caller.job(job)).filter(|job| job["status"] == status)
    })
}

/// The answer to a waiting pull is written and swallowed; then the connection breaks.
fn d17_a_job_whose_grant_is_lost_on_the_way_comes_back_in_seconds(store: Store) {
    let server = Server::start(store.options(BINARY).config(ANY_TYPE));
    let (admin, proxy) = (server.admin(), network(&server));
    let _worker = worker(&format!("http://{}", address(&proxy)), &admin, &server, "w");
    await_waiting(&server);
    proxy.swallow();
    let job = admin.submit_plain("lost");
    await_status(&admin, &job, "running");
    let granted = Stopwatch::start();
    proxy.cut();
    proxy.heal();
    let done = await_status(&admin, &job, "succeeded");
    let took = granted.elapsed();
    println!("{store:?}: done {took:?} after the answer to its first pull was lost");
    assert_eq!(done["attempt"], 2, "the first grant reached nobody: {done}");
    assert!(took < SECONDS, "{took:?}");
}

/// Whoever pulls by hand has what they asked for: a lease, whether they heard of it or not.
fn d17_a_plain_caller_waits_for_the_lease_it_asked_for(store: Store) {
    let server = Server::start(store.options(BINARY).config(ANY_TYPE));
    let (admin, proxy) = (server.admin(), network(&server));
    let lease = Duration::from_secs(4);
    let wish = json!({
        "worker_id": "w", "types": ["lost"], "wait_ms": 60_000, "lease_ms": lease.as_millis() as u64
    });
    let request = admin.request("POST", "/api/v1/work/pull").json(&wish);
    let through = address(&proxy).parse().expect("an address");
    std::thread::scope(|scope| {
        let pull = scope.spawn(move || request.try_send(through));
        await_waiting(&server);
        proxy.swallow();
        let job = admin.submit_plain("lost");
        await_status(&admin, &job, "running");
        let granted = Stopwatch::start();
        proxy.cut();
        proxy.heal();
        assert!(pull.join().expect("it ends").is_err(), "nobody was answered");
        let back = await_status(&admin, &job, "retrying");
        let took = granted.elapsed();
        println!("{store:?}: back {took:?} after a grant of {lease:?} was lost");
        assert_eq!(back["last_error"]["code"], "TASK_LEASE_LOST");
        assert!(took > lease / 2 && took < lease + SECONDS, "{took:?}");
    });
}

fn address(proxy: &Proxy) -> String {
    format!("{}:{}", proxy.admin().host, proxy.admin().port)
}

/// One of two servers is killed when it has granted a job to a pull that waited at it, before the
/// answer gets anywhere. The other one takes the job back.
fn d17_a_job_granted_by_a_server_that_is_killed_comes_back_in_seconds() {
    let mut nodes = Nodes::start(BINARY, 2, &ClusterOptions::default(), ANY_TYPE);
    for round in 0..2 {
        let (doomed, other) = (nodes.admin(0), nodes.admin(1));
        let proxy = network(&nodes.servers[0]);
        let url = format!("http://{}", address(&proxy));
        let first = worker(&url, &doomed, &nodes.servers[0], "first");
        await_waiting(&nodes.servers[0]);
        proxy.swallow();
        let job = other.submit_plain("lost");
        await_status(&other, &job, "running");
        nodes.servers[0].kill9();
        let killed = Stopwatch::start();
        let _second = worker(&nodes.servers[1].url, &other, &nodes.servers[1], "second");
        let done = await_status(&other, &job, "succeeded");
        let took = killed.elapsed();
        println!("round {round}: done {took:?} after the server that granted it was killed");
        assert_eq!(done["attempt"], 2, "the first grant reached nobody: {done}");
        assert!(took < SECONDS, "{took:?}");
        drop((first, proxy));
        nodes.servers[0].restart();
    }
}

mod several {
    mod postgres {
        #[test]
        fn d17_a_job_granted_by_a_server_that_is_killed_comes_back_in_seconds() {
            crate::d17_a_job_granted_by_a_server_that_is_killed_comes_back_in_seconds();
        }
    }
}

//! Stopping on purpose: what is under way is answered, nothing is lost, no try is used up, leases
//! outlive the server, and whoever is impatient may ask twice. `MAINSPRING_TEST=full`
//! stops 500 times.

use mainspring_testkit::blackbox::caller::items;
use mainspring_testkit::blackbox::command::{self, Background, signal};
use mainspring_testkit::blackbox::http::{self, Response};
use mainspring_testkit::blackbox::{Caller, Options, Server, Store, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::checker;
use mainspring_testkit::history::{Call, Outcome};
use mainspring_testkit::load::{Fleet, Stopwatch, Temper, config};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

both_stores![
    o15_twenty_stops_under_load_lose_nothing_and_use_no_try,
    o15_a_second_signal_stops_at_once,
    o15_event_streams_end_with_the_server,
    d17_a_stopped_worker_releases_what_it_cannot_finish,
    d17_a_worker_told_twice_stops_at_once,
    d17_leases_survive_a_restart_of_the_server,
    d17_a_server_away_longer_than_the_lease_steals_nothing,
];

/// How long the server gives requests under way.
const GRACE: Duration = Duration::from_secs(10);

fn options(store: Store) -> Options {
    store.options(env!("CARGO_BIN_EXE_mainspring"))
}

/// One life after another ends with SIGTERM under load, and nobody is the worse for it.
fn rounds(store: Store, seed: u64, stops: u64) {
    let mut server = Server::start(options(store).config(&config()));
    let fleet = Fleet::start(&server, seed, Temper::Polite);
    let (mut slowest, mut held) = (Duration::ZERO, 0);
    for _ in 0..stops {
        let before = fleet.recorder.acknowledged();
        eventually("the load gets on", || {
            (fleet.recorder.acknowledged() >= before + 100).then_some(())
        });
        let poll = long_poll(&server.admin());
        fleet.recorder.fault("stop");
        let asked = Stopwatch::start();
        let status = server.terminate();
        slowest = slowest.max(asked.elapsed());
        assert_eq!(status.code(), Some(0), "{}", server.log());
        let answer = poll.join().expect("the poller").expect("the long poll is answered");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.data()["jobs"], json!([]), "{answer:?}");
        server.restart();
        fleet.recorder.fault("restart");
        let runtime = server.admin().get("/api/v1/runtime").data();
        held += runtime["recovery"]["running"].as_u64().expect("a number");
        assert_eq!(runtime["recovery"]["torn_bytes"], 0, "{runtime}");
    }
    let acknowledged = fleet.recorder.acknowledged();
    let history = fleet.finish();
    let violations = checker::check(&history);
    let unknown = history.operations.iter().filter(|call| call.outcome == Outcome::Info);
    let unknown_pulls =
        unknown.clone().filter(|call| matches!(call.call, Call::Pull { .. })).count();
    let events = history.dump.jobs.iter().flat_map(|job| &job.events);
    let reaped = events.filter(|event| event.actor == "system:reaper").count();
    println!(
        "{store:?}, seed {seed}: {stops} stops, {acknowledged} acknowledged changes, {} jobs, {held} leases \
         held over a stop, {} unknown calls of which {unknown_pulls} pulls, {reaped} tries lost, \
         slowest stop {slowest:?}, {} violations",
        history.dump.jobs.len(),
        unknown.count(),
        violations.len(),
    );
    violations.iter().take(20).for_each(|violation| println!("{violation}"));
    assert!(violations.is_empty());
    assert!(slowest < GRACE + Duration::from_secs(1), "{slowest:?}");
    assert!(acknowledged >= stops * 100);
    // A pull whose answer was lost between two machines holds its job until the lease ends; the
    // stop itself must not cost a single try.
    assert!(reaped <= unknown_pulls, "{reaped} tries lost, {unknown_pulls} pulls lost");
}

/// A pull that would wait for half a minute.
fn long_poll(caller: &Caller) -> std::thread::JoinHandle<std::io::Result<Response>> {
    let wish = json!({ "worker_id": "idle", "types": ["idle"], "wait_ms": 30_000 });
    let request = caller.request("POST", "/api/v1/work/pull").json(&wish);
    let address = caller.address;
    let poll = std::thread::spawn(move || request.try_send(address));
    eventually("the pull waits", || {
        let known = items(caller.get("/api/v1/workers").data());
        known.iter().any(|worker| worker["worker_id"] == "idle").then_some(())
    });
    poll
}

fn o15_twenty_stops_under_load_lose_nothing_and_use_no_try(store: Store) {
    let is_full = std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full");
    for seed in 1..=if is_full { 25 } else { 1 } {
        rounds(store, seed, 20);
    }
}

/// The second signal does not wait for a request that never ends.
fn o15_a_second_signal_stops_at_once(store: Store) {
    let mut server = Server::start(options(store));
    let mut slow = http::connect(server.address).expect("a connection");
    let head = "POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    slow.write_all(head.as_bytes()).expect("the first byte of a body");
    let job = server.admin().submit_plain("work");
    let pid = server.pid().expect("it runs");
    signal(pid, Signal::TERM);
    let log = || std::fs::read_to_string(server.directory().join("log")).unwrap_or_default();
    eventually("the first signal is seen", || log().contains("once more").then_some(()));
    let asked = Stopwatch::start();
    assert_eq!(server.terminate().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    server.restart();
    assert_eq!(server.admin().job(&job)["status"], "queued");
}

/// Streams of events end instead of holding the server up.
fn o15_event_streams_end_with_the_server(store: Store) {
    let mut server = Server::start(options(store));
    let mut stream = http::connect(server.address).expect("a connection");
    let (address, token) = (server.address, &server.admin);
    let head = format!(
        "GET /api/v1/events HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the request");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    let asked = Stopwatch::start();
    assert_eq!(server.terminate().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    stream.read_to_end(&mut Vec::new()).expect("the stream ends");
}

fn worker(server: &Server, more: &[&str], script: &str) -> Background {
    let mut args = vec!["worker", "--type", "slow"];
    args.extend(more);
    args.extend(["--", "sh", "-c", script]);
    let env = [("MAINSPRING_URL", &*server.url), ("MAINSPRING_TOKEN", &*server.admin)];
    let binary = env!("CARGO_BIN_EXE_mainspring");
    let mut command = command::prepare(binary, &args, &env, server.directory());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Background(command.spawn().expect("the worker starts"))
}

fn wait_for(caller: &Caller, job: &str, status: &str) -> Value {
    eventually(&format!("{job} is {status}"), || {
        Some(caller.job(job)).filter(|found| found["status"] == status)
    })
}

/// A worker that has to go gives back what it cannot finish, and finishes what it can.
fn d17_a_stopped_worker_releases_what_it_cannot_finish(store: Store) {
    let server = Server::start(options(store));
    let admin = server.admin();
    let job = admin.submit_plain("slow");
    let started = server.directory().join("started");
    let hasty = worker(
        &server,
        &["--grace", "300ms", "--kill-grace", "300ms"],
        "touch started; exec sleep 600",
    );
    // That the server has it running does not mean that the worker knows of it already.
    eventually("the command runs", || started.exists().then_some(()));
    assert_eq!(hasty.terminate(), Some(0), "it does not wait for the command");
    let given_back = admin.job(&job);
    assert_eq!(given_back["status"], "retrying", "{given_back}");
    assert_eq!(given_back["retry_count"], 0, "{given_back}");
    let again = admin.pull_one("slow");
    assert_eq!((&again["attempt"], &again["job_id"]), (&json!(1), &json!(job)));
    admin.complete(&again);

    let job = admin.submit_plain("slow");
    let begun = server.directory().join("begun");
    let script = "touch begun; sleep 1; echo '{\"ok\":true}'";
    let patient = worker(&server, &["--grace", "20s"], script);
    eventually("the command runs", || begun.exists().then_some(()));
    assert_eq!(patient.terminate(), Some(0));
    let done = admin.job(&job);
    assert_eq!((&done["status"], &done["attempt"]), (&json!("succeeded"), &json!(1)), "{done}");
}

/// The second signal ends a worker at once; its job comes back by its lease.
fn d17_a_worker_told_twice_stops_at_once(store: Store) {
    let server = Server::start(options(store));
    let admin = server.admin();
    let job = admin.submit_plain("slow");
    let started = server.directory().join("started");
    let mut busy = worker(
        &server,
        &["--grace", "600s", "--lease-ms", "1000"],
        "touch started; exec sleep 600",
    );
    eventually("the command runs", || started.exists().then_some(()));
    signal(busy.0.id(), Signal::TERM);
    let status = eventually("the worker stops", || {
        signal(busy.0.id(), Signal::TERM);
        busy.0.try_wait().expect("our child")
    });
    assert_eq!(status.code(), Some(1), "it did not wait for the grace");
    wait_for(&admin, &job, "retrying");
    let again = eventually("the job is due again", || admin.pull("slow", 1).pop());
    assert_eq!(again["attempt"], 2, "it was never given back: {again}");
}

/// A worker that had a job before the restart may end it after the restart, however the server
/// went away.
fn d17_leases_survive_a_restart_of_the_server(store: Store) {
    let mut server = Server::start(options(store));
    for is_kill in [false, true] {
        let admin = server.admin();
        let job = admin.submit_plain("work");
        let wish = json!({ "worker_id": "w", "types": ["work"], "lease_ms": 20_000 });
        let grant = admin.pull_with(wish).pop().expect("the job");
        if is_kill {
            server.kill9();
        } else {
            assert_eq!(server.terminate().code(), Some(0));
        }
        server.restart();
        let admin = server.admin();
        assert!(admin.pull("work", 10).is_empty(), "it was handed out a second time");
        assert_eq!(admin.complete(&grant)["status"], "succeeded");
        let done = admin.job(&job);
        assert_eq!((&done["attempt"], &done["status"]), (&json!(1), &json!("succeeded")));
        assert_eq!(admin.path(&job), ["queued", "running", "succeeded"]);
    }
}

/// The server is away for twice the lease. Workers that come back within the grace keep their jobs,
/// although somebody hungry asks for them all the time; those that do not come back lose them.
fn d17_a_server_away_longer_than_the_lease_steals_nothing(store: Store) {
    const JOBS: usize = 100;
    let grace = "[scheduler]\nrestart_grace = \"3s\"\n[types]\nstrict = false\n";
    let mut server = Server::start(options(store).config(grace));
    let admin = server.admin();
    let wishes: Vec<Value> =
        (0..JOBS).map(|nth| json!({ "job_type": "work", "payload": { "n": nth } })).collect();
    admin.post("/api/v1/jobs/batch", &json!({ "jobs": wishes })).data();
    let pull = json!({ "worker_id": "w", "types": ["work"], "limit": JOBS, "lease_ms": 700 });
    let grants = admin.pull_with(pull);
    assert_eq!(grants.len(), JOBS);
    server.kill9();
    std::thread::sleep(Duration::from_millis(1_400)); // paced: twice the lease
    server.restart();
    let back = Stopwatch::start();
    let admin = server.admin();
    let (returning, gone) = grants.split_at(JOBS - 10);
    // One goes on working for a while longer than the grace.
    let (working, returning) = returning.split_first().expect("some");
    let beat = json!({
        "worker_id": "w", "lease_ms": 60_000,
        "items": [{ "job_id": working["job_id"], "lease_token": working["lease_token"] }]
    });
    let beaten = admin.post("/api/v1/work/heartbeat", &beat).data();
    assert_ne!(beaten["items"][0]["lost"], true, "{beaten}");
    for grant in returning {
        assert!(admin.pull("work", JOBS).is_empty(), "stolen after {:?}", back.elapsed());
        assert_eq!(admin.complete(grant)["status"], "succeeded", "{grant}");
    }
    assert!(back.elapsed() < Duration::from_secs(3), "too slow to prove anything");
    let mut regained = Vec::new();
    eventually("the others come back", || {
        regained.extend(admin.pull("work", JOBS));
        (regained.len() == gone.len()).then_some(())
    });
    let waited = back.elapsed();
    assert!(waited >= Duration::from_millis(2_500), "taken away after {waited:?}");
    for grant in gone {
        assert_eq!(admin.complete(grant)["error"]["code"], "LEASE_LOST");
    }
    assert_eq!(admin.complete(working)["status"], "succeeded", "it was renewed");
    for grant in &regained {
        assert_eq!(grant["attempt"], 2);
        assert_eq!(admin.complete(grant)["status"], "succeeded");
    }
}

//! Servers on one database that have little to do with each other: they are not told anything,
//! stand behind a pooler, or have clocks that disagree. They still are one scheduler.

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::http::Connection;
use mainspring_testkit::blackbox::{Caller, Options, Server, Store, eventually};
use mainspring_testkit::load::Stopwatch;
use mainspring_testkit::postgres::{PgBouncer, shared};
use serde_json::{Value, json};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const QUIET: &str = "[types]\nstrict = false\n[store]\nnotify = false\n";
const ANY_TYPE: &str = "[types]\nstrict = false\n";

/// Servers on one fresh database.
fn servers(count: usize, config: &str) -> Vec<Server> {
    let options = Store::Postgres.options(BINARY).config(config);
    (0..count).map(|_| Server::start(options.clone())).collect()
}

/// Waits until a pull is parked at this server.
fn await_parked(server: &Server) {
    eventually("a pull waits", || {
        let counters = server.admin().get("/api/v1/runtime").data()["counters"].take();
        (counters["parked_pulls"].as_u64() > Some(0)).then_some(())
    });
}

/// A pull that waits at one server while something happens at another; what it got, and when.
fn pull_while(server: &Server, job_type: &str, act: impl FnOnce()) -> (Value, Duration) {
    let caller = server.admin();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let grant = caller.pull_one(job_type);
            (grant, Stopwatch::start())
        });
        await_parked(server);
        act();
        let acted = Stopwatch::start();
        let (grant, granted) = waiting.join().expect("a job");
        (grant, acted.elapsed().saturating_sub(granted.elapsed()))
    })
}

fn o15_without_notifications_servers_find_each_others_work_by_looking() {
    let nodes = servers(2, QUIET);
    let (near, far) = (nodes[0].admin(), nodes[1].admin());
    let mut waits = Vec::new();
    for _ in 0..5 {
        let mut job = String::new();
        let (grant, took) = pull_while(&nodes[1], "apart", || job = near.submit_plain("apart"));
        assert_eq!(grant["job_id"], job.as_str());
        waits.push(took);
        assert_eq!(near.complete(&grant)["status"], "succeeded", "reported where it was not given");
    }
    // Due in the future: nobody at the second server was told.
    let wish = json!({ "job_type": "later", "payload": 0, "delay_ms": 700 });
    let mut later = Value::Null;
    let (grant, _) = pull_while(&nodes[1], "later", || later = near.submit(&wish));
    assert_eq!(grant["job_id"], later["job_id"]);
    let started = text(&far.job(&text(&later, "job_id")), "started_at");
    let (due, started): (jiff::Timestamp, jiff::Timestamp) =
        (text(&later, "run_at").parse().expect("an instant"), started.parse().expect("an instant"));
    let late = started.duration_since(due);
    assert!(late.as_millis() >= 0, "not before its time");
    println!("by looking alone: pulls waited {waits:?}, a job due later came {late:?} late");
    // A busy machine may be slow once or twice; without looking, no pull would get its job at all.
    waits.sort_unstable();
    assert!(waits[2] <= Duration::from_secs(2), "{waits:?}");
}

fn o15_without_notifications_waiting_callers_see_moves_made_elsewhere() {
    let nodes = servers(2, QUIET);
    let (near, far) = (nodes[0].admin(), nodes[1].admin());
    let mut events = follow(&far);
    let mut worst = Duration::ZERO;
    // Again and again: it depends on who looks first.
    for round in 0..8 {
        let (at, wish) = (far.clone(), json!({ "job_type": "watched", "payload": round }));
        let waiting = std::thread::spawn(move || {
            let seen = at.post("/api/v1/jobs?wait_ms=30000", &wish).data();
            (seen, Stopwatch::start())
        });
        let grant = near.pull_one("watched");
        assert_eq!(near.complete(&grant)["status"], "succeeded");
        let done = Stopwatch::start();
        let (seen, answered) = waiting.join().expect("an answer");
        worst = worst.max(done.elapsed().saturating_sub(answered.elapsed()));
        assert_eq!(seen["status"], "succeeded", "{seen}");
        let job = text(&seen, "job_id");
        let moves = events.by_ref().filter(|event| event["job_id"] == job.as_str());
        let states: Vec<String> = moves.map(|event| text(&event, "to_state")).take(3).collect();
        assert_eq!(states, ["queued", "running", "succeeded"]);
    }
    println!("by looking alone: a waiting caller elsewhere saw the end {worst:?} later at worst");
    assert!(worst <= Duration::from_secs(2), "{worst:?}");
}

/// The server that knew when a job is due, or when a lease ends, is gone.
fn d17_without_notifications_what_a_dead_server_knew_is_found_by_looking() {
    let mut nodes = servers(2, QUIET);
    let far = nodes[1].admin();
    for _ in 0..3 {
        let soon = json!({ "job_type": "soon", "payload": 0, "delay_ms": 50 });
        let soon = text(&nodes[0].admin().submit(&soon), "job_id");
        nodes[0].kill9();
        let asked = Stopwatch::start();
        let grant = far.pull_one("soon");
        let took = asked.elapsed();
        assert_eq!(grant["job_id"], soon.as_str());
        assert!(took <= Duration::from_secs(3), "handed out after {took:?}");
        assert_eq!(far.complete(&grant)["status"], "succeeded");
        nodes[0].restart();
        let leased = far.submit_plain("leased");
        let wish = json!({ "worker_id": "dies", "types": ["leased"], "lease_ms": 1_000 });
        let near = nodes[0].admin();
        eventually("it is handed out", || near.pull_with(wish.clone()).pop());
        nodes[0].kill9();
        let granted = Stopwatch::start();
        eventually("its lease ends", || (far.job(&leased)["retry_count"] == 1).then_some(()));
        let lost = granted.elapsed();
        assert!(lost <= Duration::from_secs(3), "reaped after {lost:?}");
        let again = far.pull_one("leased");
        assert_eq!(far.complete(&again)["status"], "succeeded");
        nodes[0].restart();
        println!(
            "by looking alone: after its server died a due job came in {took:?}, and a lease of \
             1 s ended in {lost:?}"
        );
    }
}

/// The stream of moves, from the beginning.
fn follow(caller: &Caller) -> impl Iterator<Item = Value> + use<> {
    let request = caller.request("GET", "/api/v1/events").header("last-event-id", "0");
    let mut stream = Connection::open(caller.address).expect("a connection");
    stream.send(&request.bytes(caller.address)).expect("the request");
    assert_eq!(stream.head().expect("a head"), 200);
    let mut pending = String::new();
    std::iter::from_fn(move || {
        loop {
            if let Some((line, rest)) = pending.split_once('\n') {
                let data = line.strip_prefix("data:").map(|data| data.trim().to_owned());
                pending = rest.to_owned();
                match data.and_then(|data| serde_json::from_str(&data).ok()) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let piece = stream.chunk().expect("the stream holds")?;
            pending.push_str(std::str::from_utf8(piece).expect("text"));
        }
    })
}

/// Everything that can become of a job, told to one server and asked of another.
fn whole_life(one: &Caller, two: &Caller) {
    let spec = json!({ "max_retries": 1, "backoff_base_ms": 10, "backoff_max_ms": 20 });
    one.put("/api/v1/types/life", &spec).data();
    let first = one.submit_plain("life");
    let batch: Vec<Value> = (0..50).map(|n| json!({ "job_type": "life", "payload": n })).collect();
    let made = items(two.post("/api/v1/jobs/batch", &json!({ "jobs": batch })).data());
    assert_eq!(made.len(), 50);
    let grant = two.pull_one("life");
    assert_eq!(grant["job_id"], first.as_str(), "the oldest first");
    assert_eq!(two.job(&first)["max_retries"], 1, "the type is known everywhere");
    // Fails, is tried again elsewhere, fails for good, and is run again by hand.
    assert_eq!(two.fail(&grant, "E", true)["status"], "retrying");
    let again = eventually("it is tried again", || {
        let grants = one.pull("life", 1);
        assert!(!grants.is_empty(), "there is work");
        let (found, others): (Vec<Value>, Vec<Value>) =
            grants.into_iter().partition(|grant| grant["job_id"] == first.as_str());
        others.iter().for_each(|grant| assert_eq!(two.complete(grant)["status"], "succeeded"));
        found.into_iter().next()
    });
    one.fail(&again, "E", true);
    let dead = eventually("it is a dead letter", || {
        let dead = items(two.get("/api/v1/dlq/items").data());
        dead.into_iter().find(|item| item["job_id"] == first.as_str())
    });
    let path = format!("/api/v1/dlq/items/{}/requeue", text(&dead, "dlq_id"));
    let request = two.request("POST", &path).header("idempotency-key", "again");
    let requeued = text(&request.send(two.address).data(), "job_id");
    // A pause at one holds at the other.
    one.poke("/api/v1/queues/default/pause").data();
    assert!(two.pull("life", 5).is_empty());
    two.poke("/api/v1/queues/default/resume").data();
    let mut has_requeued = false;
    eventually("all is done", || {
        let grants = one.pull("life", 10);
        has_requeued |= grants.iter().any(|grant| grant["job_id"] == requeued.as_str());
        grants.iter().for_each(|grant| assert_eq!(two.complete(grant)["status"], "succeeded"));
        let jobs = two.get("/api/v1/runtime").data()["counters"]["jobs"].clone();
        (jobs["succeeded"] == 51 && jobs["failed"] == 1).then_some(())
    });
    assert!(has_requeued);
}

fn g05_behind_a_pooler_a_job_lives_its_whole_life() {
    let bouncer = PgBouncer::start(shared());
    let options = Store::Postgres.options(BINARY).config(ANY_TYPE);
    let url = bouncer.url(options.database.as_ref().expect("a database"));
    let options = options.through(&url);
    let nodes: Vec<Server> = (0..2).map(|_| Server::start(options.clone())).collect();
    whole_life(&nodes[0].admin(), &nodes[1].admin());
    // Work reaches a pull that waits at the other, too.
    let near = nodes[0].admin();
    let mut job = String::new();
    let (grant, took) = pull_while(&nodes[1], "pooled", || job = near.submit_plain("pooled"));
    assert_eq!(grant["job_id"], job.as_str());
    println!("behind PgBouncer: two servers share work, a waiting pull was served in {took:?}");
}

/// The library that sets a process's clock, where Debian puts it.
fn faketime() -> String {
    let kinds = std::fs::read_dir("/usr/lib").expect("libraries").flatten();
    let mut paths = kinds.map(|kind| kind.path().join("faketime/libfaketimeMT.so.1"));
    let found = paths.find(|path| path.is_file());
    found.expect("libfaketime is installed (package `libfaketime`)").display().to_string()
}

fn o15_servers_whose_clocks_disagree_keep_one_time() {
    let faketime = faketime();
    let options = Store::Postgres.options(BINARY).config(ANY_TYPE);
    let nodes: Vec<Server> = ["-3600s", "+0s", "+3600s"]
        .into_iter()
        .map(|offset| {
            let options: Options = options.clone().env("LD_PRELOAD", &faketime);
            let options = options.env("FAKETIME", offset);
            Server::start(options.env("FAKETIME_DONT_FAKE_MONOTONIC", "1"))
        })
        .collect();
    let callers: Vec<Caller> = nodes.iter().map(Server::admin).collect();
    let instant = |value: &Value, field: &str| -> jiff::Timestamp {
        text(value, field).parse().expect("an instant")
    };
    let database = nodes[0].database().expect("a database");
    for (nth, caller) in callers.iter().enumerate() {
        // What is due now runs now, at every other server, and all agree on when now is.
        for other in &callers {
            let job = caller.submit_plain("now");
            let grant = other.pull_one("now");
            let seen = other.job(&job);
            let shown = database.sql("SELECT extract(epoch FROM clock_timestamp())::bigint");
            let now: i64 = shown.parse().expect("seconds");
            for field in ["created_at", "started_at"] {
                let apart = (instant(&seen, field).as_second() - now).abs();
                assert!(apart <= 5, "{field} of server {nth} is {apart} s off: {seen}");
            }
            assert_eq!(caller.complete(&grant)["status"], "succeeded");
        }
        // What is due in an hour does not run now.
        let later = json!({ "job_type": "later", "payload": 0, "delay_ms": 3_000_000 });
        caller.submit(&later);
        assert!(callers.iter().all(|other| other.pull("later", 1).is_empty()));
    }
    // A lease of three seconds lasts three seconds, whoever gave it and whoever looks.
    let jobs: Vec<String> = (0..3).map(|_| callers[0].submit_plain("leased")).collect();
    let wish = json!({ "worker_id": "w", "types": ["leased"], "limit": 1, "lease_ms": 3_000,
        "wait_ms": 5_000 });
    let grants: Vec<Value> =
        callers.iter().map(|at| at.pull_with(wish.clone()).pop().expect("a job")).collect();
    let granted = Stopwatch::start();
    std::thread::sleep(Duration::from_millis(1_500)); // paced: half of the lease
    for job in &jobs {
        assert_eq!(callers[2].job(job)["status"], "running", "after {:?}", granted.elapsed());
    }
    assert_eq!(callers[0].complete(&grants[2])["status"], "succeeded");
    for (grant, at) in grants[..2].iter().zip(&callers[1..]) {
        let job = text(grant, "job_id");
        eventually("its lease ends", || (at.job(&job)["retry_count"] == 1).then_some(()));
        let events = at.events(&job);
        let lasted =
            instant(&events[2], "occurred_at").duration_since(instant(&events[1], "occurred_at"));
        assert!(lasted.as_millis() >= 3_000, "lost after {lasted:?}: {events:?}");
        assert!(lasted.as_millis() <= 6_000, "lost after {lasted:?}: {events:?}");
    }
    println!("clocks -1 h, 0, +1 h: 9 jobs at once, 2 leases of 3 s ended in time");
}

/// A clock that can be set while a process runs: the variables, and the file that says how far.
fn settable_clock(folder: &std::path::Path) -> (Vec<(String, String)>, std::path::PathBuf) {
    let file = folder.join("clock");
    set(&file, "+0s");
    let variables = [
        ("LD_PRELOAD", faketime()),
        ("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    (variables.map(|(name, value)| (name.to_owned(), value)).into(), file)
}

/// Sets the clock, in one step: nobody reads half a line.
fn set(file: &std::path::Path, offset: &str) {
    use std::os::unix::fs::PermissionsExt;
    let next = file.with_extension("next");
    std::fs::write(&next, format!("{offset}\n")).expect("a file");
    std::fs::set_permissions(&next, PermissionsExt::from_mode(0o644)).expect("our file");
    std::fs::rename(&next, file).expect("our file");
}

fn metric(server: &Server, name: &str) -> Option<u64> {
    let page = server.admin().get("/metrics").text().to_owned();
    let line =
        page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned));
    line?.trim().parse::<f64>().ok().map(|value| value as u64)
}

/// A worker under heartbeat while the clock is set forward, and work while it is set back.
fn a_clock_that_is_set(servers: &[Server], file: &std::path::Path) {
    let admin = servers[0].admin();
    let wish = json!({ "job_type": "held", "payload": 0, "timeout_ms": 120_000, "max_retries": 0 });
    let held = text(&admin.submit(&wish), "job_id");
    let pull = json!({ "worker_id": "w", "types": ["held"], "lease_ms": 20_000 });
    let grant = admin.pull_with(pull).pop().expect("the job");
    let beat = |server: &Server| {
        let item = json!({ "job_id": grant["job_id"], "lease_token": grant["lease_token"] });
        let wish = json!({ "worker_id": "w", "lease_ms": 20_000, "items": [item] });
        let told = server.admin().post("/api/v1/work/heartbeat", &wish).data();
        assert!(told["items"][0]["lease_expires_at"].is_string(), "the lease is lost: {told}");
    };
    servers.iter().for_each(beat);
    // Over the lease and over the timeout of the attempt.
    set(file, "+1800s");
    for server in servers {
        eventually("the jump is counted", || {
            servers.iter().for_each(beat);
            (metric(server, "mainspring_clock_set_forward_total") == Some(1)).then_some(())
        });
        assert!(server.log().contains("set forward"), "it is logged");
    }
    // Schedules follow the wall at once.
    let soon = json!({ "job_type": "soon", "payload": 0, "delay_ms": 1_000 });
    admin.submit(&soon);
    admin.complete(&admin.pull_one("soon"));
    servers.iter().for_each(beat);
    assert_eq!(admin.complete(&grant)["status"], "succeeded");
    assert_eq!(admin.job(&held)["attempt"], 1, "one attempt, and no lease was lost");

    set(file, "-1800s");
    for server in servers {
        eventually("the set back is counted", || {
            (metric(server, "mainspring_clock_set_back_total") == Some(1)).then_some(())
        });
        assert!(metric(server, "mainspring_clock_ahead_seconds") > Some(3_000));
        // Nothing is held up: what is due runs, and what is due in a second is due in a second.
        let caller = server.admin();
        for delay in [0, 1_000] {
            caller.submit(&json!({ "job_type": "after", "payload": 0, "delay_ms": delay }));
            let grant = caller.pull_one("after");
            assert_eq!(caller.complete(&grant)["status"], "succeeded");
        }
    }
}

fn o15_a_machine_whose_clock_is_set_loses_no_lease_and_holds_nothing_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (variables, file) = settable_clock(folder.path());
    let options = variables
        .iter()
        .fold(Store::Memory.options(BINARY), |options, (name, value)| options.env(name, value));
    a_clock_that_is_set(&[Server::start(options.config(ANY_TYPE))], &file);
}

fn o15_a_database_whose_clock_is_set_loses_no_lease_and_holds_nobody_up() {
    use mainspring_testkit::postgres::{Cluster, ClusterOptions};
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("our folder");
    let (variables, file) = settable_clock(folder.path());
    let options = variables
        .iter()
        .fold(ClusterOptions::default(), |options, (name, value)| options.env(name, value));
    let cluster = Cluster::start(&options);
    let mut options = Store::Postgres.options(BINARY).config(ANY_TYPE);
    options.database = Some(std::sync::Arc::new(cluster.database()));
    let servers: Vec<Server> = (0..2).map(|_| Server::start(options.clone())).collect();
    a_clock_that_is_set(&servers, &file);
}

mod memory {
    #[test]
    fn o15_a_machine_whose_clock_is_set_loses_no_lease_and_holds_nothing_up() {
        super::o15_a_machine_whose_clock_is_set_loses_no_lease_and_holds_nothing_up();
    }
}

mod postgres {
    #[test]
    fn o15_a_database_whose_clock_is_set_loses_no_lease_and_holds_nobody_up() {
        super::o15_a_database_whose_clock_is_set_loses_no_lease_and_holds_nobody_up();
    }

    #[test]
    fn o15_without_notifications_servers_find_each_others_work_by_looking() {
        super::o15_without_notifications_servers_find_each_others_work_by_looking();
    }

    #[test]
    fn o15_without_notifications_waiting_callers_see_moves_made_elsewhere() {
        super::o15_without_notifications_waiting_callers_see_moves_made_elsewhere();
    }

    #[test]
    fn d17_without_notifications_what_a_dead_server_knew_is_found_by_looking() {
        super::d17_without_notifications_what_a_dead_server_knew_is_found_by_looking();
    }

    #[test]
    fn g05_behind_a_pooler_a_job_lives_its_whole_life() {
        super::g05_behind_a_pooler_a_job_lives_its_whole_life();
    }

    #[test]
    fn o15_servers_whose_clocks_disagree_keep_one_time() {
        super::o15_servers_whose_clocks_disagree_keep_one_time();
    }
}

//! PostgreSQL goes away and comes back: who asks meanwhile waits or is told to come back, probes
//! tell the truth, and nobody has to restart anything. And it stays quick while somebody holds a
//! transaction open. `MAINSPRING_TEST=full` holds it for three minutes.

#[path = "blackbox_outage/held.rs"]
mod held;
#[path = "blackbox_outage/leases.rs"]
mod leases;

use mainspring_testkit::blackbox::{Caller, Nodes, Request, Response, Server, eventually};
use mainspring_testkit::load::Stopwatch;
use mainspring_testkit::postgres::{Cluster, ClusterOptions, Proxy};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const ANY_TYPE: &str = "[types]\nstrict = false\n";
/// Nobody waits longer than this for an answer, with what a busy machine adds to five seconds.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// Sends and tells how long the answer took.
fn timed(caller: &Caller, method: &str, path: &str, body: Option<&Value>) -> (Response, Duration) {
    let request = caller.request(method, path);
    let request = body.into_iter().fold(request, Request::json);
    let asked = Stopwatch::start();
    let answer = request.send(caller.address);
    (answer, asked.elapsed())
}

/// Whether it was refused for now, in the one way in which that is done.
fn is_refused_for_now(answer: &Response) -> bool {
    if answer.status != 503 {
        return false;
    }
    assert_eq!(answer.code(), "STORE_UNAVAILABLE", "{}", answer.text());
    let after = answer.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(after.is_some_and(|seconds| seconds > 0), "{:?}", answer.headers);
    true
}

/// Asks all kinds of things while the database is away; answers how many were refused.
fn ask_everything(caller: &Caller, job: &str) -> usize {
    let wish = json!({ "job_type": "t", "payload": {} });
    let pull = json!({ "worker_id": "w", "types": ["t"], "limit": 1 });
    let asks: [(&str, String, Option<&Value>); 6] = [
        ("POST", "/api/v1/jobs".to_owned(), Some(&wish)),
        ("GET", format!("/api/v1/jobs/{job}"), None),
        ("GET", "/api/v1/jobs?limit=5".to_owned(), None),
        ("GET", format!("/api/v1/jobs/{job}/events"), None),
        ("POST", "/api/v1/work/pull".to_owned(), Some(&pull)),
        ("GET", "/api/v1/dlq/items".to_owned(), None),
    ];
    std::thread::scope(|scope| {
        let ask = |(method, path, body): &(&str, String, Option<&Value>)| {
            let (answer, took) = timed(caller, method, path, *body);
            assert!(took <= ANSWER_MAX, "{method} {path} took {took:?}");
            // A pull that finds nobody may also end without a job.
            let is_empty = path.ends_with("pull") && answer.status == 200;
            let is_refused = is_refused_for_now(&answer);
            assert!(is_refused || is_empty, "{method} {path}: {}", answer.text());
            usize::from(is_refused)
        };
        let threads: Vec<_> = asks.iter().map(|one| scope.spawn(move || ask(one))).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).sum()
    })
}

/// Submits under one key until it is taken, as a client's library would.
fn submit_until_taken(caller: &Caller, key: &str) -> String {
    let wish = json!({ "job_type": "keyed", "payload": { "key": key }, "idempotency_key": key });
    eventually("a submission is taken", || {
        let (answer, _) = timed(caller, "POST", "/api/v1/jobs", Some(&wish));
        (!is_refused_for_now(&answer))
            .then(|| answer.data()["job_id"].as_str().map(str::to_owned))?
    })
}

fn await_probe(server: &Server, path: &str, status: u16) {
    eventually(&format!("{path} says {status}"), || {
        let answer = Request::new("GET", path).send(server.address);
        (answer.status == status).then_some(())
    });
}

/// What happens to the database.
type Act = fn(&mut Cluster);

/// The database is away for good and comes back: the same for every way of being away.
fn o15_requests_wait_or_are_refused_while_the_database_is_away() {
    let mut nodes = Nodes::start(BINARY, 2, &ClusterOptions::durable(), ANY_TYPE);
    let callers: Vec<Caller> = (0..2).map(|nth| nodes.admin(nth)).collect();
    let job = callers[0].submit_plain("seen");
    let outages: [(&str, Act, Act); 4] = [
        ("stopped", Cluster::stop_immediate, Cluster::start_again),
        ("paused", |cluster| cluster.pause(), |cluster| cluster.resume()),
        (
            "read-only",
            |cluster| cluster.set_read_only(true),
            |cluster| cluster.set_read_only(false),
        ),
        ("killed", Cluster::kill9, Cluster::start_again),
    ];
    for (name, strike, mend) in outages {
        let pids: Vec<_> = nodes.servers.iter().map(Server::pid).collect();
        strike(&mut nodes.cluster);
        let is_readable = name == "read-only";
        if !is_readable {
            let refused: usize = callers.iter().map(|caller| ask_everything(caller, &job)).sum();
            assert!(refused >= 10, "{name}: {refused} refusals");
        }
        for server in &nodes.servers {
            if !is_readable {
                await_probe(server, "/readyz", 503);
            }
            await_probe(server, "/healthz", 200);
        }
        // Retried over the outage, at both servers: one job.
        let keys: BTreeSet<String> = std::thread::scope(|scope| {
            let submit = |caller| move || submit_until_taken(caller, name);
            let threads: Vec<_> =
                callers.iter().map(|caller| scope.spawn(submit(caller))).collect();
            std::thread::sleep(Duration::from_millis(1_500)); // paced: they ask and ask
            mend(&mut nodes.cluster);
            let back = Stopwatch::start();
            for server in &nodes.servers {
                await_probe(server, "/readyz", 200);
            }
            println!("{name}: ready {:?} after the database was back", back.elapsed());
            threads.into_iter().map(|thread| thread.join().expect("an id")).collect()
        });
        assert_eq!(keys.len(), 1, "{name}: {keys:?}");
        for caller in &callers {
            let fresh = caller.submit_plain("after");
            let grant = caller.pull_one("after");
            assert_eq!(grant["job_id"], fresh.as_str());
            assert_eq!(caller.complete(&grant)["status"], "succeeded");
            assert_eq!(caller.job(&job)["status"], "queued");
        }
        let now: Vec<_> = nodes.servers.iter().map(Server::pid).collect();
        assert_eq!(now, pids, "{name}: nobody restarted");
    }
    let keyed = callers[0].get("/api/v1/jobs?type=keyed&limit=50").data();
    let keyed = keyed["items"].as_array().expect("a list").iter();
    assert_eq!(keyed.filter(|job| job["job_type"] == "keyed").count(), 4);
}

/// A short outage is not noticed by callers: they wait.
fn o15_an_outage_shorter_than_five_seconds_is_only_a_wait() {
    let nodes = Nodes::start(BINARY, 2, &ClusterOptions::default(), ANY_TYPE);
    for round in 0..3 {
        let (first, second) = (nodes.admin(0), nodes.admin(1));
        nodes.proxies.iter().for_each(Proxy::refuse);
        // A commit that is cut on its way cannot be told from one that counts, and is not a wait.
        eventually("both servers know of it", || {
            let is_away = |admin: &Caller| admin.get("/readyz").status == 503;
            (is_away(&first) && is_away(&second)).then_some(())
        });
        std::thread::scope(|scope| {
            let wish = json!({ "job_type": "patient", "payload": round });
            let asked = scope.spawn(move || timed(&first, "POST", "/api/v1/jobs", Some(&wish)));
            let looked = scope.spawn(move || timed(&second, "GET", "/api/v1/jobs?limit=5", None));
            std::thread::sleep(Duration::from_millis(1_200)); // paced: they have begun to wait
            nodes.proxies.iter().for_each(Proxy::heal);
            for thread in [asked, looked] {
                let (answer, took) = thread.join().expect("an answer");
                assert!(answer.status < 300, "after {took:?}: {}", answer.text());
                assert!(took >= Duration::from_millis(300), "it cannot have known: {took:?}");
            }
        });
    }
    assert_eq!(nodes.admin(1).pull("patient", 10).len(), 3, "each once");
}

/// A session of `psql` that holds on to what a transaction got.
struct Pin(Child);

impl Pin {
    fn set(cluster: &Cluster, database: &str, sql: &str) -> Self {
        let admin = cluster.admin();
        let psql = mainspring_testkit::postgres::programs::directory().join("psql");
        let mut child = Command::new(psql)
            .args(["-X", "-q", "-h", &admin.host, "-p", &admin.port.to_string()])
            .args(["-U", &admin.role, "-d", database])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("psql starts");
        let stdin = child.stdin.as_mut().expect("its input");
        stdin.write_all(format!("{sql}\n").as_bytes()).expect("it listens");
        Pin(child)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Submits in small batches, pulls and completes, as fast as answers come.
fn toil(caller: &Caller, nth: usize, is_over: &AtomicBool, done: &AtomicU64) {
    let job_type = format!("steady-{nth}");
    let jobs: Vec<Value> =
        (0..10).map(|n| json!({ "job_type": job_type, "payload": { "n": n } })).collect();
    let batch = json!({ "jobs": jobs });
    while !is_over.load(Ordering::Relaxed) {
        caller.post("/api/v1/jobs/batch", &batch).data();
        let grants = caller.pull(&job_type, 10);
        let items: Vec<Value> = grants
            .iter()
            .map(|one| json!({ "job_id": one["job_id"], "lease_token": one["lease_token"] }))
            .collect();
        caller.post("/api/v1/work/complete", &json!({ "items": items })).data();
        done.fetch_add(grants.len() as u64, Ordering::Relaxed);
    }
}

/// Dead rows pile up behind a snapshot; the way to the live ones stays as short as before.
fn o05_a_transaction_held_open_does_not_slow_the_work() {
    let is_full = std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full");
    let slice = Duration::from_secs(if is_full { 30 } else { 4 });
    let nodes = Nodes::start(BINARY, 1, &ClusterOptions::durable(), ANY_TYPE);
    let admin = nodes.admin(0);
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut slices = Vec::new();
    std::thread::scope(|scope| {
        for nth in 0..4 {
            let (admin, is_over, done) = (&admin, &is_over, &done);
            scope.spawn(move || toil(admin, nth, is_over, done));
        }
        std::thread::sleep(Duration::from_secs(3)); // paced: warm up
        let snapshot =
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM mainspring.job;";
        let _pin = Pin::set(&nodes.cluster, &nodes.database.name, snapshot);
        eventually("the snapshot is held", || {
            let held = nodes.database.sql(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND \
                 state = 'idle in transaction' AND application_name = 'psql'",
            );
            (held == "1").then_some(())
        });
        // A busy machine may be slow for a while; with the snapshot still held, what is slow by
        // nature does not get quick again.
        while slices.len() < 6 || (slices.len() < 12 && is_slow(&slices)) {
            let (before, began) = (done.load(Ordering::Relaxed), Stopwatch::start());
            std::thread::sleep(slice); // paced: a slice of the measurement
            let count = done.load(Ordering::Relaxed) - before;
            slices.push(count as f64 / began.elapsed().as_secs_f64());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let dead = nodes.database.sql(
        "SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables WHERE relname = 'ready'",
    );
    let ratio = slices.last().unwrap_or(&0.0) / slices[0];
    println!(
        "a snapshot held for {:?}: jobs per second by slices {slices:.0?}, last to first {ratio:.2}, \
         {dead} dead rows in ready",
        slice * slices.len() as u32,
    );
    assert!(!is_slow(&slices), "{slices:?}");
}

/// Whether none of the last three slices did half of what the first three did in the median. Other
/// tests run beside this one, so a slice says little; what is slow by nature only gets slower.
fn is_slow(slices: &[f64]) -> bool {
    let mut first: Vec<f64> = slices.iter().take(3).copied().collect();
    first.sort_by(f64::total_cmp);
    let best = slices.iter().rev().take(3).copied().fold(0.0, f64::max);
    best < first[first.len() / 2] / 2.0
}

/// A line when it begins and one when it ends, however many ask meanwhile.
fn o15_an_outage_has_a_line_at_its_beginning_and_one_at_its_end() {
    let mut nodes = Nodes::start(BINARY, 1, &ClusterOptions::default(), ANY_TYPE);
    let admin = nodes.admin(0);
    let job = admin.submit_plain("seen");
    let before = nodes.servers[0].log().lines().count();
    nodes.cluster.stop_immediate();
    let mut refused = 0;
    while refused < 24 {
        refused += ask_everything(&admin, &job);
    }
    nodes.cluster.start_again();
    await_probe(&nodes.servers[0], "/readyz", 200);
    let told = eventually("the end of the outage is told", || {
        let log = nodes.servers[0].log();
        log.contains("PostgreSQL is back").then_some(log)
    });
    let lines: Vec<&str> = told.lines().skip(before).collect();
    let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!(count("PostgreSQL is away"), 1, "{told}");
    assert_eq!(count("PostgreSQL is back"), 1, "{told}");
    assert!(lines.len() <= 4, "{refused} refusals made {} lines:\n{told}", lines.len());
    println!("{refused} refusals made {} lines", lines.len());
}

/// What PostgreSQL refuses about one job is that caller's business: a definite no, once and for
/// all; whoever shares a commit with it does not notice.
fn o05_what_the_database_refuses_of_one_caller_does_not_harm_the_others() {
    let nodes = Nodes::start(BINARY, 1, &ClusterOptions::default(), ANY_TYPE);
    let admin = nodes.admin(0);
    admin.submit_plain("warm");
    nodes.database.sql("ALTER TABLE mainspring.job ADD CHECK (payload <> '\"poison\"')");
    let is_over = AtomicBool::new(false);
    let (refused, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let wish = json!({ "job_type": "bad", "payload": "poison" });
                while !is_over.load(Ordering::Relaxed) {
                    let answer = admin.post("/api/v1/jobs", &wish);
                    assert_eq!(answer.status, 400, "{}", answer.text());
                    assert_eq!(answer.code(), "STORE_REFUSED", "{}", answer.text());
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let neighbours: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..60 {
                        let wish = json!({ "job_type": "good", "payload": "fine" });
                        let answer = admin.post("/api/v1/jobs", &wish);
                        assert!(answer.status < 300, "a neighbour: {}", answer.text());
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = neighbours.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "neighbours were refused");
    });
    let (refused, taken) = (refused.into_inner(), taken.into_inner());
    println!("{refused} refusals, {taken} of the neighbours taken");
    assert!(taken == 360 && refused > 20, "{refused} refusals, {taken} taken");
    let kept = nodes.database.sql("SELECT count(*) FROM mainspring.job WHERE payload = '\"fine\"'");
    assert_eq!(kept, "360");
    // A filter the database cannot even read is refused, too, and is no outage.
    let asked = admin.get("/api/v1/jobs?trace_id=%00");
    assert!((200..500).contains(&asked.status), "{}", asked.text());
    await_probe(&nodes.servers[0], "/readyz", 200);
}

/// Fails every sync of the processes it is loaded into while a file is there.
const NO_SYNC: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
static int is_broken(void) {
    const char *flag = getenv("EIO_FLAG");
    return flag && access(flag, F_OK) == 0;
}
static int call(const char *name, int fd) {
    if (is_broken()) { errno = EIO; return -1; }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(fd);
}
int fsync(int fd) { return call("fsync", fd); }
int fdatasync(int fd) { return call("fdatasync", fd); }
"#;

/// The disk under PostgreSQL fails its syncs with EIO: nothing is acknowledged, nothing that was is
/// lost, and whoever asks again under the same key has one job.
fn o15_nothing_is_acknowledged_while_the_disk_of_the_database_fails_to_sync() {
    let folder =
        tempfile::Builder::new().prefix("mainspring-eio-").tempdir_in("/tmp").expect("a tmp");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let (source, library) = (folder.path().join("eio.c"), folder.path().join("eio.so"));
    let flag = folder.path().join("broken");
    std::fs::write(&source, NO_SYNC).expect("writes");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl");
    let made = compiler.status().expect("a C compiler");
    assert!(made.success());
    let options = ClusterOptions::durable()
        .env("LD_PRELOAD", &library.display().to_string())
        .env("EIO_FLAG", &flag.display().to_string());
    let mut nodes = Nodes::start(BINARY, 1, &options, ANY_TYPE);
    let admin = nodes.admin(0);
    let before: Vec<String> =
        (0..10).map(|n| submit_until_taken(&admin, &format!("before-{n}"))).collect();
    std::fs::write(&flag, "").expect("writes");
    let wish = json!({ "job_type": "keyed", "payload": 1, "idempotency_key": "meanwhile" });
    for _ in 0..3 {
        let (answer, _) = timed(&admin, "POST", "/api/v1/jobs", Some(&wish));
        assert!(is_refused_for_now(&answer), "acknowledged without a sync: {}", answer.text());
    }
    let log = nodes.cluster.log();
    assert!(log.contains("Input/output error"), "it did not notice:\n{log}");
    std::fs::remove_file(&flag).expect("it was there");
    nodes.cluster.kill9();
    nodes.cluster.start_again();
    await_probe(&nodes.servers[0], "/readyz", 200);
    let again = admin.submit(&wish);
    assert_eq!(admin.submit(&wish)["job_id"], again["job_id"], "one job to the key");
    for id in &before {
        assert_eq!(admin.job(id)["status"], "queued", "what was acknowledged is there");
    }
    assert_eq!(nodes.database.sql("SELECT count(*) FROM mainspring.job"), "11");
}

mod postgres {
    #[test]
    fn o15_an_outage_has_a_line_at_its_beginning_and_one_at_its_end() {
        super::o15_an_outage_has_a_line_at_its_beginning_and_one_at_its_end();
    }

    #[test]
    fn o05_what_the_database_refuses_of_one_caller_does_not_harm_the_others() {
        super::o05_what_the_database_refuses_of_one_caller_does_not_harm_the_others();
    }

    #[test]
    fn o15_nothing_is_acknowledged_while_the_disk_of_the_database_fails_to_sync() {
        super::o15_nothing_is_acknowledged_while_the_disk_of_the_database_fails_to_sync();
    }

    #[test]
    fn o15_requests_wait_or_are_refused_while_the_database_is_away() {
        super::o15_requests_wait_or_are_refused_while_the_database_is_away();
    }

    #[test]
    fn o15_an_outage_shorter_than_five_seconds_is_only_a_wait() {
        super::o15_an_outage_shorter_than_five_seconds_is_only_a_wait();
    }

    #[test]
    fn o05_a_key_in_an_open_transaction_slows_nobody_else_and_is_granted_to_nobody() {
        super::held::o05_a_key_in_an_open_transaction_slows_nobody_else();
    }

    #[test]
    fn o05_a_locked_row_delays_no_other_rescue_and_no_other_report() {
        super::held::o05_a_locked_row_delays_no_other_rescue();
    }

    #[test]
    fn o17_a_locked_schedule_hears_of_the_end_of_its_job_once_it_is_free() {
        super::held::o17_a_locked_schedule_hears_of_the_end_of_its_job_once_it_is_free();
    }

    #[test]
    fn o15_a_lease_that_ran_out_in_an_outage_has_a_grace_after_it() {
        super::leases::o15_a_lease_that_ran_out_in_an_outage_has_a_grace_after_it();
    }

    #[test]
    fn o15_after_an_outage_of_all_servers_leases_are_good_at_each_of_them() {
        super::leases::o15_after_an_outage_of_all_servers_leases_are_good_at_each_of_them();
    }

    #[test]
    fn o15_a_server_that_stood_still_alone_takes_nobodys_job() {
        super::leases::o15_a_server_that_stood_still_alone_takes_nobodys_job();
    }

    #[test]
    fn o15_a_server_that_was_away_alone_extends_no_lease() {
        super::leases::o15_a_server_that_was_away_alone_extends_no_lease();
    }

    #[test]
    fn o05_a_transaction_held_open_does_not_slow_the_work() {
        super::o05_a_transaction_held_open_does_not_slow_the_work();
    }
}

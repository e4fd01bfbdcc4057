//! Jobs submitted by SQL, inside an application's own transaction, as a server and its workers see
//! them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::disallowed_methods, reason = "a test measures how long a server takes")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::postgres::Database;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// A server that hears of nothing by looking: only by being told.
fn server() -> Server {
    let options = Store::Postgres.options(env!("CARGO_BIN_EXE_mainspring"));
    Server::start(options.config("[store]\npoll_ms = 60000\n[types]\nstrict = false\n"))
}

fn database(server: &Server) -> &Database {
    server.database().unwrap()
}

/// Text of a call of `submit()` for ann of acme.
fn call(job_type: &str, more: &str) -> String {
    format!(
        "SELECT job_id FROM mainspring.submit(tenant => 'acme', user_id => 'ann', \
         job_type => '{job_type}', payload => '{{\"n\":1}}'{more})"
    )
}

/// How many callers of this database, and no other test's, hold their transaction open.
const SLEEPERS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE wait_event = 'PgSleep' AND datname = current_database()";

/// How long `what` takes, and what it gives.
fn timed<T>(what: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let made = what();
    (started.elapsed(), made)
}

fn wait_for_one(worker: &Caller, job_type: &str) -> Option<Value> {
    let wish = json!({
        "worker_id": "w1", "types": [job_type], "limit": 1, "wait_ms": 20_000, "lease_ms": 60_000
    });
    worker.pull_with(wish).pop()
}

#[test]
fn a_waiting_worker_gets_the_job_of_a_commit_at_once_and_of_a_rollback_never() {
    let server = server();
    let ann = server.caller("acme", "ann", &["submitter", "worker"]);
    let database = database(&server);
    let mut slowest = Duration::ZERO;
    for n in 0..5 {
        let job_type = format!("mail-{}", n % 2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_for_one(&ann, &job_type));
            eventually("the worker waits", || {
                let metrics = server.admin().get("/metrics").text();
                metrics.lines().any(|line| line == "mainspring_pulls_waiting 1").then_some(())
            });
            database.sql(&format!("BEGIN; {}; ROLLBACK", call(&job_type, "")));
            let (took, (job, grant)) = timed(|| {
                let job = database.sql(&format!("BEGIN; {}; COMMIT", call(&job_type, "")));
                (job, waiting.join().unwrap().expect("a job"))
            });
            assert_eq!(text(&grant, "job_id"), job);
            ann.complete(&grant);
            slowest = slowest.max(took);
        });
    }
    assert!(slowest < Duration::from_secs(2), "a waiting worker got its job after {slowest:?}");
    let count = database.sql("SELECT count(*) FROM mainspring.job");
    assert_eq!(count, "5", "those rolled back never were");
    let job = database.sql(&call("late", ", delay_ms => 300"));
    let grant = wait_for_one(&ann, "late").expect("it becomes due");
    assert_eq!(text(&grant, "job_id"), job);
}

#[test]
fn an_open_caller_stops_neither_type_changes_nor_other_submissions() {
    let server = server();
    let admin = server.admin();
    let ann = server.caller("acme", "ann", &["submitter", "worker"]);
    let database = database(&server);
    let keyed = call("mail", ", idempotency_key => 'k'");
    thread::scope(|scope| {
        let open = scope.spawn(|| {
            database
                .sql(&format!("BEGIN; {keyed}; DO $$ BEGIN PERFORM pg_sleep(5); END $$; COMMIT"))
        });
        eventually("the caller has submitted", || (database.sql(SLEEPERS) == "1").then_some(()));
        let spec = json!({ "domain": "d", "concurrency_limit": 3, "concurrency_scope": "user" });
        let (took, answer) = timed(|| admin.put("/api/v1/types/mail", &spec));
        assert!(answer.status < 300, "{}", answer.text());
        assert!(took < Duration::from_secs(1), "a type change took {took:?}");
        // The same key: refused after a while, with everybody else served meanwhile.
        let same = json!({ "job_type": "mail", "payload": { "n": 1 }, "idempotency_key": "k" });
        let repeat = {
            let (ann, same) = (&ann, same.clone());
            scope.spawn(move || timed(|| ann.post("/api/v1/jobs", &same)))
        };
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let (took, made) = timed(|| ann.submit(&json!({ "job_type": "mail", "payload": 1 })));
            assert!(text(&made, "job_id").starts_with("job_"));
            slowest = slowest.max(took);
        }
        let (took, answer) = repeat.join().unwrap();
        println!("same key: {} after {took:?}; others at most {slowest:?}", answer.status);
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(slowest < Duration::from_secs(2), "another submission took {slowest:?}");
        assert!(!open.is_finished(), "all that while the caller stayed");
        let job = open.join().unwrap();
        let again = ann.post("/api/v1/jobs", &same).data();
        assert_eq!(text(&again, "job_id"), job);
        assert_eq!(again["idempotent_hit"], true, "{again}");
    });
    assert_eq!(ann.pull("mail", 100).len(), 3, "the limit per user counts jobs of both kinds");
}

/// While a worker waits, a batch is taken in parts: whoever sent it learns what became of each.
#[test]
fn a_batch_is_told_up_to_the_part_that_needs_what_somebody_holds() {
    let server = server();
    let ann = server.caller("acme", "ann", &["submitter", "worker"]);
    let database = database(&server);
    let keyed = call("mail", ", idempotency_key => 'k'");
    let wish = |n: usize| match n {
        300 => json!({ "job_type": "mail", "payload": { "n": 1 }, "idempotency_key": "k" }),
        _ => json!({ "job_type": "mail", "payload": n }),
    };
    let batch = json!({ "jobs": (0..600).map(wish).collect::<Vec<_>>() });
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_for_one(&ann, "other"));
        let open = scope.spawn(|| {
            database
                .sql(&format!("BEGIN; {keyed}; DO $$ BEGIN PERFORM pg_sleep(6); END $$; COMMIT"))
        });
        eventually("the caller has submitted, and the worker waits", || {
            let metrics = server.admin().get("/metrics").text();
            let waits = metrics.lines().any(|line| line == "mainspring_pulls_waiting 1");
            (waits && database.sql(SLEEPERS) == "1").then_some(())
        });
        let answer = ann.post("/api/v1/jobs/batch", &batch).data();
        assert!(!open.is_finished(), "the key is held all that while");
        let items = answer["items"].as_array().unwrap();
        assert_eq!(items.len(), 600);
        let taken = items.iter().take_while(|item| item["job_id"].is_string()).count();
        assert_eq!(taken, 300, "the parts before it");
        for item in &items[taken..] {
            assert_eq!(item["error"]["code"], "STORE_UNAVAILABLE", "{item}");
        }
        let count = database.sql("SELECT count(*) FROM mainspring.job");
        assert_eq!(count, "300", "those and no others");
        // Nobody waits any more: the same batch is taken whole, and the key finds its job.
        let job = open.join().unwrap();
        ann.submit_plain("other");
        assert!(waiting.join().unwrap().is_some());
        let again = ann.post("/api/v1/jobs/batch", &batch).data();
        assert_eq!(text(&again["items"][300], "job_id"), job);
        assert!(again["items"].as_array().unwrap().iter().all(|item| item["job_id"].is_string()));
    });
}

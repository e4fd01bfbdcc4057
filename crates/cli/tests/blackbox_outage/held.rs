//! Somebody's open transaction holds a key or a row: whoever needs that waits or is told to come
//! back, and nobody else notices.

use super::{ANY_TYPE, BINARY, Nodes, Pin, eventually, is_refused_for_now, timed};
use mainspring_testkit::blackbox::Caller;
use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::load::Stopwatch;
use mainspring_testkit::postgres::ClusterOptions;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Long enough for a rate.
const PHASE: Duration = Duration::from_secs(3);
/// How many keys the open transaction holds.
const HELD: usize = 200;

/// Holds what `sql` takes, in a transaction that stays open.
fn hold(nodes: &Nodes, sql: &str) -> Pin {
    let pin = Pin::set(&nodes.cluster, &nodes.database.name, &format!("BEGIN; {sql};"));
    eventually("the transaction holds it", || {
        let open = nodes.database.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'psql' \
             AND state = 'idle in transaction'",
        );
        (open == "1").then_some(())
    });
    pin
}

fn keyed(key: &str) -> Value {
    json!({ "job_type": "held", "payload": 1, "idempotency_key": key })
}

/// Submissions under fresh keys, one after the other, for a while.
fn rate(caller: &Caller, phase: &str) -> usize {
    let (began, mut done) = (Stopwatch::start(), 0);
    while began.elapsed() < PHASE {
        let wish = json!({
            "job_type": "plain", "payload": 1, "idempotency_key": format!("{phase}-{done}")
        });
        let (answer, _) = timed(caller, "POST", "/api/v1/jobs", Some(&wish));
        assert_eq!(answer.status, 201, "{phase}: {}", answer.text());
        done += 1;
    }
    done
}

/// Ends the others when it is dropped, also by a failure.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The rate of a neighbour while four clients submit under keys that are held.
fn rate_beside(hostile: &Caller, neighbour: &Caller, keys: usize, phase: &str) -> (usize, usize) {
    let (is_over, refused, turn) =
        (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let done = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let key = turn.fetch_add(1, Ordering::Relaxed) % keys;
                    let wish = keyed(&format!("held-{key}"));
                    let (answer, took) = timed(hostile, "POST", "/api/v1/jobs", Some(&wish));
                    assert!(is_refused_for_now(&answer), "{}", answer.text());
                    assert!(took < super::ANSWER_MAX, "{took:?}");
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _over = Over(&is_over);
        rate(neighbour, phase)
    });
    (done, refused.into_inner())
}

pub(super) fn o05_a_key_in_an_open_transaction_slows_nobody_else() {
    let nodes = Nodes::start(BINARY, 1, &ClusterOptions::default(), ANY_TYPE);
    let server = &nodes.servers[0];
    let hostile = server.caller("acme", "ann", &["submitter", "worker"]);
    let neighbour = server.caller("other", "bob", &["submitter"]);
    rate(&neighbour, "warm");
    let solo = rate(&neighbour, "solo");
    let submit = format!(
        "SELECT mainspring.submit(tenant => 'acme', user_id => 'ann', job_type => 'held', \
         payload => '1', idempotency_key => 'held-' || n) FROM generate_series(0, {}) n",
        HELD - 1
    );
    let pin = hold(&nodes, &submit);
    // A worker waits for just such jobs all the while: what is refused must not reach it.
    let granted = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let wish = json!({
                "worker_id": "w", "types": ["held"], "limit": 10, "wait_ms": 7_000
            });
            hostile.pull_with(wish)
        });
        let (one, refused) = rate_beside(&hostile, &neighbour, 1, "one");
        println!("{solo} submissions alone, {one} beside a held key ({refused} refused)");
        assert!(one * 3 >= solo, "{one} beside a held key, {solo} alone");
        assert!(refused >= 4, "{refused} refusals");
        let (many, refused) = rate_beside(&hostile, &neighbour, HELD, "many");
        println!("{many} beside {HELD} held keys ({refused} refused)");
        assert!(many * 3 >= solo, "{many} beside {HELD} held keys, {solo} alone");
        worker.join().expect("an answer")
    });
    assert!(granted.is_empty(), "{granted:?} was refused and yet handed out");
    drop(pin);
    // Rolled back: the key is free, and nothing of the refused ones is left.
    let made = eventually("the key is free", || {
        let (answer, _) = timed(&hostile, "POST", "/api/v1/jobs", Some(&keyed("held-0")));
        (!is_refused_for_now(&answer)).then(|| answer.data())
    });
    assert_eq!(made["idempotent_hit"], false, "{made}");
    let left = nodes.database.sql(
        "SELECT count(*) FROM mainspring.job j JOIN mainspring.lane l USING (lane) \
         WHERE l.type = 'held'",
    );
    assert_eq!(left, "1");
}

pub(super) fn o05_a_locked_row_delays_no_other_rescue() {
    let nodes = Nodes::start(BINARY, 1, &ClusterOptions::default(), ANY_TYPE);
    let caller = nodes.admin(0);
    let jobs: Vec<Value> = (0..200).map(|n| json!({ "job_type": "lost", "payload": n })).collect();
    caller.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
    let wish = json!({ "worker_id": "w", "types": ["lost"], "limit": 200, "lease_ms": 4_000 });
    let grants = caller.pull_with(wish);
    assert_eq!(grants.len(), 200);
    let kept = caller.submit_plain("kept");
    let kept = (kept.clone(), caller.pull_one("kept"));
    let row = "SELECT id FROM mainspring.live WHERE id = (SELECT id FROM mainspring.live \
               WHERE alarm_at < now() + interval '30 seconds' ORDER BY id LIMIT 1 OFFSET 100) \
               FOR UPDATE";
    let pin = hold(&nodes, row);
    let running = || {
        nodes.database.sql(
            "SELECT count(*) FROM mainspring.live v JOIN mainspring.lane l USING (lane) \
             WHERE v.state = 1 AND l.type = 'lost'",
        )
    };
    let began = Stopwatch::start();
    eventually("all but the locked one are rescued", || (running() == "1").then_some(()));
    println!("199 leases of 4 s ended {:?} after a row was locked", began.elapsed());
    // Reports of others go through meanwhile.
    let (answer, took) = timed(
        &caller,
        "POST",
        "/api/v1/work/complete",
        Some(&json!({ "items": [{
            "job_id": kept.0, "lease_token": kept.1["lease_token"]
        }] })),
    );
    assert_eq!(answer.status, 200, "after {took:?}: {}", answer.text());
    assert_eq!(caller.job(&kept.0)["status"], "succeeded");
    assert_eq!(running(), "1", "it is still locked");
    drop(pin);
    eventually("the last one is rescued", || (running() == "0").then_some(()));
}

pub(super) fn o17_a_locked_schedule_hears_of_the_end_of_its_job_once_it_is_free() {
    let mut nodes = Nodes::start(BINARY, 1, &ClusterOptions::default(), ANY_TYPE);
    nodes.servers[0].restart_with(|options| {
        *options = options.clone().env("MAINSPRING_LOG", "info,mainspring_engine=debug");
    });
    let caller = nodes.admin(0);
    let wish = json!({
        "job_type": "sometimes", "kind": "interval", "interval_seconds": 86_400,
        "pause_after_failures": 1
    });
    let made = caller.post("/api/v1/schedules", &wish).data();
    let path = format!("/api/v1/schedules/{}", text(&made, "schedule_id"));
    caller.post(&format!("{path}/trigger"), &json!({})).data();
    let run = caller.pull_one("sometimes");
    let pin = hold(&nodes, "SELECT id FROM mainspring.entity FOR UPDATE");
    let report = json!({ "items": [{
        "job_id": run["job_id"], "lease_token": run["lease_token"], "error_code": "BROKEN",
        "message": "no", "retryable": false
    }] });
    caller.post("/api/v1/work/fail", &report).data();
    eventually("it was told in vain", || {
        nodes.servers[0].log().contains("ends of jobs are told again").then_some(())
    });
    assert_eq!(caller.get(&path).data()["status"], "active", "its row is locked");
    drop(pin);
    // It would look for itself only before it fires again, tomorrow.
    eventually("it has heard of the failure", || {
        (caller.get(&path).data()["status"] == "paused").then_some(())
    });
}

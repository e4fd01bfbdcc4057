//! Limits hold while servers are killed. Rates are judged by the histories of all jobs in the end,
//! which no order of commits can excuse. How many ran at a time is judged by what workers had in
//! their hands: servers side by side (with PostgreSQL) read their clocks before they wait for each
//! other. The usual run takes as long as six kills, `MAINSPRING_TEST=full` more than a minute.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store};
use mainspring_testkit::both_stores;
use mainspring_testkit::load::Stopwatch;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

both_stores![rates_and_keys_hold_while_servers_are_killed];

const CONFIG: &str = "[scheduler]\nrestart_grace = \"500ms\"\n\
    [types.paced]\nrate_limit = { per_second = 40, burst = 5 }\n\
    [types.by-site]\nrate_limit = { per_second = 4, burst = 2, key = \"/site\" }\n\
    [types.keyed]\nconcurrency_limit = 2\nconcurrency_key = \"/site\"\n";
const SITES: usize = 8;
const KILLS: usize = 6;
/// What a server hands out and cannot tell any more comes back after this long.
const LEASE: Duration = Duration::from_secs(15);
/// No run takes as long, on any machine that gets somewhere.
const PATIENCE: Duration = Duration::from_secs(240);

/// How many times as long it takes as the usual run.
fn length() -> usize {
    let is_full = std::env::var("MAINSPRING_TEST").is_ok_and(|level| level == "full");
    if is_full { 12 } else { 1 }
}

/// As many servers as the store allows, up to two.
fn servers(store: Store) -> Vec<Server> {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(CONFIG);
    let count = if store == Store::Postgres { 2 } else { 1 };
    (0..count).map(|_| Server::start(options.clone())).collect()
}

fn rates_and_keys_hold_while_servers_are_killed(store: Store) {
    let mut servers = servers(store);
    let admins: Vec<Caller> = servers.iter().map(Server::admin).collect();
    let mut wanted = BTreeMap::new();
    for (job_type, count) in [("paced", 160), ("by-site", 96), ("keyed", 400)] {
        let count = count * length();
        let jobs: Vec<Value> = (0..count)
            .map(|n| json!({ "job_type": job_type, "payload": { "site": n % SITES } }))
            .collect();
        admins[0].post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
        wanted.insert(job_type, count);
    }
    let total: usize = wanted.values().sum();
    let run = Run {
        admins: &admins,
        clock: Stopwatch::start(),
        done: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        held: Mutex::new(Vec::new()),
    };
    std::thread::scope(|scope| {
        let run = &run;
        for nth in 0..6 {
            scope.spawn(move || work(run, nth));
        }
        let is_done = || run.done.load(Ordering::Relaxed) >= total;
        for kill in 0..KILLS * length() {
            // Paced: some of the load runs between two kills.
            while run.clock.elapsed() < Duration::from_millis(900) * (kill as u32 + 1) && !is_done()
            {
                std::thread::sleep(Duration::from_millis(10)); // paced: looks for the next kill
            }
            let count = servers.len();
            let server = &mut servers[kill % count];
            server.kill9();
            server.restart();
        }
        while !is_done() && run.clock.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20)); // paced: waits for the rest
        }
        run.is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(run.done.load(Ordering::Relaxed), total, "all are done in the end");
    let histories = histories(&servers[0].admin());
    assert_eq!(histories.len(), total);
    judge_rates(&histories);
    judge_keys(&run.held.into_inner().unwrap());
}

/// What the threads of a run share.
struct Run<'a> {
    admins: &'a [Caller],
    clock: Stopwatch,
    done: AtomicUsize,
    is_over: AtomicBool,
    held: Mutex<Vec<Hold>>,
}

/// A worker had a job in its hands, surely: from its answer to its report, or till its lease ended.
struct Hold {
    site: u64,
    from: Duration,
    to: Duration,
}

impl Run<'_> {
    /// What a server answers, if it does.
    fn ask(&self, turn: usize, path: &str, body: &Value) -> Option<Value> {
        let caller = &self.admins[turn % self.admins.len()];
        let answer = caller.request("POST", path).json(body).try_send(caller.address).ok()?;
        (answer.status == 200).then(|| answer.data())
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Takes jobs and completes them, at whichever server answers.
fn work(run: &Run<'_>, nth: usize) {
    let mut turn = nth;
    while !run.is_over() {
        turn += 1;
        let wish = json!({ "worker_id": format!("w-{nth}"), "limit": 4, "wait_ms": 200,
            "lease_ms": LEASE.as_millis() as u64 });
        let asked_at = run.clock.elapsed();
        let Some(data) = run.ask(turn, "/api/v1/work/pull", &wish) else {
            std::thread::sleep(Duration::from_millis(20)); // paced: the server is being restarted
            continue;
        };
        let from = run.clock.elapsed();
        for grant in data["jobs"].as_array().unwrap() {
            std::thread::sleep(Duration::from_millis(3)); // paced: work takes time
            if grant["job_type"] == "keyed" {
                let to = run.clock.elapsed().min(asked_at + LEASE);
                let site = grant["payload"]["site"].as_u64().unwrap();
                run.held.lock().unwrap().push(Hold { site, from, to });
            }
            let item = json!({ "job_id": grant["job_id"], "lease_token": grant["lease_token"] });
            // Until somebody answers: a repeat is answered again.
            loop {
                turn += 1;
                let report = json!({ "items": [item] });
                if let Some(data) = run.ask(turn, "/api/v1/work/complete", &report) {
                    let answer = items(data).pop().unwrap();
                    let is_done = usize::from(answer["status"] == "succeeded");
                    run.done.fetch_add(is_done, Ordering::Relaxed);
                    break;
                }
                if run.is_over() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10)); // paced: the server restarts
            }
        }
    }
}

/// When a job was handed out, in microseconds.
struct History {
    job_type: String,
    site: u64,
    starts: Vec<i64>,
}

fn histories(admin: &Caller) -> Vec<History> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = admin.get(&format!("/api/v1/jobs?limit=100{cursor}")).data();
        for job in page["items"].as_array().unwrap() {
            let is_start = |event: &&Value| event["to_state"] == "running";
            let events = admin.events(&text(job, "job_id"));
            let at = |event: &Value| text(event, "occurred_at").parse::<jiff::Timestamp>().unwrap();
            let starts =
                events.iter().filter(is_start).map(|event| at(event).as_microsecond()).collect();
            let whole = admin.job(&text(job, "job_id"));
            let site = whole["payload"]["site"].as_u64().unwrap();
            all.push(History { job_type: text(job, "job_type"), site, starts });
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

fn judge_rates(histories: &[History]) {
    let of = |job_type: &str, site: Option<u64>| {
        let those = histories.iter().filter(|it| it.job_type == job_type);
        let those = those.filter(|it| site.is_none_or(|site| it.site == site));
        let mut starts: Vec<i64> = those.flat_map(|it| it.starts.iter().copied()).collect();
        starts.sort_unstable();
        starts
    };
    rate("paced", &of("paced", None), 40.0, 5.0);
    for site in 0..SITES as u64 {
        rate("by-site", &of("by-site", Some(site)), 4.0, 2.0);
    }
}

/// At no time were there more jobs of a key in the hands of workers than the limit allows.
fn judge_keys(held: &[Hold]) {
    let mut most = 0;
    for Hold { site, from, .. } in held {
        let is_held = |it: &&Hold| it.site == *site && it.from <= *from && *from < it.to;
        most = most.max(held.iter().filter(is_held).count());
    }
    println!("{} keyed jobs were in hands, {most} of a key at a time", held.len());
    assert!(most <= 2, "{most} of a key at a time");
}

/// In no stretch of time was more handed out than the burst and the rate allow.
fn rate(name: &str, starts: &[i64], per_second: f64, burst: f64) {
    for (first, from) in starts.iter().enumerate() {
        for (more, to) in starts[first..].iter().enumerate() {
            let most = burst + (to - from) as f64 / 1e6 * per_second;
            // Histories are shown to the millisecond.
            let count = more as f64 + 1.0;
            assert!(count <= most + 0.1, "{name}: {count} in {} us, not {most}", to - from);
        }
    }
}

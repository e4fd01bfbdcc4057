//! Limits hold while servers are killed: the histories of all jobs are read in the end, and judged by
//! nothing but the instants in them. With PostgreSQL several servers hand out jobs side by side.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store};
use mainspring_testkit::both_stores;
use mainspring_testkit::load::Stopwatch;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

both_stores![rates_and_keys_hold_while_servers_are_killed];

const CONFIG: &str = "[scheduler]\nrestart_grace = \"500ms\"\n\
    [types.paced]\nrate_limit = { per_second = 40, burst = 5 }\n\
    [types.by-site]\nrate_limit = { per_second = 4, burst = 2, key = \"/site\" }\n\
    [types.keyed]\nconcurrency_limit = 2\nconcurrency_key = \"/site\"\n";
const SITES: usize = 8;
const KILLS: usize = 6;

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
        let jobs: Vec<Value> = (0..count)
            .map(|n| json!({ "job_type": job_type, "payload": { "site": n % SITES } }))
            .collect();
        admins[0].post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).data();
        wanted.insert(job_type, count);
    }
    let total: usize = wanted.values().sum();
    let (done, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (admins, done, is_over) = (&admins, &done, &is_over);
        for nth in 0..6 {
            scope.spawn(move || work(admins, nth, done, is_over));
        }
        let clock = Stopwatch::start();
        for kill in 0..KILLS {
            // Paced: some of the load runs between two kills.
            while clock.elapsed() < Duration::from_millis(900) * (kill as u32 + 1)
                && done.load(Ordering::Relaxed) < total
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            let count = servers.len();
            let server = &mut servers[kill % count];
            server.kill9();
            server.restart();
        }
        while done.load(Ordering::Relaxed) < total && clock.elapsed() < Duration::from_secs(90) {
            std::thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(done.load(Ordering::Relaxed), total, "all are done in the end");
    let histories = histories(&servers[0].admin());
    assert_eq!(histories.len(), total);
    judge(&histories);
}

/// Takes jobs and completes them, at whichever server answers.
fn work(admins: &[Caller], nth: usize, done: &AtomicUsize, is_over: &AtomicBool) {
    let mut turn = nth;
    let ask = |turn: usize, path: &str, body: &Value| {
        let caller = &admins[turn % admins.len()];
        let answer = caller.request("POST", path).json(body).try_send(caller.address).ok()?;
        (answer.status == 200).then(|| answer.data())
    };
    while !is_over.load(Ordering::Relaxed) {
        turn += 1;
        let wish = json!({ "worker_id": format!("w-{nth}"), "limit": 4, "wait_ms": 200,
            "lease_ms": 60_000 });
        let Some(data) = ask(turn, "/api/v1/work/pull", &wish) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        for grant in data["jobs"].as_array().unwrap() {
            std::thread::sleep(Duration::from_millis(3)); // paced: work takes time
            let item = json!({ "job_id": grant["job_id"], "lease_token": grant["lease_token"] });
            // Until somebody answers: a repeat is answered again.
            loop {
                turn += 1;
                let report = json!({ "items": [item] });
                if let Some(data) = ask(turn, "/api/v1/work/complete", &report) {
                    let answer = items(data).pop().unwrap();
                    done.fetch_add(usize::from(answer["status"] == "succeeded"), Ordering::Relaxed);
                    break;
                }
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// When a job ran: from and to, in microseconds.
struct History {
    job_type: String,
    site: u64,
    runs: Vec<(i64, i64)>,
}

fn histories(admin: &Caller) -> Vec<History> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = admin.get(&format!("/api/v1/jobs?limit=100{cursor}")).data();
        for job in page["items"].as_array().unwrap() {
            let (mut runs, mut since) = (Vec::new(), None);
            for event in admin.events(&text(job, "job_id")) {
                let at: jiff::Timestamp = text(&event, "occurred_at").parse().unwrap();
                if let Some(since) = since.take() {
                    runs.push((since, at.as_microsecond()));
                }
                if event["to_state"] == "running" {
                    since = Some(at.as_microsecond());
                }
            }
            let whole = admin.job(&text(job, "job_id"));
            let site = whole["payload"]["site"].as_u64().unwrap();
            all.push(History { job_type: text(job, "job_type"), site, runs });
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

fn judge(histories: &[History]) {
    let of = |job_type: &str, site: Option<u64>| {
        let those = histories.iter().filter(|it| it.job_type == job_type);
        let those = those.filter(|it| site.is_none_or(|site| it.site == site));
        let mut runs: Vec<(i64, i64)> = those.flat_map(|it| it.runs.iter().copied()).collect();
        runs.sort_unstable();
        runs
    };
    rate("paced", &of("paced", None), 40.0, 5.0);
    for site in 0..SITES as u64 {
        rate("by-site", &of("by-site", Some(site)), 4.0, 2.0);
        let runs = of("keyed", Some(site));
        for (at, _) in &runs {
            let count = runs.iter().filter(|(from, to)| from <= at && at < to).count();
            assert!(count <= 2, "{count} of site {site} ran at {at}");
        }
    }
}

/// In no stretch of time was more handed out than the burst and the rate allow.
fn rate(name: &str, runs: &[(i64, i64)], per_second: f64, burst: f64) {
    for (first, (from, _)) in runs.iter().enumerate() {
        for (more, (to, _)) in runs[first..].iter().enumerate() {
            let most = burst + (to - from) as f64 / 1e6 * per_second;
            // Histories are shown to the millisecond.
            let count = more as f64 + 1.0;
            assert!(count <= most + 0.1, "{name}: {count} in {} us, not {most}", to - from);
        }
    }
}

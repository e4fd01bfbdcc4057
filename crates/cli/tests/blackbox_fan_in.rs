//! A job that waits for very many: what each of their ends costs, counted in commands and in what
//! is written, not in seconds. The usual run has 5,000 of them, `MAINSPRING_TEST=full` 100,000.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![o11_a_fan_in_of_very_many_costs_each_end_little];

/// Commands of the server for each end, beyond what the same job costs that nobody waits for.
const COMMANDS_PER_END_MAX: f64 = 0.1;
/// Bytes for each end, beyond what the same job costs: the journal of the memory store.
const BYTES_PER_END_MAX: f64 = 100.0;
/// Writes to the tables of waits for each end.
const ROWS_PER_END_MAX: f64 = 0.1;

/// Batches, and jobs in each.
fn size() -> (usize, usize) {
    match std::env::var("MAINSPRING_TEST") {
        Ok(level) if level == "full" => (10, 10_000),
        _ => (5, 1_000),
    }
}

fn metric(server: &Server, name: &str) -> f64 {
    let page = server.admin().get("/metrics").text();
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name}")).trim().parse().unwrap()
}

/// What a server has written so far: the bytes of its journal, or the rows of waits.
fn written(server: &Server) -> f64 {
    match server.database() {
        Some(database) => {
            let sql = "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) \
                       FROM pg_stat_user_tables WHERE relname IN ('entity', 'entity_term')";
            database.sql(sql).trim().parse().unwrap()
        }
        None => {
            let files = std::fs::read_dir(server.data_dir()).unwrap();
            files.map(|file| file.unwrap().metadata().unwrap().len() as f64).sum()
        }
    }
}

/// How many rows of waits are gone for good, as the statistics of the database have it.
fn rows_gone(server: &Server) -> u64 {
    let sql = "SELECT n_tup_del FROM pg_stat_user_tables WHERE relname = 'entity'";
    server.database().map_or(u64::MAX, |it| it.sql(sql).trim().parse().unwrap())
}

fn parts(job_type: &str, count: usize) -> Vec<Value> {
    (0..count).map(|_| json!({ "job_type": job_type, "payload": {} })).collect()
}

/// Does all jobs of a type, many at a time, and ends them in one request each.
fn work(caller: &Caller, job_type: &str, count: usize) {
    let mut done = 0;
    while done < count {
        let grants = caller.pull(job_type, 500);
        let ends: Vec<Value> = grants
            .iter()
            .map(|it| json!({ "job_id": it["job_id"], "lease_token": it["lease_token"] }))
            .collect();
        done += ends.len();
        caller.post("/api/v1/work/complete", &json!({ "items": ends })).data();
    }
}

fn o11_a_fan_in_of_very_many_costs_each_end_little(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let ann = server.caller("fan-in", "ann", &["submitter", "worker", "operator"]);
    let (batches, each) = size();
    let count = batches * each;
    for _ in 0..batches {
        ann.post("/api/v1/jobs/batch", &json!({ "jobs": parts("alone", each) })).data();
    }
    let counted = || (metric(&server, "mainspring_commands_total"), written(&server));
    let before = counted();
    work(&ann, "alone", count);
    let after = counted();
    let alone = (after.0 - before.0, after.1 - before.1);

    let thens: Vec<String> = (0..batches)
        .map(|_| {
            let then = json!({ "job_type": "then", "payload": {} });
            let batch = json!({ "jobs": parts("part", each), "then": then });
            text(items(ann.post("/api/v1/jobs/batch", &batch).data()).last().unwrap(), "job_id")
        })
        .collect();
    let whole = json!({ "job_type": "whole", "payload": {}, "after": thens });
    let whole = text(&ann.submit(&whole), "job_id");
    let before = counted();
    work(&ann, "part", count);
    work(&ann, "then", batches);
    let grant = ann.pull_one("whole");
    assert_eq!(text(&grant, "job_id"), whole, "and nothing else waits for them");
    // Every batch has a wait, and so has the last one; statistics come a little later.
    let waits = batches as u64 + 1;
    eventually("all waits are gone", || (rows_gone(&server) >= waits).then_some(()));
    let after = counted();
    let (commands, bytes) = (after.0 - before.0 - alone.0, after.1 - before.1 - alone.1);
    let (commands, bytes) = (commands / count as f64, bytes / count as f64);
    println!("{count} jobs, each end: {commands:.4} commands more, {bytes:.2} bytes or rows more");
    assert!(commands <= COMMANDS_PER_END_MAX, "{commands} commands for each end");
    let most = if server.database().is_some() { ROWS_PER_END_MAX } else { BYTES_PER_END_MAX };
    assert!(bytes <= most, "{bytes} written for each end");
    ann.complete(&grant);
}

//! A schedule has one job for each instant at which it fires: never two and never none, though
//! servers are killed around those instants again and again. One server on either store, and three
//! on PostgreSQL. `MAINSPRING_TEST=full` kills more often.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::disallowed_methods, reason = "a kill belongs to a second of the wall clock")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store, eventually};
use mainspring_testkit::both_stores;
use mainspring_testkit::rng::Rng;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

both_stores![
    o17_o23_each_instant_has_one_job_though_the_server_is_killed_around_it,
    o17_a_schedule_goes_on_after_a_restart_and_tells_of_what_it_missed,
];

/// A template fires beside what people made.
const CONFIG: &str = r#"
[types]
strict = false
[scheduler]
restart_grace = "500ms"
[templates]
tenant = "acme"
[templates.tick]
job_type = "tick"
interval_seconds = 1
"#;
/// Schedules that people make.
const SCHEDULES: usize = 6;
/// A kill comes up to this much before or after a whole second.
const AROUND_MICROS: u64 = 60_000;

fn servers(store: Store, count: usize) -> Vec<Server> {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(CONFIG);
    (0..count).map(|_| Server::start(options.clone())).collect()
}

fn kills() -> usize {
    let is_full = std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full");
    if is_full { 60 } else { 10 }
}

fn micros_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_micros()).unwrap()
}

fn seconds_now() -> i64 {
    i64::try_from(micros_now() / 1_000_000).unwrap()
}

fn seconds(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>().unwrap().as_second()
}

/// The instants of a schedule's jobs, in seconds since 1970, each as often as there are jobs.
fn fired(caller: &Caller, schedule: &str) -> Vec<i64> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/jobs?limit=100&label=schedule_id={schedule}{cursor}");
        let page = caller.get(&path).data();
        for job in page["items"].as_array().unwrap() {
            let key = text(job, "idempotency_key");
            let micros: i64 = key.split_once('@').unwrap().1.parse().unwrap();
            assert_eq!(micros % 1_000_000, 0, "firings lie on whole seconds: {key}");
            all.push(micros / 1_000_000);
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    all.sort_unstable();
    all
}

/// Kills one server after the other around whole seconds, and starts it again.
fn kill_around_seconds(servers: &mut [Server], rng: &mut Rng) {
    for turn in 0..kills() {
        let to_second = 1_000_000 - micros_now() % 1_000_000;
        let wait = (to_second + rng.below(2 * AROUND_MICROS)).saturating_sub(AROUND_MICROS);
        std::thread::sleep(Duration::from_micros(wait)); // paced: the kill belongs to a second
        let nth = rng.below(servers.len() as u64) as usize;
        servers[nth].kill9();
        if turn % 3 == 0 {
            let pause = Duration::from_millis(rng.below(2_500));
            std::thread::sleep(pause); // paced: some firings are missed meanwhile
        }
        servers[nth].restart();
    }
}

/// What a schedule is to do: how often it fires, in seconds, and whether what it missed is made up
/// for one by one.
type Wish = (i64, bool);

/// Makes schedules; they and the template's, by id.
fn made(server: &Server, ann: &Caller) -> BTreeMap<String, Wish> {
    let mut made = BTreeMap::new();
    for nth in 0..SCHEDULES {
        let every = 1 + nth as i64 % 3;
        let is_each = nth < SCHEDULES / 2;
        let misfire = if is_each { "all" } else { "coalesce" };
        let wish = json!({ "job_type": "tick", "kind": "interval", "interval_seconds": every,
            "misfire": misfire, "misfire_limit": 1_000, "payload": { "nth": nth } });
        let answer = ann.post("/api/v1/schedules", &wish);
        assert_eq!(answer.status, 201, "{}", answer.text());
        made.insert(text(&answer.data(), "schedule_id"), (every, is_each));
    }
    let templates = items(server.admin().get("/jobs/system-schedules/templates").data());
    assert_eq!(templates.len(), 1);
    made.insert(text(&templates[0], "scheduleId"), (1, false));
    made
}

/// Waits until a schedule has caught up, stops it and looks at all it did; how many instants there
/// were, and how many jobs.
fn check(ann: &Caller, id: &str, (every, is_each): Wish) -> (usize, usize) {
    let path = format!("/api/v1/schedules/{id}");
    let caught_up = eventually("the schedule catches up", || {
        let now = ann.get(&path).data();
        let last = seconds(now["last_fire_at"].as_str()?);
        (last >= seconds_now() - every - 1).then_some(last)
    });
    assert_eq!(ann.poke(&format!("{path}/stop")).data()["status"], "stopped");
    let schedule = ann.get(&path).data();
    let all = fired(ann, id);
    let distinct: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "{id} has an instant with two jobs: {all:?}");
    assert_eq!(schedule["fired_count"], all.len(), "{id} says how often it fired");
    assert!(all.iter().all(|second| second % every == 0), "{id} fires on its grid: {all:?}");
    let first = seconds(&text(&schedule, "created_at")).div_euclid(every) + 1;
    let due: Vec<i64> = (first..=caught_up / every).map(|turn| turn * every).collect();
    let missing: Vec<i64> = due.iter().copied().filter(|it| !distinct.contains(it)).collect();
    let skipped = schedule["skipped_count"].as_u64().unwrap();
    match is_each {
        true => assert!(missing.is_empty(), "{id} lost {missing:?} of {due:?}"),
        false => assert!(skipped >= missing.len() as u64, "{id} does not count {missing:?}"),
    }
    assert_told(ann, id, &missing);
    (due.len(), all.len())
}

/// The history says what became of each of these instants, as far as it goes back.
fn assert_told(caller: &Caller, schedule: &str, missing: &[i64]) {
    let lines = items(caller.get(&format!("/api/v1/schedules/{schedule}/history")).data());
    let second = |line: &Value, field: &str| line[field].as_str().map(seconds);
    let begins = lines.iter().filter_map(|line| second(line, "fire_at")).min().unwrap();
    for wanted in missing.iter().filter(|second| **second >= begins) {
        let is_told = lines.iter().any(|line| {
            let first = second(line, "fire_at").unwrap();
            let last = second(line, "until").unwrap_or(first);
            line["outcome"] == "coalesced" && (first..=last).contains(wanted)
        });
        assert!(is_told, "{schedule} does not tell of {wanted}: {lines:?}");
    }
}

fn each_instant_has_one_job(mut servers: Vec<Server>, seed: u64) {
    let ann = servers[0].caller("acme", "ann", &["submitter", "operator", "worker"]);
    let made = made(&servers[0], &ann);
    let mut rng = Rng::new(seed, 1);
    kill_around_seconds(&mut servers, &mut rng);
    let (mut jobs, mut instants) = (0, 0);
    for (id, wish) in &made {
        let (due, had) = check(&ann, id, *wish);
        (instants, jobs) = (instants + due, jobs + had);
    }
    assert!(instants > 2 * kills(), "time went on: {instants}");
    let kills = kills();
    println!("seed {seed}: {kills} kills, {instants} instants, {jobs} jobs, none twice, none lost");
}

/// Another order of kills each time, and it is told which.
fn seed() -> u64 {
    let given = std::env::var("MAINSPRING_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| micros_now() % 1_000_000);
    println!("MAINSPRING_TEST_SEED={seed}");
    seed
}

fn o17_o23_each_instant_has_one_job_though_the_server_is_killed_around_it(store: Store) {
    each_instant_has_one_job(servers(store, 1), seed());
}

/// Several servers share a database, and any of them fires.
mod nodes {
    mod postgres {
        #[test]
        fn o17_o23_each_instant_has_one_job_though_any_of_three_servers_is_killed() {
            let servers = super::super::servers(super::super::Store::Postgres, 3);
            super::super::each_instant_has_one_job(servers, super::super::seed());
        }
    }
}

fn o17_a_schedule_goes_on_after_a_restart_and_tells_of_what_it_missed(store: Store) {
    let mut servers = servers(store, 1);
    let ann = servers[0].caller("acme", "ann", &["submitter", "operator", "worker"]);
    let wish = json!({ "job_type": "tick", "kind": "interval", "interval_seconds": 1,
        "misfire": "skip" });
    let id = text(&ann.post("/api/v1/schedules", &wish).data(), "schedule_id");
    let path = format!("/api/v1/schedules/{id}");
    let count = |field: &str| ann.get(&path).data()[field].as_u64().unwrap();
    eventually("it fires", || (count("fired_count") > 0).then_some(()));
    servers.iter_mut().for_each(Server::kill9);
    std::thread::sleep(Duration::from_millis(4_500)); // paced: firings are missed meanwhile
    servers.iter_mut().for_each(Server::restart);
    let before = count("fired_count");
    eventually("it goes on", || (count("fired_count") > before).then_some(()));
    assert!(count("skipped_count") >= 2, "what was missed is counted");
    let lines = items(ann.get(&format!("{path}/history")).data());
    let skipped = lines.iter().find(|line| line["outcome"] == "skipped").unwrap();
    assert_eq!(skipped["reason"], "misfire", "{lines:?}");
    let all = fired(&ann, &id);
    let distinct: BTreeSet<i64> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len());
}

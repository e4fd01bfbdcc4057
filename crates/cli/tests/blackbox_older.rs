//! Data directories and databases that earlier versions left behind, cut off by `kill -9`: this
//! version reads everything they held, and the work goes on. `older/` has a folder for each of
//! them, made by `keep_older` of the testkit.

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Options, Server, Store, eventually, unpack};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

both_stores![everything_is_read_and_the_work_goes_on];

fn kept() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/older");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it reads").path()).collect()
}

/// A server of this version on what an older one left, and what that one said.
fn opened(store: Store, folder: &Path) -> (Server, Value) {
    // Kept for ever: the jobs have ended long ago.
    let config = "[types]\nstrict = false\n[retention]\nfinished = \"36500d\"\ndlq = \"36500d\"\n";
    let options: Options = store.options(BINARY).config(config);
    let (name, options) = match &options.database {
        None => {
            let data = Some(folder.join("memory.tar.gz"));
            ("memory.json", Options { data, ..options })
        }
        Some(database) => {
            let directory = tempfile::tempdir().expect("a directory");
            unpack(&folder.join("postgres.tar.gz"), directory.path());
            database.restore(&directory.path().join("postgres.sql"));
            ("postgres.json", options)
        }
    };
    let told = std::fs::read_to_string(folder.join(name)).expect("it is there");
    (Server::start(options), serde_json::from_str(&told).expect("JSON"))
}

/// What was said before is said now; there may be more.
#[track_caller]
fn assert_still(told: &Value, now: &Value) {
    match (told, now) {
        (Value::Object(told), Value::Object(_)) => {
            for (name, told) in told {
                assert_still(told, &now[name]);
            }
        }
        (Value::Array(told), Value::Array(now)) => {
            assert_eq!(told.len(), now.len(), "{told:?} {now:?}");
            told.iter().zip(now).for_each(|(told, now)| assert_still(told, now));
        }
        _ => assert_eq!(told, now),
    }
}

fn everything_is_read_and_the_work_goes_on(store: Store) {
    let folders = kept();
    assert!(!folders.is_empty(), "nothing is kept");
    for folder in folders {
        let (server, told) = opened(store, &folder);
        let admin = server.admin();
        let counters = admin.get("/api/v1/runtime").data()["counters"].take();
        for name in ["submitted", "claims", "dlq_open"] {
            assert_eq!(counters[name], told["counters"][name], "{name} in {folder:?}");
        }
        let as_told = |name: &str| Caller { token: text(&told, name), ..admin.clone() };
        assert_eq!(as_told("revoked").get("/api/v1/jobs").status, 401);
        let ann = as_told("token");
        reads(&told, &admin, &ann);
        goes_on(&told, &admin, &ann);
        // The first version that was kept had none.
        if !told["entities"].is_null() {
            entities(&told, &admin, &ann);
        }
    }
}

/// Everything that an older version told of is there, and the same.
fn reads(told: &Value, admin: &Caller, ann: &Caller) {
    let list = |name: &str| told[name].as_array().expect("a list").clone();
    for known in list("ended") {
        let id = text(&known["job"], "job_id");
        assert_still(&known["job"], &ann.job(&id));
        assert_still(&known["events"], &json!(ann.events(&id)));
    }
    for known in list("live") {
        let now = ann.job(&text(&known["job"], "job_id"));
        for lasting in ["job_type", "payload", "queue", "priority", "labels", "created_at"] {
            assert_eq!(now[lasting], known["job"][lasting], "{lasting}");
        }
    }
    assert_still(&told["items"], &json!(items(ann.get("/api/v1/dlq/items").data())));
    assert_still(&told["types"], &admin.get("/api/v1/types/limited").data());
    let labelled = items(ann.get("/api/v1/jobs?label=case%3Ddone").data());
    assert_eq!(labelled.len(), 1, "lists find what was there before");
}

/// Jobs go on from where they stood.
fn goes_on(told: &Value, admin: &Caller, ann: &Caller) {
    let live = |at: usize| text(&told["live"][at]["job"], "job_id");
    let [late, shut, retrying, running] = [0, 1, 2, 3].map(live);
    assert_eq!(ann.job(&late)["run_at"], told["live"][0]["job"]["run_at"]);
    let again = json!({ "job_type": "late", "payload": 1, "idempotency_key": "once" });
    assert_eq!(text(&ann.submit(&again), "job_id"), late, "its key is held");
    assert!(ann.pull("shut", 1).is_empty(), "the queue is paused");
    admin.poke("/api/v1/queues/shut/resume").data();
    let grant = ann.pull_one("shut");
    assert_eq!(text(&grant, "job_id"), shut);
    ann.complete(&grant);
    assert_eq!(ann.job(&shut)["status"], "succeeded");
    assert_eq!(ann.job(&retrying)["retry_count"], 1);
    assert_eq!(ann.job(&retrying)["last_error"]["code"], "BUSY");
    // The lease of the worker that died with its server is over.
    let grant = ann.pull_one("running");
    assert_eq!(text(&grant, "job_id"), running);
    let effect = ann
        .request("GET", &format!("/api/v1/work/effects/{running}/charge"))
        .header("x-lease-token", &text(&grant, "lease_token"))
        .send(ann.address);
    assert_eq!(effect.data()["value"], json!({ "receipt": 7 }), "{effect:?}");
    ann.complete(&grant);
    let open = items(ann.get("/api/v1/dlq/items?status=open").data());
    let item = text(&open[0], "dlq_id");
    let requeued = ann.post(&format!("/api/v1/dlq/items/{item}/requeue"), &json!({})).data();
    assert_eq!(ann.job(&text(&requeued, "job_id"))["status"], "queued");
}

/// Schedules, triggers, plans, objects and gates are what they were, and go on.
fn entities(told: &Value, admin: &Caller, ann: &Caller) {
    let known = told["entities"].as_array().expect("a list");
    for known in known {
        let path = text(known, "path");
        let caller = if known["by"] == "admin" { admin } else { ann };
        let now = caller.get(&path);
        assert_eq!(now.status, 200, "{path} {}", now.json());
        let mut told = known["answer"].clone();
        if let Some(fields) = told.as_object_mut() {
            // Nobody answered the plan before its deadline, so its default counts by now.
            let moved: &[&str] = match path.contains("/plans/") {
                true => &["status", "answer", "answeredAt", "attempts"],
                false => &["meta"],
            };
            moved.iter().for_each(|field| drop(fields.remove(*field)));
        }
        assert_still(&told, &now.json());
    }
    let paused = text(&known[1], "path");
    ann.poke(&format!("{paused}/resume")).data();
    let fired = ann.poke(&format!("{paused}/trigger")).data();
    assert_eq!(ann.job(&text(&fired, "job_id"))["job_type"], "planned");
    let mut names = BTreeSet::new();
    eventually("the run and the plan, which its default brought back, are handed out", || {
        let pulled = ann.post("/agent/pull", &json!({ "worker_id": "w-1", "limit": 2 })).json();
        let runs = pulled["runs"].as_array().expect("a list");
        names.extend(runs.iter().map(|run| text(run, "id")));
        (names.len() == 2).then_some(())
    });
    assert_eq!(names, ["plan-1", "run-1"].map(str::to_owned).into());
    assert_eq!(ann.get("/agent/plans/plan-1").json()["answer"], "a");
    let verdict = admin.get("/api/v1/audit/verify").data();
    assert_eq!(verdict["valid"], true, "{verdict}");
}

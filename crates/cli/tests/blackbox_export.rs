//! `mainspring export`: everything that the caller may see, each thing once, as JSON Lines.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

both_stores![everything_is_exported_once_and_nothing_of_others];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const ROLES: [&str; 4] = ["submitter", "worker", "operator", "viewer"];

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn everything_is_exported_once_and_nothing_of_others(store: Store) {
    let server = Server::start(store.options(BINARY).config("[types]\nstrict = false"));
    let ann: Caller = server.caller("acme", "ann", &ROLES);
    let eve = server.caller("other", "eve", &ROLES);
    assert_eq!(server.admin().put("/api/v1/types/mill", &json!({})).status, 200);
    let foreign = eve.submit_plain("mill");
    // More than a page.
    let jobs: Vec<Value> = (0..230).map(|_| json!({ "job_type": "bulk", "payload": {} })).collect();
    assert_eq!(ann.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).status, 200);
    ann.submit_plain("mill");
    ann.fail(&ann.pull_one("mill"), "BROKEN", false);
    let every = json!({ "job_type": "tick", "kind": "interval", "interval_seconds": 3_600 });
    assert_eq!(ann.post("/api/v1/schedules", &every).status, 201);
    for n in 0..120 {
        let path = format!("/api/v1/objects/memory/m{n}");
        assert_eq!(ann.put(&path, &json!({ "risk_tier": "low" })).status, 200);
    }
    assert_eq!(eve.put("/api/v1/objects/memory/e1", &json!({ "risk_tier": "high" })).status, 200);
    assert_eq!(ann.put("/api/v1/gates/risk", &json!({ "state": "block" })).status, 200);
    let export = |args: &[&str]| {
        let args = [&["export"], args].concat();
        lines(&server.cli_as(&ann.token, &args).expect(0).stdout)
    };
    let told = export(&["jobs"]);
    let ids: BTreeSet<String> = told.iter().map(|line| text(&line["data"], "job_id")).collect();
    assert_eq!((told.len(), ids.len()), (231, 231));
    assert!(!ids.contains(&foreign));
    assert!(told.iter().all(|line| line["kind"] == "job" && line["events"].is_null()));
    let dead = export(&["dlq"]);
    assert_eq!((dead.len(), &dead[0]["data"]["error_code"]), (1, &json!("BROKEN")));
    assert_eq!(export(&["audit"])[0]["data"]["action"], "gate.set");
    let told = export(&["objects"]);
    let of = |kind: &str, field: &str| -> BTreeSet<String> {
        let of_kind = told.iter().filter(|line| line["kind"] == kind);
        of_kind.map(|line| text(&line["data"], field)).collect()
    };
    let (objects, gates) = (of("object", "object_id"), of("gate", "name"));
    assert!(objects.len() == 120 && !objects.contains("e1"), "{objects:?}");
    assert_eq!((told.len(), gates.len()), (124, 4), "all gates, also those nobody has set");
    let file = server.directory().join("all.jsonl");
    let path = file.to_str().unwrap();
    // Queues are an admin's to see.
    let admin = |args: &[&str]| server.cli(&[&["export", "all", "--events"], args].concat());
    assert_eq!(admin(&["--file", path]).expect(0).stdout, "");
    let all = lines(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for line in &all {
        *kinds.entry(text(line, "kind")).or_default() += 1;
        if line["kind"] == "job" {
            let events = line["events"].as_array().unwrap();
            assert_eq!(events[0]["to_state"], "queued", "{line}");
        }
    }
    assert_eq!((kinds["job"], kinds["dlq_item"], kinds["schedule"]), (232, 1, 1), "{kinds:?}");
    assert!(kinds["type"] >= 1 && kinds["queue"] >= 1, "{kinds:?}");
    assert_ne!(admin(&["--file", path]).code, Some(0), "it is not written over");
}

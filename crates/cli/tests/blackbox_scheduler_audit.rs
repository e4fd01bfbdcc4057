//! The audit trail from outside, and the worked example of docs/contracts/scheduler.md.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_scheduler/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use support::{EVERYTHING, gate, put};

both_stores![
    d01_d06_d12_the_worked_example_works_as_written,
    d10_changes_and_denied_attempts_are_lines_of_one_chain,
    d10_whatever_is_done_to_the_trail_is_found,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const PAGES: [&str; 2] = [
    include_str!("../../../docs/contracts/scheduler.md"),
    include_str!("../../../docs/contracts/scheduler.zh-CN.md"),
];

fn d01_d06_d12_the_worked_example_works_as_written(store: Store) {
    let block = |page: &'static str| {
        let marked = page.split("<!-- test: contract -->\n```sh\n").nth(1).unwrap();
        marked.split("```").next().unwrap()
    };
    let [english, chinese] = PAGES.map(block);
    assert_eq!(english, chinese, "both pages have the same commands");
    let server = Server::start(store.options(BINARY));
    let ann = server.caller("docs", "ann", &EVERYTHING);
    let place = server.directory().join("reader");
    std::fs::create_dir_all(&place).unwrap();
    let script = english.replace("127.0.0.1:7070", &server.address.to_string());
    let ran = Command::new("sh")
        .args(["-e", "-u", "-c", &script])
        .current_dir(&place)
        .env("MAINSPRING_TOKEN", &ann.token)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(ran.status.success(), "{}{}", told(&ran.stdout), told(&ran.stderr));
    let kept = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(place.join(name)).unwrap()).unwrap()
    };
    assert_eq!(kept("enqueued.json")["deduplicated"], false);
    assert_eq!(kept("held.json"), json!({ "jobs": [] }));
    assert_eq!(kept("pulled.json")["jobs"][0]["job_id"], kept("enqueued.json")["job_id"]);
    assert_eq!(kept("acked.json")["status"], "succeeded");
    let after = kept("after.json");
    let shown = (&after["status"], &after["next_action_at"], &after["audit_event_id"]);
    assert_eq!(shown, (&json!("verified"), &json!("2035-02-28T00:00:00Z"), &json!("aud_789")));
}

fn verdict(who: &Caller) -> (u16, Value) {
    let told = who.get("/api/v1/audit/verify");
    (told.status, told.json())
}

fn d10_changes_and_denied_attempts_are_lines_of_one_chain(store: Store) {
    let server = Server::start(store.options(BINARY));
    let ann = server.caller("d10", "ann", &EVERYTHING);
    let vic = server.caller("d10", "vic", &["viewer"]);
    gate(&ann, "risk", "block");
    put(&ann, "m1", &json!({ "risk_tier": "high" }));
    put(&ann, "m1", &json!({ "risk_tier": "low" }));
    assert_eq!(vic.put("/scheduler/gates/risk", &json!({ "state": "pass" })).status, 403);
    let schedule = json!({ "job_type": "t", "kind": "interval", "interval_seconds": 3600 });
    assert_eq!(ann.post("/api/v1/schedules", &schedule).status, 201);
    let lines = items(ann.get("/api/v1/audit?limit=100").data());
    let told: Vec<_> =
        lines.iter().rev().map(|it| (text(it, "action"), text(it, "outcome"))).collect();
    let expected = [
        ("gate.set", "done"),
        ("object.put", "done"),
        ("object.put", "done"),
        ("access.denied", "denied"),
        ("schedule.create", "done"),
    ];
    assert_eq!(told, expected.map(|(action, fate)| (action.to_owned(), fate.to_owned())));
    let line = &lines[2];
    assert_eq!(
        (&line["before"]["risk_tier"], &line["after"]["risk_tier"]),
        (&json!("high"), &json!("low"))
    );
    assert_eq!(line["actor"]["user_id"], "ann");
    assert!(text(&line["actor"], "token_id").starts_with("tok_"), "{line}");
    assert!(text(line, "decision_trace_id").starts_with("dtr_"), "a high risk names its decision");
    assert_eq!(lines[1]["actor"]["user_id"], "vic");
    // Each line has the hash of the one before it.
    for (later, earlier) in lines.iter().zip(&lines[1..]) {
        assert_eq!(later["prev_hash"], earlier["hash"]);
        assert_eq!(later["seq"].as_u64().unwrap(), earlier["seq"].as_u64().unwrap() + 1);
    }
    assert_eq!(lines.last().unwrap()["prev_hash"], json!("0".repeat(64)));
    let (status, told) = verdict(&ann);
    assert_eq!((status, &told["data"]["checked"]), (200, &json!(5)));
    // Filters and pages; another tenant has a trail of its own, which starts at one.
    let picked = items(ann.get("/api/v1/audit?object_id=memory:m1").data());
    assert_eq!(picked.len(), 2);
    let picked = items(ann.get("/api/v1/audit?actor=vic").data());
    assert_eq!(picked.len(), 1);
    let picked = items(ann.get("/api/v1/audit?action=gate.set&object_type=gate").data());
    assert_eq!(picked.len(), 1);
    let first = ann.get("/api/v1/audit?limit=3").data();
    let rest =
        ann.get(&format!("/api/v1/audit?limit=3&cursor={}", text(&first, "next_cursor"))).data();
    assert_eq!([items(first), items(rest)].concat(), lines);
    let eve = server.caller("d10-eve", "eve", &EVERYTHING);
    assert_eq!(items(eve.get("/api/v1/audit").data()), Vec::<Value>::new());
    gate(&eve, "risk", "pass");
    assert_eq!(items(eve.get("/api/v1/audit").data())[0]["seq"], 1);
    // Administrative changes are the admin's, in the admin's tenant, and the command line reads
    // them.
    let queue = server.admin().put("/api/v1/queues/q", &json!({ "order": "due" }));
    assert_eq!(queue.status, 200, "{}", queue.text());
    let listed = server.cli(&["audit", "list", "-o", "json"]).expect(0).json();
    let actions: Vec<_> = listed.as_array().unwrap().iter().map(|it| text(it, "action")).collect();
    assert_eq!(actions[0], "queue.set");
    assert!(actions.contains(&"token.issue".to_owned()), "{actions:?}");
    server.cli(&["audit", "verify"]).expect(0);
    // Who may not look, may not.
    let wes = server.caller("d10", "wes", &["worker"]);
    assert_eq!(wes.get("/api/v1/audit").status, 403);
}

/// Twelve lines, tampered with in every way there is: in the database a row at a time, in the
/// memory store by putting back what was there before.
fn d10_whatever_is_done_to_the_trail_is_found(store: Store) {
    let directory = tempfile::tempdir().unwrap();
    let anchor = directory.path().join("anchor");
    let config = format!("[audit]\nanchor = {:?}\n", anchor.to_str().unwrap());
    let mut server = Server::start(store.options(BINARY).config(&config));
    let ann = server.caller("t", "ann", &EVERYTHING);
    for index in 0..6 {
        put(&ann, "m1", &json!({ "auto_verify_budget": index }));
    }
    assert_eq!(verdict(&ann).0, 200);
    match store {
        Store::Memory => {
            // An older state of the whole store: nothing in it is wrong, but the anchor knows more.
            server.terminate();
            let (data, old) = (server.data_dir(), directory.path().join("old"));
            copy(&data, &old);
            server.restart();
            let ann = Caller { address: server.address, token: ann.token.clone() };
            for index in 0..6 {
                put(&ann, "m1", &json!({ "auto_verify_budget": 10 + index }));
            }
            assert_eq!(verdict(&ann).1["data"]["checked"], 12);
            server.terminate();
            std::fs::remove_dir_all(&data).unwrap();
            copy(&old, &data);
            server.restart();
            let ann = Caller { address: server.address, token: ann.token };
            let (status, told) = verdict(&ann);
            assert_eq!(
                (status, text(&told["error"], "code")),
                (409, "AUDIT_INTEGRITY_BROKEN".to_owned())
            );
            assert_eq!(told["error"]["details"]["first_bad_seq"], 12);
        }
        Store::Postgres => {
            let database = server.database().unwrap();
            for index in 0..6 {
                put(&ann, "m1", &json!({ "auto_verify_budget": 10 + index }));
            }
            let all = "SELECT id || ' ' || encode(record, 'hex') FROM mainspring.entity
                WHERE kind = 23 AND tenant = 't' ORDER BY id";
            let told = database.sql(all);
            let lines: Vec<(&str, &str)> =
                told.lines().map(|line| line.trim().split_once(' ').unwrap()).collect();
            assert_eq!(lines.len(), 12);
            let mut found = 0;
            let mut tampered = |what: &str, undo: &str| {
                database.sql(what);
                let (status, told) = verdict(&ann);
                assert_eq!(status, 409, "{what} was not found: {told}");
                found += 1;
                database.sql(undo);
                assert_eq!(verdict(&ann).0, 200, "{undo}");
            };
            for (id, hex) in &lines {
                let set = |hex: &str| {
                    format!(
                        "UPDATE mainspring.entity SET record = '\\x{hex}'
                         WHERE kind = 23 AND id = '{id}'"
                    )
                };
                // A letter of what it says: the name of whoever did it.
                let (edit, restore) = (set(&renamed(hex)), set(hex));
                tampered(&edit, &restore);
                // The line taken away: at the end, in the middle, at the beginning.
                let kind = |from, to| {
                    format!(
                        "UPDATE mainspring.entity SET kind = {to} \
                         WHERE kind = {from} AND id = '{id}'"
                    )
                };
                tampered(&kind(23, 99), &kind(99, 23));
            }
            println!("{found} tamperings found");
        }
    }
}

/// The bytes of a record in which somebody else did it.
fn renamed(hex: &str) -> String {
    let bytes = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let mut record: Vec<u8> = (0..hex.len()).step_by(2).map(bytes).collect();
    let found: Vec<usize> =
        (0..record.len() - 2).filter(|at| &record[*at..at + 3] == b"ann").collect();
    assert!(!found.is_empty(), "the line names ann");
    found.iter().for_each(|at| record[at + 2] = b'e');
    record.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

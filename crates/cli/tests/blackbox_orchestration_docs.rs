//! The worked example of docs/contracts/jobs.md, run as it is written, in both languages: only the
//! port is replaced, and the admin token is put where the example looks for it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::{Server, Store};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

both_stores![o01_o08_o20_the_worked_example_works_as_written];

const PAGES: [&str; 2] = [
    include_str!("../../../docs/contracts/jobs.md"),
    include_str!("../../../docs/contracts/jobs.zh-CN.md"),
];
const QUANT: &str = include_str!("../../../examples/quant.toml");

/// The shell blocks that follow a mark.
fn blocks(page: &str) -> Vec<&str> {
    let marked = page.split("<!-- test -->\n```sh\n").skip(1);
    marked.map(|rest| rest.split("```").next().unwrap()).collect()
}

fn o01_o08_o20_the_worked_example_works_as_written(store: Store) {
    let [english, chinese] = PAGES.map(blocks);
    assert_eq!(english, chinese, "both pages have the same commands");
    assert_eq!(english.len(), 3);
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(QUANT);
    let server = Server::start(options);
    let place = server.directory().join("reader");
    std::fs::create_dir_all(place.join("mainspring-data")).unwrap();
    std::fs::write(place.join("mainspring-data/admin.token"), &server.admin).unwrap();
    let script = english.join("\n").replace("127.0.0.1:7070", &server.address.to_string());
    let ran = Command::new("sh")
        .args(["-e", "-u", "-c", &script])
        .current_dir(&place)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(ran.status.success(), "{}{}", told(&ran.stdout), told(&ran.stderr));
    let kept = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(place.join(name)).unwrap()).unwrap()
    };
    let (made, done) = (kept("made.json"), kept("done.json"));
    assert_eq!((&made["success"], &made["message"]), (&json!(true), &json!("ok")));
    assert_eq!(
        (&made["data"]["status"], &made["data"]["idempotentHit"]),
        (&json!("queued"), &json!(false))
    );
    assert_eq!(done["data"]["taskId"], made["data"]["taskId"]);
    assert_eq!(
        (&done["data"]["status"], &done["data"]["result"]),
        (&json!("succeeded"), &json!({ "sharpe": 1.4 }))
    );
}

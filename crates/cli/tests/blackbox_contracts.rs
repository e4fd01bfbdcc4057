//! The worked examples of docs/contracts, run as they are written, in both languages: only the port
//! is replaced.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::{Server, Store};
use mainspring_testkit::both_stores;
use serde_json::Value;
use std::process::Command;

both_stores![m10_m13_the_worked_example_of_the_task_contract_works_as_written];

const ENGLISH: &str = include_str!("../../../docs/contracts/tasks.md");
const CHINESE: &str = include_str!("../../../docs/contracts/tasks.zh-CN.md");

/// The blocks of a page that are marked as to be tested.
fn blocks(page: &str) -> Vec<String> {
    let marked = page.split("<!-- test: contract -->\n```sh\n").skip(1);
    marked.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn m10_m13_the_worked_example_of_the_task_contract_works_as_written(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    for (tenant, page) in [("english", ENGLISH), ("chinese", CHINESE)] {
        let blocks = blocks(page);
        assert_eq!(blocks.len(), 1, "{tenant}");
        let who = server.caller(tenant, "ann", &["submitter", "worker"]);
        let script = blocks[0].replace("127.0.0.1:7070", &who.address.to_string());
        let ran = Command::new("sh")
            .args(["-e", "-c", &script])
            .env("MAINSPRING_TOKEN", &who.token)
            .output()
            .unwrap();
        let told = String::from_utf8(ran.stdout).unwrap();
        let warned = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{told}{warned}");
        let answers: Vec<Value> =
            told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [made, hit, reported, task, events] = &answers[..] else { panic!("{told}{warned}") };
        assert_eq!(
            (&made["idempotent_hit"], &hit["idempotent_hit"]),
            (&false.into(), &true.into())
        );
        assert_eq!(made["task"]["task_id"], hit["task"]["task_id"]);
        assert_eq!(reported["data"]["items"][0]["status"], "succeeded");
        assert_eq!(task["state"], "succeeded");
        let states: Vec<_> = events["items"].as_array().unwrap().iter().collect();
        let states: Vec<_> = states.iter().map(|it| it["payload"]["to_state"].as_str()).collect();
        assert_eq!(states, [Some("ready"), Some("running"), Some("succeeded")]);
    }
}

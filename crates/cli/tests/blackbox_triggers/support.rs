//! What the tests of triggers say most often. Files are real, below a folder that goes away with
//! the server; every test has a folder and a tenant of its own.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its own part")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Options, Server, Store, eventually};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

pub(crate) const USER: [&str; 2] = ["submitter", "worker"];

/// Quick, so that tests need not wait: nothing here depends on how quick.
pub(crate) const CONFIG: &str = "[types]\nstrict = false\n[triggers]\nroots = [\"files\"]\n\
                                 check_ms = 500\nsettle_ms = 50\n";

pub(crate) fn options(store: Store, binary: &'static str) -> Options {
    store.options(binary).config(CONFIG)
}

/// A folder below the root, and somebody to whom a tenant of that name belongs.
pub(crate) struct Place {
    pub(crate) who: Caller,
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
}

impl Place {
    pub(crate) fn new(server: &Server, name: &str) -> Place {
        let folder = server.directory().join("files").join(name);
        fs::create_dir_all(&folder).unwrap();
        Place { who: server.caller(name, "ann", &USER), folder, name: name.to_owned() }
    }

    /// A path of a condition.
    pub(crate) fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.name)
    }

    pub(crate) fn write(&self, file: &str) {
        let path = self.folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.folder.join(file)).unwrap();
    }

    /// A conditional trigger.
    #[track_caller]
    pub(crate) fn on(&self, id: &str, condition: Value) -> Value {
        self.create(json!({
            "id": id, "type": "conditional", "prompt": "look", "condition": condition,
        }))
    }

    #[track_caller]
    pub(crate) fn create(&self, wish: Value) -> Value {
        let made = self.who.post("/agent/triggers", &wish);
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()
    }

    #[track_caller]
    pub(crate) fn get(&self, id: &str) -> Value {
        let found = self.who.get(&format!("/agent/triggers/{id}"));
        assert_eq!(found.status, 200, "{}", found.text());
        found.json()
    }

    /// The same as the native contract has it.
    #[track_caller]
    pub(crate) fn native(&self, id: &str, more: &str) -> Value {
        self.who.get(&format!("/api/v1/triggers/{id}{more}")).data()
    }

    /// How many runs a trigger has made.
    #[track_caller]
    pub(crate) fn fired(&self, id: &str) -> u64 {
        self.native(id, "")["fired_count"].as_u64().unwrap()
    }

    /// Waits until a trigger has made so many runs.
    #[track_caller]
    pub(crate) fn fires(&self, id: &str, count: u64) {
        eventually(&format!("{id} fires {count} times"), || {
            (self.fired(id) >= count).then_some(())
        });
        assert_eq!(self.fired(id), count);
    }

    /// Waits for the next run and takes it.
    #[track_caller]
    pub(crate) fn pull(&self) -> Value {
        self.pull_for(json!({ "worker_id": "w", "wait_ms": 30_000 }))
    }

    #[track_caller]
    pub(crate) fn pull_for(&self, wish: Value) -> Value {
        let answer = self.who.post("/agent/pull", &wish);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let runs = answer.json()["runs"].as_array().cloned().unwrap();
        runs.into_iter().next().expect("a run within half a minute")
    }

    /// Ends a run.
    #[track_caller]
    pub(crate) fn report(&self, run: &Value, body: Value) {
        let mut body = body;
        body["leaseToken"] = run["leaseToken"].clone();
        let path = format!("/agent/runs/{}/result", text(run, "id"));
        let answer = self.who.post(&path, &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    #[track_caller]
    pub(crate) fn finish(&self, run: &Value) {
        self.report(run, json!({ "status": "done", "resultType": "text", "result": "ok" }));
    }

    /// Takes the next run and ends it, and waits until its trigger knows.
    #[track_caller]
    pub(crate) fn work(&self) -> Value {
        let run = self.pull();
        self.finish(&run);
        let id = text(&run, "sourceTriggerId");
        eventually("the trigger hears of the end of its run", || {
            let found = self.who.get(&format!("/agent/triggers/{id}"));
            (found.status != 200 || found.json()["state"]["runningAt"].is_null()).then_some(())
        });
        run
    }

    /// The outcomes of the latest evaluations, the latest first.
    pub(crate) fn outcomes(&self, id: &str) -> Vec<String> {
        let told = items(self.native(id, "/evaluations"));
        told.iter().map(|line| text(line, "outcome")).collect()
    }

    /// Waits until the server looks at the leaves of a trigger so that a change is told.
    #[track_caller]
    pub(crate) fn watched(&self, id: &str) {
        eventually("the trigger is watched", || {
            let told = self.native(id, "/explain");
            let leaves = told["leaves"].as_array().unwrap().clone();
            leaves.iter().all(|leaf| leaf["way"].is_string()).then_some(())
        });
    }
}

pub(crate) fn changed(path: &str) -> Value {
    json!({ "type": "file_changed", "params": { "path": path } })
}

pub(crate) fn exists(path: &str) -> Value {
    json!({ "type": "file_exists", "params": { "path": path } })
}

pub(crate) fn task(kind: &str, id: &str) -> Value {
    json!({ "type": kind, "params": { "taskId": id } })
}

pub(crate) fn all(kind: &str, parts: &[Value]) -> Value {
    json!({ "type": kind, "params": { "conditions": parts } })
}

//! Triggers from outside, with real files in real folders: what makes them fire, once, and what
//! they tell of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_triggers/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::{Place, USER, all, changed, exists, options, task};

both_stores![
    a05_a06_a_recurring_trigger_fires_waits_for_its_run_and_goes_on,
    a05_a06_a_scheduled_trigger_fires_once_and_is_gone,
    a05_a07_a_file_that_changes_below_a_glob_makes_one_run,
    a07_a_file_that_is_there_fires_after_each_cooldown,
    a07_a_task_that_ended_makes_one_run_in_its_trace,
    a07_an_edge_inside_of_a_false_and_is_not_lost,
    a07_a_question_is_answered_by_a_worker_and_seen_by_nobody_else,
    a08_a_cooldown_is_kept_and_what_changes_meanwhile_is_one_run,
    a09_the_ten_fields_of_the_state_are_used_and_survive_a_kill,
    a09_nothing_is_rewritten_while_nothing_happens,
    a10_names_are_unique_in_a_tenant_and_traces_reach_the_result,
    a05_a07_the_native_contract_and_the_command_line_say_the_same,
    a07_pause_resume_and_delete_do_what_they_say,
    a05_nonsense_is_refused_where_it_stands,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

/// One server per store for the whole file.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || options(store, BINARY))
}

fn fields(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The fields of the document's sample of a trigger.
const SAMPLE: [&str; 13] = [
    "schemaVersion",
    "id",
    "type",
    "traceId",
    "parentTaskId",
    "prompt",
    "priority",
    "createdAt",
    "timeout",
    "schedule",
    "condition",
    "cooldown",
    "state",
];

/// And of its state.
const STATE: [&str; 10] = [
    "lastTriggeredAt",
    "lastEvalAt",
    "lastSeenResultId",
    "lastMtime",
    "initialized",
    "runningAt",
    "lastStatus",
    "lastError",
    "lastDurationMs",
    "nextRunAt",
];

fn a05_a06_a_recurring_trigger_fires_waits_for_its_run_and_goes_on(store: Store) {
    let here = Place::new(server(store), "a06r");
    // The document's sample, as it stands.
    let made = here.create(json!({
        "schemaVersion": 2, "id": "trigger-001", "type": "recurring", "traceId": "trace-001",
        "parentTaskId": "task-001", "prompt": "...", "priority": 5, "timeout": null,
        "schedule": { "interval": 1, "lastRunAt": null, "nextRunAt": null },
        "condition": { "type": "file_changed", "params": { "path": "src/**/*.ts" } },
        "cooldown": 3600,
        "state": {
            "lastTriggeredAt": null, "lastEvalAt": null, "lastSeenResultId": null,
            "lastMtime": null, "initialized": false, "runningAt": null, "lastStatus": null,
            "lastError": null, "lastDurationMs": null, "nextRunAt": null,
        },
    }));
    assert_eq!(fields(&made), SAMPLE.into());
    assert_eq!(fields(&made["state"]), STATE.into());
    assert_eq!(made["schedule"]["interval"], 1);
    assert!(made["schedule"]["nextRunAt"].is_string() && made["schedule"]["lastRunAt"].is_null());
    assert_eq!(made["schedule"]["nextRunAt"], made["state"]["nextRunAt"]);
    let run = here.pull();
    assert_eq!(
        (run["sourceTriggerId"].as_str(), &run["prompt"]),
        (Some("trigger-001"), &json!("..."))
    );
    assert_eq!((&run["traceId"], &run["parentTaskId"]), (&json!("trace-001"), &json!("task-001")));
    assert!(run["triggeredAt"].is_string());
    // Several intervals go by while the run has not ended.
    let state = here.get("trigger-001")["state"].clone();
    assert!(state["runningAt"].is_string());
    eventually("the next run is overdue", || {
        let next = text(&here.get("trigger-001")["schedule"], "nextRunAt");
        let now = text(&here.native("trigger-001", "/explain"), "evaluated_at");
        (next < now).then_some(())
    });
    assert_eq!(here.fired("trigger-001"), 1);
    here.finish(&run);
    let second = here.work();
    assert_ne!(second["id"], run["id"]);
    let after = here.get("trigger-001");
    assert_eq!(
        (&after["state"]["lastStatus"], &after["state"]["lastError"]),
        (&json!("ok"), &json!(null))
    );
    assert!(after["state"]["lastDurationMs"].is_u64());
    assert_eq!(after["schedule"]["lastRunAt"], after["state"]["lastTriggeredAt"]);
    assert_eq!(here.who.delete("/agent/triggers/trigger-001").status, 200);
}

fn a05_a06_a_scheduled_trigger_fires_once_and_is_gone(store: Store) {
    let here = Place::new(server(store), "a06s");
    let made = here.create(json!({
        "id": "once", "type": "scheduled", "prompt": "now",
        "schedule": { "runAt": "2026-01-01T00:00:00Z" },
    }));
    assert_eq!(made["schedule"]["runAt"], "2026-01-01T00:00:00.000000Z");
    let run = here.pull();
    assert_eq!(run["sourceTriggerId"], "once");
    here.finish(&run);
    assert_eq!(here.who.get("/agent/triggers/once").status, 403);
    let later = here.create(json!({
        "id": "later", "type": "scheduled", "prompt": "then",
        "schedule": { "runAt": "2031-01-01T00:00:00Z" },
    }));
    assert_eq!(later["state"]["nextRunAt"], "2031-01-01T00:00:00.000000Z");
    let listed = here.who.get("/agent/triggers").json();
    assert_eq!((items(listed.clone()).len(), &listed["total"]), (1, &json!(1)));
}

fn a05_a07_a_file_that_changes_below_a_glob_makes_one_run(store: Store) {
    let here = Place::new(server(store), "a07c");
    here.write("src/deep/old.ts");
    let made = here.on("glob", changed(&here.path("src/**/*.ts")));
    assert_eq!(
        (&made["state"]["initialized"], made["state"]["lastMtime"].is_string()),
        (&json!(true), true)
    );
    // What was there is no change, and what does not match is none either.
    here.write("src/deep/other.js");
    here.watched("glob");
    assert_eq!(here.fired("glob"), 0);
    here.write("src/deep/old.ts");
    here.fires("glob", 1);
    let run = here.work();
    assert_eq!((&run["sourceTriggerId"], &run["prompt"]), (&json!("glob"), &json!("look")));
    // In a folder that was not there before.
    here.write("src/new/folder/fresh.ts");
    here.fires("glob", 2);
    here.work();
    assert_eq!(here.fired("glob"), 2);
    let outcomes = here.outcomes("glob");
    assert!(outcomes.iter().filter(|it| *it == "fired").count() == 2, "{outcomes:?}");
    let lines = items(here.native("glob", "/evaluations"));
    let fired = lines.iter().find(|line| line["outcome"] == "fired").unwrap();
    assert_eq!(
        (&fired["leaves"][0]["truth"], &fired["leaves"][0]["type"]),
        (&json!("true"), &json!("file_changed"))
    );
    assert!(fired["job_id"].is_string() && fired["leaves"][0]["at"].is_string());
    // Fires at once for what is there, if it is told to.
    here.on("eager", json!({
        "type": "file_changed", "params": { "path": here.path("src/**/*.ts"), "fireOnInit": true },
    }));
    here.fires("eager", 1);
    // An absolute path below the root means the same.
    let absolute = here.folder.join("abs/*.txt");
    here.on("absolute", changed(absolute.to_str().unwrap()));
    here.write("abs/a.txt");
    here.fires("absolute", 1);
}

fn a07_a_file_that_is_there_fires_after_each_cooldown(store: Store) {
    let here = Place::new(server(store), "a07e");
    here.on("there", exists(&here.path("flag")));
    here.watched("there");
    assert_eq!(here.fired("there"), 0);
    here.write("flag");
    here.fires("there", 1);
    here.work();
    here.fires("there", 2);
    here.remove("flag");
    eventually("it is seen that the file is gone", || {
        (here.native("there", "/explain")["leaves"][0]["truth"] == "false").then_some(())
    });
    here.work();
    eventually("it is noted that the file is gone", || {
        (here.outcomes("there")[0] == "not_yet").then_some(())
    });
    let count = here.fired("there");
    let again = here.native("there", "/explain");
    assert_eq!(
        (again["would_fire"].as_bool(), &again["outcome"]),
        (Some(false), &json!("not_yet"))
    );
    assert_eq!(here.fired("there"), count);
}

fn a07_a_task_that_ended_makes_one_run_in_its_trace(store: Store) {
    let here = Place::new(server(store), "a07t");
    let run = |id: &str| {
        let wish =
            json!({ "id": id, "prompt": "a", "traceId": "trace-a", "parentTaskId": "planner-1" });
        assert_eq!(here.who.post("/agent/runs", &wish).status, 201);
    };
    // Before the task is there, and after it has ended.
    here.on("after-a", task("task_done", "task-a"));
    here.on("unless-a", task("task_failed", "task-a"));
    run("task-a");
    let first = here.pull();
    assert_eq!(first["id"], "task-a");
    here.finish(&first);
    here.fires("after-a", 1);
    let second = here.work();
    assert_eq!(second["sourceTriggerId"], "after-a");
    assert_eq!(
        (&second["traceId"], &second["parentTaskId"]),
        (&json!("trace-a"), &json!("planner-1"))
    );
    assert_eq!(here.get("after-a")["state"]["lastSeenResultId"], "task-a");
    here.on("late", task("task_done", "task-a"));
    here.fires("late", 1);
    here.work();
    run("task-b");
    here.on("if-b-fails", task("task_failed", "task-b"));
    let failing = here.pull();
    here.report(&failing, json!({ "status": "failed", "error": "no", "failureReason": "error" }));
    here.fires("if-b-fails", 1);
    let last = here.work();
    assert_eq!(last["sourceTriggerId"], "if-b-fails");
    // By the id of a job that a trigger made, too; a cycle of triggers goes nowhere.
    here.on("after-that", task("task_done", &text(&last, "id")));
    here.fires("after-that", 1);
    here.on("one", task("task_done", "two"));
    here.on("two", task("task_done", "one"));
    here.on("self", task("task_done", "self"));
    assert_eq!((here.fired("after-a"), here.fired("unless-a")), (1, 0));
    assert_eq!(["one", "two", "self"].map(|id| here.fired(id)), [0, 0, 0]);
    // What somebody else does is not theirs to go by.
    let eve = server(store).caller("a07t", "eve", &USER);
    let wish = json!({ "id": "eve", "type": "conditional", "prompt": "x",
        "condition": task("task_done", "task-a") });
    assert_eq!(eve.post("/agent/triggers", &wish).status, 201);
    let told = eve.get("/api/v1/triggers/eve/explain").data();
    assert_eq!((&told["outcome"], &told["would_fire"]), (&json!("not_yet"), &json!(false)));
}

fn a07_an_edge_inside_of_a_false_and_is_not_lost(store: Store) {
    let here = Place::new(server(store), "a07n");
    let both = all("and", &[changed(&here.path("a/*")), exists(&here.path("go"))]);
    here.on("both", all("or", &[both, task("task_done", "never")]));
    here.write("a/one");
    eventually("the edge is noted", || {
        let lines = items(here.native("both", "/evaluations"));
        lines.iter().any(|line| line["leaves"][0]["truth"] == "true").then_some(())
    });
    assert_eq!(here.fired("both"), 0);
    let told = here.native("both", "/explain");
    assert_eq!(told["reason"], "the condition does not hold");
    let truths: Vec<&Value> = (0..3).map(|at| &told["leaves"][at]["truth"]).collect();
    assert_eq!(truths, [&json!("true"), &json!("false"), &json!("false")]);
    // The file of the edge is gone by the time the rest holds.
    here.remove("a/one");
    here.write("go");
    here.fires("both", 1);
    here.work();
    eventually("the edge was taken", || {
        (here.native("both", "/explain")["leaves"][0]["truth"] == "false").then_some(())
    });
    assert_eq!(here.fired("both"), 1);
}

fn a07_a_question_is_answered_by_a_worker_and_seen_by_nobody_else(store: Store) {
    let here = Place::new(server(store), "a07q");
    let ask = json!({ "type": "llm_eval", "params": { "prompt": "is it time?" } });
    let ready = all("and", &[exists(&here.path("ready")), ask]);
    here.on("opinion", ready);
    let none = here.who.post("/agent/pull", &json!({ "worker_id": "w", "purpose": "evaluation" }));
    assert_eq!(none.json()["runs"], json!([]), "nobody is asked what is decided already");
    here.write("ready");
    let wish = json!({ "worker_id": "w", "purpose": "evaluation", "wait_ms": 30_000 });
    let question = here.pull_for(wish.clone());
    assert_eq!(question["prompt"], "is it time?");
    assert!(here.get("opinion")["state"]["runningAt"].is_string());
    assert_eq!(items(here.who.get("/agent/runs").json()), [] as [Value; 0]);
    here.report(&question, json!({ "status": "done", "result": "no" }));
    // It is asked again after a while, and the answer decides.
    let question = here.pull_for(wish);
    assert_eq!(here.fired("opinion"), 0);
    here.report(&question, json!({ "status": "done", "result": "Yes" }));
    let run = here.pull();
    assert_eq!((&run["prompt"], &run["type"]), (&json!("look"), &json!("oneshot")));
    assert_eq!(items(here.who.get("/agent/runs").json()).len(), 1);
    assert!(here.get("opinion")["state"]["lastEvalAt"].is_string());
}

fn a08_a_cooldown_is_kept_and_what_changes_meanwhile_is_one_run(store: Store) {
    let here = Place::new(server(store), "a08");
    here.create(json!({
        "id": "cool", "type": "conditional", "prompt": "look", "cooldown": 3,
        "condition": changed(&here.path("*.txt")),
    }));
    here.write("a.txt");
    here.fires("cool", 1);
    here.work();
    for file in ["a.txt", "b.txt", "c.txt"] {
        here.write(file);
    }
    eventually("it waits for its cooldown", || {
        (here.native("cool", "/explain")["outcome"] == "cooldown").then_some(())
    });
    let told = here.native("cool", "/explain");
    assert_eq!(
        (told["would_fire"].as_bool(), told["cooldown_until"].is_string()),
        (Some(false), true)
    );
    here.fires("cool", 2);
    let first = here.pull();
    let lines = items(here.native("cool", "/evaluations"));
    let fired: Vec<&Value> = lines.iter().filter(|line| line["outcome"] == "fired").collect();
    let at =
        |line: &Value| line["at"].as_str().unwrap().parse::<mainspring_sdk::api::Time>().unwrap().0;
    assert!(at(fired[0]) - at(fired[1]) >= 3_000_000, "{fired:?}");
    here.finish(&first);
    eventually("the cooldown after the second run is over", || {
        let told = here.native("cool", "/explain");
        (told["cooldown_until"].is_null() && told["running_at"].is_null()).then_some(())
    });
    assert_eq!(here.fired("cool"), 2);
}

fn a09_the_ten_fields_of_the_state_are_used_and_survive_a_kill(store: Store) {
    let mut own = Server::start(options(store, BINARY));
    let here = Place::new(&own, "a09k");
    here.create(json!({
        "id": "state", "type": "conditional", "prompt": "look", "cooldown": 1,
        "condition": all("or", &[changed(&here.path("*")), task("task_done", "t")]),
    }));
    here.who.post("/agent/runs", &json!({ "id": "t", "prompt": "x" }));
    let run = here.pull();
    here.finish(&run);
    here.fires("state", 1);
    let failed = here.pull();
    here.report(
        &failed,
        json!({ "status": "failed", "error": "out of paper", "failureReason": "error" }),
    );
    eventually("the run has ended", || {
        here.get("state")["state"]["runningAt"].is_null().then_some(())
    });
    here.write("a");
    here.fires("state", 2);
    eventually("the state is whole", || {
        let state = here.get("state")["state"].clone();
        (state["runningAt"].is_string() && state["lastMtime"].is_string()).then_some(())
    });
    let before = here.get("state");
    let state = &before["state"];
    assert_eq!(fields(state), STATE.into());
    assert_eq!(
        (&state["lastStatus"], &state["lastError"]),
        (&json!("error"), &json!("out of paper"))
    );
    assert_eq!((&state["lastSeenResultId"], &state["initialized"]), (&json!("t"), &json!(true)));
    for field in ["lastTriggeredAt", "lastEvalAt", "lastMtime", "runningAt", "nextRunAt"] {
        assert!(state[field].is_string(), "{field}: {state}");
    }
    assert!(state["lastDurationMs"].is_u64());
    own.kill9();
    // What changes while nobody is there is an edge all the same.
    here.write("b");
    own.restart();
    let after = here.get("state");
    for field in ["lastTriggeredAt", "lastSeenResultId", "lastStatus", "lastError", "runningAt"] {
        assert_eq!(after["state"][field], before["state"][field], "{field}");
    }
    here.work();
    here.fires("state", 3);
    here.work();
    assert_eq!(here.fired("state"), 3);
}

fn a09_nothing_is_rewritten_while_nothing_happens(store: Store) {
    let here = Place::new(server(store), "a09i");
    here.write("a");
    here.on("idle", changed(&here.path("*")));
    here.create(json!({
        "id": "clock", "type": "recurring", "prompt": "tick", "schedule": { "interval": 2 },
    }));
    here.watched("idle");
    let version = here.native("idle", "")["version"].clone();
    // Four looks at what cannot be watched would have come by.
    let run = here.pull();
    assert_eq!(run["sourceTriggerId"], "clock");
    assert_eq!(here.native("idle", "")["version"], version);
    assert_eq!(here.native("idle", "/explain")["leaves"][0]["way"], "watched");
}

fn a10_names_are_unique_in_a_tenant_and_traces_reach_the_result(store: Store) {
    let here = Place::new(server(store), "a10");
    let there = Place::new(server(store), "a10other");
    let wish = json!({
        "id": "same", "type": "scheduled", "prompt": "x", "traceId": "trace-a10",
        "schedule": { "runAt": "2031-01-01T00:00:00Z" },
    });
    here.create(wish.clone());
    let again = here.who.post("/agent/triggers", &wish);
    assert_eq!((again.status, &again.json()["code"]), (409, &json!("ENTITY_EXISTS")));
    assert_eq!(there.create(wish.clone())["id"], "same");
    assert_eq!(there.who.delete("/agent/triggers/same").status, 200);
    assert_eq!(here.get("same")["id"], "same");
    // Unknown and foreign ones look alike.
    let eve = server(store).caller("a10", "eve", &USER);
    let (foreign, unknown) = (eve.get("/agent/triggers/same"), eve.get("/agent/triggers/none"));
    assert_eq!((foreign.status, foreign.json()), (unknown.status, unknown.json()));
    assert_eq!((foreign.status, eve.delete("/agent/triggers/same").status), (403, 403));
    let unnamed = here.create(json!({
        "type": "recurring", "prompt": "x", "schedule": { "interval": 86_400 },
    }));
    let other = here.create(json!({
        "type": "recurring", "prompt": "x", "schedule": { "interval": 86_400 },
    }));
    assert_ne!(unnamed["id"], other["id"]);
    here.create(json!({
        "id": "traced", "type": "recurring", "prompt": "x", "traceId": "trace-1",
        "schedule": { "interval": 1 },
    }));
    let run = here.pull();
    let (id, triggered_at) = (text(&run, "id"), text(&run, "triggeredAt"));
    here.finish(&run);
    let result = here.who.get(&format!("/agent/runs/{id}/result")).json();
    assert_eq!(
        (&result["traceId"], &result["sourceTriggerId"]),
        (&json!("trace-1"), &json!("traced"))
    );
    assert_eq!(
        (&result["task"]["triggeredAt"], &result["task"]["sourceTriggerId"]),
        (&json!(triggered_at), &json!("traced"))
    );
    let job = here.who.job(&text(&run, "jobId"));
    assert_eq!(
        (text(&job, "subject"), text(&job, "trace_id")),
        (format!("run:{id}"), "trace-1".to_owned())
    );
    here.who.delete("/agent/triggers/traced");
}

fn a05_a07_the_native_contract_and_the_command_line_say_the_same(store: Store) {
    let server = server(store);
    let here = Place::new(server, "a05c");
    let cli = |args: &[&str]| server.cli_as(&here.who.token, args);
    let path = here.path("**/*.md");
    let made = cli(&[
        "triggers",
        "create",
        "read it",
        "--id",
        "docs",
        "--file-changed",
        &path,
        "--cooldown",
        "1h",
        "--priority",
        "9",
        "-o",
        "json",
    ])
    .expect(0)
    .json();
    assert_eq!(
        (&made["cooldown"], &made["status"], &made["priority"]),
        (&json!(3_600), &json!("active"), &json!(9))
    );
    assert_eq!(made["condition"]["params"]["path"], json!(path));
    assert_eq!(here.get("docs")["condition"], made["condition"]);
    cli(&["triggers", "create", "tick", "--every", "1d", "--id", "daily"]).expect(0);
    cli(&["triggers", "create", "then", "--at", "2031-01-01T00:00:00Z", "--id", "then"]).expect(0);
    cli(&[
        "triggers",
        "create",
        "q",
        "--id",
        "q",
        "--condition",
        r#"{"type":"task_done","params":{"task_id":"t"}}"#,
    ])
    .expect(0);
    assert_eq!(here.get("q")["condition"]["params"], json!({ "taskId": "t" }));
    let listed = cli(&["triggers", "list", "--type", "conditional", "-o", "json"]).expect(0).json();
    assert_eq!(listed["total"], 2);
    let told = cli(&["triggers", "explain", "docs"]).expect(0).stdout;
    assert!(told.contains("the condition does not hold") && told.contains("watched"), "{told}");
    let dry = cli(&["triggers", "dry-run", "docs", "-o", "json"]).expect(0).json();
    assert_eq!(dry["would_fire"], false);
    here.write("new/a.md");
    here.fires("docs", 1);
    let lines = cli(&["triggers", "evaluations", "docs"]).expect(0).stdout;
    assert!(lines.contains("fired") && lines.contains("not_yet"), "{lines}");
    assert!(cli(&["triggers", "get", "docs"]).expect(0).stdout.contains("1"));
    cli(&["triggers", "pause", "docs", "--note", "tea"]).expect(0);
    assert_eq!(here.native("docs", "")["paused"]["note"], "tea");
    cli(&["triggers", "resume", "docs"]).expect(0);
    cli(&["triggers", "delete", "docs"]).expect(0);
    assert_ne!(cli(&["triggers", "get", "docs"]).code, Some(0));
}

fn a07_pause_resume_and_delete_do_what_they_say(store: Store) {
    let here = Place::new(server(store), "a07p");
    here.on("rests", changed(&here.path("*")));
    let paused = here.who.post("/api/v1/triggers/rests/pause", &json!({ "note": "n" })).data();
    assert_eq!((&paused["status"], &paused["paused"]["note"]), (&json!("paused"), &json!("n")));
    here.write("a");
    let told = here.native("rests", "/explain");
    assert_eq!((&told["outcome"], &told["would_fire"]), (&json!("paused"), &json!(false)));
    let resumed = here.who.poke("/api/v1/triggers/rests/resume").data();
    assert_eq!(
        (&resumed["status"], &resumed["state"]["initialized"]),
        (&json!("active"), &json!(true))
    );
    here.watched("rests");
    assert_eq!(here.fired("rests"), 0, "what changed during the pause is no edge");
    here.write("b");
    here.fires("rests", 1);
    assert_eq!(here.who.delete("/api/v1/triggers/rests").data()["status"], "deleted");
    assert_eq!(here.who.get("/api/v1/triggers/rests").status, 403);
    // Its run is not touched, and the name is free again.
    assert_eq!(here.pull()["sourceTriggerId"], "rests");
    here.on("rests", changed(&here.path("*")));
}

fn a05_nonsense_is_refused_where_it_stands(store: Store) {
    let here = Place::new(server(store), "a05n");
    let when =
        |condition: Value| json!({ "type": "conditional", "prompt": "x", "condition": condition });
    let recurring = json!({ "type": "recurring", "prompt": "x", "schedule": { "interval": 60 } });
    let with = |more: Value| {
        let mut body = recurring.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let refused = [
        (json!({ "type": "sometimes", "prompt": "x" }), "type"),
        (json!({ "type": "recurring", "prompt": "x" }), "schedule"),
        (json!({ "type": "scheduled", "prompt": "x", "schedule": { "interval": 5 } }), "schedule"),
        (json!({ "type": "conditional", "prompt": "x" }), "condition"),
        (with(json!({ "schedule": { "interval": 0 } })), "interval"),
        (with(json!({ "prompt": "" })), "prompt"),
        (with(json!({ "prompt": "x".repeat(20_000) })), "prompt"),
        (with(json!({ "priority": 11 })), "priority"),
        (with(json!({ "id": "a\u{0}b" })), "id"),
        (with(json!({ "id": "x".repeat(161) })), "id"),
        (with(json!({ "schemaVersion": 3 })), "schemaVersion"),
        (with(json!({ "createdAt": "2999-01-01T00:00:00Z" })), "state"),
        (with(json!({ "state": { "lastTriggeredAt": "2999-01-01T00:00:00Z" } })), "state"),
        (with(json!({ "state": { "nextRunAt": "2999-01-01T00:00:00Z" } })), "schedule"),
        (with(json!({ "state": { "lastMtime": "never" } })), "state"),
        (with(json!({ "traceId": "a\u{7}" })), "traceId"),
        (when(json!({ "type": "moon_phase", "params": {} })), "condition"),
        (
            when(json!({ "type": "file_changed", "params": { "path": "a", "glob": 1 } })),
            "condition",
        ),
        (when(json!({ "type": "file_changed", "params": {} })), "condition"),
        (
            when(json!({ "type": "task_done", "params": { "task_id": "native spelling" } })),
            "condition",
        ),
        (when(changed("../outside")), "condition"),
        (when(changed("/etc/passwd")), "condition"),
        (when(changed("a/**b")), "condition"),
    ];
    for (body, field) in refused {
        let answer = here.who.post("/agent/triggers", &body);
        let told = answer.json();
        assert_eq!((answer.status, told["field"].as_str()), (400, Some(field)), "{body} {told}");
    }
    assert_eq!(here.who.get("/agent/triggers").json()["total"], 0);
    let unknown = with(json!({ "surprise": 1 }));
    assert_eq!(here.who.post("/agent/triggers", &unknown).status, 400);
    let viewer = server(store).caller("a05n", "vic", &["viewer"]);
    assert_eq!(viewer.post("/agent/triggers", &recurring).status, 403);
}

//! Executor modes from outside: the same tasks in every mode, switched by configuration, within
//! what their types promise, and nothing left behind when anything stops.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_executor/steps.rs"]
mod steps;

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::command::run;
use mainspring_testkit::blackbox::{Options, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use steps::{ANALYZE, NOTIFY, QUANT, done, ended, failed, odd, sleepers, submit};

both_stores![
    o07_o08_o14_tasks_of_two_domains_move_alike_in_every_mode,
    o22_the_mode_is_switched_by_configuration_and_reported,
    o12_the_declared_service_level_is_enforced,
    o14_o20_the_executor_dispatches_and_writes_back_and_the_api_runs_nothing,
    o14_o22_a_type_has_a_mode_of_its_own_that_can_be_changed,
    o15_d17_a_server_that_is_told_to_stop_gives_its_jobs_back,
    o15_d17_a_killed_server_takes_its_commands_along,
    o16_a_cancelled_command_is_told_and_then_made_to_stop,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

fn options(store: Store, config: &str) -> Options {
    store.options(BINARY).config(&format!("{QUANT}\n{config}"))
}

/// What the tasks of a domain went through, and the fields and codes they show.
type Shape = (Vec<String>, Vec<String>, Vec<String>, Value);

fn o07_o08_o14_tasks_of_two_domains_move_alike_in_every_mode(store: Store) {
    // The demo's handlers know by the number which sample can never work; the command does the
    // same.
    let script = r#"read -r payload
case "$payload" in *'"n":5'*) echo "this sample can never work" >&2; exit 65 ;; esac
printf '{"by":"%s"}' "$MAINSPRING_JOB_TYPE""#;
    let process = format!("[executor]\nmode = \"process\"\nshell = true\ncommand = {script:?}\n");
    let mut codes = BTreeSet::new();
    let mut shapes: Vec<Shape> = Vec::new();
    for mode in ["process", "inprocess"] {
        let options = match mode {
            "process" => options(store, &process),
            _ => options(store, "[executor]\nmode = \"inprocess\"\n").arg("--demo"),
        };
        let server = Server::start(options);
        let ann = server.caller("alike", "ann", &["submitter", "operator"]);
        for kind in [ANALYZE, NOTIFY] {
            let good = done(&ann, kind, &format!("{kind}-good"), json!({ "n": 0 }));
            assert_eq!(good["status"], "succeeded", "{good}");
            assert!(good["result"].is_object(), "{good}");
            let id = text(&good, "taskId");
            let executor = json!({ "name": mode, "dispatchId": format!("{id}:0:1") });
            assert_eq!(good["executor"], executor);
            let bad = done(&ann, kind, &format!("{kind}-bad"), json!({ "n": 5 }));
            codes.insert((mode, failed(&ann, &bad, mode)));
            assert_eq!(bad["error"]["message"], "this sample can never work");
            let keys = good.as_object().unwrap().keys().cloned().collect();
            let (well, badly) = (ann.path(&id), ann.path(&text(&bad, "taskId")));
            shapes.push((keys, well, badly, good["error"].clone()));
        }
    }
    assert!(shapes.windows(2).all(|two| two[0] == two[1]), "{shapes:?}");
    assert_eq!(shapes[0].1, ["queued", "running", "succeeded"]);
    assert_eq!(shapes[0].2, ["queued", "running", "dlq_pending", "dlq_recorded", "failed"]);
    // One code per mode, whatever the domain: the handler's own, and that of a command without one.
    let own = ("inprocess", "DEMO_BAD_INPUT".to_owned());
    assert_eq!(codes, BTreeSet::from([own, ("process", "EXECUTION_FAILED".to_owned())]));
}

fn o22_the_mode_is_switched_by_configuration_and_reported(store: Store) {
    let config = "[executor]\ncommand = \"cat\"\n";
    let mut server = Server::start(options(store, config));
    let reported = |server: &Server| {
        let native = server.admin().get("/api/v1/runtime").data();
        let jobs = server.admin().get("/jobs/runtime").data();
        assert_eq!(jobs["executor"]["name"], jobs["executor"]["mode"]);
        assert_eq!(native["executor"]["mode"], jobs["executor"]["mode"]);
        text(&jobs["executor"], "mode")
    };
    assert_eq!(reported(&server), "pull");
    let ann = server.caller("switch", "ann", &["submitter", "operator"]);
    let waits = submit(&ann, NOTIFY, "waits", json!({ "n": 1 }));
    let explained = ann.get(&format!("/api/v1/jobs/{waits}/explain")).data();
    assert!(explained.to_string().contains("NO_WORKER"), "nothing runs in the server: {explained}");
    assert_eq!(server.admin().get("/api/v1/workers").data()["items"], json!([]));

    let mode = |mode: &str| ("MAINSPRING_EXECUTOR_MODE".to_owned(), mode.to_owned());
    server.restart_with(|options| options.env.push(mode("process")));
    assert_eq!(reported(&server), "process");
    let task = ended(&ann, &waits);
    assert_eq!((&task["status"], &task["result"]), (&json!("succeeded"), &json!({ "n": 1 })));
    assert_eq!(task["executor"]["name"], "process");

    server.restart_with(|options| options.env = vec![mode("inprocess")]);
    assert_eq!(reported(&server), "inprocess");
    let task = done(&ann, NOTIFY, "nobody", json!({}));
    assert_eq!(failed(&ann, &task, "inprocess"), "TASK_HANDLER_NOT_FOUND");
    assert!(text(&task["error"], "message").contains(NOTIFY), "{task}");

    // Any other value, or one that lacks what it needs, is refused at the start.
    let directory = server.directory();
    for (mode, file, told) in [
        ("celery-adapter", "", "must be one of pull, inprocess, process, webhook"),
        ("process", "", "executor.command is needed by a process"),
        ("webhook", "", "executor.url is needed by a webhook"),
        ("webhook", "[executor]\nurl = \"https://a.example\"\n", "needs a secret to sign with"),
    ] {
        let path = directory.join("refused.toml");
        std::fs::write(&path, file).unwrap();
        let args = ["serve", "--listen", "127.0.0.1:0", "--ephemeral", "--config", "refused.toml"];
        let refused = run(BINARY, &args, &[("MAINSPRING_EXECUTOR_MODE", mode)], directory);
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains(told), "{mode}: {}", refused.stderr);
    }
}

/// How many of these jobs ran at the same time at most, by the server's own account.
fn most_at_a_time(ann: &mainspring_testkit::blackbox::Caller, ids: &[String]) -> usize {
    let mut moves: Vec<(String, i32)> = Vec::new();
    for id in ids {
        for event in ann.events(id) {
            let at = text(&event, "occurred_at");
            match event["to_state"].as_str() {
                Some("running") => moves.push((at, 1)),
                Some("succeeded" | "failed") => moves.push((at, -1)),
                _ => {}
            }
        }
    }
    // At one instant ends come first: the place is free when the next one takes it.
    moves.sort();
    let (mut now, mut most) = (0, 0);
    for (_, step) in moves {
        now += step;
        most = most.max(now);
    }
    usize::try_from(most).unwrap()
}

fn o12_the_declared_service_level_is_enforced(store: Store) {
    let folder = tempfile::tempdir().unwrap();
    let tries = folder.path().join("tries");
    let (gate, tries_path) = (folder.path().join("gate"), tries.display());
    let shell =
        |script: &str| format!("{{ mode = \"process\", shell = true, command = {script:?} }}");
    let name = odd(store, "61234.25");
    let config = format!(
        "[executor]\nconcurrency = 1\n\
         [types.first]\ndomain = \"a\"\nexecutor = {first}\n\
         [types.high]\ndomain = \"a\"\npriority = 200\nexecutor = {cat}\n\
         [types.low]\ndomain = \"b\"\npriority = 1\nexecutor = {cat}\n\
         [types.slow]\ndomain = \"b\"\ntimeout_seconds = 1\nmax_retries = 0\nexecutor = {slow}\n\
         [types.tries]\ndomain = \"c\"\nmax_retries = 2\nbackoff_base_ms = 1\nbackoff_max_ms = 1\n\
         executor = {tries}\n",
        first = shell(&format!("while [ ! -e {} ]; do sleep 0.02; done", gate.display())),
        cat = shell("cat"),
        slow = shell(&format!("trap '' TERM; sleep {name} & sleep {name}; sleep {name}"))
            .replace(" }", ", kill_grace_ms = 200 }"),
        tries = shell(&format!("echo \"$MAINSPRING_ATTEMPT\" >> {tries_path}; exit 1")),
    );
    let mut server = Server::start(options(store, &config));
    let ann = server.caller("sla", "ann", &["submitter", "operator"]);

    // Priority orders dispatch: while the only place is taken, low ones come first and go last.
    let first = submit(&ann, "first", "first", json!({}));
    eventually("the place is taken", || (ann.job(&first)["status"] == "running").then_some(()));
    let many = |kind: &str| -> Vec<String> {
        (0..4).map(|n| submit(&ann, kind, &format!("{kind}-{n}"), json!({}))).collect()
    };
    let (low, high) = (many("low"), many("high"));
    std::fs::write(&gate, "").unwrap();
    let started = |ids: &[String]| -> Vec<String> {
        ids.iter().map(|id| text(&ended(&ann, id), "startedAt")).collect()
    };
    let (low, high) = (started(&low), started(&high));
    assert!(high.iter().max() <= low.iter().min(), "high {high:?}, low {low:?}");

    // Timeout ends runs, also of a command that does not listen, with all that it started.
    let slow = done(&ann, "slow", "slow", json!({}));
    assert_eq!(failed(&ann, &slow, "process"), "TASK_TIMEOUT");
    eventually("all of it is gone", || (sleepers(&name) == 0).then_some(()));

    // Retries are bounded.
    let task = done(&ann, "tries", "tries", json!({}));
    assert_eq!(failed(&ann, &task, "process"), "EXECUTION_FAILED");
    assert_eq!(std::fs::read_to_string(&tries).unwrap(), "1\n2\n3\n");

    // Concurrency is never exceeded: two per user, whatever the executor could do.
    let config = format!(
        "{QUANT}\n[executor]\nmode = \"process\"\nconcurrency = 16\nshell = true\n\
         command = \"sleep 0.1\"\n"
    );
    server.restart_with(|options| options.config = config);
    let mine = |user: &str| -> (mainspring_testkit::blackbox::Caller, Vec<String>) {
        let caller = server.caller("sla", user, &["submitter", "operator"]);
        let of = |n| submit(&caller, NOTIFY, &format!("n-{n}"), json!({}));
        let ids = (0..8).map(of).collect();
        (caller, ids)
    };
    for (caller, ids) in [mine("bob"), mine("eve")] {
        for id in &ids {
            assert_eq!(ended(&caller, id)["status"], "succeeded");
        }
        let most = most_at_a_time(&caller, &ids);
        assert!((1..=2).contains(&most), "{most} at a time");
        println!("{} tasks, {most} at a time", ids.len());
    }
}

fn o14_o20_the_executor_dispatches_and_writes_back_and_the_api_runs_nothing(store: Store) {
    let config = "[executor]\nmode = \"process\"\ncommand = \"cat\"\n";
    let server = Server::start(options(store, config));
    let ann = server.caller("path", "ann", &["submitter", "operator"]);
    server.admin().poke("/api/v1/queues/default/pause").data();
    let id = submit(&ann, ANALYZE, "held", json!({ "rows": [1, 2] }));
    let explained = ann.get(&format!("/api/v1/jobs/{id}/explain")).data().to_string();
    assert!(explained.contains("QUEUE_PAUSED"), "only dispatch makes it run: {explained}");
    // The owner cannot make it true by hand.
    for to in ["running", "succeeded", "failed"] {
        let wish = json!({ "toStatus": to });
        assert_eq!(ann.post(&format!("/jobs/{id}/transition"), &wish).status, 403);
    }
    assert_eq!(ann.path(&id), ["queued"]);
    server.admin().poke("/api/v1/queues/default/resume").data();
    let task = ended(&ann, &id);
    assert_eq!(
        (&task["status"], &task["result"]),
        (&json!("succeeded"), &json!({ "rows": [1, 2] }))
    );
    let events = ann.events(&id);
    assert_eq!(ann.path(&id), ["queued", "running", "succeeded"]);
    for event in &events[1..] {
        let actor = text(event, "actor");
        assert!(actor.starts_with("worker:executor-process-"), "{actor}");
        assert_eq!(event["trace_id"], task["traceId"]);
    }
    eventually("it is counted", || {
        let execution = server.admin().get("/jobs/runtime").data()["execution"].clone();
        (execution["dispatched"] == 1 && execution["succeeded"] == 1).then_some(())
    });
}

fn o14_o22_a_type_has_a_mode_of_its_own_that_can_be_changed(store: Store) {
    let config = "[types.printed]\ndomain = \"d\"\n\
                  executor = { mode = \"process\", shell = true, command = \"echo by file\" }\n\
                  [executor]\nprograms = [\"echo\"]\n";
    let server = Server::start(options(store, config));
    let admin = server.admin();
    let ann = server.caller("types", "ann", &["submitter", "operator"]);
    assert_eq!(done(&ann, "printed", "1", json!({}))["result"], "by file");

    // Through the API and the command line, at once and without a restart.
    let set =
        json!({ "executor": { "mode": "process", "command": "echo", "args": ["by", "API"] } });
    let kept = admin.put("/api/v1/types/printed", &set).data();
    assert_eq!(kept["executor"]["args"], json!(["by", "API"]));
    assert_eq!(kept["executor"]["kill_grace_ms"], 5000);
    assert_eq!(done(&ann, "printed", "2", json!({}))["result"], "by API");
    let set =
        ["types", "set", "fresh", "--executor", "process", "--command", "echo", "--arg", "-x"];
    server.cli(&set).expect(0);
    assert_eq!(done(&ann, "fresh", "3", json!({}))["result"], "-x");

    // Whoever may not set types does not see commands.
    let shown = ann.get("/api/v1/types/printed").data();
    assert_eq!(shown["executor"], json!({ "mode": "process" }));

    // An admin has the types, not the machine.
    for (executor, field) in [
        (json!({ "mode": "process", "command": "/bin/sh" }), "executor.command"),
        (json!({ "mode": "process", "command": "echo", "shell": true }), "executor.command"),
        (json!({ "mode": "process", "command": "echo\0" }), "executor.command"),
        (json!({ "mode": "process" }), "executor.command"),
        (json!({ "mode": "process", "command": "echo", "cwd": "tmp" }), "executor.cwd"),
        (
            json!({ "mode": "process", "command": "echo", "env": ["MAINSPRING_ADMIN_TOKEN"] }),
            "executor.env",
        ),
        (json!({ "mode": "process", "command": "echo", "args": vec!["x"; 101] }), "executor.args"),
        (
            json!({ "mode": "process", "command": "echo", "args": ["x".repeat(1 << 17)] }),
            "executor.command",
        ),
        (json!({ "mode": "webhook", "url": "https://a.example" }), "executor.url"),
        (json!({ "mode": "celery" }), "executor.mode"),
        (json!({ "mode": "pull", "command": "echo" }), "executor"),
    ] {
        let answer = admin.put("/api/v1/types/printed", &json!({ "executor": executor }));
        assert_eq!(answer.refusal(), (400, "REQ_VALIDATION_FAILED".to_owned()), "{executor}");
        assert_eq!(answer.json()["error"]["details"]["path"], field, "{}", answer.text());
    }
    assert_eq!(done(&ann, "printed", "4", json!({}))["result"], "by API");

    // Back to those who ask.
    admin.put("/api/v1/types/printed", &json!({ "executor": { "mode": "pull" } })).data();
    let worker = server.caller("types", "w", &["worker"]);
    eventually("the executor lets go of it", || {
        let workers = admin.get("/api/v1/workers").data();
        let is_asked_for = workers.to_string().contains("\"printed\"");
        (!is_asked_for).then_some(())
    });
    let id = submit(&ann, "printed", "5", json!({}));
    let grant = worker.pull_one("printed");
    assert_eq!(grant["job_id"], id.as_str());
    worker.report("complete", &grant, json!({ "result": "by hand" }));
    assert_eq!(ended(&ann, &id)["executor"]["name"], "pull");
}

fn o15_d17_a_server_that_is_told_to_stop_gives_its_jobs_back(store: Store) {
    let name = odd(store, "71234.25");
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "trap '' TERM; [ -e {} ] && echo \"$MAINSPRING_ATTEMPT\" && exit; \
         sleep {name} & while :; do sleep {name}; done",
        go.display()
    );
    let config = format!(
        "[executor]\nmode = \"process\"\nshell = true\ncommand = {script:?}\n\
         kill_grace_ms = 200\ngrace = \"300ms\"\n"
    );
    let mut server = Server::start(options(store, &config));
    let ann = server.caller("drain", "ann", &["submitter", "operator"]);
    let ids: Vec<String> =
        [ANALYZE, NOTIFY].iter().map(|kind| submit(&ann, kind, kind, json!({}))).collect();
    eventually("both run", || (sleepers(&name) == 4).then_some(()));
    assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
    assert_eq!(sleepers(&name), 0, "nothing is left behind");
    std::fs::write(&go, "").unwrap();
    server.restart();
    for id in &ids {
        let task = ended(&ann, id);
        assert_eq!(task["result"], 1, "still the first attempt: {task}");
        assert_eq!(ann.job(id)["retry_count"], 0);
        let path = ann.path(id);
        assert_eq!(path, ["queued", "running", "retrying", "running", "succeeded"]);
    }
}

fn o15_d17_a_killed_server_takes_its_commands_along(store: Store) {
    let name = odd(store, "81234.25");
    let script = format!("(setsid sh -c 'sleep {name} & sleep {name}' &); sleep {name}");
    let config = format!("[executor]\nmode = \"process\"\nshell = true\ncommand = {script:?}\n");
    let mut server = Server::start(options(store, &config));
    let ann = server.caller("killed", "ann", &["submitter", "operator"]);
    submit(&ann, NOTIFY, "killed", json!({}));
    eventually("all three run", || (sleepers(&name) == 3).then_some(()));
    server.kill9();
    eventually("all of it is gone", || (sleepers(&name) == 0).then_some(()));
}

fn o16_a_cancelled_command_is_told_and_then_made_to_stop(store: Store) {
    // One that ends when it is told, and one that does not listen, with a child of its own.
    let (polite, deaf) = (odd(store, "281."), odd(store, "282."));
    let script = format!(
        "read -r payload\n\
         case \"$payload\" in *polite*) sleep {polite} ;; *) trap '' TERM; sleep {deaf} & sleep {deaf} ;; esac"
    );
    let config = format!(
        "[executor]\nmode = \"process\"\nshell = true\nkill_grace_ms = 200\ncommand = {script:?}\n"
    );
    let server = Server::start(options(store, &config));
    let ann = server.caller("cancel", "ann", &["submitter", "operator"]);
    let ids = [
        submit(&ann, NOTIFY, "polite", json!({ "is": "polite" })),
        submit(&ann, ANALYZE, "deaf", json!({ "is": "deaf" })),
    ];
    eventually("both run", || (sleepers(&polite) == 1 && sleepers(&deaf) == 2).then_some(()));
    for id in &ids {
        let answer = ann.poke(&format!("/api/v1/jobs/{id}/cancel"));
        assert_eq!(answer.data()["status"], "cancelled");
    }
    eventually("all of it is gone", || (sleepers(&polite) + sleepers(&deaf) == 0).then_some(()));
    for id in &ids {
        let job = ann.job(id);
        assert_eq!(
            (&job["status"], &job["error_code"]),
            (&json!("cancelled"), &json!("JOB_CANCELLED"))
        );
        assert_eq!(ann.path(id), ["queued", "running", "cancelled"]);
    }
}

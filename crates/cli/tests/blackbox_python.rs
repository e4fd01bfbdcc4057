//! `python -m job_orchestration.cli`: the thirteen commands against a live server, in exactly the
//! shapes that its callers expect.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Caller, PerStore, Ran, Server, Store, run};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    o09_o11_types_are_printed_in_camel_case_as_the_registry_has_them,
    o01_o07_o08_tasks_of_two_domains_go_alike_from_the_command_line,
    o03_o06_a_key_again_is_the_same_task_and_another_payload_a_conflict,
    o02_o04_tasks_of_others_and_those_that_are_not_there_are_told_alike,
    o12_o16_a_failed_task_is_retried_once_and_moves_by_hand_fake_no_callback,
    o13_o18_schedules_are_made_listed_and_stopped,
    o22_o23_runtime_and_templates_are_an_admins,
    o01_whatever_goes_wrong_is_one_document_and_exit_code_0,
];

const QUANT: &str = include_str!("../../../examples/quant.toml");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdks/python/src");
const ANALYZE: &str = "strategy_performance_analyze";
const NOTIFY: &str = "risk_alert_notify";

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).config(QUANT))
}

/// Runs the program as it is; says what came of it.
fn python(url: &str, token: &str, args: &[&str]) -> Ran {
    let env = [
        ("PYTHONPATH", SOURCE),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("MAINSPRING_URL", url),
        ("MAINSPRING_TOKEN", token),
    ];
    let args = [&["-m", "job_orchestration.cli"], args].concat();
    run("python3", &args, &env, &std::env::temp_dir())
}

/// Somebody at the command line.
struct Typist {
    caller: Caller,
    url: String,
    user: String,
}

impl Typist {
    fn new(server: &Server, tenant: &str, user: &str, roles: &[&str]) -> Self {
        let caller = server.caller(tenant, user, roles);
        Typist { caller, url: server.url.clone(), user: user.to_owned() }
    }

    fn admin(server: &Server) -> Self {
        Typist { caller: server.admin(), url: server.url.clone(), user: "admin".into() }
    }

    /// The document that a command prints: indented, and exit code 0 whatever it says.
    #[track_caller]
    fn types(&self, args: &[&str]) -> Value {
        let ran = python(&self.url, &self.caller.token, args).expect(0);
        assert!(ran.stdout.starts_with("{\n  \"success\": "), "indented: {ran:?}");
        assert!(ran.stdout.ends_with("\n}\n") && ran.stderr.is_empty(), "{ran:?}");
        ran.json()
    }

    /// The `data` of a command that goes well, whose document has exactly what it should.
    #[track_caller]
    fn data(&self, args: &[&str]) -> Value {
        let mut whole = self.types(args);
        let keys = keys(&whole);
        match args[0] {
            "runtime" => assert_eq!(keys, ["data", "success"].map(str::to_owned).into()),
            _ => {
                let wanted = ["data", "runtime", "success"];
                assert_eq!(keys, wanted.map(str::to_owned).into(), "{whole}");
                assert_eq!(whole["runtime"]["executor"]["mode"], "pull");
                assert_eq!(whole["runtime"]["scheduler"], json!({ "running": true }));
            }
        }
        assert_eq!(whole["success"], true);
        whole["data"].take()
    }

    /// A command of this user's.
    #[track_caller]
    fn own(&self, command: &str, args: &[&str]) -> Value {
        self.data(&[&[command, "--user-id", &self.user], args].concat())
    }

    /// The code of a command that goes wrong; its document has nothing else in it.
    #[track_caller]
    fn code(&self, args: &[&str]) -> String {
        let whole = self.types(args);
        assert_eq!((&whole["success"], whole.as_object().unwrap().len()), (&json!(false), 2));
        assert_eq!(whole["error"].as_object().unwrap().len(), 2, "{whole}");
        text(&whole["error"], "code")
    }

    #[track_caller]
    fn submit(&self, kind: &str, key: &str) -> Value {
        let payload = "--payload={\"n\": 1}";
        self.own("submit", &["--task-type", kind, "--idempotency-key", key, payload])
    }

    #[track_caller]
    fn status(&self, job: &str) -> Value {
        self.own("status", &["--job-id", job])
    }
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

fn o09_o11_types_are_printed_in_camel_case_as_the_registry_has_them(store: Store) {
    let server = server(store);
    let ann = Typist::new(server, "py-types", "ann", &["submitter"]);
    let rows = ann.data(&["types"]);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 31);
    let wanted: BTreeSet<String> = [
        "taskType",
        "domain",
        "schedulable",
        "priority",
        "timeoutSeconds",
        "maxRetries",
        "concurrencyLimit",
    ]
    .map(str::to_owned)
    .into();
    let mut names: Vec<String> = rows.iter().map(|row| text(row, "taskType")).collect();
    for row in rows {
        assert_eq!(keys(row), wanted, "no more, no less, and no legacyNames");
        let native = server.admin().get(&format!("/api/v1/types/{}", text(row, "taskType"))).data();
        for (theirs, ours) in [
            ("domain", "domain"),
            ("priority", "priority"),
            ("timeoutSeconds", "timeout_seconds"),
            ("maxRetries", "max_retries"),
            ("concurrencyLimit", "concurrency_limit"),
        ] {
            assert_eq!(row[theirs], native[ours], "{row}");
        }
    }
    assert_eq!(
        rows.iter().find(|row| row["taskType"] == "backtest_run").unwrap(),
        &json!({ "taskType": "backtest_run", "domain": "backtest", "schedulable": true,
            "priority": 100, "timeoutSeconds": 1800, "maxRetries": 1, "concurrencyLimit": 1 })
    );
    let sorted = names.clone();
    names.sort();
    assert_eq!(names, sorted, "sorted by taskType");
    let domains: BTreeSet<String> = rows.iter().map(|row| text(row, "domain")).collect();
    assert!(domains.len() >= 6, "one registry for every domain: {domains:?}");
}

fn o01_o07_o08_tasks_of_two_domains_go_alike_from_the_command_line(store: Store) {
    let server = server(store);
    let ann = Typist::new(server, "py-alike", "ann", &["submitter"]);
    let worker = server.caller("py-alike", "w", &["worker"]);
    let mut shapes = Vec::new();
    for kind in [ANALYZE, NOTIFY] {
        let made = ann.submit(kind, kind);
        let job = text(&made, "taskId");
        assert_eq!((&made["userId"], &made["payload"]), (&json!("ann"), &json!({ "n": 1 })));
        let mut seen = vec![text(&made, "status"), text(&ann.status(&job), "status")];
        let grant = worker.pull_one(kind);
        seen.push(text(&ann.status(&job), "status"));
        worker.report("complete", &grant, json!({ "result": { "score": 7 } }));
        let done = ann.status(&job);
        assert_eq!(done["result"], json!({ "score": 7 }));
        seen.push(text(&done, "status"));
        let late = ann.code(&["cancel", "--user-id", "ann", "--job-id", &job]);
        shapes.push((keys(&made), keys(&done), seen, late));

        let second = text(&ann.submit(kind, &format!("second {kind}")), "taskId");
        let ended = ann.own("cancel", &["--job-id", &second]);
        assert_eq!((&ended["status"], &ended["taskId"]), (&json!("cancelled"), &json!(second)));
    }
    assert_eq!(shapes[0], shapes[1], "the domain makes no difference");
    assert_eq!(shapes[0].2, ["queued", "queued", "running", "succeeded"]);
    assert_eq!(shapes[0].3, "INVALID_TRANSITION");
}

fn o03_o06_a_key_again_is_the_same_task_and_another_payload_a_conflict(store: Store) {
    let ann = Typist::new(server(store), "py-keys", "ann", &["submitter"]);
    let bob = Typist::new(server(store), "py-keys", "bob", &["submitter"]);
    let (first, again) = (ann.submit(NOTIFY, "k"), ann.submit(NOTIFY, "k"));
    assert_eq!(first["taskId"], again["taskId"]);
    assert_eq!((&first["idempotentHit"], &again["idempotentHit"]), (&json!(false), &json!(true)));
    assert_ne!(bob.submit(NOTIFY, "k")["taskId"], first["taskId"], "a key is its user's");
    let args = ["submit", "--user-id", "ann", "--task-type", NOTIFY, "--idempotency-key", "k"];
    assert_eq!(ann.code(&args), "IDEMPOTENCY_CONFLICT", "without --payload it is {{}}");
    // Digits are not the client's to round, nor text its to change.
    let exact = r#"{"n": 12345678901234567890.10, "t": "é\u0000"}"#;
    let payload = format!("--payload={exact}");
    let args = ["--task-type", NOTIFY, "--idempotency-key", "exact", &payload];
    let made = ann.own("submit", &args);
    let native = ann.caller.job(&text(&made, "taskId"));
    assert_eq!(native["payload_json"], exact);
}

fn o02_o04_tasks_of_others_and_those_that_are_not_there_are_told_alike(store: Store) {
    let server = server(store);
    let ann = Typist::new(server, "py-apart", "ann", &["submitter"]);
    let bob = Typist::new(server, "py-apart", "bob", &["submitter"]);
    let eve = Typist::new(server, "py-apart-b", "ann", &["submitter"]);
    let admin = Typist::admin(server);
    let job = text(&ann.submit(NOTIFY, "mine"), "taskId");
    let unknown = "job_00000000000000000000000000";
    for stranger in [&bob, &eve] {
        let user = stranger.user.as_str();
        for id in [job.as_str(), unknown, "nonsense", "../schedules", ""] {
            let ask = |command: &'static str, more: &[&str]| {
                let args = [&[command, "--user-id", user, "--job-id", id], more].concat();
                stranger.code(&args)
            };
            if !id.is_empty() {
                assert_eq!(ask("status", &[]), "JOB_NOT_FOUND", "{user} {id}");
                assert_eq!(ask("cancel", &[]), "JOB_ACCESS_DENIED", "{user} {id}");
            }
            let moved = ask("transition", &["--to-status", "cancelled"]);
            assert!(id.is_empty() || moved == "JOB_ACCESS_DENIED", "{user} {id}: {moved}");
        }
        // Somebody else's name does not help, and makes nothing.
        let named = ["status", "--user-id", "carol", "--job-id", &job];
        assert_eq!(stranger.code(&named), "JOB_NOT_FOUND");
    }
    let wish = ["submit", "--user-id", "ann", "--task-type", NOTIFY, "--idempotency-key", "x"];
    for other in [&bob, &admin] {
        assert_eq!(other.code(&wish), "JOB_ACCESS_DENIED", "nobody submits for somebody else");
    }
    assert_eq!(bob.caller.get("/jobs").data(), json!([]), "nothing was made");
    // An admin's token may name whose task it is, and must name the right one.
    assert_eq!(admin.data(&["status", "--user-id", "ann", "--job-id", &job])["taskId"], json!(job));
    assert_eq!(admin.code(&["status", "--user-id", "bob", "--job-id", &job]), "JOB_NOT_FOUND");
    assert_eq!(admin.code(&["status", "--user-id", "bob", "--job-id", unknown]), "JOB_NOT_FOUND");
    let cancel = ["cancel", "--user-id", "bob", "--job-id", &job];
    assert_eq!(admin.code(&cancel), "JOB_ACCESS_DENIED");
    assert_eq!(ann.status(&job)["status"], "queued", "nothing of all this changed it");
    let ended = admin.data(&["cancel", "--user-id", "ann", "--job-id", &job]);
    assert_eq!(ended["status"], "cancelled");
}

fn o12_o16_a_failed_task_is_retried_once_and_moves_by_hand_fake_no_callback(store: Store) {
    let server = server(store);
    let ann = Typist::new(server, "py-moves", "ann", &["submitter"]);
    let worker = server.caller("py-moves", "w", &["worker"]);
    let job = text(&ann.submit(NOTIFY, "k"), "taskId");
    for to in ["running", "succeeded", "failed"] {
        let args = ["transition", "--user-id", "ann", "--job-id", &job, "--to-status", to];
        assert_eq!(ann.code(&args), "JOB_ACCESS_DENIED", "{to}");
    }
    worker.fail(&worker.pull_one(NOTIFY), "SMTP_DOWN", false);
    let failed = ann.status(&job);
    assert_eq!(
        (&failed["status"], &failed["error"]["code"]),
        (&json!("failed"), &json!("SMTP_DOWN"))
    );
    let again = ann.own("retry", &["--job-id", &job]);
    assert_eq!((&again["retryOf"], &again["status"]), (&json!(job), &json!("queued")));
    let twice = ["retry", "--user-id", "ann", "--job-id", &job];
    assert_eq!(ann.code(&twice), "INVALID_TRANSITION");
    let next = text(&again, "taskId");
    let ended = ann.own("transition", &["--job-id", &next, "--to-status", "cancelled"]);
    assert_eq!(ended["status"], "cancelled");
    let hand = Typist { caller: worker, url: server.url.clone(), user: "w".into() };
    let third = text(&ann.submit(NOTIFY, "third"), "taskId");
    let moved = hand.own("transition", &["--job-id", &third, "--to-status", "running"]);
    assert_eq!(moved["status"], "running");
}

fn o13_o18_schedules_are_made_listed_and_stopped(store: Store) {
    let ann = Typist::new(server(store), "py-times", "ann", &["submitter"]);
    let bob = Typist::new(server(store), "py-times", "bob", &["submitter"]);
    let every = ann.own("schedule-interval", &["--task-type", NOTIFY, "--every-seconds", "86400"]);
    let cron = ann.own("schedule-cron", &["--task-type", ANALYZE, "--cron-expr", "0 2 * * *"]);
    assert_eq!(
        (&every["scheduleType"], &every["expression"]),
        (&json!("interval"), &json!("86400"))
    );
    assert_eq!((&cron["scheduleType"], &cron["expression"]), (&json!("cron"), &json!("0 2 * * *")));
    assert_eq!((&every["namespace"], &every["status"]), (&json!("user:ann"), &json!("active")));
    let listed = ann.own("schedules", &[]);
    assert_eq!(listed, json!([cron, every]), "the newest first");
    assert_eq!(bob.own("schedules", &[]), json!([]));
    assert_eq!(bob.code(&["schedules", "--user-id", "ann"]), "SCHEDULE_ACCESS_DENIED");
    let id = text(&every, "id");
    for schedule in [id.as_str(), "sch_00000000000000000000000000"] {
        let args = ["schedule-stop", "--user-id", "bob", "--schedule-id", schedule];
        assert_eq!(bob.code(&args), "SCHEDULE_ACCESS_DENIED");
    }
    for _ in 0..2 {
        let stopped = ann.own("schedule-stop", &["--schedule-id", &id]);
        assert_eq!((&stopped["id"], &stopped["status"]), (&json!(id), &json!("stopped")));
    }
    let bad = ["schedule-cron", "--user-id", "ann", "--task-type", NOTIFY, "--cron-expr", "61 * *"];
    assert_eq!(ann.code(&bad), "INVALID_ARGUMENT");
    let bad =
        ["schedule-interval", "--user-id", "ann", "--task-type", NOTIFY, "--every-seconds", "0"];
    assert_eq!(ann.code(&bad), "VALIDATION_ERROR");
}

fn o22_o23_runtime_and_templates_are_an_admins(store: Store) {
    let server = server(store);
    let admin = Typist::admin(server);
    let ann = Typist::new(server, "py-admin", "ann", &["submitter", "operator", "viewer"]);
    for command in ["runtime", "templates", "templates-recover"] {
        assert_eq!(ann.code(&[command]), "ADMIN_REQUIRED", "{command}");
    }
    let runtime = admin.data(&["runtime"]);
    assert_eq!(runtime["executor"], json!({ "name": "pull", "mode": "pull" }));
    let wanted = ["execution", "executor", "recovery", "scheduler", "systemSchedules"];
    assert_eq!(keys(&runtime), wanted.map(str::to_owned).into());
    let templates = admin.data(&["templates"]);
    assert_eq!(templates.as_array().unwrap().len(), 4);
    assert!(templates.as_array().unwrap().iter().all(|it| it["registered"] == true), "{templates}");
    let summary = admin.data(&["templates-recover"]);
    assert_eq!(
        (&summary["total"], &summary["created"], &summary["deduplicated"]),
        (&json!(4), &json!(0), &json!(4))
    );
    let seen = ann.types(&["types"]);
    assert_eq!(keys(&seen["runtime"]), ["executor", "scheduler"].map(str::to_owned).into());
}

fn o01_whatever_goes_wrong_is_one_document_and_exit_code_0(store: Store) {
    let ann = Typist::new(server(store), "py-wrong", "ann", &["submitter"]);
    let submit = ["submit", "--user-id", "ann", "--task-type", NOTIFY, "--idempotency-key", "k"];
    let deep = format!("--payload={}", "[".repeat(100_000));
    for payload in
        ["--payload={", "--payload=", "--payload={\"n\": NaN}", "--payload={'n': 1}", &deep]
    {
        assert_eq!(
            ann.code(&[&submit[..], &[payload]].concat()),
            "INVALID_PAYLOAD",
            "{payload:.20}"
        );
    }
    assert_eq!(ann.code(&[&submit[..], &["--payload=[1]"]].concat()), "VALIDATION_ERROR");
    let unknown = ["submit", "--user-id", "ann", "--task-type", "nope", "--idempotency-key", "k"];
    assert_eq!(ann.code(&unknown), "INVALID_ARGUMENT");
    let lost = Typist {
        caller: Caller { token: "ms_bad".into(), ..ann.caller.clone() },
        url: ann.url.clone(),
        user: "ann".into(),
    };
    assert_eq!(lost.code(&["types"]), "UNAUTHORIZED");
    let away = Typist { url: "http://127.0.0.1:1".into(), ..lost };
    assert_eq!(away.code(&["types"]), "SERVER_UNREACHABLE");
    let nothing = python(&ann.url, &ann.caller.token, &[]).expect(1);
    assert!(nothing.stdout.is_empty() && nothing.stderr.contains("usage"), "{nothing:?}");
    python(&ann.url, &ann.caller.token, &["status", "--user-id", "ann"]).expect(2);
}

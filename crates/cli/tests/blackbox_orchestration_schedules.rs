//! Schedules and system templates of the job orchestration contract: whose they are, that they fire,
//! and that a restart neither loses nor doubles one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Response, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    o13_o18_schedules_of_others_are_told_like_those_that_are_not_there,
    o17_schedules_outlive_a_restart_and_go_on_firing,
    o13_what_makes_no_schedule_is_told,
    o23_templates_are_registered_restored_and_never_doubled,
    o23_o24_the_quant_example_registers_its_templates,
];

const NOTIFY: &str = "risk_alert_notify";
const QUANT: &str = include_str!("../../../examples/quant.toml");

fn options(store: Store) -> mainspring_testkit::blackbox::Options {
    store.options(env!("CARGO_BIN_EXE_mainspring")).config(QUANT)
}

#[track_caller]
fn refused(answer: &Response) -> (u16, String) {
    let whole = answer.json();
    assert_eq!(whole["success"], false, "{}: {whole}", answer.status);
    (answer.status, text(&whole["error"], "code"))
}

#[track_caller]
fn every(caller: &Caller, seconds: u64) -> Value {
    let wish = json!({ "taskType": NOTIFY, "everySeconds": seconds });
    let made = caller.post("/jobs/schedules/interval", &wish);
    assert_eq!(made.status, 200, "{}", made.text());
    made.data()
}

fn schedules(caller: &Caller) -> Vec<Value> {
    items(caller.get("/jobs/schedules").data())
}

/// How many tasks a caller has.
fn fired(caller: &Caller) -> usize {
    caller.get("/jobs").data().as_array().unwrap().len()
}

fn o13_o18_schedules_of_others_are_told_like_those_that_are_not_there(store: Store) {
    let mut server = Server::start(options(store));
    let ann = server.caller("o13", "ann", &["submitter"]);
    let made = every(&ann, 3600);
    let id = text(&made, "id");
    let shape = json!({ "id": id, "userId": "ann", "namespace": "user:ann", "taskType": NOTIFY,
        "scheduleType": "interval", "expression": "3600", "status": "active",
        "createdAt": made["createdAt"], "updatedAt": made["updatedAt"] });
    assert_eq!(made, shape);
    let strangers = [
        server.caller("o13", "bob", &["submitter"]),
        server.caller("o13-b", "ann", &["submitter", "operator"]),
        server.caller("o13", "wim", &["worker"]),
    ];
    for _ in 0..2 {
        for stranger in &strangers {
            for (method, verb) in [("GET", ""), ("POST", "/stop")] {
                let ask = |id: &str| {
                    let path = format!("/jobs/schedules/{id}{verb}");
                    stranger.request(method, &path).send(stranger.address)
                };
                let unknown = "sch_00000000000000000000000000";
                let answers = [ask(&id), ask(unknown), ask("nonsense"), ask("job_1")];
                for answer in &answers {
                    assert_eq!(refused(answer), (403, "SCHEDULE_ACCESS_DENIED".into()));
                    assert_eq!(answer.body, answers[0].body);
                }
            }
            let told = stranger.get("/jobs/schedules").data();
            assert_eq!(told["items"], json!([]));
            assert_eq!(
                told["runtime"],
                json!({ "executor": { "name": "pull", "mode": "pull" },
                "scheduler": { "running": true } }),
                "others learn no more of the server"
            );
        }
        assert_eq!(schedules(&ann), [shape.clone()], "nothing changed");
        // The same after a restart.
        server.restart();
    }
    let path = format!("/jobs/schedules/{id}/stop");
    for _ in 0..2 {
        assert_eq!(ann.poke(&path).data()["status"], "stopped", "twice is harmless");
    }
    assert_eq!(ann.get(&format!("/jobs/schedules/{id}")).data()["status"], "stopped");
    assert_eq!(schedules(&ann).len(), 1, "a stopped one can still be read");
    let admin = server.admin();
    assert_eq!(admin.get(&format!("/jobs/schedules/{id}")).status, 200);
    assert_eq!(admin.get("/jobs/schedules/sch_1").status, 404);
}

fn o17_schedules_outlive_a_restart_and_go_on_firing(store: Store) {
    let mut server = Server::start(options(store));
    let ann = server.caller("o17", "ann", &["submitter", "worker"]);
    let often = text(&every(&ann, 1), "id");
    let wish = json!({ "taskType": NOTIFY, "cronExpr": "0 2 * * *" });
    let daily = ann.post("/jobs/schedules/cron", &wish).data();
    assert_eq!(
        (&daily["scheduleType"], &daily["expression"]),
        (&json!("cron"), &json!("0 2 * * *"))
    );
    eventually("it fires", || (fired(&ann) >= 2).then_some(()));
    let before = schedules(&ann);
    assert_eq!(before.len(), 2);

    server.restart();
    let ids = |list: &[Value]| list.iter().map(|it| text(it, "id")).collect::<BTreeSet<_>>();
    assert_eq!(ids(&schedules(&ann)), ids(&before));
    let so_far = fired(&ann);
    eventually("it goes on firing", || (fired(&ann) >= so_far + 2).then_some(()));
    let recovery = server.admin().get("/jobs/runtime").data()["recovery"].take();
    assert_eq!(recovery["recoveredSchedules"], 6, "two of hers and four templates: {recovery}");
    assert_eq!(recovery["recoveredSystemTemplates"], 4);

    // No instant has two tasks, and what it makes is done like anything else.
    let made: Vec<Value> = ann.get("/jobs").data().as_array().unwrap().clone();
    let keys: BTreeSet<String> = made.iter().map(|task| text(task, "idempotencyKey")).collect();
    assert_eq!(keys.len(), made.len());
    let grant = ann.pull_one(NOTIFY);
    ann.complete(&grant);
    let done = ann.get(&format!("/jobs/{}", text(&grant, "job_id"))).data();
    assert_eq!((&done["status"], &done["userId"]), (&json!("succeeded"), &json!("ann")));

    ann.poke(&format!("/jobs/schedules/{often}/stop")).data();
    let at_the_end = fired(&ann);
    // Another one that fires shows that time goes on.
    let bob = server.caller("o17", "bob", &["submitter"]);
    every(&bob, 1);
    eventually("others fire", || (fired(&bob) >= 2).then_some(()));
    assert_eq!(fired(&ann), at_the_end, "what is stopped makes no more tasks");
}

fn o13_what_makes_no_schedule_is_told(store: Store) {
    let server = Server::start(options(store));
    let ann = server.caller("o13-wrong", "ann", &["submitter"]);
    let spec = json!({ "schedulable": false });
    assert_eq!(server.admin().put("/api/v1/types/by_hand_only", &spec).status, 200);
    for (kind, wish, status, code) in [
        ("interval", json!({ "taskType": NOTIFY }), 422, "VALIDATION_ERROR"),
        ("interval", json!({ "taskType": NOTIFY, "everySeconds": 0 }), 422, "VALIDATION_ERROR"),
        ("interval", json!({ "taskType": NOTIFY, "everySeconds": -1 }), 422, "VALIDATION_ERROR"),
        ("interval", json!({ "taskType": NOTIFY, "everySeconds": 1.5 }), 422, "VALIDATION_ERROR"),
        ("interval", json!({ "taskType": NOTIFY, "everySeconds": "1" }), 422, "VALIDATION_ERROR"),
        (
            "interval",
            json!({ "taskType": NOTIFY, "everySeconds": u64::MAX }),
            422,
            "VALIDATION_ERROR",
        ),
        ("interval", json!({ "taskType": "nobody", "everySeconds": 1 }), 400, "INVALID_ARGUMENT"),
        (
            "interval",
            json!({ "taskType": "by_hand_only", "everySeconds": 1 }),
            400,
            "INVALID_ARGUMENT",
        ),
        ("cron", json!({ "taskType": NOTIFY }), 422, "VALIDATION_ERROR"),
        ("cron", json!({ "taskType": NOTIFY, "cronExpr": "" }), 400, "INVALID_ARGUMENT"),
        ("cron", json!({ "taskType": NOTIFY, "cronExpr": "61 * * * *" }), 400, "INVALID_ARGUMENT"),
        ("cron", json!({ "taskType": NOTIFY, "cronExpr": "0 0 30 2 *" }), 400, "INVALID_ARGUMENT"),
        ("cron", json!({ "taskType": "nobody", "cronExpr": "* * * * *" }), 400, "INVALID_ARGUMENT"),
    ] {
        let answer = ann.post(&format!("/jobs/schedules/{kind}"), &wish);
        assert_eq!(refused(&answer), (status, code.into()), "{wish}: {}", answer.text());
    }
    let worker = server.caller("o13-wrong", "wim", &["worker"]);
    let told = worker.post(
        "/jobs/schedules/interval",
        &json!({ "taskType": NOTIFY,
        "everySeconds": 1 }),
    );
    assert_eq!(refused(&told), (403, "SCHEDULE_ACCESS_DENIED".into()));
    assert!(schedules(&ann).is_empty());
    for (method, path) in [
        ("GET", "/jobs/system-schedules/templates"),
        ("POST", "/jobs/system-schedules/templates/recover"),
        ("GET", "/jobs/runtime"),
    ] {
        let told = ann.request(method, path).send(ann.address);
        assert_eq!(refused(&told), (403, "ADMIN_REQUIRED".into()), "{path}");
    }
}

const TEMPLATES: &str = r#"
[types]
strict = false
[templates]
tenant = "house"
[templates."tick"]
job_type = "tick"
interval_seconds = 1
[templates."nightly"]
job_type = "tidy"
cron = "0 2 * * *"
timezone = "Europe/Berlin"
"#;

fn o23_templates_are_registered_restored_and_never_doubled(store: Store) {
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(TEMPLATES);
    let mut server = Server::start(options);
    let admin = server.admin();
    let listed = || items(admin.get("/jobs/system-schedules/templates").data());
    let first = listed();
    let names: Vec<String> = first.iter().map(|it| text(it, "templateId")).collect();
    assert_eq!(names, ["nightly", "tick"]);
    let tick = json!({ "templateId": "tick", "taskType": "tick", "scheduleType": "interval",
        "expression": "1", "registered": true, "scheduleId": first[1]["scheduleId"],
        "scheduleStatus": "active" });
    assert_eq!(first[1], tick);
    assert_eq!(first[0]["expression"], "0 2 * * *");

    // They fire for real, in their tenant, as the system.
    let house = server.caller("house", "wim", &["worker", "viewer"]);
    let grant = house.pull_one("tick");
    house.complete(&grant);
    let task = house.get(&format!("/jobs/{}", text(&grant, "job_id"))).data();
    assert_eq!((&task["userId"], &task["status"]), (&json!("system"), &json!("succeeded")));

    // However often it is started, asked to recover, or both: the same two.
    for _ in 0..2 {
        server.restart();
        assert_eq!(listed(), first);
        let recovered = admin.poke("/jobs/system-schedules/templates/recover").data();
        let summary = &recovered["summary"];
        let numbers = ["total", "created", "deduplicated"].map(|name| summary[name].as_u64());
        assert_eq!(numbers, [Some(2), Some(0), Some(2)]);
        for item in summary["items"].as_array().unwrap() {
            assert_eq!(item["status"], "deduplicated");
        }
        let runtime = &recovered["runtime"];
        assert_eq!(runtime["systemSchedules"], json!({ "total": 2, "active": 2 }));
        assert_eq!(runtime["recovery"]["recoveredSystemTemplates"], 2);
    }
    let grant = house.pull_one("tick");
    assert_eq!(house.complete(&grant)["status"], "succeeded", "it goes on firing");

    // By command as well.
    let told = server.cli(&["templates", "list", "--output", "json"]);
    assert!(told.code == Some(0), "{}", told.stderr);
    let told: Value = told.json();
    assert_eq!(told["items"], json!(first));
    let told = server.cli(&["templates", "recover"]);
    assert!(told.code == Some(0) && told.stdout.contains("deduplicated"), "{}", told.stdout);

    // One that is new in the file is made, one that is gone from it stays as it is.
    let more = TEMPLATES.replace("\"nightly\"", "\"weekly\"");
    server.restart_with(|options| options.config = more);
    let now = listed();
    assert_eq!(now.len(), 2);
    assert_eq!(now[0], tick, "the one that is as it was");
    assert_eq!(now[1]["templateId"], "weekly");
    let runtime = admin.get("/jobs/runtime").data();
    assert_eq!(runtime["systemSchedules"], json!({ "total": 3, "active": 3 }));

    // One that was stopped by hand is not brought back by a restart.
    let id = text(&tick, "scheduleId");
    assert_eq!(admin.poke(&format!("/jobs/schedules/{id}/stop")).data()["status"], "stopped");
    server.restart();
    assert_eq!(listed()[0]["scheduleStatus"], "stopped");
}

fn o23_o24_the_quant_example_registers_its_templates(store: Store) {
    let server = Server::start(options(store));
    let told = server.admin().get("/jobs/system-schedules/templates").data();
    let rows: Vec<(String, String, String)> = items(told)
        .iter()
        .map(|it| {
            assert_eq!(
                (&it["registered"], &it["scheduleStatus"]),
                (&json!(true), &json!("active"))
            );
            (text(it, "templateId"), text(it, "taskType"), text(it, "expression"))
        })
        .collect();
    let wanted = [
        ("risk-continuous-monitor-interval", "risk_continuous_monitor", "120"),
        ("signal-cleanup-expired-cron", "signal_cleanup_expired", "0 */6 * * *"),
        ("strategy-performance-analyze-cron", "strategy_performance_analyze", "0 2 * * *"),
        ("trading-refresh-prices-interval", "trading_refresh_prices", "300"),
    ];
    let wanted = wanted.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(rows, wanted);
    // Nothing but memory with its journal and PostgreSQL is offered, whatever is asked for.
    for url in ["sqlite:///tmp/x.db", "sqlite::memory:"] {
        let ran = server.cli(&["serve", "--database-url", url, "--listen", "127.0.0.1:0"]);
        assert!(ran.code != Some(0), "{url} was taken");
    }
}

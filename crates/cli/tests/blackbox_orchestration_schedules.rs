//! Schedules and system templates of the job orchestration contract: whose they are, that they
//! fire, and that a restart neither loses nor doubles one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Request, Response, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;

both_stores![
    o13_o18_schedules_of_others_are_told_like_those_that_are_not_there,
    o17_schedules_outlive_a_restart_and_go_on_firing,
    o13_what_makes_no_schedule_is_told,
    o23_templates_are_registered_restored_and_never_doubled,
    o23_servers_that_start_together_make_each_template_once,
    o23_a_template_that_makes_no_schedule_keeps_a_server_from_starting,
    o23_o24_the_quant_example_registers_its_templates,
    o23_the_templates_of_the_quant_example_fire,
    o02_o04_o13_every_door_of_schedules_tells_nobody_more_than_it_must,
    o13_lists_of_schedules_go_on_by_cursor,
];

const NOTIFY: &str = "risk_alert_notify";
const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const QUANT: &str = include_str!("../../../examples/quant.toml");

fn options(store: Store) -> mainspring_testkit::blackbox::Options {
    store.options(BINARY).config(QUANT)
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
                let answers = [ask(&id), ask(UNKNOWN), ask("nonsense"), ask("job_1")];
                for answer in &answers {
                    assert_eq!(refused(answer), (403, "SCHEDULE_ACCESS_DENIED".into()));
                    assert_eq!(bare(answer), bare(&answers[0]));
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
        assert_eq!(schedules(&ann), std::slice::from_ref(&shape), "nothing changed");
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
        ("cron", json!({ "taskType": NOTIFY, "cronExpr": "0 0 31 2 *" }), 400, "INVALID_ARGUMENT"),
        (
            "cron",
            json!({ "taskType": NOTIFY, "cronExpr": "0 0 0 1 1 * 10000" }),
            400,
            "INVALID_ARGUMENT",
        ),
        (
            "cron",
            json!({ "taskType": NOTIFY, "cronExpr": "* ".repeat(200) }),
            400,
            "INVALID_ARGUMENT",
        ),
        ("cron", json!({ "taskType": "", "cronExpr": "* * * * *" }), 422, "VALIDATION_ERROR"),
        (
            "cron",
            json!({ "taskType": NOTIFY, "cronExpr": "* * * * *", "timezone": "Mars/Olympus" }),
            422,
            "VALIDATION_ERROR",
        ),
        (
            "interval",
            json!({ "taskType": NOTIFY, "everySeconds": 366 * 86_400 + 1 }),
            422,
            "VALIDATION_ERROR",
        ),
    ] {
        let answer = ann.post(&format!("/jobs/schedules/{kind}"), &wish);
        assert_eq!(refused(&answer), (status, code.into()), "{wish}: {}", answer.text());
        let message = text(&answer.json()["error"], "message");
        assert!(!message.contains('_'), "in this contract's words: {message}");
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
    let options = store.options(BINARY).config(TEMPLATES);
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
    server.restart_with(|options| options.config.clone_from(&more));
    let now = listed();
    assert_eq!(now.len(), 2);
    assert_eq!(now[0], tick, "the one that is as it was");
    assert_eq!(now[1]["templateId"], "weekly");
    let runtime = admin.get("/jobs/runtime").data();
    assert_eq!(runtime["systemSchedules"], json!({ "total": 3, "active": 3 }));

    // An entry that says something else changes the schedule and makes no other.
    let slower = more.replace("interval_seconds = 1", "interval_seconds = 3600");
    server.restart_with(|options| options.config = slower);
    let changed = listed().remove(0);
    assert_eq!(
        (&changed["scheduleId"], &changed["expression"]),
        (&tick["scheduleId"], &json!("3600"))
    );
    let runtime = admin.get("/jobs/runtime").data();
    assert_eq!(runtime["systemSchedules"], json!({ "total": 3, "active": 3 }));

    // One that was stopped by hand is not brought back by a restart.
    let id = text(&tick, "scheduleId");
    assert_eq!(admin.poke(&format!("/jobs/schedules/{id}/stop")).data()["status"], "stopped");
    server.restart();
    assert_eq!(listed()[0]["scheduleStatus"], "stopped");
    let runtime = admin.get("/jobs/runtime").data();
    assert_eq!(runtime["systemSchedules"], json!({ "total": 3, "active": 2 }));
}

fn o23_servers_that_start_together_make_each_template_once(store: Store) {
    let options = store.options(BINARY).config(TEMPLATES);
    let count = if store == Store::Postgres { 3 } else { 1 };
    let servers: Vec<Server> = std::thread::scope(|scope| {
        let start = |_| scope.spawn(|| Server::start(options.clone()));
        let started: Vec<_> = (0..count).map(start).collect();
        started.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let told = |server: &Server| {
        let admin = server.admin();
        let runtime = admin.get("/jobs/runtime").data();
        assert_eq!(runtime["systemSchedules"], json!({ "total": 2, "active": 2 }));
        items(admin.get("/jobs/system-schedules/templates").data())
    };
    let first = told(&servers[0]);
    for server in &servers {
        assert_eq!(told(server), first, "every server means the same schedules");
    }
    // Each instant has one job, though all of them ring.
    let house = servers[0].caller("house", "wim", &["viewer"]);
    let id = text(&first[1], "scheduleId");
    let path = format!("/api/v1/jobs?limit=100&label=schedule_id={id}");
    let keys = eventually("it fires a few times", || {
        let jobs = items(house.get(&path).data());
        (jobs.len() >= 3).then(|| jobs.iter().map(|job| text(job, "idempotency_key")).collect())
    });
    let keys: Vec<String> = keys;
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
}

/// What the configuration asks for is there, or there is no server: it is told which template.
fn o23_a_template_that_makes_no_schedule_keeps_a_server_from_starting(store: Store) {
    let server = Server::start(store.options(BINARY));
    let path = server.directory().join("bad.toml");
    let file = path.to_str().unwrap();
    for (entry, line, word) in [
        ("job_type = \"nobody\"\ninterval_seconds = 5", None, "\"nobody\" is not registered"),
        ("job_type = \"a\"\ninterval_seconds = 0", Some(5), "between 1 and 31622400"),
        ("job_type = \"a\"\ncron = \"0 0 31 2 *\"", Some(5), "never fires"),
        ("job_type = \"a\"\ncron = \"@daily\"\ntimezone = \"Mars/Olympus\"", Some(6), "IANA"),
        ("job_type = \"a\"\ninterval_seconds = 5\ntimezone = \"UTC\"", Some(6), "belongs to cron"),
        ("job_type = \"a\"\ninterval_seconds = 5\ncron = \"@daily\"", Some(5), "one of the two"),
        ("job_type = \"\"\ninterval_seconds = 5", Some(4), "templates.x.job_type"),
    ] {
        let text = format!("[types.a]\ndomain = \"d\"\n[templates.x]\n{entry}\n");
        std::fs::write(&path, text).unwrap();
        let url = server.database().map(|database| database.url.clone());
        let place = match &url {
            Some(url) => ["--database-url", url],
            None => ["--data-dir", "elsewhere"],
        };
        let serve = ["serve", "--config", file, "--listen", "127.0.0.1:0"];
        let ran = server.cli(&[&serve[..], &place[..]].concat()).expect(2);
        assert!(ran.stderr.contains(word), "{entry}: {}", ran.stderr);
        let place = line.map_or("template \"x\"".to_owned(), |line| format!("bad.toml:{line}:"));
        assert!(ran.stderr.contains(&place), "{entry}: {}", ran.stderr);
    }
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

/// The file as it is, but for the rhythms: a test cannot wait for two in the morning.
fn o23_the_templates_of_the_quant_example_fire(store: Store) {
    let mut quick = QUANT.to_owned();
    for (slow, fast) in [
        ("interval_seconds = 300", "interval_seconds = 1"),
        ("interval_seconds = 120", "interval_seconds = 2"),
        ("\"0 */6 * * *\"", "\"*/2 * * * * *\""),
        ("\"0 2 * * *\"", "\"* * * * * *\""),
    ] {
        assert_eq!(quick.matches(slow).count(), 1, "{slow}");
        quick = quick.replace(slow, fast);
    }
    let server = Server::start(store.options(BINARY).config(&quick));
    assert!(!server.log().contains("later"), "{}", server.log());
    let worker = server.caller("default", "wim", &["worker", "viewer"]);
    assert_eq!(worker.get("/jobs/task-types").data().as_array().unwrap().len(), 31);
    for job_type in [
        "trading_refresh_prices",
        "risk_continuous_monitor",
        "signal_cleanup_expired",
        "strategy_performance_analyze",
    ] {
        for _ in 0..2 {
            let grant = worker.pull_one(job_type);
            assert_eq!(worker.complete(&grant)["status"], "succeeded");
            let task = worker.get(&format!("/jobs/{}", text(&grant, "job_id"))).data();
            assert_eq!((&task["userId"], &task["status"]), (&json!("system"), &json!("succeeded")));
        }
    }
}

const UNKNOWN: &str = "sch_00000000000000000000000000";

/// Status, headers but those that name the request, and body.
fn bare(answer: &Response) -> (u16, Vec<(String, String)>, String) {
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !["x-trace-id", "x-request-id", "date"].contains(&name.as_str()));
    (answer.status, headers, answer.text())
}

fn o02_o04_o13_every_door_of_schedules_tells_nobody_more_than_it_must(store: Store) {
    let server = Server::start(options(store));
    let ann = server.caller("doors", "ann", &["submitter"]);
    let id = text(&every(&ann, 3600), "id");
    let template = items(server.admin().get("/jobs/system-schedules/templates").data());
    let template = text(&template[0], "scheduleId");
    let one = json!({ "taskType": NOTIFY, "everySeconds": 60 });
    let other = json!({ "taskType": NOTIFY, "cronExpr": "@daily" });
    // Method, path, body; who gets in of ann's own tenant.
    let doors: [(&str, &str, Option<&Value>, &[&str]); 7] = [
        ("POST", "/jobs/schedules/interval", Some(&one), &["submitter", "operator", "admin"]),
        ("POST", "/jobs/schedules/cron", Some(&other), &["submitter", "operator", "admin"]),
        ("GET", "/jobs/schedules", None, &[]),
        (
            "GET",
            "/jobs/schedules/{}",
            None,
            &["viewer", "operator", "approver", "internal", "admin"],
        ),
        ("POST", "/jobs/schedules/{}/stop", None, &["operator", "admin"]),
        ("GET", "/jobs/system-schedules/templates", None, &["admin"]),
        ("POST", "/jobs/system-schedules/templates/recover", None, &["admin"]),
    ];
    // No route is left out.
    let document = server.admin().get("/openapi.json").json();
    let served = document["paths"].as_object().unwrap().keys();
    let served = served.filter(|path| path.starts_with("/jobs/") && path.contains("schedules"));
    assert_eq!(served.count(), doors.len());
    let roles = ["submitter", "worker", "viewer", "operator", "approver", "internal", "admin"];
    for (method, path, body, may) in doors {
        let send = |caller: &Caller, id: &str| {
            let request = caller.request(method, &path.replace("{}", id));
            let request = body.map_or(request.clone(), |body| request.json(body));
            request.send(caller.address)
        };
        let nobody = Request::new(method, &path.replace("{}", &id));
        let nobody = body.map_or(nobody.clone(), |body| nobody.json(body));
        let unproven = bare(&nobody.send(server.address));
        assert_eq!(unproven.0, 401);
        let forged = Caller { address: server.address, token: "ms_forged".into() };
        for other in [&id, UNKNOWN, "nonsense"] {
            assert_eq!(bare(&send(&forged, other)), unproven, "{method} {path}");
        }
        for role in roles {
            let of = |tenant| server.caller(tenant, role, &[role]);
            for (caller, is_neighbour) in [(of("doors"), true), (of("elsewhere"), false)] {
                let told = send(&caller, &id);
                let is_let_in = path == "/jobs/schedules"
                    || (may.contains(&role) && (is_neighbour || !path.contains("{}")))
                    || role == "admin";
                assert_eq!(
                    told.status == 200,
                    is_let_in,
                    "{role} {method} {path}: {}",
                    told.text()
                );
                let code = match path.contains("system") {
                    true => "ADMIN_REQUIRED",
                    false => "SCHEDULE_ACCESS_DENIED",
                };
                if !is_let_in {
                    assert_eq!(refused(&told), (403, code.into()), "{role} {method} {path}");
                }
                if path.contains("{}") && !is_let_in {
                    for other in [UNKNOWN, "nonsense", "job_1", "%2e%2e", "x%00y", &template] {
                        let same = bare(&send(&caller, other));
                        assert_eq!(same, bare(&told), "{role} {method} {path} with {other}");
                    }
                }
                if path.contains("{}") && role == "admin" {
                    assert_eq!(send(&caller, UNKNOWN).status, 404);
                }
            }
        }
    }
    assert_eq!(schedules(&ann)[0]["status"], "stopped", "operators and admins could");
    assert_eq!(schedules(&ann).len(), 1, "what others made is theirs");
}

fn o13_lists_of_schedules_go_on_by_cursor(store: Store) {
    let server = Server::start(options(store));
    let ann = server.caller("pages", "ann", &["submitter"]);
    let mut made: Vec<String> = (0..7).map(|nth| text(&every(&ann, 3600 + nth), "id")).collect();
    made.reverse();
    let (mut read, mut path) = (Vec::new(), "/jobs/schedules?limit=3".to_owned());
    for turn in 0.. {
        let page = ann.get(&path);
        let ids: Vec<String> = items(page.data()).iter().map(|it| text(it, "id")).collect();
        assert_eq!(ids.len(), [3, 3, 1][turn]);
        read.extend(ids);
        let Some(next) = page.header("x-next-cursor") else { break };
        // It is nobody else's.
        let bob = server.caller("pages", "bob", &["submitter"]);
        let foreign = bob.get(&format!("/jobs/schedules?cursor={next}"));
        assert_eq!(refused(&foreign).0, 422);
        path = format!("/jobs/schedules?limit=3&cursor={next}");
    }
    assert_eq!(read, made);
    for bad in ["limit=0", "limit=1001", "limit=x", "cursor=x", "status=active"] {
        assert_eq!(refused(&ann.get(&format!("/jobs/schedules?{bad}"))).0, 422, "{bad}");
    }
}

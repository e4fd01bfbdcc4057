//! Alerts from outside: what raises them, that they clear and come again, who sees them, and taking
//! notice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_scheduler/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{
    Caller, Options, PerStore, Response, Server, Store, eventually,
};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![
    g14_a_share_of_retries_raises_one_alert_that_clears_and_comes_again,
    g15_dead_letters_of_one_tenant_raise_an_alert_of_that_tenant,
    g16_moves_refused_in_a_row_raise_a_p1,
    d07_a_dead_letter_of_the_scheduler_is_an_alert_that_survives_a_crash,
    a_type_that_no_worker_asks_for_and_a_late_start_are_told_of,
    what_was_promised_of_a_type_and_not_kept_is_told_of_once,
    a_promise_counts_from_when_a_job_was_due_and_until_it_ends,
    a_job_that_ended_late_between_two_looks_is_told_of,
    the_latest_start_of_a_commit_is_told_of,
    an_acknowledgement_holds_while_the_thing_is_seen,
    a_paused_queue_waits_for_no_worker,
    a_firing_that_is_left_out_is_told_of,
    lists_have_pages_and_filters_and_the_command_line_reads_them,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const EVERYTHING: [&str; 5] = ["submitter", "worker", "operator", "viewer", "internal"];
const CONFIG: &str = r#"
[types]
strict = false
[alerts]
retrying_ratio = 0.2
dlq_growth_per_minute = 3
invalid_transitions = 5
lag = "1s"
no_worker = "200ms"
check = "50ms"
hold = "0s"
quiet = "4s"
"#;

fn options(store: Store) -> Options {
    store.options(BINARY).config(CONFIG).arg("--internal-routes")
}

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || options(store))
}

/// The alerts of a rule.
fn alerts(who: &Caller, rule: &str) -> Vec<Value> {
    items(who.get(&format!("/api/v1/alerts?rule={rule}&limit=100")).data())
}

/// The one alert of a rule, once there is one in this state.
#[track_caller]
fn alert(who: &Caller, rule: &str, state: &str) -> Value {
    eventually(&format!("{rule} is {state}"), || {
        let mut found = alerts(who, rule);
        assert!(found.len() <= 1, "{found:?}");
        found.pop().filter(|alert| alert["state"] == state)
    })
}

fn fail(who: &Caller, grant: &Value, more: Value) {
    who.report("fail", grant, support::with(json!({ "error_code": "X", "message": "m" }), more));
}

/// Makes `count` jobs and has `failing` of them wait for another try.
fn retries(who: &Caller, count: usize, failing: usize) -> Vec<String> {
    for _ in 0..count {
        who.submit_plain("flaky");
    }
    let grants = who.pull("flaky", count);
    assert_eq!(grants.len(), count);
    for grant in &grants[..failing] {
        fail(who, grant, json!({ "retryable": true, "retry_delay_ms": 3_600_000 }));
    }
    grants[..failing].iter().map(|grant| text(grant, "job_id")).collect()
}

fn g14_a_share_of_retries_raises_one_alert_that_clears_and_comes_again(store: Store) {
    // Its name comes first, so it is looked at first.
    let few = server(store).caller("g14-a", "ann", &EVERYTHING);
    retries(&few, 10, 5);
    let ann = server(store).caller("g14-b", "ann", &EVERYTHING);
    let failing = retries(&ann, 24, 6);
    let raised = alert(&ann, "retrying_ratio", "open");
    assert_eq!((&raised["severity"], &raised["tenant_id"]), (&json!("P2"), &json!("g14-b")));
    assert_eq!((&raised["value"], &raised["threshold"]), (&json!(0.25), &json!(0.2)));
    assert_eq!((&raised["subject"], &raised["count"]), (&Value::Null, &json!(1)));
    assert!(text(&raised, "message").starts_with("25.0 % of the jobs"), "{raised}");
    assert_eq!(alerts(&few, "retrying_ratio"), Vec::<Value>::new(), "ten jobs are too few");
    for id in &failing {
        assert_eq!(ann.poke(&format!("/api/v1/jobs/{id}/cancel")).status, 202);
    }
    let cleared = alert(&ann, "retrying_ratio", "cleared");
    assert_eq!(cleared["alert_id"], raised["alert_id"]);
    assert_ne!(cleared["cleared_at"], Value::Null);
    let path = format!("/api/v1/alerts/{}/ack", text(&raised, "alert_id"));
    assert_eq!(ann.poke(&path).refusal(), (409, "ALERT_CONFLICT".into()));
    retries(&ann, 12, 9);
    let again = alert(&ann, "retrying_ratio", "open");
    assert_eq!((&again["alert_id"], &again["count"]), (&raised["alert_id"], &json!(2)));
    let at = |alert: &Value, field| text(alert, field).parse::<jiff::Timestamp>().unwrap();
    assert!(at(&again, "raised_at") >= at(&cleared, "cleared_at"), "{again}");
}

/// Has `count` jobs fail for good.
fn dead(who: &Caller, count: usize) {
    for _ in 0..count {
        who.submit_plain("doomed");
        fail(who, &who.pull_one("doomed"), json!({ "retryable": false }));
    }
}

fn g15_dead_letters_of_one_tenant_raise_an_alert_of_that_tenant(store: Store) {
    let few = server(store).caller("g15-a", "ann", &EVERYTHING);
    dead(&few, 2);
    let ann = server(store).caller("g15-b", "ann", &EVERYTHING);
    dead(&ann, 3);
    let raised = alert(&ann, "dlq_growth", "open");
    assert_eq!((&raised["value"], &raised["threshold"]), (&json!(3.0), &json!(3.0)));
    assert_eq!(raised["severity"], "P2");
    assert_eq!(alerts(&few, "dlq_growth"), Vec::<Value>::new());
    // What is another tenant's, unknown or nonsense looks the same; an admin is told apart.
    let foreign = text(&raised, "alert_id");
    let unknown = format!("alt_{}", "0".repeat(26));
    for id in [&*foreign, &unknown, "nonsense", "%00", "alt_"] {
        for answer in [
            few.get(&format!("/api/v1/alerts/{id}")),
            few.poke(&format!("/api/v1/alerts/{id}/ack")),
        ] {
            assert_eq!(answer.refusal(), (403, "AUTH_FORBIDDEN".into()), "{id}");
        }
    }
    let admin = server(store).admin();
    let path = format!("/api/v1/alerts/{foreign}");
    assert_eq!(admin.get(&path).refusal(), (404, "ENTITY_NOT_FOUND".into()));
    let within = admin.request("GET", &path).header("x-tenant-id", "g15-b").send(admin.address);
    assert_eq!(within.data()["alert_id"], json!(foreign));
}

fn transition(who: &Caller, id: &str, to: &str) -> Response {
    let path = format!("/api/v1/internal/jobs/{id}/transition");
    let request = who.request("POST", &path).header("x-internal-debug", "true");
    request.json(&json!({ "new_status": to })).send(who.address)
}

fn refused(who: &Caller, id: &str, count: usize) {
    for _ in 0..count {
        let told = transition(who, id, "succeeded").refusal();
        assert_eq!(told, (409, "WF_STATE_TRANSITION_INVALID".into()));
    }
}

fn g16_moves_refused_in_a_row_raise_a_p1(store: Store) {
    let few = server(store).caller("g16-a", "ann", &EVERYTHING);
    let (one, other) = (few.submit_plain("g16"), few.submit_plain("g16"));
    refused(&few, &one, 4);
    assert_eq!(transition(&few, &other, "running").status, 200, "that ends the row");
    refused(&few, &one, 4);
    let ann = server(store).caller("g16-b", "ann", &EVERYTHING);
    let id = ann.submit_plain("g16");
    refused(&ann, &id, 4);
    ann.submit_plain("g16");
    refused(&ann, &id, 1);
    let raised = alert(&ann, "invalid_transitions", "open");
    assert_eq!((&raised["severity"], &raised["threshold"]), (&json!("P1"), &json!(5.0)));
    assert!(text(&raised, "message").contains("WF_STATE_TRANSITION_INVALID"), "{raised}");
    assert_eq!(alerts(&few, "invalid_transitions"), Vec::<Value>::new());
    refused(&few, &one, 1);
    alert(&few, "invalid_transitions", "open");
}

fn d07_a_dead_letter_of_the_scheduler_is_an_alert_that_survives_a_crash(store: Store) {
    let config = format!("{CONFIG}\n[scheduler]\nallow_client_clock = true\n");
    let mut server = Server::start(options(store).config(&config));
    let ann = server.caller("d07", "ann", &EVERYTHING);
    let vic = server.caller("d07", "vic", &["viewer"]);
    let wish =
        support::with(support::wish("m1", "verify", "06:00:00"), json!({ "max_attempts": 1 }));
    let id = support::enqueued(&ann, &wish);
    assert_eq!(support::pulled(&ann, json!({})).len(), 1);
    let told = support::report(&ann, "fail", &id, &json!({ "error": "no evidence" })).json();
    assert_eq!(told["status"], "dead_letter");
    // It is there with the answer, not a moment later.
    let raised = alerts(&ann, "dead_letter").pop().unwrap();
    assert_eq!((&raised["subject"], &raised["state"]), (&json!(id), &json!("open")));
    let message = text(&raised, "message");
    assert!(message.contains("memory:m1") && message.contains("no evidence"), "{message}");
    let path = format!("/api/v1/alerts/{}", text(&raised, "alert_id"));
    let acknowledge = format!("{path}/ack");
    let note = json!({ "note": "looking" });
    assert_eq!(vic.post(&acknowledge, &note).refusal(), (403, "AUTH_FORBIDDEN".into()));
    for bad in
        [json!({ "note": "a\u{0}b" }), json!({ "note": "x".repeat(5_000) }), json!({ "n": 1 })]
    {
        assert_eq!(ann.post(&acknowledge, &bad).status, 400, "{bad}");
    }
    let taken = ann.post(&acknowledge, &note).data();
    assert_eq!((&taken["state"], &taken["note"]), (&json!("acknowledged"), &json!("looking")));
    assert_eq!((&taken["acknowledged_by"], &taken["subject"]), (&json!("ann"), &json!(id)));
    let again = server.caller("d07", "bob", &["operator"]).poke(&acknowledge).data();
    assert_eq!(again["acknowledged_by"], "ann", "whoever comes second finds it done");
    let lines = items(ann.get("/api/v1/audit?action=alert.acknowledge").data());
    assert_eq!(lines.len(), 1, "what is answered again is not told again: {lines:?}");
    assert_eq!(
        (&lines[0]["actor"]["user_id"], &lines[0]["reason"]),
        (&json!("ann"), &json!("looking"))
    );
    let denied = items(ann.get("/api/v1/audit?actor=vic").data());
    assert_eq!(denied[0]["outcome"], "denied");
    server.restart();
    let ann = Caller { address: server.address, token: ann.token };
    assert_eq!(ann.get(&path).data()["state"], "acknowledged");
    assert_eq!(alerts(&ann, "dead_letter").len(), 1);
}

fn a_type_that_no_worker_asks_for_and_a_late_start_are_told_of(store: Store) {
    let ann = server(store).caller("nobody", "ann", &EVERYTHING);
    // Somebody asks for the one, and nobody for the other.
    assert_eq!(ann.pull("asked-for", 1), Vec::<Value>::new());
    let (asked, orphan) = (ann.submit_plain("asked-for"), ann.submit_plain("orphan"));
    let raised = alert(&ann, "no_worker", "open");
    assert_eq!((&raised["subject"], &raised["value"]), (&json!("orphan"), &json!(1.0)));
    assert!(text(&raised, "message").contains("no worker asks for that type"), "{raised}");
    let since = text(&ann.job(&orphan), "created_at").parse::<jiff::Timestamp>().unwrap();
    eventually("it has waited for more than a second", || {
        (jiff::Timestamp::now().duration_since(since).as_millis() > 1_200).then_some(())
    });
    // Somebody else comes: a worker that asks for another type asks no more for the first.
    let wish = json!({ "worker_id": "w-2", "types": ["orphan"], "limit": 1 });
    ann.complete(&ann.pull_with(wish)[0]);
    alert(&ann, "no_worker", "cleared");
    let late = eventually("the late start is told of", || alerts(&ann, "lag").pop());
    assert!(late["value"].as_f64().unwrap() >= 1.2, "{late}");
    assert_eq!(ann.job(&asked)["status"], "queued");
}

fn what_was_promised_of_a_type_and_not_kept_is_told_of_once(store: Store) {
    let server = server(store);
    let ann = server.caller("sla", "ann", &EVERYTHING);
    let promise = json!({ "sla": { "start_within_ms": 1_000, "finish_within_ms": 1_100 } });
    let set = server.admin().put("/api/v1/types/promised", &promise).data();
    assert_eq!(set["sla"], promise["sla"]);
    let other = json!({ "sla": { "start_within_ms": 600_000 } });
    server.admin().put("/api/v1/types/patient", &other).data();
    let jobs = [ann.submit_plain("promised"), ann.submit_plain("patient")];
    let since = text(&ann.job(&jobs[1]), "created_at").parse::<jiff::Timestamp>().unwrap();
    eventually("they have waited for more than a second", || {
        (jiff::Timestamp::now().duration_since(since).as_millis() > 1_300).then_some(())
    });
    for rule in ["lag", "overdue"] {
        let raised = eventually("it is told of though it only waits", || {
            alerts(&ann, rule).into_iter().find(|alert| alert["subject"] == "promised")
        });
        assert_eq!(raised["state"], "open", "{raised}");
    }
    for job_type in ["promised", "patient"] {
        ann.complete(&ann.pull_one(job_type));
    }
    let of = |rule: &str, subject: &str| {
        alerts(&ann, rule).into_iter().find(|alert| alert["subject"] == subject)
    };
    for (rule, words) in
        [("lag", "promised had not started"), ("overdue", "promised had not ended")]
    {
        let raised = eventually(rule, || of(rule, "promised"));
        assert_eq!(raised["severity"], "P2");
        assert!(raised["value"].as_f64() >= raised["threshold"].as_f64(), "{raised}");
        assert!(text(&raised, "message").contains(words), "{raised}");
        assert_eq!(raised["threshold"], if rule == "lag" { 1.0 } else { 1.1 });
    }
    for rule in ["lag", "overdue"] {
        let over = eventually("it is over", || {
            of(rule, "promised").filter(|alert| alert["state"] == "cleared")
        });
        assert_eq!(over["count"], 1, "it came once: {over}");
        assert_eq!(of(rule, "patient"), None, "that was promised for later, or not at all");
    }
}

/// Has an admin promise something of a type.
fn promise(server: &Server, job_type: &str, sla: &Value) {
    server.admin().put(&format!("/api/v1/types/{job_type}"), &json!({ "sla": sla })).data();
}

fn a_promise_counts_from_when_a_job_was_due_and_until_it_ends(store: Store) {
    let server = server(store);
    let ann = server.caller("sla-due", "ann", &EVERYTHING);
    let soon = json!({ "start_within_ms": 2_000, "finish_within_ms": 2_000 });
    promise(server, "for-later", &soon);
    promise(server, "again", &json!({ "start_within_ms": 2_000 }));
    promise(server, "runs-on", &soon);
    // One for later is not late, however long ago it was asked for.
    let later = json!({ "job_type": "for-later", "payload": {}, "delay_ms": 2_500 });
    assert_eq!(ann.post("/api/v1/jobs", &later).status, 201);
    // One that started in time has done so, however late its next try starts.
    ann.submit_plain("again");
    let first = ann.pull_one("again");
    fail(&ann, &first, json!({ "retryable": true, "retry_delay_ms": 2_300 }));
    ann.complete(&ann.pull_one("again"));
    ann.complete(&ann.pull_one("for-later"));
    // One that is taken at once and never done.
    let id = ann.submit_plain("runs-on");
    ann.pull_one("runs-on");
    let raised = alert(&ann, "overdue", "open");
    assert_eq!((&raised["subject"], &raised["threshold"]), (&json!("runs-on"), &json!(2.0)));
    assert_eq!(ann.job(&id)["status"], "running");
    // The tenant's own measure is a second, which a busy machine may miss.
    let late = alerts(&ann, "lag").into_iter().filter(|alert| !alert["subject"].is_null());
    assert_eq!(late.collect::<Vec<_>>(), Vec::<Value>::new());
}

fn a_job_that_ended_late_between_two_looks_is_told_of(store: Store) {
    let config = CONFIG.replace("check = \"50ms\"", "check = \"2s\"");
    let server = Server::start(options(store).config(&config));
    let ann = server.caller("sla-between", "ann", &EVERYTHING);
    promise(&server, "brief", &json!({ "finish_within_ms": 1_000 }));
    ann.submit_plain("brief");
    let grant = ann.pull_one("brief");
    let since = text(&ann.job(&text(&grant, "job_id")), "created_at");
    let since = since.parse::<jiff::Timestamp>().unwrap();
    eventually("it is late", || {
        (jiff::Timestamp::now().duration_since(since).as_millis() > 1_050).then_some(())
    });
    ann.complete(&grant);
    let raised = alert(&ann, "overdue", "open");
    assert_eq!((&raised["subject"], &raised["count"]), (&json!("brief"), &json!(1)));
}

/// A tenant's own measure, which nothing but commits tell of.
fn the_latest_start_of_a_commit_is_told_of(store: Store) {
    let ann = server(store).caller("lag-most", "ann", &EVERYTHING);
    let first = ann.submit_plain("slow");
    let since = text(&ann.job(&first), "created_at").parse::<jiff::Timestamp>().unwrap();
    let waited = |millis: i128| {
        eventually("they have waited", || {
            (jiff::Timestamp::now().duration_since(since).as_millis() > millis).then_some(())
        });
    };
    waited(1_500);
    ann.submit_plain("slow");
    waited(2_700);
    assert_eq!(ann.pull("slow", 2).len(), 2);
    let raised = alert(&ann, "lag", "open");
    assert!(raised["value"].as_f64().unwrap() >= 2.7, "that of the first: {raised}");
}

fn an_acknowledgement_holds_while_the_thing_is_seen(store: Store) {
    let ann = server(store).caller("holds", "ann", &EVERYTHING);
    ann.submit_plain("nobodys");
    let raised = alert(&ann, "no_worker", "open");
    let path = format!("/api/v1/alerts/{}", text(&raised, "alert_id"));
    assert_eq!(ann.post(&format!("{path}/ack"), &json!({ "note": "mine" })).status, 200);
    ann.submit_plain("nobodys");
    let seen = eventually("it was seen again", || {
        Some(ann.get(&path).data()).filter(|seen| seen["value"] == 2.0)
    });
    assert_eq!((&seen["state"], &seen["note"]), (&json!("acknowledged"), &json!("mine")));
    assert_eq!((&seen["acknowledged_by"], &seen["count"]), (&json!("ann"), &json!(1)));
    assert_eq!(seen["raised_at"], raised["raised_at"]);
    // Over and come again, it is nobody's.
    while ann.pull("nobodys", 2).pop().is_some() {}
    assert_eq!(alert(&ann, "no_worker", "cleared")["count"], 1);
}

fn a_paused_queue_waits_for_no_worker(store: Store) {
    let server = server(store);
    let ann = server.caller("resting", "ann", &EVERYTHING);
    server.admin().put("/api/v1/queues/resting", &json!({ "order": "due" })).data();
    assert_eq!(server.admin().poke("/api/v1/queues/resting/pause").status, 200);
    promise(server, "rests", &json!({ "start_within_ms": 3_600_000 }));
    let wish = json!({ "job_type": "rests", "payload": {}, "queue": "resting" });
    assert_eq!(ann.post("/api/v1/jobs", &wish).status, 201);
    ann.submit_plain("works");
    let raised = alert(&ann, "no_worker", "open");
    assert_eq!(raised["subject"], "works", "and nothing of the other");
}

fn a_firing_that_is_left_out_is_told_of(store: Store) {
    let ann = server(store).caller("skips", "ann", &EVERYTHING);
    let wish = |overlap: &str| {
        json!({
            "job_type": "tick", "kind": "interval", "interval_seconds": 1, "overlap": overlap,
        })
    };
    let made = ann.post("/api/v1/schedules", &wish("skip")).data();
    ann.post("/api/v1/schedules", &wish("allow")).data();
    // Its first job is never done, so the second has no room.
    let raised = alert(&ann, "schedule_skipped", "open");
    assert_eq!((&raised["subject"], &raised["severity"]), (&made["schedule_id"], &json!("P3")));
    let id = text(&made, "schedule_id");
    assert_eq!(ann.poke(&format!("/api/v1/schedules/{id}/stop")).status, 200);
}

fn lists_have_pages_and_filters_and_the_command_line_reads_them(store: Store) {
    let server = server(store);
    let ann = server.caller("pages", "ann", &EVERYTHING);
    for index in 0..5 {
        ann.submit_plain(&format!("lonely-{index}"));
    }
    let all = eventually("all five are told of", || {
        let found = alerts(&ann, "no_worker");
        (found.len() == 5).then_some(found)
    });
    let first = ann.get("/api/v1/alerts?rule=no_worker&limit=3").data();
    let cursor = text(&first, "next_cursor");
    let rest = ann.get(&format!("/api/v1/alerts?rule=no_worker&limit=3&cursor={cursor}")).data();
    let ids = |items: Vec<Value>| items.iter().map(|it| text(it, "alert_id")).collect::<Vec<_>>();
    assert_eq!([ids(items(first.clone())), ids(items(rest))].concat(), ids(all));
    assert_eq!(first["total"], 5);
    let elsewhere = ann.get(&format!("/api/v1/alerts?rule=lag&limit=3&cursor={cursor}"));
    assert_eq!(elsewhere.refusal(), (400, "CURSOR_INVALID".into()));
    for bad in ["state=odd", "rule=odd", "limit=0", "limit=101", "x=1", "state=%00"] {
        let refused = ann.get(&format!("/api/v1/alerts?{bad}")).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
    let id = text(&items(first)[0], "alert_id");
    let listed =
        server.cli_as(&ann.token, &["alerts", "list", "--rule", "no_worker", "-o", "json"]);
    assert_eq!(items(listed.expect(0).json()).len(), 5);
    let shown = server.cli_as(&ann.token, &["alerts", "show", &id]).expect(0);
    assert!(shown.stdout.contains("no_worker"), "{}", shown.stdout);
    let taken = server.cli_as(&ann.token, &["alerts", "ack", &id, "--note", "n", "-o", "json"]);
    assert_eq!(taken.expect(0).json()["state"], "acknowledged");
    let known = items(ann.get("/api/v1/alerts?state=acknowledged").data());
    assert_eq!(ids(known), [id]);
    // Only whoever may look at the whole tenant.
    let wes = server.caller("pages", "wes", &["worker"]);
    assert_eq!(wes.get("/api/v1/alerts").refusal().0, 403);
}

/// Two servers see the same thing, and it is one alert.
#[test]
fn several_servers_raise_one_alert() {
    let both = options(Store::Postgres);
    let (one, two) = (Server::start(both.clone()), Server::start(both));
    let ann = one.caller("both", "ann", &EVERYTHING);
    for index in 0..10 {
        ann.submit_plain(&format!("lonely-{index}"));
    }
    let raised = eventually("all are told of", || {
        let found = alerts(&ann, "no_worker");
        (found.len() == 10).then_some(found)
    });
    assert!(raised.iter().all(|alert| alert["count"] == 1), "{raised:?}");
    let there = Caller { address: two.address, token: ann.token.clone() };
    assert_eq!(alerts(&there, "no_worker").len(), 10);
}

/// Two servers on one database, and whoever asks both of them.
struct Two {
    one: Server,
    two: Server,
}

impl Two {
    fn start() -> Self {
        // Telling each other takes some seconds, for which a row must not be forgotten.
        let both =
            options(Store::Postgres).config(&CONFIG.replace("quiet = \"4s\"", "quiet = \"1m\""));
        Two { one: Server::start(both.clone()), two: Server::start(both) }
    }

    /// The same person at either server.
    fn callers(&self, tenant: &str) -> (Caller, Caller) {
        let here = self.one.caller(tenant, "ann", &EVERYTHING);
        let there = Caller { address: self.two.address, token: here.token.clone() };
        (here, there)
    }

    /// Waits until each server has told the others what it knows, and has heard them since.
    fn have_told_each_other(&self) {
        let database = self.one.database().unwrap();
        let seen = || database.sql("SELECT id, seen_at FROM mainspring.node ORDER BY id");
        // Told with one sign of life, heard with the next: of each, two more that begin after this.
        for _ in 0..3 {
            let before = seen();
            eventually("both have said that they are alive", || {
                let (now, before) = (seen(), before.lines());
                before.zip(now.lines()).all(|(was, is)| was != is).then_some(())
            });
        }
    }
}

/// Neither of the servers has refused enough by itself.
fn g16_a_row_of_refusals_that_two_servers_gave_raises_one_p1() {
    let servers = Two::start();
    let (here, there) = servers.callers("row");
    let id = here.submit_plain("g16");
    refused(&here, &id, 2);
    refused(&there, &id, 1);
    refused(&here, &id, 1);
    refused(&there, &id, 1);
    let (other, _) = servers.callers("row-other");
    let job = other.submit_plain("g16");
    refused(&other, &job, 4);
    for who in [&here, &there] {
        let raised = alert(who, "invalid_transitions", "open");
        assert_eq!((&raised["severity"], &raised["count"]), (&json!("P1"), &json!(1)));
        assert_eq!((&raised["value"], &raised["threshold"]), (&json!(5.0), &json!(5.0)));
    }
    assert_eq!(alerts(&other, "invalid_transitions"), Vec::<Value>::new(), "it is another's row");
}

/// What another server did ends the row here.
fn g16_a_move_that_one_server_made_ends_the_row_at_the_other() {
    let servers = Two::start();
    let (here, there) = servers.callers("ended");
    let (one, other) = (here.submit_plain("g16"), here.submit_plain("g16"));
    refused(&here, &one, 4);
    servers.have_told_each_other();
    assert_eq!(transition(&there, &other, "running").status, 200, "that ends the row");
    servers.have_told_each_other();
    refused(&here, &one, 4);
    // Whoever looks at this tenant looks at that one, too.
    let (control, _) = servers.callers("control");
    refused(&control, &control.submit_plain("g16"), 5);
    alert(&control, "invalid_transitions", "open");
    servers.have_told_each_other();
    assert_eq!(alerts(&here, "invalid_transitions"), Vec::<Value>::new());
    refused(&there, &one, 1);
    assert_eq!(alert(&here, "invalid_transitions", "open")["value"], 5.0);
}

/// Dead letters are one tenant's, whichever server buried them.
fn g15_dead_letters_that_two_servers_wrote_are_counted_together() {
    let servers = Two::start();
    let (here, there) = servers.callers("buried");
    dead(&here, 2);
    dead(&there, 1);
    for who in [&here, &there] {
        let raised = alert(who, "dlq_growth", "open");
        assert_eq!((&raised["value"], &raised["count"]), (&json!(3.0), &json!(1)));
    }
}

/// What only several servers can show, which only PostgreSQL has.
mod several_servers {
    mod postgres {
        #[test]
        fn g16_a_row_of_refusals_that_two_servers_gave_raises_one_p1() {
            crate::g16_a_row_of_refusals_that_two_servers_gave_raises_one_p1();
        }

        #[test]
        fn g16_a_move_that_one_server_made_ends_the_row_at_the_other() {
            crate::g16_a_move_that_one_server_made_ends_the_row_at_the_other();
        }

        #[test]
        fn g15_dead_letters_that_two_servers_wrote_are_counted_together() {
            crate::g15_dead_letters_that_two_servers_wrote_are_counted_together();
        }
    }
}

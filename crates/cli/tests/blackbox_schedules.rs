//! Schedules from outside: who may, what is refused, what they promise and what they then do.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Response, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![
    o13_a_schedule_belongs_to_its_user_and_namespace_and_to_nobody_else,
    o13_lists_show_what_one_may_see_by_state_type_and_owner_page_by_page,
    o17_o18_schedules_survive_a_kill_go_on_firing_and_stay_their_owners,
    o17_a_preview_is_what_then_fires,
    o17_pause_resume_stop_and_delete_do_what_they_say,
    o17_an_update_replaces_all_of_it,
    o17_a_trigger_makes_a_job_and_a_backfill_what_was_missing,
    o17_nonsense_is_refused_where_it_stands,
    o17_clock_changes_are_told_before_they_happen,
    o17_the_command_line_speaks_the_language_of_the_terminal,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

/// One server per store for the whole file; every test has a tenant and types of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(BINARY))
}

const USER: [&str; 2] = ["submitter", "worker"];

/// A schedule that fires on New Year's Eve.
fn yearly(job_type: &str) -> Value {
    json!({ "job_type": job_type, "kind": "cron", "cron": "0 0 31 12 *" })
}

fn secondly(job_type: &str) -> Value {
    json!({ "job_type": job_type, "kind": "interval", "interval_seconds": 1 })
}

#[track_caller]
fn create(caller: &Caller, wish: &Value) -> Value {
    let made = caller.post("/api/v1/schedules", wish);
    assert_eq!(made.status, 201, "{}", made.text());
    made.data()
}

fn path(schedule: &Value, more: &str) -> String {
    format!("/api/v1/schedules/{}{more}", text(schedule, "schedule_id"))
}

/// The jobs that a schedule has made.
fn jobs(caller: &Caller, schedule: &Value) -> Vec<Value> {
    let id = text(schedule, "schedule_id");
    items(caller.get(&format!("/api/v1/jobs?label=schedule_id={id}&limit=100")).data())
}

fn o13_a_schedule_belongs_to_its_user_and_namespace_and_to_nobody_else(store: Store) {
    let ann = server(store).caller("o13", "ann", &USER);
    let made = create(&ann, &yearly("o13"));
    assert!(text(&made, "schedule_id").starts_with("sch_"));
    assert_eq!((&made["user_id"], &made["tenant_id"]), (&json!("ann"), &json!("o13")));
    assert_eq!((&made["namespace"], &made["status"]), (&json!("user:ann"), &json!("active")));
    assert_eq!(made["description"], "At 00:00 on day 31 of December, UTC");
    assert_eq!((&made["fired_count"], &made["skipped_count"]), (&json!(0), &json!(0)));
    assert!(made["last_fire_at"].is_null() && made["next_fire_at"].is_string());
    assert_eq!(ann.get(&path(&made, "")).data(), made);

    // A neighbour, and somebody of another tenant with every role.
    let everything = ["submitter", "worker", "viewer", "operator", "approver", "internal"];
    let strangers = [
        server(store).caller("o13", "bob", &USER),
        server(store).caller("o13-other", "ann", &everything),
    ];
    let unknown = "/api/v1/schedules/sch_0000000000000000000000000z";
    let backfill = json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z" });
    let verbs: [(&str, &str, Value); 11] = [
        ("GET", "", json!(null)),
        ("PUT", "", yearly("o13")),
        ("DELETE", "", json!(null)),
        ("POST", "/pause", json!({})),
        ("POST", "/resume", json!(null)),
        ("POST", "/stop", json!(null)),
        ("POST", "/trigger", json!(null)),
        ("POST", "/backfill", backfill),
        ("GET", "/preview", json!(null)),
        ("GET", "/history", json!(null)),
        ("GET", "/preview?count=3", json!(null)),
    ];
    for stranger in &strangers {
        for (method, more, body) in &verbs {
            let ask = |base: &str| {
                let mut request = stranger.request(method, &format!("{base}{more}"));
                if !body.is_null() {
                    request = request.json(body);
                }
                let answer: Response = request.send(stranger.address);
                (answer.status, answer.json()["error"].clone())
            };
            let foreign = ask(&path(&made, ""));
            assert_eq!(foreign.0, 403, "{method} {more}: {foreign:?}");
            for other in [unknown, "/api/v1/schedules/nonsense", "/api/v1/schedules/sch_"] {
                assert_eq!(ask(other), foreign, "{method} {more} of {other}");
            }
        }
        let listed = items(stranger.get("/api/v1/schedules?limit=100").data());
        assert!(listed.is_empty(), "{listed:?}");
    }
    assert_eq!(ann.get(&path(&made, "")).data(), made, "nothing has changed");
    // A viewer of the tenant sees it and may do nothing; an operator may; an admin is told more.
    let viewer = server(store).caller("o13", "vic", &["viewer", "submitter"]);
    assert_eq!(viewer.get(&path(&made, "")).data()["user_id"], "ann");
    assert_eq!(viewer.poke(&path(&made, "/stop")).refusal(), (403, "AUTH_FORBIDDEN".into()));
    let operator = server(store).caller("o13", "oda", &["operator"]);
    assert_eq!(operator.poke(&path(&made, "/pause")).data()["paused_by"], "oda");
    let admin = server(store).admin();
    assert_eq!(admin.get(unknown).refusal(), (404, "ENTITY_NOT_FOUND".into()));
    assert_eq!(admin.get(&path(&made, "")).data()["namespace"], "user:ann");
}

fn o13_lists_show_what_one_may_see_by_state_type_and_owner_page_by_page(store: Store) {
    let ann = server(store).caller("o13-list", "ann", &USER);
    let bob = server(store).caller("o13-list", "bob", &USER);
    let operator = server(store).caller("o13-list", "oda", &["operator"]);
    let mut made: Vec<String> = Vec::new();
    for number in 0..7 {
        let whose = if number % 3 == 0 { &bob } else { &ann };
        let kind = if number % 2 == 0 { "list-even" } else { "list-odd" };
        let schedule = create(whose, &yearly(kind));
        if number == 5 {
            whose.poke(&path(&schedule, "/stop")).data();
        }
        made.push(text(&schedule, "schedule_id"));
    }
    let list = |who: &Caller, query: &str| -> Vec<String> {
        let found = items(who.get(&format!("/api/v1/schedules{query}")).data());
        found.iter().map(|schedule| text(schedule, "schedule_id")).collect()
    };
    let of = |numbers: &[usize]| -> Vec<String> {
        numbers.iter().map(|number| made[*number].clone()).collect()
    };
    assert_eq!(list(&operator, ""), of(&[6, 5, 4, 3, 2, 1, 0]));
    assert_eq!(list(&ann, ""), of(&[5, 4, 2, 1]));
    assert_eq!(list(&bob, "?status=active"), of(&[6, 3, 0]));
    assert_eq!(list(&operator, "?status=stopped"), of(&[5]));
    assert_eq!(list(&operator, "?job_type=list-odd"), of(&[5, 3, 1]));
    assert_eq!(list(&operator, "?job_type=list-odd&owner=bob"), of(&[3]));
    assert_eq!(list(&operator, "?owner=ann&status=active&job_type=list-even"), of(&[4, 2]));
    assert!(list(&ann, "?owner=bob").is_empty(), "not one's own: nothing");
    assert_eq!(list(&ann, "?owner=ann"), of(&[5, 4, 2, 1]));

    let first = operator.get("/api/v1/schedules?limit=3").data();
    assert_eq!(first["total"], 7);
    let cursor = text(&first, "next_cursor");
    let second = list(&operator, &format!("?limit=3&cursor={cursor}"));
    assert_eq!(second, of(&[3, 2, 1]));
    for (who, query) in [
        (&ann, format!("?limit=3&cursor={cursor}")),
        (&operator, format!("?limit=3&status=active&cursor={cursor}")),
        (&operator, "?cursor=00ff".to_owned()),
    ] {
        let refused = who.get(&format!("/api/v1/schedules{query}")).refusal();
        assert_eq!(refused, (400, "CURSOR_INVALID".into()), "{query}");
    }
    for bad in
        ["?status=queued", "?job_type=", "?user_id=ann", "?limit=0", "?status=active&status=ended"]
    {
        let refused = operator.get(&format!("/api/v1/schedules{bad}")).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
}

fn o17_o18_schedules_survive_a_kill_go_on_firing_and_stay_their_owners(store: Store) {
    let mut server = Server::start(store.options(BINARY));
    let ann = server.caller("o17", "ann", &USER);
    let bob = server.caller("o17", "bob", &USER);
    let interval = create(&ann, &secondly("o17-interval"));
    let cron = json!({ "job_type": "o17-cron", "kind": "cron", "cron": "* * * * * *",
        "timezone": "Asia/Shanghai", "payload": { "kept": [1, 2] }, "labels": { "a": "b" } });
    let cron = create(&ann, &cron);
    let paused = create(&ann, &secondly("o17-paused"));
    ann.post(&path(&paused, "/pause"), &json!({ "note": "for now" })).data();
    for schedule in [&interval, &cron] {
        eventually("the first firings", || (jobs(&ann, schedule).len() >= 2).then_some(()));
    }
    server.kill9();
    server.restart();
    // The restarted server has a new port; the tokens are the same.
    let at = |caller: &Caller| Caller { address: server.admin().address, ..caller.clone() };
    let (ann, bob) = (at(&ann), at(&bob));
    for schedule in [&interval, &cron] {
        let before = jobs(&ann, schedule).len();
        let found = ann.get(&path(schedule, "")).data();
        assert_eq!((&found["status"], &found["user_id"]), (&json!("active"), &json!("ann")));
        eventually("it goes on firing", || {
            (jobs(&ann, schedule).len() >= before + 2).then_some(())
        });
        let all = jobs(&ann, schedule);
        let mut times: Vec<String> = all.iter().map(|job| text(job, "run_at")).collect();
        times.sort();
        times.dedup();
        assert_eq!(times.len(), all.len(), "no instant has two jobs");
    }
    let job = jobs(&ann, &cron).pop().unwrap();
    assert_eq!((&job["payload"], &job["labels"]["a"]), (&json!({ "kept": [1, 2] }), &json!("b")));
    assert_eq!((&job["user_id"], &job["tenant_id"]), (&json!("ann"), &json!("o17")));
    let found = ann.get(&path(&paused, "")).data();
    assert_eq!((&found["status"], &found["pause_note"]), (&json!("paused"), &json!("for now")));
    assert!(jobs(&ann, &paused).is_empty() && found["next_fire_at"].is_null());
    for verb in ["/resume", "/stop", "/pause", "/trigger"] {
        for schedule in [&interval, &paused] {
            let refused = bob.poke(&path(schedule, verb)).refusal();
            assert_eq!(refused, (403, "AUTH_FORBIDDEN".into()), "{verb}");
        }
    }
    assert_eq!(bob.get(&path(&cron, "")).refusal(), (403, "AUTH_FORBIDDEN".into()));
    assert_eq!(ann.poke(&path(&paused, "/resume")).data()["status"], "active");
    eventually("the resumed one fires", || (!jobs(&ann, &paused).is_empty()).then_some(()));
    let history = items(ann.get(&path(&interval, "/history")).data());
    assert!(history.len() >= 2 && history[0]["fire_at"].as_str() > history[1]["fire_at"].as_str());
    for outcome in &history {
        let word = text(outcome, "outcome");
        assert!(["fired", "late", "coalesced"].contains(&word.as_str()), "{outcome}");
        assert_eq!(outcome["job_id"].is_string(), word != "coalesced", "{outcome}");
    }
}

fn o17_a_preview_is_what_then_fires(store: Store) {
    let ann = server(store).caller("o17-preview", "ann", &USER);
    for (job_type, wish) in [
        (
            "pre-cron",
            json!({ "kind": "cron", "cron": "*/2 * * * * *", "timezone": "Asia/Kathmandu" }),
        ),
        ("pre-interval", json!({ "kind": "interval", "interval_seconds": 2, "phase_seconds": 1 })),
    ] {
        let mut wish = wish;
        wish["job_type"] = json!(job_type);
        wish["max_runs"] = json!(3);
        let unsaved = ann.post("/api/v1/schedules/preview?count=50", &wish).data();
        assert_eq!(items(unsaved.clone()).len(), 3, "no more than it may run");
        let made = create(&ann, &wish);
        let promised = ann.get(&path(&made, "/preview?count=3")).data();
        assert_eq!(promised["description"], unsaved["description"]);
        let promised: Vec<String> =
            items(promised).iter().map(|item| text(item, "fire_at")).collect();
        eventually("it has ended", || {
            (ann.get(&path(&made, "")).data()["status"] == "ended").then_some(())
        });
        assert_eq!(jobs(&ann, &made).len(), 3);
        let mut fired: Vec<String> = items(ann.get(&path(&made, "/history")).data())
            .iter()
            .filter(|outcome| outcome["job_id"].is_string())
            .map(|outcome| text(outcome, "fire_at"))
            .collect();
        fired.sort();
        assert_eq!(fired.len(), 3);
        // It may have fired once between being made and being asked.
        let overlap = promised.iter().filter(|at| fired.contains(at)).count();
        assert!(
            overlap >= 2 && promised.starts_with(&fired[3 - overlap..]),
            "{fired:?} {promised:?}"
        );
        assert!(items(ann.get(&path(&made, "/preview")).data()).is_empty(), "it has ended");
    }
    // In a zone, around a change of its clocks, without what is left out.
    let wish = json!({ "job_type": "pre", "kind": "cron", "cron": "30 2 * * *",
        "timezone": "America/New_York",
        "exclude": ["2027-03-13", { "from": "2027-03-16", "to": "2027-03-20" }] });
    let from = "/api/v1/schedules/preview?count=4&from=2027-03-12T00:00:00Z";
    let preview = ann.post(from, &wish).data();
    assert_eq!(preview["description"], "At 02:30 every day, America/New_York");
    let shown: Vec<(String, bool)> = items(preview)
        .iter()
        .map(|item| (text(item, "local_time"), item["note"].is_string()))
        .collect();
    let expected = [
        ("2027-03-12T02:30:00-05:00", false),
        ("2027-03-14T03:00:00-04:00", true),
        ("2027-03-15T02:30:00-04:00", false),
        ("2027-03-21T02:30:00-04:00", false),
    ];
    assert_eq!(shown, expected.map(|(time, has_note)| (time.to_owned(), has_note)));
}

fn o17_pause_resume_stop_and_delete_do_what_they_say(store: Store) {
    let ann = server(store).caller("o17-verbs", "ann", &USER);
    let made = create(&ann, &secondly("verbs"));
    eventually("it fires", || (!jobs(&ann, &made).is_empty()).then_some(()));
    let paused = ann.post(&path(&made, "/pause"), &json!({ "note": "lunch" })).data();
    assert_eq!((&paused["status"], &paused["pause_note"]), (&json!("paused"), &json!("lunch")));
    assert_eq!(paused["paused_by"], "ann");
    let count = paused["fired_count"].clone();
    assert_eq!(ann.poke(&path(&made, "/pause")).data()["status"], "paused", "twice is fine");
    assert_eq!(ann.get(&path(&made, "")).data()["fired_count"], count);
    let resumed = ann.poke(&path(&made, "/resume")).data();
    assert_eq!((&resumed["status"], &resumed["pause_note"]), (&json!("active"), &json!(null)));
    eventually("it fires again", || {
        (ann.get(&path(&made, "")).data()["fired_count"] != count).then_some(())
    });
    let stopped = ann.poke(&path(&made, "/stop")).data();
    assert_eq!((&stopped["status"], &stopped["next_fire_at"]), (&json!("stopped"), &json!(null)));
    assert_eq!(ann.poke(&path(&made, "/stop")).data()["status"], "stopped", "twice is harmless");
    for verb in ["/pause", "/resume", "/trigger"] {
        let refused = ann.poke(&path(&made, verb)).refusal();
        assert_eq!(refused, (409, "SCHEDULE_CONFLICT".into()), "{verb}");
    }
    assert_eq!(ann.put(&path(&made, ""), &secondly("verbs")).refusal().0, 409);
    let fired = ann.get(&path(&made, "")).data()["fired_count"].clone();
    assert_eq!(json!(jobs(&ann, &made).len()), fired, "every firing is a job");
    let deleted = ann.delete(&path(&made, "")).data();
    assert_eq!(deleted["status"], "deleted");
    assert_eq!(ann.get(&path(&made, "")).refusal(), (403, "AUTH_FORBIDDEN".into()));
    assert_eq!(ann.delete(&path(&made, "")).refusal().0, 403);
    assert!(!jobs(&ann, &made).is_empty(), "its jobs stay");
    for (verb, body) in
        [("/pause", json!({ "reason": "x" })), ("/pause", json!({ "note": "a\u{0}b" }))]
    {
        let made = create(&ann, &yearly("verbs"));
        assert_eq!(ann.post(&path(&made, verb), &body).refusal().0, 400, "{body}");
    }
}

fn o17_an_update_replaces_all_of_it(store: Store) {
    let ann = server(store).caller("o17-update", "ann", &USER);
    let wish = json!({ "job_type": "upd", "kind": "cron", "cron": "0 3 * * *", "name": "nightly",
        "timezone": "asia/shanghai", "dst_gap": "skip", "dst_fold": "twice", "misfire": "all",
        "misfire_limit": 7, "overlap": "skip", "jitter_seconds": 5, "max_runs": 9,
        "start_at": "2026-01-01T00:00:00Z", "end_at": "2999-01-01T00:00:00Z",
        "exclude": ["2027-01-01", { "from": "2027-02-01", "to": "2027-02-07" }],
        "pause_after_failures": 3, "queue": "q", "priority": 9, "timeout_ms": 1000,
        "max_retries": 2, "labels": { "team": "red" }, "payload": { "big": 12345678901234567890u64 } });
    let made = create(&ann, &wish);
    assert_eq!(made["version"], 1);
    for (field, value) in wish.as_object().unwrap() {
        let shown = match field.as_str() {
            "timezone" => json!("Asia/Shanghai"),
            "start_at" | "end_at" => json!(value.as_str().unwrap().replace('Z', ".000000Z")),
            _ => value.clone(),
        };
        assert_eq!(made[field], shown, "{field}");
    }
    let plain = ann.put(&path(&made, ""), &secondly("upd")).data();
    assert_eq!((&plain["kind"], &plain["version"]), (&json!("interval"), &json!(2)));
    assert_eq!((&plain["interval_seconds"], &plain["phase_seconds"]), (&json!(1), &json!(0)));
    for gone in ["name", "cron", "dst_gap", "max_runs", "start_at", "queue", "timeout_ms"] {
        assert!(plain[gone].is_null(), "{gone}");
    }
    assert_eq!((&plain["misfire"], &plain["overlap"]), (&json!("coalesce"), &json!("allow")));
    assert_eq!((&plain["exclude"], &plain["labels"]), (&json!([]), &json!({})));
    assert_eq!((&plain["payload"], &plain["timezone"]), (&json!({}), &json!("UTC")));
    assert_eq!(plain["created_at"], made["created_at"]);
    assert_eq!(plain["user_id"], "ann");
    eventually("the new rhythm fires", || (!jobs(&ann, &made).is_empty()).then_some(()));
}

fn o17_a_trigger_makes_a_job_and_a_backfill_what_was_missing(store: Store) {
    let ann = server(store).caller("o17-hand", "ann", &USER);
    let hourly = json!({ "job_type": "hand", "kind": "cron", "cron": "0 * * * *" });
    let made = create(&ann, &hourly);
    let triggered = ann.poke(&path(&made, "/trigger"));
    assert_eq!(triggered.status, 202);
    let job = ann.job(&text(&triggered.data(), "job_id"));
    assert_eq!((&job["job_type"], &job["status"]), (&json!("hand"), &json!("queued")));
    assert_eq!(job["labels"]["schedule_id"], made["schedule_id"]);
    let second = text(&ann.poke(&path(&made, "/trigger")).data(), "job_id");
    assert_ne!(json!(second), job["job_id"], "each trigger is a job");

    let wish = json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T05:30:00Z" });
    let filled = ann.post(&path(&made, "/backfill"), &wish).data();
    assert_eq!((&filled["fired"], &filled["next_from"]), (&json!(6), &json!(null)));
    let first = items(filled);
    let times: Vec<String> = first.iter().map(|item| text(item, "fire_at")).collect();
    let hours = (0..6).map(|hour| format!("2026-01-01T0{hour}:00:00.000000Z"));
    assert_eq!(times, hours.collect::<Vec<_>>());
    let again = ann.post(&path(&made, "/backfill"), &wish).data();
    assert_eq!(again["fired"], 0, "no firing has two jobs");
    for (one, two) in first.iter().zip(items(again)) {
        assert_eq!((&one["job_id"], &two["outcome"]), (&two["job_id"], &json!("existing")));
    }
    assert_eq!(jobs(&ann, &made).len(), 8);
    let history = items(ann.get(&path(&made, "/history")).data());
    // Backfilled neighbours share an entry.
    let count = |word: &str| -> u64 {
        let of = history.iter().filter(|item| item["outcome"] == word);
        of.map(|item| item["count"].as_u64().unwrap_or(1)).sum()
    };
    assert_eq!((count("backfilled"), count("fired")), (6, 2));

    // Ten years of hours: bounded, and it is told where to go on.
    let years = json!({ "from": "2016-01-01T00:00:00Z", "to": "2025-12-31T00:00:00Z", "limit": 3 });
    let part = ann.post(&path(&made, "/backfill"), &years).data();
    assert_eq!(
        (&part["fired"], &part["next_from"]),
        (&json!(3), &json!("2016-01-01T03:00:00.000000Z"))
    );
    for (from, to, limit, field) in [
        ("2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z", json!(5), "to"),
        ("2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z", json!(5), "to"),
        ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", json!(1_000_000), "limit"),
        ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", json!(0), "limit"),
    ] {
        let wish = json!({ "from": from, "to": to, "limit": limit });
        let refused = ann.post(&path(&made, "/backfill"), &wish);
        assert_eq!(refused.refusal(), (400, "REQ_VALIDATION_FAILED".into()), "{wish}");
        assert_eq!(refused.json()["error"]["details"]["path"], field, "{wish}");
    }
    // A second of every second of years: still bounded by its default.
    let seconds = create(
        &ann,
        &json!({ "job_type": "hand", "kind": "cron", "cron": "* * * * * *",
        "start_at": "2020-01-01T00:00:00Z", "end_at": "2999-01-01T00:00:00Z" }),
    );
    ann.poke(&path(&seconds, "/pause")).data();
    let wish = json!({ "from": "2020-01-01T00:00:00Z", "to": "2021-01-01T00:00:00Z" });
    let filled = ann.post(&path(&seconds, "/backfill"), &wish).data();
    assert_eq!((&filled["fired"], filled["next_from"].is_string()), (&json!(100), true));
}

fn o17_nonsense_is_refused_where_it_stands(store: Store) {
    let ann = server(store).caller("o17-nonsense", "ann", &USER);
    let cron = |text: &str| json!({ "job_type": "n", "kind": "cron", "cron": text });
    let with = |field: &str, value: Value| {
        let mut wish = yearly("n");
        wish[field] = value;
        wish
    };
    let every = |seconds: Value| json!({ "job_type": "n", "kind": "interval", "interval_seconds": seconds });
    let once = |at: &str| json!({ "job_type": "n", "kind": "at", "at": at });
    for (wish, path, word) in [
        (cron("0 0 31 2 *"), "cron", "it never fires"),
        (cron("0 0 30 FEB *"), "cron", "it never fires"),
        (cron("*/70 * * * *"), "cron", "field minute, column 3: 70 is not between 1 and 59"),
        (cron("1,,2 * * * *"), "cron", "field minute, column 3: a value is missing"),
        (cron(""), "cron", "empty"),
        (cron("@reboot"), "cron", "@reboot"),
        (cron(&"1,".repeat(5_000)), "cron", "longer than 256 bytes"),
        (cron("* * *\u{0}* *"), "cron", "control"),
        (every(json!(0)), "interval_seconds", "between 1 and"),
        (every(json!(u64::MAX)), "interval_seconds", "between 1 and"),
        (every(json!(-1)), "interval_seconds", ""),
        (with("timezone", json!("Mars/Base")), "timezone", "IANA"),
        (with("timezone", json!("")), "timezone", "IANA"),
        (with("timezone", json!("../../etc/passwd")), "timezone", "IANA"),
        (with("kind", json!("weekly")), "kind", "at, interval or cron"),
        (with("at", json!("2999-01-01T00:00:00Z")), "at", "belongs to"),
        (with("phase_seconds", json!(1)), "phase_seconds", "belongs to"),
        (with("dst_gap", json!("both")), "dst_gap", "words"),
        (with("dst_fold", json!("thrice")), "dst_fold", "words"),
        (with("misfire", json!("often")), "misfire", "words"),
        (with("overlap", json!("maybe")), "overlap", "words"),
        (with("misfire_limit", json!(0)), "misfire_limit", ""),
        (with("max_runs", json!(0)), "max_runs", ""),
        (with("exclude", json!(["2027-02-29"])), "exclude[0]", "date"),
        (
            with("exclude", json!(["2027-02-28", { "from": "2027-03-02", "to": "2027-03-01" }])),
            "exclude[1]",
            "end",
        ),
        (with("exclude", json!([{ "from": "2027-03-01" }])), "exclude[0]", "to"),
        (with("exclude", json!([["2027-03-01", "2027-03-02"]])), "exclude[0]", "date"),
        (with("exclude", json!(vec!["2027-01-01"; 367])), "exclude", "366"),
        (with("labels", json!({ "schedule_id": "x" })), "labels", "schedule_id"),
        (with("payload", json!("x".repeat(17_000))), "payload", "16 KiB"),
        (with("name", json!("")), "name", ""),
        (with("end_at", json!("10000-01-01T00:00:00Z")), "end_at", ""),
        (once("10000-01-01T00:00:00Z"), "at", ""),
        (once("2020-01-01T00:00:00Z"), "at", "future"),
        (json!({ "job_type": "n", "kind": "at" }), "at", "needed"),
        (json!({ "job_type": "n", "kind": "interval" }), "interval_seconds", "needed"),
        (json!({ "job_type": "n", "kind": "cron" }), "cron", "needed"),
        (json!({ "job_type": "", "kind": "cron", "cron": "@daily" }), "job_type", ""),
    ] {
        let refused = ann.post("/api/v1/schedules", &wish);
        assert_eq!(refused.refusal(), (400, "REQ_VALIDATION_FAILED".into()), "{wish}");
        let error = refused.json()["error"].clone();
        assert_eq!(error["details"]["path"], path, "{error}");
        assert!(text(&error, "message").contains(word), "{error}");
    }
    let unknown = ann.post("/api/v1/schedules", &with("crom", json!("x")));
    assert_eq!(unknown.refusal(), (400, "REQ_VALIDATION_FAILED".into()));
    assert!(unknown.text().contains("crom"));
    // What is always jumped over never fires, and that is found out at once.
    let mut never = cron("30 2 8-14 3 */7");
    never["timezone"] = json!("America/New_York");
    never["dst_gap"] = json!("skip");
    let refused = ann.post("/api/v1/schedules", &never);
    assert_eq!(refused.json()["error"]["details"]["path"], "cron", "{}", refused.text());
    for bad in ["?count=0", "?count=101", "?count=x", "?from=tomorrow", "?limit=5"] {
        let refused = ann.post(&format!("/api/v1/schedules/preview{bad}"), &yearly("n"));
        assert_eq!(refused.refusal(), (400, "REQ_VALIDATION_FAILED".into()), "{bad}");
    }
    assert!(items(ann.get("/api/v1/schedules").data()).is_empty(), "nothing was made");
}

fn o17_clock_changes_are_told_before_they_happen(store: Store) {
    let ann = server(store).caller("o17-clocks", "ann", &USER);
    let wish = json!({ "job_type": "c", "kind": "cron", "cron": "30 2 * * *",
        "timezone": "Europe/Berlin", "dst_fold": "twice" });
    let ask = |language: &str| {
        let path = "/api/v1/schedules/preview?count=3&from=2027-10-31T00:00:00Z";
        let request = ann.request("POST", path).header("accept-language", language).json(&wish);
        request.send(ann.address).data()
    };
    let english = ask("en-GB,en;q=0.9,zh;q=0.1");
    let told: Vec<(String, String)> = items(english.clone())
        .iter()
        .map(|item| (text(item, "local_time"), item["note"].as_str().unwrap_or("-").to_owned()))
        .collect();
    let expected = [
        ("2027-10-31T02:30:00+02:00", "the clocks show this time twice: the first time"),
        ("2027-10-31T02:30:00+01:00", "the clocks show this time twice: the second time"),
        ("2027-11-01T02:30:00+01:00", "-"),
    ];
    assert_eq!(told, expected.map(|(time, note)| (time.to_owned(), note.to_owned())));
    assert!(text(&english, "description").ends_with("twice when the clocks show it twice"));
    let chinese = ask("zh-CN,zh;q=0.9,en;q=0.8");
    assert!(text(&chinese, "description").starts_with("每天 02:30（Europe/Berlin）"));
    assert_eq!(items(chinese)[0]["note"], "时钟两次显示该时刻：第一次");
}

fn o17_the_command_line_speaks_the_language_of_the_terminal(store: Store) {
    let server = server(store);
    let ann = server.caller("o17-cli", "ann", &USER);
    let run = |args: &[&str], language: &str| {
        let url = format!("http://{}", ann.address);
        let env = [
            ("MAINSPRING_URL", url.as_str()),
            ("MAINSPRING_TOKEN", &ann.token),
            ("LANG", language),
        ];
        mainspring_testkit::blackbox::command::run(BINARY, args, &env, server.directory())
    };
    let english = |args: &[&str]| run(args, "en_US.UTF-8").expect(0).stdout;
    let json =
        |args: &[&str]| run(&[args, &["-o", "json"]].concat(), "en_US.UTF-8").expect(0).json();
    let made = json(&[
        "schedules",
        "create",
        "cli",
        "{\"n\":1}",
        "--cron",
        "0 3 * * *",
        "--timezone",
        "Asia/Shanghai",
        "--name",
        "nightly",
        "--exclude",
        "2027-01-01..2027-01-03",
    ]);
    let id = text(&made, "schedule_id");
    assert_eq!(made["payload"], json!({ "n": 1 }));
    assert_eq!(made["exclude"], json!([{ "from": "2027-01-01", "to": "2027-01-03" }]));
    assert!(english(&["schedules", "list"]).contains("At 03:00 every day, Asia/Shanghai"));
    let chinese = run(&["schedules", "get", &id], "zh_CN.UTF-8").expect(0).stdout;
    assert!(chinese.contains("每天 03:00（Asia/Shanghai）"), "{chinese}");
    let preview =
        run(&["schedules", "preview", "--cron", "0 0 L * *", "--count", "2"], "zh_CN.UTF-8");
    assert!(preview.expect(0).stdout.contains("每月最后一天 00:00（UTC）"));
    assert_eq!(items(json(&["schedules", "preview", &id, "--count", "4"])).len(), 4);
    let updated = json(&["schedules", "update", &id, "cli", "--every", "15m", "--phase", "30s"]);
    assert_eq!(
        (&updated["interval_seconds"], &updated["phase_seconds"]),
        (&json!(900), &json!(30))
    );
    let job = text(&json(&["schedules", "trigger", &id]), "job_id");
    assert_eq!(ann.job(&job)["job_type"], "cli");
    let filled = json(&[
        "schedules",
        "backfill",
        &id,
        "--from",
        "2026-01-01T00:00:00Z",
        "--to",
        "2026-01-01T01:00:00Z",
    ]);
    assert_eq!(filled["fired"], 4);
    assert!(english(&["schedules", "history", &id]).contains("backfilled"));
    assert_eq!(json(&["schedules", "pause", &id, "--note", "n"])["pause_note"], "n");
    assert_eq!(json(&["schedules", "resume", &id])["status"], "active");
    assert_eq!(json(&["schedules", "stop", &id])["status"], "stopped");
    assert_eq!(json(&["schedules", "delete", &id])["status"], "deleted");
    run(&["schedules", "create", "cli"], "C").expect(2);
    let refused = run(&["schedules", "create", "cli", "--cron", "0 0 31 2 *"], "C");
    assert!(refused.stderr.contains("it never fires"), "{}", refused.stderr);
}

/// On one store: the server counts, and making so many takes a minute on the other one.
#[test]
fn o13_a_tenant_has_ten_thousand_schedules_and_no_more() {
    let store = Store::Memory;
    const MOST: usize = 10_000;
    const HANDS: usize = 4;
    let ann = server(store).caller("o13-many", "ann", &USER);
    let one_more = || ann.post("/api/v1/schedules", &yearly("o13-many"));
    std::thread::scope(|scope| {
        for _ in 0..HANDS {
            scope.spawn(|| {
                for _ in 0..(MOST - HANDS) / HANDS {
                    let made = one_more();
                    assert_eq!(made.status, 201, "{}", made.text());
                }
            });
        }
    });
    let last: Vec<Value> = (0..HANDS).map(|_| one_more().data()).collect();
    assert_eq!(one_more().refusal(), (409, "TOO_MANY_SCHEDULES".into()));
    let task = json!({ "task_id": "plan", "schedule_type": "cron", "cron_expr": "0 0 * * *",
        "timezone": "UTC", "next_run_at": "2031-01-01T00:00:00Z" });
    let told = ann.post("/tasks", &task);
    assert_eq!((told.status, &told.json()["error"]["code"]), (409, &json!("TOO_MANY_SCHEDULES")));
    // A neighbour has room, and so has who makes some.
    create(&server(store).caller("o13-few", "bob", &USER), &yearly("o13-few"));
    assert_eq!(ann.delete(&path(&last[0], "")).status, 200);
    assert_eq!(one_more().status, 201);
    assert_eq!(one_more().refusal(), (409, "TOO_MANY_SCHEDULES".into()));
}

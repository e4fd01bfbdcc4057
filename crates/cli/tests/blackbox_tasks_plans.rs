//! The task contract from outside: plans, which make tasks by a cron pattern.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_tasks/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::{
    EVERYTHING, FUTURE, PAST, SAMPLE_FIELDS, at, created, fields, moves, post, states, task,
    told_no, transition, with,
};

both_stores![
    m10_m12_a_plan_makes_a_task_for_each_of_its_times_and_each_is_told_of,
    m10_next_run_at_is_computed_and_daily_is_read_as_cron,
    m09_m13_a_plan_is_hit_and_conflicts_like_any_task,
    m02_m03_a_plan_can_only_be_cancelled_and_then_makes_nothing_more,
    m10_m12_runs_of_a_callers_own_plan_carry_its_name_and_time,
    m10_a_plan_that_makes_no_sense_is_refused_by_the_name_of_its_field,
    m12_a_plan_survives_kill_9_and_makes_no_task_twice,
    m14_plans_of_two_tenants_and_plans_and_tasks_of_one_name_are_apart,
];

/// One server per store for the whole file; every test has a tenant of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes"))
}

fn cron(task_id: &str, cron_expr: &str, timezone: &str) -> Value {
    json!({ "task_id": task_id, "schedule_type": "cron", "cron_expr": cron_expr,
        "timezone": timezone, "next_run_at": FUTURE })
}

/// A plan that fires every second.
fn beat(task_id: &str) -> Value {
    cron(task_id, "* * * * * *", "UTC")
}

fn instant(value: &Value) -> jiff::Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

/// The schedule of a plan, as the native contract shows it.
fn schedule(who: &Caller, plan: &str) -> Value {
    let all = items(who.get("/api/v1/schedules?limit=100").data());
    all.into_iter().find(|it| it["name"] == plan).expect("the plan has a schedule")
}

/// The tasks that a plan has made, by name.
fn made_by(who: &Caller, schedule: &Value) -> Vec<String> {
    let id = text(schedule, "schedule_id");
    let jobs = items(who.get(&format!("/api/v1/jobs?label=schedule_id%3D{id}&limit=100")).data());
    jobs.iter().map(|job| text(&job["labels"], "task_id")).collect()
}

fn m10_m12_a_plan_makes_a_task_for_each_of_its_times_and_each_is_told_of(store: Store) {
    let ann = server(store).caller("plan", "ann", &["submitter", "worker"]);
    let more = json!({ "timeout_ms": 7000, "max_retries": 2, "payload": { "n": 1 } });
    let plan = created(&ann, &with(beat("beat"), more));
    assert_eq!(
        (&plan["schedule_type"], &plan["state"], &plan["attempt"]),
        (&json!("cron"), &json!("pending"), &json!(1))
    );
    assert_eq!((&plan["cron_expr"], &plan["timezone"]), (&json!("* * * * * *"), &json!("UTC")));
    assert!(plan.get("scheduled_at").is_none() && plan.get("last_run_at").is_none(), "{plan}");
    let mut last = None;
    for _ in 0..2 {
        let granted = ann.pull_one("task");
        let name = text(&granted["labels"], "task_id");
        let run = task(&ann, &name);
        assert_eq!((&run["task_id"], &run["schedule_id"]), (&json!(name), &json!("beat")));
        assert_eq!(name, format!("beat@{}", text(&run, "fire_time")));
        for (field, value) in [
            ("schedule_type", json!("at")),
            ("state", json!("running")),
            ("scheduled_at", run["fire_time"].clone()),
            ("idempotency_key", json!(null)),
            ("timeout_ms", json!(7000)),
            ("max_retries", json!(2)),
            ("payload", json!({ "n": 1 })),
        ] {
            assert_eq!(run[field], value, "{field}");
        }
        let fired = instant(&run["fire_time"]);
        assert!(last.is_none_or(|last| fired > last), "another one each time");
        assert_eq!(fired.as_microsecond() % 1_000_000, 0, "{run}");
        last = Some(fired);
        // However the instant is written.
        assert_eq!(task(&ann, &format!("beat@{fired}")), run);
        ann.complete(&granted);
        let events = moves(&ann, &name);
        assert_eq!(states(&events), ["pending>ready", "ready>running", "running>succeeded"]);
        for event in &events {
            let payload = &event["payload"];
            let told = (&payload["schedule_id"], &payload["fire_time"], &payload["task_id"]);
            assert_eq!(told, (&json!("beat"), &run["fire_time"], &json!(name)));
            let keys = json!([
                name,
                payload["from_state"],
                payload["to_state"],
                "beat",
                run["fire_time"],
                "task_state_changed",
                "gateway.scheduler",
                "scheduler:default",
                event["event_id"]
            ]);
            assert_eq!(event["ets_keys"], keys);
        }
    }
    // The plan itself goes on, and knows what it did.
    let plan = task(&ann, "beat");
    assert_eq!((&plan["state"], &plan["finished_at"]), (&json!("pending"), &json!(null)));
    assert!(instant(&plan["last_run_at"]) >= last.unwrap(), "{plan}");
    assert!(instant(&plan["next_run_at"]) > instant(&plan["last_run_at"]), "{plan}");
    assert!(moves(&ann, "beat").is_empty());
    // A task that no plan of hers has made is none.
    assert_eq!(ann.get("/tasks/beat@2020-01-01T00:00:00Z").status, 403);
    assert_eq!(ann.poke("/tasks/beat/cancel").status, 200);
}

fn m10_next_run_at_is_computed_and_daily_is_read_as_cron(store: Store) {
    let ben = server(store).caller("daily", "ben", &["submitter"]);
    // The document's own slip: three in Shanghai is nineteen the day before in UTC.
    let wish = with(
        cron("nightly", "0 3 * * *", "Asia/Shanghai"),
        json!({ "schedule_type": "daily", "next_run_at": "2031-02-25T03:00:00Z" }),
    );
    let plan = created(&ben, &wish);
    assert_eq!((&plan["schedule_type"], &plan["state"]), (&json!("cron"), &json!("pending")));
    assert_eq!(plan["timezone"], "Asia/Shanghai");
    let next = instant(&plan["next_run_at"]);
    assert!(plan["next_run_at"].as_str().unwrap().ends_with("T19:00:00.000000Z"), "{plan}");
    let now = jiff::Timestamp::now();
    assert!(next > now && next <= now + jiff::SignedDuration::from_hours(24), "{plan}");
    // It is what the schedule says, too; five fields and six are the same thing.
    assert_eq!(schedule(&ben, "nightly")["next_fire_at"], plan["next_run_at"]);
    let six = created(&ben, &cron("six", "0 0 3 * * *", "Asia/Shanghai"));
    assert_eq!(six["next_run_at"], plan["next_run_at"]);
}

fn m09_m13_a_plan_is_hit_and_conflicts_like_any_task(store: Store) {
    let cem = server(store).caller("again", "cem", &["submitter"]);
    let wish = with(
        cron("plan", "0 3 * * *", "Asia/Shanghai"),
        json!({ "max_retries": 1, "idempotency_key": "k", "payload": {} }),
    );
    created(&cem, &wish);
    for same in [
        wish.clone(),
        with(wish.clone(), json!({ "schedule_type": "daily", "payload": { "other": true } })),
        with(wish.clone(), json!({ "task_id": "by-key", "next_run_at": PAST })),
        json!({ "task_id": "plan" }),
    ] {
        let (status, hit) = post(&cem, "/tasks", &same);
        assert_eq!((status, &hit["idempotent_hit"]), (200, &json!(true)), "{same}: {hit}");
        assert_eq!(fields(&hit["task"]), BTreeSet::from(SAMPLE_FIELDS));
        let told = (&hit["task"]["task_id"], &hit["task"]["schedule_type"]);
        assert_eq!(told, (&json!("plan"), &json!("cron")));
    }
    for (change, conflicts) in [
        (json!({ "cron_expr": "0 4 * * *" }), json!(["cron_expr"])),
        (json!({ "timezone": "UTC", "max_retries": 2 }), json!(["timezone", "max_retries"])),
        (json!({ "scheduled_at": FUTURE }), json!(["scheduled_at"])),
        (
            json!({ "schedule_type": "at", "scheduled_at": FUTURE }),
            json!(["schedule_type", "scheduled_at"]),
        ),
    ] {
        let refused = post(&cem, "/tasks", &with(wish.clone(), change));
        let error = told_no(refused, 409, "TASK_DUPLICATE");
        assert_eq!(error["conflict_fields"], conflicts);
        assert_eq!(fields(&error["task"]), BTreeSet::from(SAMPLE_FIELDS));
    }
    assert_eq!(items(cem.get("/api/v1/schedules").data()).len(), 1);
    assert_eq!(items(cem.get("/api/v1/jobs").data()).len(), 1);
}

fn m02_m03_a_plan_can_only_be_cancelled_and_then_makes_nothing_more(store: Store) {
    let dan = server(store).caller("stop", "dan", &EVERYTHING);
    for (plan, cancel) in [("by-task", true), ("by-job", false)] {
        created(&dan, &cron(plan, "0 3 * * *", "UTC"));
        let before = (task(&dan, plan), moves(&dan, plan));
        for to in ["pending", "ready", "running", "succeeded", "failed"] {
            let error = told_no(transition(&dan, plan, to), 409, "TASK_INVALID_TRANSITION");
            assert_eq!((&error["from_state"], &error["to_state"]), (&json!("pending"), &json!(to)));
        }
        // Not by the back doors either.
        let job = text(&before.0, "job_id");
        let internal = format!("/api/v1/internal/jobs/{job}");
        for (path, body) in [
            (format!("{internal}/transition"), json!({ "new_status": "running" })),
            (format!("{internal}/run"), json!({})),
            (format!("/jobs/{job}/transition"), json!({ "toStatus": "running" })),
        ] {
            let request = dan.request("POST", &path).header("x-internal-debug", "true");
            let answer = request.json(&body).send(dan.address);
            assert_eq!(answer.status, 409, "{path}: {}", answer.text());
        }
        assert!(dan.pull("task", 10).is_empty(), "nobody is handed a plan");
        let native = format!("/api/v1/schedules/{}", text(&schedule(&dan, plan), "schedule_id"));
        let other = json!({ "job_type": "task", "kind": "interval", "interval_seconds": 1 });
        for refused in
            [dan.poke(&format!("{native}/stop")), dan.delete(&native), dan.put(&native, &other)]
        {
            assert_eq!(refused.refusal(), (409, "SCHEDULE_OF_TASK".into()));
        }
        assert_eq!((task(&dan, plan), moves(&dan, plan)), before, "nothing has changed");
        let path = match cancel {
            true => format!("/tasks/{plan}/cancel"),
            false => format!("/api/v1/jobs/{job}/cancel"),
        };
        assert!(dan.poke(&path).status < 300);
        let after = task(&dan, plan);
        assert_eq!((&after["state"], after.get("next_run_at")), (&json!("cancelled"), None));
        assert_eq!(after["cron_expr"], "0 3 * * *");
        assert_eq!(states(&moves(&dan, plan)), ["pending>cancelled"]);
        eventually("the schedule of the plan has stopped", || {
            let shown = dan.get(&native).data();
            (shown["status"] == "stopped" && shown["next_fire_at"].is_null()).then_some(())
        });
        let trigger = dan.poke(&format!("{native}/trigger"));
        assert_eq!(trigger.refusal(), (409, "SCHEDULE_CONFLICT".into()));
        let again = dan.poke(&format!("/tasks/{plan}/cancel"));
        told_no((again.status, again.json()), 409, "TASK_INVALID_TRANSITION");
    }
    // What was made by hand before is a task like the others.
    created(&dan, &cron("hand", "0 3 * * *", "UTC"));
    let native = format!("/api/v1/schedules/{}", text(&schedule(&dan, "hand"), "schedule_id"));
    assert_eq!(dan.poke(&format!("{native}/trigger")).status, 202);
    let granted = dan.pull_one("task");
    let run = task(&dan, &text(&granted["labels"], "task_id"));
    assert_eq!((&run["schedule_id"], &run["job_id"]), (&json!("hand"), &granted["job_id"]));
    // A plan that ends leaves what runs alone.
    assert_eq!(dan.poke("/tasks/hand/cancel").status, 200);
    dan.complete(&granted);
    assert_eq!(task(&dan, &text(&run, "task_id"))["state"], "succeeded");
}

fn m10_m12_runs_of_a_callers_own_plan_carry_its_name_and_time(store: Store) {
    let eli = server(store).caller("runs", "eli", &["submitter", "worker"]);
    let run = json!({ "schedule_id": "their plan", "fire_time": "2026-02-25T12:00:00Z" });
    let made = created(&eli, &with(at("r-1", PAST), run.clone()));
    assert_eq!(made["schedule_id"], "their plan");
    assert_eq!(made["fire_time"], "2026-02-25T12:00:00.000000Z");
    eli.complete(&eli.pull_one("task"));
    let events = moves(&eli, "r-1");
    assert_eq!(events.len(), 3);
    for event in events {
        let payload = &event["payload"];
        assert_eq!(
            (&payload["schedule_id"], &payload["fire_time"]),
            (&made["schedule_id"], &made["fire_time"])
        );
    }
    for (lacking, field) in [("schedule_id", "schedule_id"), ("fire_time", "fire_time")] {
        let mut wish = with(at("r-2", PAST), run.clone());
        wish.as_object_mut().unwrap().remove(lacking);
        let error = told_no(post(&eli, "/tasks", &wish), 422, "TASK_INVALID_SCHEDULE");
        assert_eq!(error["field"], field, "the one that is missing is named");
    }
    let wish = with(at("r-2", PAST), run.clone());
    let offset = with(wish.clone(), json!({ "fire_time": "2026-02-25T20:00:00+08:00" }));
    let error = told_no(post(&eli, "/tasks", &offset), 422, "TASK_INVALID_SCHEDULE");
    assert_eq!(error["field"], "fire_time");
    for bad in [json!(""), json!(" "), json!("a\u{0}"), json!("x".repeat(161)), json!(7)] {
        let (status, body) =
            post(&eli, "/tasks", &with(wish.clone(), json!({ "schedule_id": bad })));
        assert_eq!((status, &body["error"]["field"]), (422, &json!("schedule_id")), "{body}");
    }
    // Who labels a native job so has labelled it, and no more.
    let labels = json!({ "task_id": "r-1", "schedule_id": "x", "fire_time": PAST });
    let native = eli.submit(&json!({ "job_type": "runs", "payload": {}, "labels": labels }));
    let shown = task(&eli, &text(&native, "job_id"));
    assert_eq!((&shown["task_id"], shown.get("schedule_id")), (&native["job_id"], None));
    // Nor does a native schedule make tasks of a plan that there is not.
    let wish = json!({ "job_type": "runs-2", "kind": "interval", "interval_seconds": 1,
        "labels": { "task_id": "r-1@2026-02-25T12:00:00Z" } });
    assert_eq!(eli.post("/api/v1/schedules", &wish).status, 201);
    let granted = eli.pull_one("runs-2");
    let shown = task(&eli, &text(&granted, "job_id"));
    assert_eq!((&shown["task_id"], shown.get("schedule_id")), (&granted["job_id"], None));
    assert_eq!(shown["idempotency_key"], json!(null), "the key of a firing is nobody's");
}

fn m10_a_plan_that_makes_no_sense_is_refused_by_the_name_of_its_field(store: Store) {
    let fay = server(store).caller("bad", "fay", &["submitter"]);
    let good = cron("x", "0 3 * * *", "Asia/Shanghai");
    for (change, field) in [
        (json!({ "cron_expr": null }), "cron_expr"),
        (json!({ "cron_expr": "  " }), "cron_expr"),
        (json!({ "cron_expr": "tomorrow" }), "cron_expr"),
        (json!({ "cron_expr": "61 * * * *" }), "cron_expr"),
        (json!({ "cron_expr": "* * * *" }), "cron_expr"),
        (json!({ "cron_expr": "* * * * * * *" }), "cron_expr"),
        (json!({ "cron_expr": "0 0 30 2 *" }), "cron_expr"),
        (json!({ "cron_expr": "0".repeat(100_000) }), "cron_expr"),
        (json!({ "cron_expr": "0 3 * * *\u{0}" }), "cron_expr"),
        (json!({ "cron_expr": 3 }), "cron_expr"),
        (json!({ "timezone": null }), "timezone"),
        (json!({ "timezone": "Mars/Olympus" }), "timezone"),
        (json!({ "timezone": "../../etc/passwd" }), "timezone"),
        (json!({ "timezone": "+08:00" }), "timezone"),
        (json!({ "next_run_at": null }), "next_run_at"),
        (json!({ "next_run_at": "soon" }), "next_run_at"),
        (json!({ "next_run_at": "2031-02-25T03:00:00+08:00" }), "next_run_at"),
        (json!({ "last_run_at": "2031-02-25T03:00:00+08:00" }), "last_run_at"),
        (json!({ "scheduled_at": FUTURE }), "scheduled_at"),
        (json!({ "schedule_id": "p", "fire_time": PAST }), "schedule_id"),
        (json!({ "schedule_type": "at", "scheduled_at": FUTURE }), "cron_expr"),
        (json!({ "schedule_type": "interval" }), "schedule_type"),
    ] {
        let refused = post(&fay, "/tasks", &with(good.clone(), change.clone()));
        let error = told_no(refused, 422, "TASK_INVALID_SCHEDULE");
        assert_eq!(error["field"], field, "{change}: {error}");
    }
    for (change, field) in [
        (json!({ "payload": { "large": "x".repeat(20_000) } }), "payload"),
        (json!({ "timeout_ms": 0 }), "timeout_ms"),
        (json!({ "max_retries": 1001 }), "max_retries"),
        (json!({ "every": 5 }), "every"),
    ] {
        let refused = post(&fay, "/tasks", &with(good.clone(), change));
        assert_eq!(told_no(refused, 422, "TASK_INVALID_FIELD")["field"], field);
    }
    assert!(items(fay.get("/api/v1/jobs").data()).is_empty(), "nothing was made");
    assert!(items(fay.get("/api/v1/schedules").data()).is_empty(), "nothing was made");
}

fn m12_a_plan_survives_kill_9_and_makes_no_task_twice(store: Store) {
    let mut server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let who = server.caller("kill", "gus", &["submitter", "worker", "viewer"]);
    created(&who, &beat("beat"));
    let plan = schedule(&who, "beat");
    eventually("it has fired", || (made_by(&who, &plan).len() >= 2).then_some(()));
    server.kill9();
    server.restart();
    let who = Caller { address: server.admin().address, ..who };
    let before = made_by(&who, &plan).len();
    eventually("it goes on", || (made_by(&who, &plan).len() >= before + 2).then_some(()));
    let shown = task(&who, "beat");
    assert_eq!((&shown["state"], &shown["cron_expr"]), (&json!("pending"), &json!("* * * * * *")));
    let (status, hit) = post(&who, "/tasks", &beat("beat"));
    assert_eq!((status, &hit["idempotent_hit"]), (200, &json!(true)));
    assert_eq!(who.poke("/tasks/beat/cancel").status, 200);
    eventually("it has stopped", || {
        let id = text(&plan, "schedule_id");
        let shown = who.get(&format!("/api/v1/schedules/{id}")).data();
        (shown["status"] == "stopped").then_some(())
    });
    let made = made_by(&who, &plan);
    let distinct: BTreeSet<_> = made.iter().collect();
    assert_eq!(distinct.len(), made.len(), "no instant has two tasks: {made:?}");
    let fired =
        items(who.get(&format!("/api/v1/schedules/{}/history", text(&plan, "schedule_id"))).data());
    let with_job = fired.iter().filter(|it| it["job_id"].is_string()).count();
    assert_eq!(with_job, made.len(), "{fired:?}");
    // All of them can be worked off, although the plan has ended.
    for _ in 0..made.len() {
        who.complete(&who.pull_one("task"));
    }
    assert!(who.pull("task", 10).is_empty());
    assert_eq!(made_by(&who, &plan).len(), made.len(), "and nothing came after");
    for name in &made {
        assert_eq!(task(&who, name)["state"], "succeeded");
    }
}

fn m14_plans_of_two_tenants_and_plans_and_tasks_of_one_name_are_apart(store: Store) {
    let hal = server(store).caller("apart-a", "hal", &["submitter", "worker"]);
    let far = server(store).caller("apart-b", "hal", &["submitter", "worker"]);
    let wish = with(beat("same"), json!({ "idempotency_key": "k" }));
    created(&hal, &wish);
    created(&far, &with(wish, json!({ "cron_expr": "0 3 * * *" })));
    let granted = hal.pull_one("task");
    let name = text(&granted["labels"], "task_id");
    assert_eq!(task(&hal, &name)["schedule_id"], "same");
    let unknown = far.get("/tasks/same@2020-01-01T00:00:00Z");
    let foreign = far.get(&format!("/tasks/{name}"));
    assert_eq!((foreign.status, foreign.text()), (403, unknown.text()));
    assert!(far.pull("task", 10).is_empty());
    // One name is one task, whatever kind it is of.
    let taken = told_no(post(&far, "/tasks", &at("same", FUTURE)), 409, "TASK_DUPLICATE");
    assert_eq!(taken["conflict_fields"], json!(["schedule_type", "scheduled_at"]));
    created(&far, &at("once", FUTURE));
    let taken = told_no(post(&far, "/tasks", &beat("once")), 409, "TASK_DUPLICATE");
    assert_eq!(taken["conflict_fields"], json!(["schedule_type", "cron_expr", "timezone"]));
    assert_eq!(items(far.get("/api/v1/schedules").data()).len(), 1);
    assert_eq!(hal.poke("/tasks/same/cancel").status, 200);
}

//! Keeps what a version of Mainspring leaves behind, for `cli/tests/blackbox_older.rs`: a data
//! directory and a database with a thing of every kind in them, cut off by `kill -9`, and what that
//! version answered about them. Run by hand before a change of a format, with the binary as it was:
//! `cargo run -p mainspring-testkit --bin keep_older -- target/release/mainspring NAME`.

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Server, Store};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const TENANT: &str = "acme";

fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(binary), Some(name)) = (args.next(), args.next()) else {
        panic!("which binary, and what shall its things be called?");
    };
    let binary: &'static str = Box::leak(binary.into_boxed_str());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/older").join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    for store in [Store::Memory, Store::Postgres] {
        let mut server = Server::start(store.options(binary));
        let told = fill(&server);
        server.kill9();
        let (told_as, kept) = match server.database() {
            None => ("memory.json", pack(&folder, "memory.tar.gz", &server.data_dir())),
            Some(database) => {
                let dump = server.directory().join("postgres.sql");
                std::fs::write(&dump, database.dump()).expect("it writes");
                ("postgres.json", pack(&folder, "postgres.tar.gz", &dump))
            }
        };
        let told = serde_json::to_string_pretty(&told).expect("JSON");
        std::fs::write(folder.join(told_as), told + "\n").expect("it writes");
        println!(
            "{}: {kept} bytes",
            store.options(binary).database.map_or("memory", |_| "postgres")
        );
    }
}

/// Packs a file or directory under its own name.
fn pack(folder: &Path, archive: &str, what: &Path) -> u64 {
    let archive = folder.join(archive);
    let (parent, name) = (what.parent().expect("a parent"), what.file_name().expect("a name"));
    let ran =
        Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(parent).arg(name).status();
    assert!(ran.expect("tar starts").success(), "tar fails");
    std::fs::metadata(&archive).expect("it is there").len()
}

/// Makes one of everything, and answers with what the server then says of it.
fn fill(server: &Server) -> Value {
    let admin = server.admin();
    let limited = json!({ "max_retries": 1, "concurrency_limit": 2, "concurrency_scope": "user",
        "queue": "narrow", "priority": 77 });
    admin.put("/api/v1/types/limited", &limited).data();
    admin.put("/api/v1/queues/narrow", &json!({ "order": "due" })).data();
    admin.put("/api/v1/queues/shut", &json!({ "order": "aged" })).data();
    admin.poke("/api/v1/queues/shut/pause").data();
    let roles = ["submitter", "worker", "viewer", "operator"];
    let ann = server.caller(TENANT, "ann", &roles);
    // Without somebody who could approve, a discard is refused.
    server.caller(TENANT, "bob", &["approver"]);
    let done = ended(&ann);
    let open = live(&ann);
    let entities = entities(&admin, &ann);
    let revoked = server.caller(TENANT, "gone", &["viewer"]);
    let listed = items(admin.get("/api/v1/tokens?limit=100").data());
    let gone = listed.iter().find(|token| token["user_id"] == "gone").expect("it is listed");
    admin.delete(&format!("/api/v1/tokens/{}", text(gone, "token_id"))).data();
    json!({
        "ended": done.iter().map(|id| shown(&ann, id)).collect::<Vec<_>>(),
        "live": open.iter().map(|id| shown(&ann, id)).collect::<Vec<_>>(),
        "items": items(ann.get("/api/v1/dlq/items").data()),
        "entities": entities,
        "types": admin.get("/api/v1/types/limited").data(),
        "queues": items(admin.get("/api/v1/queues").data()),
        "token": ann.token,
        "revoked": revoked.token,
        "counters": admin.get("/api/v1/runtime").data()["counters"],
    })
}

fn shown(caller: &Caller, id: &str) -> Value {
    json!({ "job": caller.job(id), "events": caller.events(id) })
}

/// Jobs that have ended: well, by cancelling, and badly with their items in three states.
fn ended(ann: &Caller) -> Vec<String> {
    let wish = json!({ "job_type": "well", "payload": {"ü": [1, 2.50, null]},
        "labels": {"case": "done"}, "trace_id": "trace-of-ann", "subject": "a thing" });
    let well = text(&ann.submit(&wish), "job_id");
    let grant = ann.pull_one("well");
    ann.report("complete", &grant, json!({ "result": {"sum": 3.50} }));
    let cancelled = ann.submit_plain("cancelled");
    ann.post(&format!("/api/v1/jobs/{cancelled}/cancel"), &json!({ "reason": "no need" })).data();
    let mut all = vec![well, cancelled];
    for case in ["open", "asked", "again"] {
        let id = ann.submit_plain("bad");
        ann.fail(&ann.pull_one("bad"), "BROKEN", false);
        let item = format!("/api/v1/dlq/items/{}", id.replace("job_", "dlq_"));
        match case {
            "asked" => {
                drop(ann.post(&format!("{item}/discard"), &json!({ "reason": "old" })).data())
            }
            "again" => {
                let again = ann.post(&format!("{item}/requeue"), &json!({})).data();
                ann.post(&format!("/api/v1/jobs/{}/cancel", text(&again, "job_id")), &json!({}));
            }
            _ => {}
        }
        all.push(id);
    }
    all
}

/// Jobs that go on: due in years, in a paused queue, waiting for another try, and running with a
/// committed effect under a lease that is long over when somebody looks.
fn live(ann: &Caller) -> Vec<String> {
    let years = 5 * 365 * 24 * 3_600_000_u64;
    let late = json!({ "job_type": "late", "payload": 1, "delay_ms": years, "priority": 9,
        "idempotency_key": "once" });
    let shut = json!({ "job_type": "shut", "payload": [], "queue": "shut", "labels": {"a": "b"} });
    let ids = [late, shut].map(|wish| text(&ann.submit(&wish), "job_id"));
    let retrying = ann.submit_plain("limited");
    let more = json!({ "error_code": "BUSY", "message": "later", "retryable": true,
        "retry_delay_ms": 29 * 24 * 3_600_000_u64 });
    let told = ann.report("fail", &ann.pull_one("limited"), more);
    assert_eq!(told["status"], "retrying", "{told}");
    let running = ann.submit_plain("running");
    let wish = json!({ "worker_id": "w-1", "types": ["running"], "limit": 1, "lease_ms": 10_000 });
    let grant = ann.pull_with(wish).pop().expect("a job");
    let effect = format!("/api/v1/work/effects/{running}/charge");
    ann.request("PUT", &effect)
        .header("x-lease-token", &text(&grant, "lease_token"))
        .json(&json!({ "value": {"receipt": 7} }))
        .send(ann.address)
        .data();
    let [late, shut] = ids;
    vec![late, shut, retrying, running]
}

/// Whatever has an id and a state of its own, with the path it is read at: a schedule that fires in
/// years and one that is paused, a trigger, a plan that waits for an answer, a run, a planned task,
/// an object, a gate.
fn entities(admin: &Caller, ann: &Caller) -> Vec<Value> {
    let plan = json!({ "job_type": "planned", "kind": "cron", "cron": "0 3 29 2 *",
        "timezone": "Asia/Shanghai", "name": "leap days", "labels": {"a": "b"} });
    let late = text(&ann.post("/api/v1/schedules", &plan).data(), "schedule_id");
    let hourly = json!({ "job_type": "planned", "kind": "interval", "interval_seconds": 3600 });
    let paused = text(&ann.post("/api/v1/schedules", &hourly).data(), "schedule_id");
    let why = json!({ "note": "not now" });
    ann.post(&format!("/api/v1/schedules/{paused}/pause"), &why).data();
    let condition = json!({ "type": "and", "params": { "conditions": [
        { "type": "task_done", "params": { "task_id": "run-1" } },
        { "type": "task_failed", "params": { "task_id": "run-2" } },
    ] } });
    let trigger = json!({ "id": "both", "type": "conditional", "prompt": "look",
        "condition": condition, "cooldown": 60 });
    ann.post("/api/v1/triggers", &trigger).data();
    let sent = |path: &str, body: &Value| {
        let answer = ann.post(path, body);
        assert!(answer.status < 300, "{path} {}", answer.json());
    };
    sent("/agent/runs", &json!({ "id": "run-1", "prompt": "tidy up", "priority": 7 }));
    sent("/agent/plans", &json!({ "id": "plan-1", "prompt": "plan" }));
    // It passes before anybody looks.
    let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60);
    let asks = json!({ "status": "needs_input", "question": "which?", "options": ["a", "b"],
        "default": "a", "deadline": deadline.to_string() });
    sent("/agent/plans/plan-1/result", &asks);
    let task = json!({ "task_id": "leap", "schedule_type": "cron", "cron_expr": "0 0 29 2 *",
        "timezone": "UTC", "next_run_at": "2028-02-29T00:00:00Z", "timeout_ms": 1_000,
        "max_retries": 0, "payload": {} });
    sent("/tasks", &task);
    let object = json!({ "risk_tier": "high", "epistemic": "uncertain", "auto_verify_budget": 2 });
    admin.put("/api/v1/objects/memory/m-1", &object).data();
    admin.put("/api/v1/gates/risk", &json!({ "state": "block", "reason": "audit" })).data();
    let ann_reads = [
        format!("/api/v1/schedules/{late}"),
        format!("/api/v1/schedules/{paused}"),
        "/api/v1/triggers/both".to_owned(),
        "/agent/runs/run-1".to_owned(),
        "/agent/plans/plan-1".to_owned(),
        "/tasks/leap".to_owned(),
    ];
    let admin_reads = ["/api/v1/objects/memory/m-1", "/api/v1/gates/risk"].map(str::to_owned);
    let read = |by: &str, caller: &Caller, path: String| {
        let answer = caller.get(&path);
        assert_eq!(answer.status, 200, "{path} {}", answer.json());
        json!({ "path": path, "by": by, "answer": answer.json() })
    };
    let mut all: Vec<Value> = ann_reads.into_iter().map(|path| read("ann", ann, path)).collect();
    all.extend(admin_reads.into_iter().map(|path| read("admin", admin, path)));
    all
}

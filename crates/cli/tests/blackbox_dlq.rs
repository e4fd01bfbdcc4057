//! The dead letter queue from outside, running by hand, replays, and attempts that never report.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, PerStore, Response, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};

both_stores![
    g09_g10_an_item_leads_to_its_job_and_back_and_a_requeue_is_a_new_linked_job,
    g11_a_discard_needs_a_reason_and_two_people,
    d09_dead_letters_never_block_the_queue,
    g12_the_five_replays_run_as_a_command_and_record_what_they_did,
    g13_running_by_hand_behaves_as_written_and_is_off_unless_enabled,
    o16_o21_an_attempt_that_never_reports_ends_in_failed_with_its_context,
];

/// One server per store for the whole file; every test has a tenant and types of its own.
fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || store.options(env!("CARGO_BIN_EXE_mainspring")).arg("--internal-routes"))
}

const EVERYTHING: [&str; 5] = ["submitter", "worker", "operator", "viewer", "internal"];

fn internally(caller: &Caller, path: &str, body: &Value) -> Response {
    let path = format!("/api/v1/internal/jobs/{path}");
    let request = caller.request("POST", &path).header("x-internal-debug", "true");
    request.json(body).send(caller.address)
}

fn run(caller: &Caller, id: &str, switch: &str) -> Value {
    internally(caller, &format!("{id}/run{switch}"), &json!({})).data()
}

/// A job of `caller` that failed for good, with its item.
fn dead(caller: &Caller, job_type: &str) -> (String, String) {
    let wish = json!({
        "job_type": job_type, "payload": { "n": 1 }, "labels": { "a": "b" }, "queue": "q",
        "priority": 77, "trace_id": "trace-of-the-dead"
    });
    let id = text(&caller.submit(&wish), "job_id");
    let grant = caller.pull_one(job_type);
    caller.fail(&grant, "BROKEN", false);
    let item = text(&caller.job(&id), "dlq_id");
    (id, item)
}

fn g09_g10_an_item_leads_to_its_job_and_back_and_a_requeue_is_a_new_linked_job(store: Store) {
    let fay = server(store).caller("g09", "fay", &EVERYTHING);
    let (id, item) = dead(&fay, "g09");
    let found = fay.get(&format!("/api/v1/dlq/items/{item}")).data();
    assert_eq!((&found["dlq_id"], &found["job_id"]), (&json!(item), &json!(id)));
    assert_eq!((&found["status"], &found["error_code"]), (&json!("open"), &json!("BROKEN")));
    assert_eq!(found["payload_snapshot"], json!({ "n": 1 }));
    assert_eq!(found["context_snapshot"]["trace_id"], "trace-of-the-dead");
    let recorded = &fay.events(&id)[3];
    assert_eq!(recorded["to_state"], "dlq_recorded");
    assert_eq!(found["created_at"], recorded["occurred_at"], "written with that move");

    let requeue = || {
        let path = format!("/api/v1/dlq/items/{item}/requeue");
        fay.request("POST", &path).header("idempotency-key", "again").send(fay.address)
    };
    let requeued = requeue();
    assert_eq!((requeued.status, &requeued.data()["status"]), (202, &json!("queued")));
    let new = text(&requeued.data(), "job_id");
    assert_ne!(new, id);
    assert_eq!(text(&requeue().data(), "job_id"), new, "the same request gets the same job");
    let told = items(fay.get(&format!("/api/v1/audit?object_id={item}")).data());
    assert_eq!(told.len(), 1, "what is answered again is not told again: {told:?}");
    let fresh = fay.job(&new);
    assert_eq!((&fresh["source_dlq_id"], &fresh["retry_count"]), (&json!(item), &json!(0)));
    for kept in ["job_type", "payload", "labels", "queue", "priority", "trace_id"] {
        assert_eq!(fresh[kept], fay.job(&id)[kept], "{kept}");
    }
    assert_eq!(fay.job(&id)["status"], "failed", "the old job keeps its end");
    let found = fay.get(&format!("/api/v1/dlq/items/{item}")).data();
    assert_eq!((&found["status"], &found["requeued_job_id"]), (&json!("requeued"), &json!(new)));
    let path = format!("/api/v1/dlq/items/{item}");
    assert_eq!(
        fay.poke(&format!("{path}/requeue")).refusal(),
        (409, "DLQ_REQUEUE_CONFLICT".into())
    );
    let discard = fay.post(&format!("{path}/discard"), &json!({ "reason": "r" }));
    assert_eq!(discard.refusal(), (409, "DLQ_DISCARD_CONFLICT".into()));
    fay.complete(&fay.pull_one("g09"));
    assert_eq!(fay.job(&new)["status"], "succeeded");
}

fn g11_a_discard_needs_a_reason_and_two_people(store: Store) {
    let gil = server(store).caller("g11", "gil", &EVERYTHING);
    let gils_other = server(store).caller("g11", "gil", &["approver", "operator"]);
    let hal = server(store).caller("g11", "hal", &["approver"]);
    let (_, item) = dead(&gil, "g11");
    let path = |verb: &str| format!("/api/v1/dlq/items/{item}/{verb}");
    for reason in ["", "   ", "\t\n"] {
        let refused = gil.post(&path("discard"), &json!({ "reason": reason })).refusal();
        assert_eq!(refused, (400, "APPROVAL_REQUIRED".into()), "{reason:?}");
    }
    assert_eq!(gil.post(&path("discard"), &json!({})).refusal().1, "APPROVAL_REQUIRED");
    let approve = |who: &Caller| {
        let version = gil.get(&format!("/api/v1/dlq/items/{item}")).data()["version"].clone();
        who.post(&path("approve"), &json!({ "version": version }))
    };
    assert_eq!(approve(&hal).refusal(), (409, "DLQ_DISCARD_CONFLICT".into()));
    let asked = gil.post(&path("discard"), &json!({ "reason": "a duplicate" })).data();
    assert_eq!(asked, json!({ "dlq_id": item, "status": "discard_requested" }));
    let alone = approve(&gils_other).refusal();
    assert_eq!(alone, (409, "APPROVAL_SAME_PERSON".into()), "another token is not another person");
    assert_eq!(hal.poke(&path("reject")).data()["status"], "open");
    gil.post(&path("discard"), &json!({ "reason": "a duplicate" })).data();
    assert_eq!(approve(&hal).data()["status"], "discarded");
    let found = gil.get(&format!("/api/v1/dlq/items/{item}")).data();
    assert_eq!((&found["requested_by"], &found["approved_by"]), (&json!("gil"), &json!("hal")));
    assert_eq!(found["reason"], "a duplicate");
    assert_eq!(approve(&hal).refusal(), (409, "DLQ_DISCARD_CONFLICT".into()));
    assert_eq!(gil.poke(&path("requeue")).refusal(), (409, "DLQ_REQUEUE_CONFLICT".into()));

    // The form with both reviewers in one call is for the internal role, and checks them too.
    let (_, item) = dead(&gil, "g11");
    let path = format!("/api/v1/dlq/items/{item}/discard");
    let by =
        |one: &str, two: &str| json!({ "reason": "r", "reviewer_id": one, "reviewer_id_2": two });
    for (one, two) in [("a", "a"), ("a", " a "), ("", "b"), ("a", " ")] {
        let refused = gil.post(&path, &by(one, two)).refusal();
        assert_eq!(refused, (400, "APPROVAL_REQUIRED".into()), "{one:?} {two:?}");
    }
    assert_eq!(gils_other.post(&path, &by("a", "b")).refusal(), (403, "AUTH_FORBIDDEN".into()));
    assert_eq!(gil.post(&path, &by("a", "b")).refusal(), (400, "APPROVAL_REQUIRED".into()));
    for name in ["a", "b"] {
        server(store).caller("g11", name, &["approver"]);
    }
    assert_eq!(gil.post(&path, &by("a", "b")).data()["status"], "discarded");
}

fn d09_dead_letters_never_block_the_queue(store: Store) {
    let ivy = server(store).caller("d09", "ivy", &EVERYTHING);
    for _ in 0..30 {
        ivy.submit(&json!({ "job_type": "d09", "payload": "poison", "priority": 255 }));
    }
    let healthy: Vec<_> = (0..5).map(|_| ivy.submit_plain("d09")).collect();
    // A pull may bring fewer than are ready: the poison is gone when all thirty have failed.
    let mut poisoned = 0;
    while poisoned < 30 {
        let grants = ivy.pull("d09", 30 - poisoned);
        assert!(!grants.is_empty(), "{poisoned} of 30, and nothing more is handed out");
        for grant in &grants {
            assert_eq!(ivy.fail(grant, "POISON", false)["status"], "failed");
        }
        poisoned += grants.len();
    }
    let items_open = items(ivy.get("/api/v1/dlq/items?status=open&limit=100").data());
    assert_eq!(items_open.len(), 30);
    let next: Vec<_> = ivy.pull("d09", 100).iter().map(|job| text(job, "job_id")).collect();
    assert_eq!(next, healthy);
}

fn g12_the_five_replays_run_as_a_command_and_record_what_they_did(store: Store) {
    let ran = server(store).cli(&["replay", "--output", "json"]).expect(0).json();
    assert_eq!(ran["passed"], true, "{ran:#}");
    let replays = ran["replays"].as_array().unwrap();
    let ids: Vec<_> = replays.iter().map(|replay| text(replay, "replay_id")).collect();
    assert_eq!(ids, ["RP-001", "RP-002", "RP-003", "RP-004", "RP-005"]);
    let retries: Vec<_> = replays.iter().map(|replay| replay["retry_count"].clone()).collect();
    assert_eq!(retries, [0, 1, 3, 3, 0].map(Value::from));
    for replay in replays {
        // The record is the server's own history, not the command's opinion.
        let id = text(replay, "job_id");
        assert_eq!(json!(server(store).admin().path(&id)), replay["status_transition"]);
        assert_eq!(server(store).admin().job(&id)["trace_id"], replay["trace_id"]);
    }
    assert!(replays[3]["dlq_id"].is_string());
    let refused = "WF_STATE_TRANSITION_INVALID";
    assert_eq!(replays[4]["refusals"], json!([refused, refused]));
    let one = server(store).cli(&["replay", "rp-002", "--output", "json"]).expect(0).json();
    assert_eq!(one["replays"].as_array().unwrap().len(), 1);
    server(store).cli(&["replay", "RP-009"]).expect(2);
}

fn g13_running_by_hand_behaves_as_written_and_is_off_unless_enabled(store: Store) {
    let jan = server(store).caller("g13", "jan", &EVERYTHING);
    let id = jan.submit_plain("g13");
    let ran = run(&jan, &id, "");
    let expected = json!({
        "job_id": id, "final_status": "succeeded", "retry_count": 0, "dlq_id": null
    });
    assert_eq!(ran, expected);
    assert_eq!(jan.path(&id), ["queued", "running", "succeeded"]);
    let again = internally(&jan, &format!("{id}/run"), &json!({}));
    assert_eq!(again.refusal(), (409, "WF_STATE_TRANSITION_INVALID".into()));

    let id = jan.submit_plain("g13");
    let ran = run(&jan, &id, "?force_fail=true");
    assert_eq!((&ran["final_status"], &ran["retry_count"]), (&json!("failed"), &json!(0)));
    assert_eq!(ran["dlq_id"], jan.job(&id)["dlq_id"]);
    assert_eq!(jan.path(&id), ["queued", "running", "dlq_pending", "dlq_recorded", "failed"]);

    let id = jan.submit_plain("g13");
    for retry in 1..=3 {
        let ran = run(&jan, &id, "?transient_fail=true");
        assert_eq!(
            (&ran["final_status"], &ran["retry_count"]),
            (&json!("retrying"), &json!(retry))
        );
        assert!(ran["retry_after_ms"].as_u64().unwrap() > 0);
    }
    let ran = run(&jan, &id, "?transient_fail=true");
    assert_eq!((&ran["final_status"], &ran["retry_count"]), (&json!("failed"), &json!(3)));
    let id = jan.submit_plain("g13");
    let permanent = run(&jan, &id, "?transient_fail=true&error_code=TEXT_ENCODING_UNSUPPORTED");
    assert_eq!(permanent["final_status"], "failed", "a permanent code is never retried");

    let id = jan.submit_plain("g13");
    let path = format!("/api/v1/internal/jobs/{id}/run");
    assert_eq!(jan.poke(&path).refusal(), (403, "AUTH_FORBIDDEN".into()), "the header is needed");
    let plain = server(store).caller("g13", "kim", &["submitter", "worker", "operator", "viewer"]);
    let refused = internally(&plain, &format!("{id}/run"), &json!({})).refusal();
    assert_eq!(refused, (403, "AUTH_FORBIDDEN".into()), "the role is needed");
    assert_eq!(jan.job(&id)["status"], "queued");

    let off = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).ephemeral());
    let lou = off.caller("g13", "lou", &EVERYTHING);
    let id = lou.submit_plain("g13");
    for verb in ["run", "transition"] {
        let refused = internally(&lou, &format!("{id}/{verb}"), &json!({})).refusal();
        assert_eq!(refused, (404, "REQ_NOT_FOUND".into()));
    }
}

fn o16_o21_an_attempt_that_never_reports_ends_in_failed_with_its_context(store: Store) {
    let max = server(store).caller("o21", "max", &EVERYTHING);
    let wish = json!({
        "job_type": "o21", "payload": {}, "max_retries": 0, "trace_id": "trace-o21"
    });
    let id = text(&max.submit(&wish), "job_id");
    let grant = max.pull_with(json!({ "worker_id": "doomed", "types": ["o21"], "lease_ms": 100 }));
    assert_eq!(grant[0]["execution_key"], format!("{id}:0"));
    let job = eventually("the lost lease is noticed", || {
        Some(max.job(&id)).filter(|job| job["status"] == "failed")
    });
    assert_eq!(job["last_error"]["code"], "TASK_LEASE_LOST");
    assert_eq!(job["trace_id"], "trace-o21");
    assert!(!text(&job["last_error"], "message").is_empty());
    let events = max.events(&id);
    assert_eq!(events[1]["actor"], "worker:doomed");
    assert_eq!(events[2]["reason_code"], "TASK_RETRY_EXHAUSTED");
    let why = text(&events[2], "reason_message");
    assert!(why.contains("TASK_LEASE_LOST"), "{why}");
    assert!(events.iter().all(|event| event["trace_id"] == "trace-o21"));
    let item = max.get(&format!("/api/v1/dlq/items/{}", text(&job, "dlq_id"))).data();
    let context = &item["context_snapshot"];
    assert_eq!(context["worker_id"], "doomed", "{context}");
    assert_eq!(context["execution_key"], format!("{id}:0"));
    assert_eq!(context["trace_id"], "trace-o21");
    let late = max.complete(&grant[0]);
    assert_eq!(late["error"]["code"], "LEASE_LOST");

    // A broken callback is refused and changes nothing; the timeout of the attempt ends it.
    let wish = json!({ "job_type": "o21", "payload": {}, "max_retries": 0, "timeout_ms": 100 });
    let id = text(&max.submit(&wish), "job_id");
    let grant = max.pull_one("o21");
    let broken = max.report("fail", &grant, json!({ "retryable": "perhaps" }));
    assert_eq!(broken["error"]["code"], "REQ_VALIDATION_FAILED");
    let job = eventually("the timeout is enforced", || {
        Some(max.job(&id)).filter(|job| job["status"] == "failed")
    });
    assert_eq!(job["last_error"]["code"], "TASK_TIMEOUT");
}

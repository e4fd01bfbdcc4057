//! Mode `webhook` from outside, with a real receiver: what it is told and how it can tell that it
//! is us, answers now and reports later, what goes wrong, and where no request goes whatever a URL
//! says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_executor/receiver.rs"]
mod receiver;
#[path = "blackbox_executor/steps.rs"]
mod steps;

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{Options, Server, Store, eventually};
use mainspring_testkit::both_stores;
use receiver::{Receiver, answer, base64};
use serde_json::json;
use std::net::TcpListener;
use steps::{ANALYZE, NOTIFY, QUANT, done, ended, failed, submit};

both_stores![
    o07_o08_o14_a_signed_request_per_task_and_the_answer_is_the_result,
    o14_o20_d17_a_report_may_come_later_with_the_lease_token,
    o16_o21_what_goes_wrong_on_the_way_is_told_by_code_and_context,
    o21_no_request_goes_where_it_should_not,
    o15_d17_a_request_under_way_is_given_back_when_the_server_stops,
];

const OLD: [u8; 32] = [7; 32];
const NEW: [u8; 24] = [9; 24];

/// A server that sends everything to `url` and may call this machine.
fn options(store: Store, url: &str, more: &str) -> Options {
    let secrets = [&OLD[..], &NEW[..]].map(|key| format!("whsec_{}", base64(key)));
    let config = format!(
        "{QUANT}\n[executor]\nmode = \"webhook\"\nurl = {url:?}\ntimeout_ms = 20000\n{more}\n\
         [webhooks]\nallow_private = true\nsecrets = {secrets:?}\n"
    );
    store.options(env!("CARGO_BIN_EXE_mainspring")).config(&config)
}

fn o07_o08_o14_a_signed_request_per_task_and_the_answer_is_the_result(store: Store) {
    let receiver = Receiver::start(|it| answer("200 OK", "", &it.json()["payload"].to_string()));
    let url = format!("http://{}/hook?from=test", receiver.address);
    let server = Server::start(options(store, &url, ""));
    let mode = server.admin().get("/jobs/runtime").data();
    assert_eq!(mode["executor"], json!({ "name": "webhook", "mode": "webhook" }));
    let ann = server.caller("hook", "ann", &["submitter", "operator"]);
    let mut shapes = Vec::new();
    for kind in [ANALYZE, NOTIFY] {
        let task = done(&ann, kind, kind, json!({ "score": [1.50, "é"] }));
        let id = text(&task, "taskId");
        assert_eq!((&task["status"], &task["error"]), (&json!("succeeded"), &json!(null)));
        assert_eq!(task["result"], json!({ "score": [1.50, "é"] }));
        let executor = json!({ "name": "webhook", "dispatchId": format!("{id}:0:1") });
        assert_eq!(task["executor"], executor);
        let request = receiver.about(&id);
        assert_eq!(request.line, "POST /hook?from=test HTTP/1.1");
        assert!(request.is_signed_with(&OLD) && request.is_signed_with(&NEW), "{request:?}");
        assert!(!request.is_signed_with(&[8; 32]));
        assert_eq!(request.header("webhook-id"), format!("{id}:0"));
        let at: i64 = request.header("webhook-timestamp").parse().unwrap();
        let started: jiff::Timestamp = text(&task, "startedAt").parse().unwrap();
        assert!((at - started.as_second()).abs() <= 30, "{at}");
        assert_eq!(request.header("x-trace-id"), text(&task, "traceId"));
        assert_eq!(request.header("authorization"), "", "nothing but the signature proves us");
        let told = request.json();
        for (field, value) in [
            ("type", json!("job.dispatch")),
            ("job_type", json!(kind)),
            ("attempt", json!(1)),
            ("execution_key", json!(format!("{id}:0"))),
            ("dispatch_id", executor["dispatchId"].clone()),
            ("trace_id", task["traceId"].clone()),
        ] {
            assert_eq!(told[field], value, "{told}");
        }
        shapes.push((ann.path(&id), task.as_object().unwrap().keys().cloned().collect::<Vec<_>>()));
    }
    assert_eq!(shapes[0], shapes[1]);
    assert_eq!(shapes[0].0, ["queued", "running", "succeeded"]);
}

fn o14_o20_d17_a_report_may_come_later_with_the_lease_token(store: Store) {
    let receiver = Receiver::start(|_| answer("202 Accepted", "", "{\"later\":true}"));
    let url = format!("http://{}/", receiver.address);
    let more = "[types.short]\ndomain = \"d\"\ntimeout_seconds = 2\nmax_retries = 0\n";
    let server = Server::start(options(store, &url, &format!("concurrency = 1\n{more}")));
    let ann = server.caller("later", "ann", &["submitter", "operator"]);
    // Whoever has the lease token may report; a worker's token is for asking at all.
    let worker = server.caller("later", "w", &["worker"]);
    let (first, second) =
        (submit(&ann, ANALYZE, "first", json!({})), submit(&ann, NOTIFY, "second", json!({})));
    // There is one place, and both were taken over: one that was waits for nobody.
    let (of_first, of_second) = (receiver.about(&first).json(), receiver.about(&second).json());
    for id in [&first, &second] {
        let lease = |id: &str| {
            let job = ann.job(id);
            let ends = job["lease"]["expires_at"].as_str()?.parse::<jiff::Timestamp>().ok()?;
            let began = text(&job, "started_at").parse::<jiff::Timestamp>().ok()?;
            (ends.duration_since(began).as_secs() > 600).then_some(())
        };
        eventually("the lease holds for as long as the attempt may take", || lease(id));
    }
    let forged = json!({ "job_id": first, "lease_token": of_second["lease_token"] });
    let refused = worker.report("complete", &forged, json!({ "result": 1 }));
    assert_eq!(refused["error"]["code"], "LEASE_LOST", "another task's token proves nothing");
    let said = worker.report("complete", &of_first, json!({ "result": { "rows": 7 } }));
    assert_eq!(said["status"], "succeeded", "{said}");
    assert_eq!(ended(&ann, &first)["result"], json!({ "rows": 7 }));
    let more = json!({ "error_code": "NO_PAPER", "message": "tray 2", "retryable": false });
    worker.report("fail", &of_second, more);
    let task = ended(&ann, &second);
    assert_eq!(failed(&ann, &task, "webhook"), "NO_PAPER");

    // A report that never comes: the server's clock ends it.
    let silent = done(&ann, "short", "silent", json!({}));
    assert_eq!(failed(&ann, &silent, "webhook"), "TASK_TIMEOUT");
    let late =
        worker.report("complete", &receiver.about(&text(&silent, "taskId")).json(), json!({}));
    assert_eq!(late["error"]["code"], "LEASE_LOST");
}

fn o16_o21_what_goes_wrong_on_the_way_is_told_by_code_and_context(store: Store) {
    // Where a redirect would lead.
    let elsewhere = Receiver::start(|_| answer("200 OK", "", "\"followed\""));
    let target = format!("http://{}/", elsewhere.address);
    let receiver = Receiver::start(move |request| {
        let path = request.line.split(' ').nth(1).unwrap_or_default().to_owned();
        let location = format!("location: {target}\r\n");
        match path.as_str() {
            "/busy" => answer("503 Busy", "", "wait"),
            "/no" => answer("422 No", "", r#"{"error_code":"BAD_ROW","message":"row 7"}"#),
            "/moved" => answer("302 Found", &location, ""),
            "/moved-for-good" => answer("308 Permanent Redirect", &location, ""),
            "/broken" => b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"half".to_vec(),
            "/garbage" => b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec(),
            "/flood" => answer("200 OK", "", &"x".repeat(1_000_001)),
            "/heads" => answer("200 OK", &format!("x-long: {}\r\n", "x".repeat(1 << 20)), ""),
            // Not answered at all.
            _ => Vec::new(),
        }
    });
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cases = [
        ("busy", "EXECUTION_FAILED", "the receiver answered 503"),
        ("no", "BAD_ROW", "row 7"),
        ("moved", "EXECUTOR_DISPATCH_FAILED", "the receiver answered 302; redirects are not"),
        ("moved-for-good", "EXECUTOR_DISPATCH_FAILED", "the receiver answered 308"),
        ("broken", "EXECUTOR_DISPATCH_FAILED", "the answer broke off"),
        ("garbage", "EXECUTOR_DISPATCH_FAILED", "the answer did not come"),
        ("flood", "OUTPUT_TOO_LARGE", "the answer is over 1000000 bytes"),
        ("heads", "EXECUTOR_DISPATCH_FAILED", "the answer did not come"),
        ("silent", "EXECUTOR_DISPATCH_FAILED", "no answer within 300 ms"),
        ("nobody", "EXECUTOR_DISPATCH_FAILED", "no connection to 127.0.0.1"),
        ("nowhere", "EXECUTOR_DISPATCH_FAILED", "nowhere.invalid cannot be resolved"),
        // Nobody speaks TLS there.
        ("plain", "EXECUTOR_DISPATCH_FAILED", "no encryption"),
    ];
    let server = Server::start(options(store, "https://a.example/", ""));
    let admin = server.admin();
    for (name, ..) in &cases {
        let url = match *name {
            "nobody" => format!("http://{nobody}/"),
            "nowhere" => "http://nowhere.invalid/".to_owned(),
            "plain" => format!("https://{}/silent", elsewhere.address),
            path => format!("http://{}/{path}", receiver.address),
        };
        let timeout_ms = if *name == "silent" { 300 } else { 20_000 };
        let executor = json!({ "mode": "webhook", "url": url, "timeout_ms": timeout_ms });
        let set = json!({ "executor": executor, "max_retries": 0 });
        admin.put(&format!("/api/v1/types/{name}"), &set).data();
    }
    let ann = server.caller("wrong", "ann", &["submitter", "operator"]);
    for (name, code, message) in &cases {
        let task = done(&ann, name, name, json!({}));
        assert_eq!(failed(&ann, &task, "webhook"), *code, "{name}: {task}");
        let told = text(&task["error"], "message");
        assert!(told.starts_with(message), "{name}: {told}");
    }
    let followed: Vec<_> = elsewhere.received();
    assert!(followed.is_empty(), "a redirect was followed: {followed:?}");
}

/// Nothing that a URL can say leads to this machine or its network, unless that is allowed.
fn o21_no_request_goes_where_it_should_not(store: Store) {
    let receiver = Receiver::start(|_| answer("200 OK", "", "\"in\""));
    let port = receiver.address.port();
    let secret = format!("whsec_{}", base64(&OLD));
    let options = store.options(env!("CARGO_BIN_EXE_mainspring")).config(QUANT);
    let server = Server::start(options.env("MAINSPRING_WEBHOOK_SECRET", &secret));
    let admin = server.admin();
    let ann = server.caller("ssrf", "ann", &["submitter", "operator"]);
    let mut refused = 0;
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "017700000001",
        "0.0.0.0",
        "0",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "LocalHost.",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
        "127.0.0.1%2e",
        "１２７.0.0.1",
        "a.example@127.0.0.1",
        "127.0.0.1\\@a.example",
    ] {
        let name = format!("to-{refused}");
        let url = format!("http://{host}:{port}/");
        let set = json!({ "executor": { "mode": "webhook", "url": url }, "max_retries": 0 });
        let answer = admin.put(&format!("/api/v1/types/{name}"), &set);
        refused += 1;
        if answer.status == 400 {
            assert!(host.contains('@'), "{host}: {}", answer.text());
            continue;
        }
        answer.data();
        let task = done(&ann, &name, &name, json!({}));
        assert_eq!(failed(&ann, &task, "webhook"), "EXECUTOR_DISPATCH_FAILED", "{host}: {task}");
        assert_eq!(ann.job(&text(&task, "taskId"))["retry_count"], 0);
    }
    assert_eq!(receiver.connections(), 0, "somebody came in");
    println!("{refused} ways in, 0 connections");
}

fn o15_d17_a_request_under_way_is_given_back_when_the_server_stops(store: Store) {
    let receiver = Receiver::start(|_| Vec::new());
    let url = format!("http://{}/", receiver.address);
    let mut server = Server::start(options(store, &url, "grace = \"200ms\""));
    let ann = server.caller("stop", "ann", &["submitter", "operator"]);
    let id = submit(&ann, NOTIFY, "stop", json!({}));
    let first = receiver.about(&id);
    assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
    let answering = Receiver::start(|_| answer("200 OK", "", "\"again\""));
    let url = format!("http://{}/", answering.address);
    let config = options(store, &url, "").config;
    server.restart_with(|options| options.config = config);
    let task = ended(&ann, &id);
    assert_eq!((&task["result"], &ann.job(&id)["retry_count"]), (&json!("again"), &json!(0)));
    // The same attempt once more: a receiver can tell by the id.
    assert_eq!(answering.about(&id).header("webhook-id"), first.header("webhook-id"));
    assert_ne!(answering.about(&id).json()["dispatch_id"], first.json()["dispatch_id"]);
}

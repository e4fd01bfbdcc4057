//! Bad input from outside: each kind gets its own clear refusal, none gets a 5xx, and after all of
//! it nothing was created and the server is well.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::caller::{items, text};
use mainspring_testkit::blackbox::{Caller, Response, Server, Store, http};
use mainspring_testkit::both_stores;
use serde_json::json;
use std::io::Write;

both_stores![
    o02_o19_bad_json_has_a_code_for_every_way_of_being_bad,
    o02_o19_bad_headers_ids_and_parameters_are_refused_by_name,
    o02_o19_broken_and_hostile_connections_do_no_harm,
];

fn start(store: Store) -> (Server, Caller) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")).ephemeral());
    let caller = server.caller("input", "ann", &["submitter", "worker", "viewer", "operator"]);
    (server, caller)
}

fn send(caller: &Caller, path: &str, body: impl Into<Vec<u8>>) -> Response {
    let request = caller.request("POST", path).header("content-type", "application/json");
    request.body(body).send(caller.address)
}

/// Nothing was created, nothing is broken, nothing panicked.
fn assert_untouched(server: &Server, caller: &Caller) {
    assert!(items(caller.get("/api/v1/jobs").data()).is_empty());
    let runtime = server.admin().get("/api/v1/runtime").data();
    assert_eq!(runtime["counters"]["submitted"], 0);
    assert_eq!(runtime["store"]["healthy"], true);
    assert_eq!(caller.get("/readyz").status, 200);
    assert!(!server.log().contains("panicked"), "{}", server.log());
    assert!(!server.log().contains("\"level\":\"ERROR\""), "{}", server.log());
}

#[allow(clippy::too_many_lines, reason = "a flat table of cases")]
fn o02_o19_bad_json_has_a_code_for_every_way_of_being_bad(store: Store) {
    let (server, ann) = start(store);
    let deep =
        |n: usize| format!(r#"{{"job_type":"t","payload":{}{}}}"#, "[".repeat(n), "]".repeat(n));
    let huge = format!(r#"{{"job_type":"t","payload":"{}"}}"#, "x".repeat((2 << 20) + 1));
    let large = format!(r#"{{"job_type":"t","payload":"{}"}}"#, "x".repeat((1 << 20) + 1));
    let name = format!(r#"{{"job_type":"{}","payload":1}}"#, "n".repeat(201));
    let key = format!(r#"{{"job_type":"t","payload":1,"idempotency_key":"{}"}}"#, "k".repeat(513));
    let labels = (0..40).map(|n| format!("\"l{n}\":\"v\"")).collect::<Vec<_>>().join(",");
    let labels = format!(r#"{{"job_type":"t","payload":1,"labels":{{{labels}}}}}"#);
    let keys = (0..200_000).map(|n| format!("\"{n}\":0")).collect::<Vec<_>>().join(",");
    let many = format!(r#"{{"job_type":"t","payload":{{{keys},"7":1}}}}"#);
    let cases: Vec<(&[u8], u16, &str)> = vec![
        (b"", 400, "JSON_INVALID"),
        (b"{", 400, "JSON_INVALID"),
        (br#"{"job_type":"t","payload":{"#, 400, "JSON_INVALID"),
        (br#"{"job_type":"t","payload":1}}"#, 400, "JSON_INVALID"),
        (br#"{"job_type":"t","payload":1} {}"#, 400, "JSON_INVALID"),
        (br#"{"job_type":"t","payload":01}"#, 400, "JSON_INVALID"),
        (br#"{"job_type":"t","payload":NaN}"#, 400, "JSON_INVALID"),
        (br#"{'job_type':'t','payload':1}"#, 400, "JSON_INVALID"),
        (br#"{"job_type":"t","payload":1,}"#, 400, "JSON_INVALID"),
        (b"{\"job_type\":\"t\",\"payload\":\"a\nb\"}", 400, "JSON_INVALID"),
        (b"{\"job_type\":\"t\",\"payload\":\"a\0b\"}", 400, "JSON_INVALID"),
        (b"\0", 400, "JSON_INVALID"),
        (b"\xef\xbb\xbf{}", 400, "JSON_INVALID"),
        (b"{\"job_type\":\"t\",\"payload\":\"\xff\"}", 400, "JSON_NOT_UTF8"),
        (b"{\"job_type\":\"t\",\"payload\":\"\xed\xa0\x80\"}", 400, "JSON_NOT_UTF8"),
        (br#"{"job_type":"t","payload":1,"payload":2}"#, 400, "JSON_DUPLICATE_KEY"),
        (br#"{"job_type":"t","payload":{"a":1,"\u0061":2}}"#, 400, "JSON_DUPLICATE_KEY"),
        (many.as_bytes(), 400, "JSON_DUPLICATE_KEY"),
        (br#"[]"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"null"#, 400, "REQ_VALIDATION_FAILED"),
        (br#""text""#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t"}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":7,"payload":1}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":null,"payload":1}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"","payload":1}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":" t","payload":1}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"a\u0000b","payload":1}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"jobtype":"x"}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"priority":-1}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"priority":256}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"priority":1.5}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"priority":1e999}"#, 400, "JSON_INVALID"),
        (br#"{"job_type":"t","payload":1,"max_retries":1001}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"timeout_ms":0}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"timeout_ms":604800001}"#, 400, "REQ_VALIDATION_FAILED"),
        (
            br#"{"job_type":"t","payload":1,"delay_ms":18446744073709551615}"#,
            400,
            "REQ_VALIDATION_FAILED",
        ),
        (
            br#"{"job_type":"t","payload":1,"delay_ms":99999999999999999999}"#,
            400,
            "REQ_VALIDATION_FAILED",
        ),
        (br#"{"job_type":"t","payload":1,"run_at":"tomorrow"}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"run_at":1700000000}"#, 400, "REQ_VALIDATION_FAILED"),
        (
            br#"{"job_type":"t","payload":1,"run_at":"9999-12-31T23:59:59Z"}"#,
            400,
            "REQ_VALIDATION_FAILED",
        ),
        (
            br#"{"job_type":"t","payload":1,"run_at":"2031-01-01T00:00:00Z","delay_ms":1}"#,
            400,
            "REQ_VALIDATION_FAILED",
        ),
        (br#"{"job_type":"t","payload":1,"parent_id":"x"}"#, 400, "REQ_VALIDATION_FAILED"),
        (br#"{"job_type":"t","payload":1,"labels":{"a":1}}"#, 400, "REQ_VALIDATION_FAILED"),
        (
            br#"{"job_type":"t","payload":1,"expires_at":"2001-01-01T00:00:00Z"}"#,
            400,
            "REQ_VALIDATION_FAILED",
        ),
        (labels.as_bytes(), 400, "REQ_VALIDATION_FAILED"),
        (name.as_bytes(), 400, "REQ_VALIDATION_FAILED"),
        (key.as_bytes(), 400, "REQ_VALIDATION_FAILED"),
        (large.as_bytes(), 400, "REQ_VALIDATION_FAILED"),
        (huge.as_bytes(), 413, "BODY_TOO_LARGE"),
    ];
    for (body, status, code) in cases {
        let shown: String = String::from_utf8_lossy(body).chars().take(90).collect();
        let answer = send(&ann, "/api/v1/jobs", body);
        assert_eq!(answer.refusal(), (status, code.to_owned()), "{shown}: {}", answer.text());
        assert!(!text(&answer.json()["error"], "message").is_empty());
    }
    for depth in [64, 65, 100, 100_000] {
        let answer = send(&ann, "/api/v1/jobs", deep(depth)).refusal();
        assert_eq!(answer, (400, "JSON_TOO_DEEP".into()), "{depth}");
    }
    let pathed = send(&ann, "/api/v1/jobs/batch", r#"{"jobs":7}"#);
    assert_eq!(pathed.json()["error"]["details"]["path"], "jobs", "{}", pathed.text());
    let many = format!(r#"{{"jobs":[{}{{}}]}}"#, "{},".repeat(10_000));
    let over = send(&ann, "/api/v1/jobs/batch", many);
    assert_eq!(over.refusal(), (400, "BATCH_TOO_LARGE".into()));
    assert_untouched(&server, &ann);
}

#[allow(clippy::too_many_lines, reason = "a flat table of cases")]
fn o02_o19_bad_headers_ids_and_parameters_are_refused_by_name(store: Store) {
    let (server, ann) = start(store);
    let wish = json!({ "job_type": "t", "payload": 1 }).to_string();
    let typed = |name: &str, value: &str| {
        ann.request("POST", "/api/v1/jobs").header(name, value).body(wish.clone()).send(ann.address)
    };
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "",
        "application/json; charset=latin1",
        "multipart/form-data",
    ] {
        let refused = typed("content-type", kind).refusal();
        assert_eq!(refused, (415, "CONTENT_TYPE_UNSUPPORTED".into()), "{kind}");
    }
    for coding in ["gzip", "br", "zstd", "deflate", "identity, gzip"] {
        let request = ann.request("POST", "/api/v1/jobs").header("content-encoding", coding);
        let refused = request.json(&json!({})).send(ann.address).refusal();
        assert_eq!(refused, (415, "CONTENT_ENCODING_UNSUPPORTED".into()), "{coding}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80"] {
        let refused = ann.request("GET", "/api/v1/jobs").header("host", host).send(ann.address);
        assert_eq!(refused.refusal(), (421, "HOST_UNKNOWN".into()), "{host}");
    }
    for path in [
        "/api/v1/jobs?limit=0",
        "/api/v1/jobs?limit=101",
        "/api/v1/jobs?limit=x",
        "/api/v1/jobs?limit=1&limit=2",
        "/api/v1/jobs?status=done",
        "/api/v1/jobs?unknown=1",
        "/api/v1/jobs?type=%ff",
        "/api/v1/jobs?type=%00",
        "/api/v1/jobs?type=",
        "/api/v1/dlq/items?status=queued",
        "/api/v1/events?after=-1",
    ] {
        let refused = ann.get(path).refusal();
        assert_eq!(refused, (400, "REQ_VALIDATION_FAILED".into()), "{path}");
    }
    for path in
        ["/api/v1/jobs?cursor=x", "/api/v1/jobs?cursor=job_", "/api/v1/dlq/items?cursor=job_x"]
    {
        assert_eq!(ann.get(path).refusal(), (400, "CURSOR_INVALID".into()), "{path}");
    }
    for path in [
        "/api/v1",
        "/api/v2/jobs",
        "/api/v1/jobs/",
        "/api/v1//jobs",
        "/API/V1/jobs",
        "/api/v1/jobs/a/b/c",
        "/../etc/passwd",
        "/api/v1/jobs/..%2f..",
        "/.git/config",
    ] {
        let answer = ann.get(path);
        assert!([403, 404].contains(&answer.status), "{path}: {}", answer.text());
    }
    for method in ["DELETE", "PATCH", "PUT", "TRACE", "OPTIONS", "BREW"] {
        let answer = ann.request(method, "/api/v1/jobs").send(ann.address);
        assert_eq!(answer.refusal(), (405, "METHOD_NOT_ALLOWED".into()), "{method}");
        assert_eq!(answer.header("allow"), Some("POST, GET"), "{method}");
    }
    for token in ["", "x", &"a".repeat(5_000), "ms_x_y", "ms_00000000000000000000000000_00"] {
        let stranger = Caller { address: ann.address, token: token.to_owned() };
        assert_eq!(stranger.get("/api/v1/jobs").refusal(), (401, "AUTH_UNAUTHORIZED".into()));
    }
    let twice = ann.request("GET", "/api/v1/jobs").token(&ann.token).send(ann.address);
    assert_eq!(twice.refusal(), (401, "AUTH_UNAUTHORIZED".into()), "two identities are none");
    for (body, field) in [
        (json!({}), "worker_id"),
        (json!({ "worker_id": "" }), "worker_id"),
        (json!({ "worker_id": "w", "limit": 0 }), "limit"),
        (json!({ "worker_id": "w", "limit": 10_001 }), "limit"),
        (json!({ "worker_id": "w", "wait_ms": 60_001 }), "wait_ms"),
        (json!({ "worker_id": "w", "lease_ms": 0 }), "lease_ms"),
        (json!({ "worker_id": "w", "types": [""] }), "types"),
        (json!({ "worker_id": "w", "types": "t" }), "types"),
        (json!({ "worker_id": "w", "now": "2030-01-01T00:00:00Z" }), "now"),
    ] {
        let answer = ann.post("/api/v1/work/pull", &body);
        assert_eq!(answer.refusal(), (400, "REQ_VALIDATION_FAILED".into()), "{body}");
        assert!(answer.text().contains(field), "{body}: {}", answer.text());
    }
    for (path, body) in [
        ("/api/v1/types/x", json!({ "max_retries": 1001 })),
        ("/api/v1/types/x", json!({ "legacyNames": [] })),
        ("/api/v1/types/%00", json!({})),
        ("/api/v1/queues/q", json!({ "order": "random" })),
    ] {
        let answer = server.admin().put(path, &body);
        assert_eq!(answer.refusal().1, "REQ_VALIDATION_FAILED", "{path} {body}");
    }
    assert_untouched(&server, &ann);
}

#[allow(clippy::too_many_lines, reason = "a flat table of cases")]
fn o02_o19_broken_and_hostile_connections_do_no_harm(store: Store) {
    let (server, ann) = start(store);
    let auth = format!("authorization: Bearer {}\r\n", ann.token);
    let bomb: String = (0..3_000).map(|n| format!("x-{n}: {n}\r\n")).collect();
    let long = format!("x-long: {}\r\n", "y".repeat(1 << 20));
    let wish = r#"{"job_type":"t","payload":1}"#;
    let head = |more: &str| format!("POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n{more}\r\n");
    let cases: Vec<Vec<u8>> = vec![
        b"\0\0\0\0\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/1.1\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_vec(),
        b"GET /health".to_vec(),
        format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "p".repeat(20_000)).into(),
        head(&bomb).into(),
        head(&long).into(),
        format!(
            "{}{}",
            head(&format!(
                "{auth}content-type: application/json\r\n\
            content-length: 999\r\n"
            )),
            wish
        )
        .into(),
        format!(
            "{}{}",
            head(&format!(
                "{auth}content-type: application/json\r\n\
            content-length: -5\r\n"
            )),
            wish
        )
        .into(),
        format!(
            "{}{}",
            head(&format!(
                "{auth}content-type: application/json\r\n\
            content-length: 28\r\ncontent-length: 29\r\n"
            )),
            wish
        )
        .into(),
        format!(
            "{}zz\r\n{}",
            head(&format!(
                "{auth}content-type: application/json\r\n\
            transfer-encoding: chunked\r\n"
            )),
            wish
        )
        .into(),
        format!(
            "{}5\r\n{}",
            head(&format!(
                "{auth}content-type: application/json\r\n\
            transfer-encoding: chunked\r\n"
            )),
            "{\"jo"
        )
        .into(),
        format!("{}{}", head("expect: 200-maybe\r\n"), wish).into(),
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: a\x00b\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n bad: folded\r\n\r\n".to_vec(),
    ];
    for bytes in cases {
        let shown: String = String::from_utf8_lossy(&bytes).chars().take(80).collect();
        for answer in http::raw(ann.address, &bytes) {
            assert!((400..500).contains(&answer.status), "{shown:?}: {answer:?}");
        }
        assert_eq!(ann.get("/healthz").status, 200, "after {shown:?}");
    }
    // Garbage behind a good request: the good one is answered, the garbage is not obeyed.
    let good = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answers = http::raw(ann.address, format!("{good}{good}\x01garbage\r\n\r\n").as_bytes());
    assert_eq!(answers[0].status, 200);
    assert_eq!(answers[1].status, 200);
    assert!(answers[2..].iter().all(|answer| answer.status == 400));
    // A body that is not read must not be taken for the next request.
    let smuggled = format!(
        "{}{}",
        head("content-length: 60\r\n"),
        format_args!("POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n{auth}\r\n{wish}")
    );
    let answers = http::raw(ann.address, smuggled.as_bytes());
    assert_eq!(answers[0].status, 401);
    assert!(answers.iter().all(|answer| answer.status >= 400), "{answers:?}");
    // Half requests that stay open keep nobody else from being served.
    let held: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = http::connect(ann.address).unwrap();
            stream.write_all(b"POST /api/v1/jobs HTTP/1.1\r\nhost: loc").unwrap();
            stream
        })
        .collect();
    assert_eq!(ann.get("/readyz").status, 200);
    drop(held);
    assert_untouched(&server, &ann);
}

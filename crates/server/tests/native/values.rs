//! What values the API takes, at its edges: what the document says and the server does are one. The
//! generated requests of `cargo xtask schemathesis` look for more; these are the rules they found,
//! and those that JSON Schema has no words for.

use super::server::{ADMIN, Answer, Server, raw, request};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

fn assert_refused(answer: &Answer, path: &str) {
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}: {}", answer.text);
    assert_eq!(answer.json()["error"]["details"]["path"], path, "{}", answer.text);
}

fn job(more: Value) -> Value {
    let mut job = json!({ "job_type": "t", "payload": 0 });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    job
}

#[tokio::test]
async fn whole_numbers_may_be_spelt_as_others() {
    let server = Server::new().await;
    let headers =
        [("host", "localhost"), ("content-type", "application/json"), ("authorization", "")];
    let bearer = format!("Bearer {ADMIN}");
    let send = |path: &'static str, body: &'static str| {
        let headers =
            headers.map(|(name, value)| (name, if value.is_empty() { &*bearer } else { value }));
        server.ask(raw("POST", path, &headers, body.as_bytes()))
    };
    let one =
        send("/api/v1/jobs", r#"{"job_type":"t","payload":4867.0,"timeout_ms":4867.0}"#).await;
    assert_eq!((one.status, one.data()["timeout_ms"].clone()), (StatusCode::CREATED, json!(4867)));
    assert!(one.text.contains("4867.0"), "a payload is kept byte for byte: {}", one.text);
    let many = r#"{"jobs":[{"job_type":"t","payload":0,"priority":2.55e2}]}"#;
    assert!(send("/api/v1/jobs/batch", many).await.data()["items"][0]["job_id"].is_string());
    let pull = r#"{"worker_id":"w","limit":1e0,"wait_ms":0.0,"lease_ms":60000.0}"#;
    assert_eq!(send("/api/v1/work/pull", pull).await.data()["jobs"].as_array().unwrap().len(), 1);
    for wrong in ["0.5", "-1.0", "1e300"] {
        let text = format!(r#"{{"job_type":"t","payload":0,"delay_ms":{wrong}}}"#);
        let headers =
            headers.map(|(name, value)| (name, if value.is_empty() { &*bearer } else { value }));
        let answer = server.ask(raw("POST", "/api/v1/jobs", &headers, text.as_bytes())).await;
        assert_refused(&answer, "delay_ms");
    }
}

#[tokio::test]
async fn a_list_is_not_asked_for_what_nothing_can_have() {
    let server = Server::new().await;
    let long = "x".repeat(201);
    for (parameter, value) in [
        ("trace_id", ""),
        ("trace_id", &long),
        ("error_code", ""),
        ("error_code", "a%20b"),
        ("error_code", &"E".repeat(101)),
        ("label", "name"),
        ("label", &format!("{long}={long}")),
        ("limit", "%2B5"),
        ("limit", ""),
        ("limit", "5.0"),
    ] {
        for list in ["jobs", "dlq/items"] {
            let path = format!("/api/v1/{list}?{parameter}={value}");
            assert_refused(&server.get(ADMIN, &path).await, parameter);
        }
    }
    let fine = format!("/api/v1/jobs?trace_id={}&error_code=a.b:c-D_9&limit=05", &long[1..]);
    assert_eq!(server.get(ADMIN, &fine).await.status, StatusCode::OK);
    assert_refused(&server.get(ADMIN, "/api/v1/dlq/items?status=queued").await, "status");
    assert_refused(&server.get(ADMIN, "/api/v1/jobs?status=open").await, "status");
}

#[tokio::test]
async fn a_stream_goes_on_behind_a_position_and_nothing_else() {
    let server = Server::new().await;
    let bearer = format!("Bearer {ADMIN}");
    let follow = |last: Vec<&'static [u8]>, query: &str| {
        let mut request = request(Method::GET, &format!("/api/v1/events{query}"), "", None);
        request.headers_mut().insert("authorization", bearer.parse().unwrap());
        for last in last {
            let last = hyper::header::HeaderValue::from_bytes(last).unwrap();
            request.headers_mut().append("last-event-id", last);
        }
        request
    };
    let wrong: [Vec<&[u8]>; 6] = [
        vec![b"+5"],
        vec![b"5.0"],
        vec![b""],
        vec![b"1000000000000000000"],
        vec![b"\xe9"],
        vec![b"1", b"2"],
    ];
    for last in wrong {
        assert_refused(&server.ask(follow(last, "")).await, "Last-Event-ID");
    }
    assert_refused(&server.ask(follow(vec![], "?after=1000000000000000000")).await, "after");
    assert_refused(&server.ask(follow(vec![b"5"], "?after=AAA")).await, "after");
    for last in [vec![], vec![&b"0"[..]], vec![b"999999999999999999"]] {
        assert_eq!(server.send(follow(last, "?after=0")).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn one_key_is_named_in_one_way() {
    let server = Server::new().await;
    let send = |header: &str, body: Value| {
        let mut request = request(Method::POST, "/api/v1/jobs", ADMIN, Some(body));
        request.headers_mut().insert("idempotency-key", header.parse().unwrap());
        server.ask(request)
    };
    let keyed = |key: &str| job(json!({ "idempotency_key": key }));
    assert_eq!(send("k", keyed("k")).await.status, StatusCode::CREATED);
    assert_eq!(send("k", job(json!({}))).await.status, StatusCode::OK);
    assert_refused(&send("k", keyed("another")).await, "idempotency_key");
    let traceless = job(json!({ "idempotency_key": "k", "trace_id": "" }));
    assert_refused(&send("k", traceless).await, "trace_id");
    // A key must be one even where nothing has to remember it.
    let id = server.submit(ADMIN, job(json!({}))).await;
    let path = format!("/api/v1/jobs/{id}/cancel");
    let mut cancel = request(Method::POST, &path, ADMIN, None);
    cancel.headers_mut().insert("idempotency-key", "k".repeat(513).parse().unwrap());
    assert_refused(&server.ask(cancel).await, "Idempotency-Key");
}

#[tokio::test]
async fn a_beginning_is_near_and_an_end_lies_behind_it() {
    let server = Server::new().await;
    let send = |more: Value| server.post(ADMIN, "/api/v1/jobs", job(more));
    assert_refused(&send(json!({ "run_at": "2999-01-01T00:00:00Z" })).await, "run_at");
    assert_refused(&send(json!({ "expires_at": "2001-01-01T00:00:00Z" })).await, "expires_at");
    let both = json!({ "run_at": "2001-01-01T00:00:00Z", "delay_ms": 1 });
    assert_refused(&send(both).await, "delay_ms");
    let fine = json!({ "run_at": "2001-01-01T00:00:00Z", "expires_at": "2999-01-01T00:00:00Z" });
    assert_eq!(send(fine).await.status, StatusCode::CREATED);
    let token = json!({ "tenant_id": "t", "user_id": "u", "roles": ["viewer"],
        "expires_at": "2001-01-01T00:00:00Z" });
    assert_refused(&server.post(ADMIN, "/api/v1/tokens", token).await, "expires_at");
}

#[tokio::test]
async fn text_is_bounded_in_bytes() {
    let server = Server::new().await;
    let send = |queue: String| server.post(ADMIN, "/api/v1/jobs", job(json!({ "queue": queue })));
    assert_eq!(send("é".repeat(100)).await.status, StatusCode::CREATED);
    assert_refused(&send("é".repeat(101)).await, "queue");
}

#[tokio::test]
async fn a_flag_is_true_or_false() {
    let server = Server::new().await;
    let internal = server.token("default", "debugger", &["internal"]).await;
    for wrong in ["", "1", "yes", "True"] {
        let path = format!("/api/v1/internal/jobs/x/run?force_fail={wrong}");
        let mut request = request(Method::POST, &path, &internal, None);
        request.headers_mut().insert("x-internal-debug", "true".parse().unwrap());
        assert_refused(&server.ask(request).await, "force_fail");
    }
}

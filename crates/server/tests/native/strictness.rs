//! Bad input of every kind has its own stable code, and none is the server's fault.

use super::server::{ADMIN, Server, raw};
use hyper::StatusCode;

const JSON: (&str, &str) = ("content-type", "application/json");
const HOST: (&str, &str) = ("host", "127.0.0.1");

#[tokio::test]
async fn each_kind_of_bad_body_has_its_code() {
    let server = Server::new().await;
    let token = format!("Bearer {ADMIN}");
    let auth = ("authorization", &*token);
    let deep = format!("{{\"job_type\":\"t\",\"payload\":{}1{}}}", "[".repeat(70), "]".repeat(70));
    let large = vec![b' '; (2 << 20) + 1];
    let cases: [(&[u8], u16, &str); 12] = [
        (b"", 400, "JSON_INVALID"),
        (b"{", 400, "JSON_INVALID"),
        (b"{\"job_type\":\"t\",\"payload\":1} x", 400, "JSON_INVALID"),
        (b"\xff", 400, "JSON_NOT_UTF8"),
        (b"{\"job_type\":\"t\",\"job_type\":\"t\",\"payload\":1}", 400, "JSON_DUPLICATE_KEY"),
        (b"{\"job_type\":\"t\",\"payload\":{\"a\":1,\"a\":1}}", 400, "JSON_DUPLICATE_KEY"),
        (deep.as_bytes(), 400, "JSON_TOO_DEEP"),
        (b"[]", 400, "REQ_VALIDATION_FAILED"),
        (b"{\"job_type\":\"t\"}", 400, "REQ_VALIDATION_FAILED"),
        (b"{\"job_type\":\"t\",\"payload\":1,\"x\":1}", 400, "REQ_VALIDATION_FAILED"),
        (b"{\"job_type\":\"t\",\"payload\":1,\"priority\":-1}", 400, "REQ_VALIDATION_FAILED"),
        (&large, 413, "BODY_TOO_LARGE"),
    ];
    for (body, status, code) in cases {
        let answer = server.ask(raw("POST", "/api/v1/jobs", &[HOST, JSON, auth], body)).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
        assert_eq!((answer.status.as_u16(), &*answer.code()), (status, code), "{shown}");
    }
    let body = b"{\"job_type\":\"t\",\"payload\":1,\"priority\":-1}";
    let answer = server.ask(raw("POST", "/api/v1/jobs", &[HOST, JSON, auth], body)).await;
    assert_eq!(answer.json()["error"]["details"]["path"], "priority");
}

#[tokio::test]
async fn heads_are_judged_before_bodies() {
    let server = Server::new().await;
    let token = format!("Bearer {ADMIN}");
    let auth = ("authorization", &*token);
    let gzip = ("content-encoding", "gzip");
    let form = ("content-type", "application/x-www-form-urlencoded");
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16, &'a str);
    let cases: [Case<'_>; 9] = [
        ("POST", "/api/v1/jobs", &[HOST, auth], 415, "CONTENT_TYPE_UNSUPPORTED"),
        ("POST", "/api/v1/jobs", &[HOST, auth, form], 415, "CONTENT_TYPE_UNSUPPORTED"),
        ("POST", "/api/v1/jobs", &[HOST, auth, JSON, gzip], 415, "CONTENT_ENCODING_UNSUPPORTED"),
        ("GET", "/api/v1/nothing", &[HOST, auth], 404, "REQ_NOT_FOUND"),
        ("GET", "/api/v1/jobs/", &[HOST, auth], 404, "REQ_NOT_FOUND"),
        ("DELETE", "/api/v1/jobs", &[HOST, auth], 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/healthz", &[("host", "evil.example")], 421, "HOST_UNKNOWN"),
        ("GET", "/healthz", &[], 400, "REQ_VALIDATION_FAILED"),
        ("GET", "/healthz", &[HOST, HOST], 400, "REQ_VALIDATION_FAILED"),
    ];
    for (method, path, headers, status, code) in cases {
        let answer = server.ask(raw(method, path, headers, b"{}")).await;
        assert_eq!((answer.status.as_u16(), &*answer.code()), (status, code), "{method} {path}");
    }
    let answer = server.ask(raw("DELETE", "/api/v1/jobs", &[HOST, auth], b"")).await;
    assert_eq!(answer.headers["allow"], "POST, GET");
}

#[tokio::test]
async fn too_many_items_are_refused_as_a_whole() {
    let server = Server::new().await;
    let job = "{\"job_type\":\"t\",\"payload\":1}";
    let body = format!("{{\"jobs\":[{}{job}]}}", format!("{job},").repeat(10_000));
    let token = format!("Bearer {ADMIN}");
    let headers = [HOST, JSON, ("authorization", &*token)];
    let answer = server.ask(raw("POST", "/api/v1/jobs/batch", &headers, body.as_bytes())).await;
    assert_eq!((answer.status, &*answer.code()), (StatusCode::BAD_REQUEST, "BATCH_TOO_LARGE"));
    assert_eq!(server.get(ADMIN, "/api/v1/jobs").await.data()["items"], serde_json::json!([]));
}

#[tokio::test]
async fn probes_and_pages_answer_without_a_token() {
    let server = Server::new().await;
    for path in ["/healthz", "/readyz", "/docs", "/docs.css", "/openapi.json", "/metrics"] {
        assert_eq!(server.get("", path).await.status, StatusCode::OK, "{path}");
    }
    let root = server.get("", "/").await;
    assert_eq!(
        (root.status, &root.headers["location"]),
        (StatusCode::SEE_OTHER, &"/sign-in".parse().unwrap())
    );
    server.engine.stopping().cancel();
    let ready = server.get("", "/readyz").await;
    assert_eq!((ready.status, &*ready.code()), (StatusCode::SERVICE_UNAVAILABLE, "SHUTTING_DOWN"));
    assert!(ready.headers.contains_key("retry-after"));
}

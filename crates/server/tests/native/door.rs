//! What is let in: objects that are objects, text that can be kept, parameters that are known, and
//! the tenant that is meant.

use super::server::{ADMIN, Answer, Server, raw, request};
use hyper::{Method, StatusCode};
use mainspring_server::Config;
use serde_json::{Value, json};

const BAD: StatusCode = StatusCode::BAD_REQUEST;

async fn with_header(
    server: &Server,
    (method, path): (Method, &str),
    token: &str,
    header: (&'static str, &str),
    body: Option<Value>,
) -> Answer {
    let mut request = request(method, path, token, body);
    request.headers_mut().append(header.0, header.1.parse().unwrap());
    server.ask(request).await
}

fn refusal(answer: &Answer) -> (u16, String, String) {
    let path = answer.json()["error"]["details"]["path"].as_str().unwrap_or("").to_owned();
    (answer.status.as_u16(), answer.code(), path)
}

#[tokio::test]
async fn an_array_never_passes_for_an_object() {
    let server = Server::new().await;
    let before =
        server.get(ADMIN, "/api/v1/tokens").await.data()["items"].as_array().unwrap().len();
    let job = server.submit(ADMIN, json!({ "job_type": "t", "payload": {} })).await;
    let pull = json!(["w", null, null, 1, null, null]);
    let item = json!([job, "1.0"]);
    let cases = [
        ("POST", "/api/v1/tokens", json!(["acme", "ann", ["viewer"], null])),
        ("POST", "/api/v1/tokens", json!(["acme", "ann", ["viewer"]])),
        ("POST", "/api/v1/jobs", json!(["t", {}])),
        ("POST", "/api/v1/jobs/batch", json!([[{ "job_type": "t", "payload": 1 }]])),
        ("POST", "/api/v1/work/pull", pull.clone()),
        ("POST", "/api/v1/work/complete", json!([[item], null])),
        ("POST", "/api/v1/work/complete", json!({ "items": [], "pull": pull })),
        ("POST", "/api/v1/work/heartbeat", json!(["w", null, []])),
        ("PUT", "/api/v1/types/t", json!([null, null, 7])),
        ("PUT", "/api/v1/queues/q", json!(["due"])),
        ("POST", &format!("/api/v1/jobs/{job}/cancel"), json!(["why"])),
        ("POST", &format!("/api/v1/internal/jobs/{job}/transition"), json!(["running"])),
        ("PUT", &format!("/api/v1/work/effects/{job}/e"), json!([null, 1])),
        ("POST", "/api/v1/dlq/items/dlq_00000000000000000000000000/discard", json!(["why"])),
    ];
    let internal = server.token("acme", "ivy", &["internal", "admin"]).await;
    for (method, path, body) in cases {
        let method: Method = method.parse().unwrap();
        let header = ("x-internal-debug", "true");
        let answer = with_header(&server, (method, path), &internal, header, Some(body)).await;
        assert_eq!((answer.status, &*answer.code()), (BAD, "REQ_VALIDATION_FAILED"), "{path}");
    }
    // Nested ones are refused one by one, and spoil no neighbour.
    let jobs = json!({ "jobs": [["t", 1], { "job_type": "t", "payload": 1 }] });
    let items = server.post(ADMIN, "/api/v1/jobs/batch", jobs).await.data()["items"].clone();
    assert_eq!(items[0]["error"]["code"], "REQ_VALIDATION_FAILED");
    assert_eq!(items[1]["status"], "queued");
    let items = json!({ "items": [[job, "1.0"]] });
    for path in ["complete", "fail", "release"] {
        let path = format!("/api/v1/work/{path}");
        let told = server.post("", &path, items.clone()).await.data()["items"][0].clone();
        assert_eq!(told["error"]["code"], "REQ_VALIDATION_FAILED", "{path}");
    }
    let after = server.get(ADMIN, "/api/v1/tokens").await.data()["items"].as_array().unwrap().len();
    assert_eq!(after, before + 1, "only ivy's token was made");
}

#[tokio::test]
async fn control_characters_are_refused_wherever_text_comes_in() {
    let server = Server::new().await;
    for (field, value) in [
        ("trace_id", json!("a\0b")),
        ("subject", json!("a\u{1}")),
        ("queue", json!("q\u{7f}")),
        ("job_type", json!("t\n")),
        ("idempotency_key", json!("\u{9f}")),
        ("labels", json!({ "a\0": "b" })),
        ("labels", json!({ "a": "b\0" })),
    ] {
        let mut wish = json!({ "job_type": "t", "payload": {} });
        wish[field] = value;
        let answer = server.post(ADMIN, "/api/v1/jobs", wish.clone()).await;
        let expected = (400, "REQ_VALIDATION_FAILED".to_owned(), field.to_owned());
        assert_eq!(refusal(&answer), expected, "{wish}");
    }
    for path in [
        "/api/v1/jobs?trace_id=%00",
        "/api/v1/jobs?type=a%0a",
        "/api/v1/jobs?cursor=%7f",
        "/api/v1/dlq/items?status=%00",
        "/api/v1/tokens?cursor=%c2%85",
    ] {
        let answer = server.get(ADMIN, path).await;
        assert_eq!((answer.status, &*answer.code()), (BAD, "REQ_VALIDATION_FAILED"), "{path}");
    }
    // JSON can spell halves of characters; no text is made of them.
    let half = br#"{"job_type":"t","payload":1,"subject":"\ud800"}"#;
    let token = format!("Bearer {ADMIN}");
    let head =
        [("host", "localhost"), ("content-type", "application/json"), ("authorization", &*token)];
    assert_eq!(server.ask(raw("POST", "/api/v1/jobs", &head, half)).await.status, BAD);
    // A payload is nobody's text but its worker's: it is kept to the letter.
    let odd = br#"{"job_type":"t","payload":{"a":"\u0000\ud800"}}"#;
    let answer = server.ask(raw("POST", "/api/v1/jobs", &head, odd)).await;
    assert!(answer.text.contains(r#""payload":{"a":"\u0000\ud800"}"#), "{}", answer.text);
}

#[tokio::test]
async fn a_trace_that_cannot_be_taken_is_refused_and_not_replaced() {
    let server = Server::new().await;
    let wish = || Some(json!({ "job_type": "t", "payload": {} }));
    let submit = || (Method::POST, "/api/v1/jobs");
    let long = "x".repeat(129);
    for bad in ["", "two words", "\t", &long] {
        let answer = with_header(&server, submit(), ADMIN, ("x-trace-id", bad), wish()).await;
        let expected = (400, "REQ_VALIDATION_FAILED".to_owned(), "x-trace-id".to_owned());
        assert_eq!(refusal(&answer), expected, "{bad:?}");
        assert!(!answer.headers["x-trace-id"].is_empty(), "the answer has a trace all the same");
    }
    let answer = with_header(&server, submit(), ADMIN, ("x-trace-id", "mine"), wish()).await;
    assert_eq!(answer.data()["trace_id"], "mine");
}

#[tokio::test]
async fn parameters_nobody_looks_at_are_refused_on_every_route() {
    let server = Server::new().await;
    let internal = server.token("acme", "ivy", &["internal", "admin"]).await;
    let document: Value = serde_json::from_str(&mainspring_server::openapi_document(true)).unwrap();
    let mut tried = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        if !path.starts_with("/api/") {
            continue;
        }
        for method in operations.as_object().unwrap().keys() {
            let path = format!("{path}?surprise=1").replace(['{', '}'], "");
            let method: Method = method.to_uppercase().parse().unwrap();
            let header = ("x-internal-debug", "true");
            let body = Some(json!({}));
            let answer = with_header(&server, (method, &path), &internal, header, body).await;
            let expected = (400, "REQ_VALIDATION_FAILED".to_owned(), "surprise".to_owned());
            assert_eq!(refusal(&answer), expected, "{path}");
            tried += 1;
        }
    }
    assert!(tried > 25, "{tried} routes");
}

#[tokio::test]
async fn one_key_for_a_whole_batch_is_refused() {
    let server = Server::new().await;
    let body = json!({ "jobs": [{ "job_type": "t", "payload": 1 }] });
    let batch = (Method::POST, "/api/v1/jobs/batch");
    let answer = with_header(&server, batch, ADMIN, ("idempotency-key", "k"), Some(body)).await;
    let expected = (400, "REQ_VALIDATION_FAILED".to_owned(), "Idempotency-Key".to_owned());
    assert_eq!(refusal(&answer), expected);
    assert_eq!(server.get(ADMIN, "/api/v1/jobs").await.data()["items"], json!([]));
}

#[tokio::test]
async fn a_key_held_by_a_job_one_may_not_read_tells_only_where_it_stands() {
    let server = Server::new().await;
    let ann = server.token("acme", "ann", &["submitter"]).await;
    let bob = server.token("acme", "bob", &["submitter"]).await;
    let vic = server.token("acme", "vic", &["viewer", "submitter"]).await;
    let wish = json!({
        "job_type": "t", "payload": { "secret": 1 }, "idempotency_key": "k",
        "idempotency_scope": "shared", "subject": "private", "labels": { "a": "b" },
    });
    let id = server.submit(&ann, wish.clone()).await;
    for path in ["/api/v1/jobs", "/api/v1/jobs?wait_ms=1"] {
        let hit = server.post(&bob, path, wish.clone()).await;
        assert_eq!(hit.status, StatusCode::OK);
        let told = json!({ "job_id": id, "status": "queued", "idempotent_hit": true });
        assert_eq!(hit.data(), told);
        assert_ne!(hit.headers["x-trace-id"], format!("trace_{}", &id[4..]));
    }
    let batch = json!({ "jobs": [wish] });
    let told = server.post(&bob, "/api/v1/jobs/batch", batch).await.data()["items"][0].clone();
    assert_eq!(told, json!({ "job_id": id, "status": "queued", "idempotent_hit": true }));
    // Whoever may read the job gets all of it, as before.
    for token in [&ann, &vic] {
        let hit = server.post(token, "/api/v1/jobs", wish.clone()).await.data();
        assert_eq!((&hit["payload"]["secret"], &hit["idempotent_hit"]), (&json!(1), &json!(true)));
    }
    assert_eq!(server.get(&bob, &format!("/api/v1/jobs/{id}")).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_spelling_of_a_payload_makes_no_conflict() {
    let server = Server::new().await;
    let token = format!("Bearer {ADMIN}");
    let head =
        [("host", "localhost"), ("content-type", "application/json"), ("authorization", &*token)];
    let submit = async |payload: &str| {
        let body =
            format!("{{\"job_type\":\"t\",\"payload\":{payload},\"idempotency_key\":\"k\"}}");
        server.ask(raw("POST", "/api/v1/jobs", &head, body.as_bytes())).await
    };
    let first = submit(r#"{"a":[1,2],"b":"é"}"#).await;
    assert_eq!(first.status, StatusCode::CREATED);
    let again = submit(" { \"b\" : \"\\u00e9\" ,\n\"a\":[ 1, 2 ] } ").await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.data()["job_id"], first.data()["job_id"]);
    for other in [r#"{"a":[2,1],"b":"é"}"#, r#"{"a":[1.0,2],"b":"é"}"#] {
        let answer = submit(other).await;
        assert_eq!((answer.status.as_u16(), &*answer.code()), (409, "IDEMPOTENCY_CONFLICT"));
    }
    let batch = r#"{"jobs":[{"job_type":"t","payload":{"b":"\u00e9","a":[1,2]},
        "idempotency_key":"k"}]}"#;
    let answer = server.ask(raw("POST", "/api/v1/jobs/batch", &head, batch.as_bytes())).await;
    assert_eq!(answer.data()["items"][0]["idempotent_hit"], true);
}

#[tokio::test]
async fn a_tenant_is_named_by_those_who_may_act_in_it() {
    let server = Server::new().await;
    let ann = server.token("acme", "ann", &["submitter", "worker", "operator"]).await;
    let wish = || Some(json!({ "job_type": "t", "payload": {} }));
    let submit = || (Method::POST, "/api/v1/jobs");
    let named = |tenant| ("x-tenant-id", tenant);
    let own = with_header(&server, submit(), &ann, named("acme"), wish()).await;
    assert_eq!(own.data()["tenant_id"], "acme");
    let other = with_header(&server, submit(), &ann, named("other"), wish()).await;
    assert_eq!((other.status.as_u16(), &*other.code()), (403, "TENANT_SCOPE_VIOLATION"));
    for bad in ["", " ", "a\tb"] {
        let answer = with_header(&server, submit(), &ann, named(bad), wish()).await;
        assert_eq!((answer.status, &*answer.code()), (BAD, "REQ_VALIDATION_FAILED"), "{bad:?}");
    }
    // An admin acts in the tenant it names, and there only.
    let there = with_header(&server, submit(), ADMIN, named("other"), wish()).await.data();
    assert_eq!(there["tenant_id"], "other");
    let (list, id) = ((Method::GET, "/api/v1/jobs"), own.data()["job_id"].clone());
    let seen = with_header(&server, list, ADMIN, named("other"), None).await.data();
    assert_eq!(seen["items"].as_array().unwrap().len(), 1);
    assert_eq!(seen["items"][0]["job_id"], there["job_id"]);
    let path = format!("/api/v1/jobs/{}", id.as_str().unwrap());
    let foreign = with_header(&server, (Method::GET, &path), ADMIN, named("other"), None).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let pull = || (Method::POST, "/api/v1/work/pull");
    let wanted = || Some(json!({ "worker_id": "w", "limit": 10 }));
    let pulled = with_header(&server, pull(), ADMIN, named("other"), wanted()).await.data();
    assert_eq!(pulled["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(pulled["jobs"][0]["job_id"], there["job_id"]);
    let refused = with_header(&server, pull(), &ann, named("other"), wanted()).await;
    assert_eq!(refused.code(), "TENANT_SCOPE_VIOLATION");
    // A pull that comes with a report is a pull.
    let report = json!({ "items": [], "pull": { "worker_id": "w" } });
    let complete = (Method::POST, "/api/v1/work/complete");
    let refused = with_header(&server, complete, &ann, named("other"), Some(report)).await;
    assert_eq!(refused.code(), "TENANT_SCOPE_VIOLATION");
    // What an admin may do is not lost by naming a tenant.
    let types = (Method::PUT, "/api/v1/types/t");
    let set = with_header(&server, types, ADMIN, named("other"), Some(json!({}))).await;
    assert_eq!(set.status, StatusCode::OK);
}

#[tokio::test]
async fn strict_servers_want_keys_and_traces() {
    let config = Config { is_key_required: true, is_trace_required: true, ..Config::standard() };
    let server = Server::with(config).await;
    let wish = || json!({ "job_type": "t", "payload": {} });
    let submit = || (Method::POST, "/api/v1/jobs");
    let untraced = server.post(ADMIN, "/api/v1/jobs", wish()).await;
    assert_eq!((untraced.status, &*untraced.code()), (BAD, "TRACE_ID_REQUIRED"));
    assert_eq!(server.get(ADMIN, "/api/v1/jobs").await.code(), "TRACE_ID_REQUIRED");
    assert_eq!(server.get("", "/healthz").await.status, StatusCode::OK);
    let trace = ("x-trace-id", "t");
    let keyless = with_header(&server, submit(), ADMIN, trace, Some(wish())).await;
    assert_eq!((keyless.status, &*keyless.code()), (BAD, "IDEMPOTENCY_MISSING"));
    let mut keyed = wish();
    keyed["idempotency_key"] = json!("k");
    let made = with_header(&server, submit(), ADMIN, trace, Some(keyed.clone())).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let mut by_header = request(Method::POST, "/api/v1/jobs", ADMIN, Some(wish()));
    by_header.headers_mut().insert("x-trace-id", "t".parse().unwrap());
    by_header.headers_mut().insert("idempotency-key", "k2".parse().unwrap());
    assert_eq!(server.ask(by_header).await.status, StatusCode::CREATED);
    let batch = Some(json!({ "jobs": [wish(), keyed] }));
    let batched = (Method::POST, "/api/v1/jobs/batch");
    let items = with_header(&server, batched, ADMIN, trace, batch).await.data()["items"].clone();
    assert_eq!(items[0]["error"]["code"], "IDEMPOTENCY_MISSING");
    assert_eq!(items[1]["idempotent_hit"], true);
    let cancel = format!("/api/v1/jobs/{}/cancel", made.data()["job_id"].as_str().unwrap());
    let refused = with_header(&server, (Method::POST, &cancel), ADMIN, trace, None).await;
    assert_eq!(refused.code(), "IDEMPOTENCY_MISSING");
    // Reports of workers go on without either: a report must not be lost over a header.
    let report = server.post("", "/api/v1/work/complete", json!({ "items": [] })).await;
    assert_eq!(report.status, StatusCode::OK);
}

#[tokio::test]
async fn pausing_a_mistyped_queue_does_not_make_it() {
    let server = Server::new().await;
    let pause = |name: &str| format!("/api/v1/queues/{name}/pause");
    for path in [pause("defualt"), "/api/v1/queues/defualt/resume".to_owned()] {
        let answer = server.ask(request(Method::POST, &path, ADMIN, None)).await;
        assert_eq!((answer.status.as_u16(), &*answer.code()), (404, "QUEUE_NOT_FOUND"));
    }
    let listed = server.get(ADMIN, "/api/v1/queues").await.data()["items"].to_string();
    assert!(!listed.contains("defualt"), "{listed}");
    // The default one, one that a type names, one that has a job, one that was made.
    server.put(ADMIN, "/api/v1/types/t", json!({ "queue": "typed" })).await.data();
    server.submit(ADMIN, json!({ "job_type": "t", "payload": 1, "queue": "used" })).await;
    server.put(ADMIN, "/api/v1/queues/made", json!({ "order": "due" })).await.data();
    for name in ["default", "typed", "used", "made"] {
        let answer = server.ask(request(Method::POST, &pause(name), ADMIN, None)).await;
        assert_eq!(answer.data()["paused"], true, "{name}");
    }
}

#[tokio::test]
async fn tokens_come_in_pages() {
    let server = Server::new().await;
    for user in ["a", "b", "c", "d"] {
        server.token("acme", user, &["viewer"]).await;
    }
    let (mut seen, mut path) = (Vec::new(), "/api/v1/tokens?limit=2".to_owned());
    for _ in 0..4 {
        let page = server.get(ADMIN, &path).await.data();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|token| token["token_id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        assert!(!next.contains("tok_"), "a cursor means nothing to whoever holds it: {next}");
        path = format!("/api/v1/tokens?limit=2&cursor={next}");
    }
    assert_eq!(seen.len(), 5);
    let guessed = format!("/api/v1/tokens?cursor={}", seen[0]);
    assert_eq!(server.get(ADMIN, &guessed).await.code(), "CURSOR_INVALID");
    let mut unique = seen.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique, seen);
    let answer = server.get(ADMIN, "/api/v1/tokens?limit=0").await;
    assert_eq!(answer.code(), "REQ_VALIDATION_FAILED");
}

#[tokio::test]
async fn reading_a_job_can_wait_for_its_end() {
    let server = Server::new().await;
    let id = server.submit(ADMIN, json!({ "job_type": "t", "payload": 1 })).await;
    let path = format!("/api/v1/jobs/{id}");
    let waiting = server.get(ADMIN, &format!("{path}?wait_ms=1")).await.data();
    assert_eq!(waiting["status"], "queued");
    let too_long = server.get(ADMIN, &format!("{path}?wait_ms=60001")).await;
    assert_eq!(too_long.code(), "REQ_VALIDATION_FAILED");
    let reading = async { server.get(ADMIN, &format!("{path}?wait_ms=60000")).await.data() };
    let working = async {
        let job = server.pull(ADMIN).await;
        let item = json!({ "job_id": job["job_id"], "lease_token": job["lease_token"] });
        server.post("", "/api/v1/work/complete", json!({ "items": [item] })).await.data()
    };
    let (read, _) = tokio::join!(reading, working);
    assert_eq!(read["status"], "succeeded");
}

#[tokio::test]
async fn failures_have_the_class_of_their_code_and_delays_are_the_rules_own() {
    let server = Server::new().await;
    let internal = server.token("default", "ivy", &["internal"]).await;
    let debug = ("x-internal-debug", "true");
    let run = async |query: &str| {
        let id = server.submit(ADMIN, json!({ "job_type": "t", "payload": 1 })).await;
        let path = format!("/api/v1/internal/jobs/{id}/run?{query}");
        let ran = with_header(&server, (Method::POST, &path), &internal, debug, None).await;
        assert_eq!(ran.json()["message"], "ok");
        let job = server.get(ADMIN, &format!("/api/v1/jobs/{id}")).await.data();
        (ran.data(), job["last_error"].clone())
    };
    for (query, class, retryable) in [
        ("force_fail=true", "transient", true),
        ("force_fail=true&error_code=RAG_UPSTREAM_UNAVAILABLE", "transient", true),
        ("force_fail=true&error_code=TEXT_ENCODING_UNSUPPORTED", "permanent", false),
        ("transient_fail=true&error_code=TEXT_ENCODING_UNSUPPORTED", "permanent", false),
        ("force_fail=true&error_code=MY_OWN", "transient", true),
    ] {
        let (ran, last) = run(query).await;
        assert_eq!(ran["final_status"], "failed", "{query}");
        assert_eq!((&last["class"], &last["retryable"]), (&json!(class), &json!(retryable)));
        let item = server
            .get(ADMIN, &format!("/api/v1/dlq/items/{}", ran["dlq_id"].as_str().unwrap()))
            .await;
        assert_eq!(item.data()["error_class"], class);
    }
    let (ran, last) = run("transient_fail=true").await;
    assert_eq!((&ran["final_status"], &last["class"]), (&json!("retrying"), &json!("transient")));
    let job: mainspring_kernel::JobId = ran["job_id"].as_str().unwrap().parse().unwrap();
    let rule =
        mainspring_kernel::retry::delay_ms(mainspring_kernel::retry::Backoff::DEFAULT, job, 1);
    assert_eq!(ran["retry_after_ms"].as_u64(), Some(rule));
}

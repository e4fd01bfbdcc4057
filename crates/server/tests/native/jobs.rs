//! Submitting, reading, waiting, cancelling.

use super::server::{ADMIN, Server, request};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn a_job_is_accepted_shown_and_told() {
    let server = Server::new().await;
    let wish = json!({ "job_type": "mail", "payload": { "to": "ann" }, "labels": { "a": "b" } });
    let answer = server.post(ADMIN, "/api/v1/jobs", wish).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let job = answer.data();
    assert_eq!((&job["status"], &job["idempotent_hit"]), (&json!("queued"), &json!(false)));
    assert_eq!(job["payload_json"], json!(r#"{"to":"ann"}"#));
    // Without a trace of the caller, the answer belongs to the trace of the job.
    assert_eq!(answer.json()["meta"]["trace_id"], job["trace_id"]);
    let path = format!("/api/v1/jobs/{}", job["job_id"].as_str().unwrap());
    let shown = server.get(ADMIN, &path).await.data();
    assert_eq!(shown["labels"], json!({ "a": "b" }));
    let history = server.get(ADMIN, &format!("{path}/events")).await.data();
    assert_eq!(history["items"][0]["to_state"], json!("queued"));
    let told = server.get(ADMIN, &format!("{path}/explain")).await.data();
    assert_eq!(told["reasons"][0]["code"], json!("NO_WORKER"));
    let cancelled = server.post(ADMIN, &format!("{path}/cancel"), json!({ "reason": "x" })).await;
    assert_eq!(cancelled.status, StatusCode::ACCEPTED);
    assert_eq!(cancelled.data()["error_code"], json!("JOB_CANCELLED"));
    let again = server.ask(request(Method::POST, &format!("{path}/cancel"), ADMIN, None)).await;
    assert_eq!((again.status, &*again.code()), (StatusCode::CONFLICT, "JOB_CANCEL_CONFLICT"));
}

#[tokio::test]
async fn a_repeated_key_is_a_hit_and_another_payload_a_conflict() {
    let server = Server::new().await;
    let wish = |payload: u8| json!({ "job_type": "t", "payload": payload, "idempotency_key": "k" });
    let first = server.post(ADMIN, "/api/v1/jobs", wish(1)).await;
    let second = server.post(ADMIN, "/api/v1/jobs", wish(1)).await;
    assert_eq!((first.status, second.status), (StatusCode::CREATED, StatusCode::OK));
    assert_eq!(first.data()["job_id"], second.data()["job_id"]);
    assert_eq!(second.data()["idempotent_hit"], json!(true));
    let other = server.post(ADMIN, "/api/v1/jobs", wish(2)).await;
    assert_eq!((other.status, &*other.code()), (StatusCode::CONFLICT, "IDEMPOTENCY_CONFLICT"));
    let mut differing = request(Method::POST, "/api/v1/jobs", ADMIN, Some(wish(1)));
    differing.headers_mut().insert("idempotency-key", "other".parse().unwrap());
    assert_eq!(server.ask(differing).await.code(), "REQ_VALIDATION_FAILED");
}

#[tokio::test]
async fn a_batch_answers_item_by_item() {
    let server = Server::new().await;
    let jobs = json!({ "jobs": [
        { "job_type": "t", "payload": 1, "idempotency_key": "k" },
        { "job_type": "t", "payload": 1, "idempotency_key": "k" },
        { "job_type": "", "payload": 1 },
        { "job_type": "t" },
        { "job_type": "t", "payload": null, "timeout_ms": 0 },
    ]});
    let items = server.post(ADMIN, "/api/v1/jobs/batch", jobs).await.data()["items"].clone();
    assert_eq!(items[0]["idempotent_hit"], json!(false));
    assert_eq!(items[1]["idempotent_hit"], json!(true));
    assert_eq!(items[0]["job_id"], items[1]["job_id"]);
    for wrong in 2..5 {
        assert_eq!(items[wrong]["error"]["code"], json!("REQ_VALIDATION_FAILED"), "{wrong}");
    }
    let empty = server.post(ADMIN, "/api/v1/jobs/batch", json!({ "jobs": [] })).await;
    assert_eq!(empty.data(), json!({ "items": [] }));
}

#[tokio::test]
async fn lists_go_on_by_cursor_and_filter() {
    let server = Server::new().await;
    for number in 0..5 {
        server.submit(ADMIN, json!({ "job_type": format!("t{}", number % 2), "payload": 0 })).await;
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/jobs?limit=2".to_owned();
    loop {
        let page = server.get(ADMIN, &path).await.data();
        let items = page["items"].as_array().unwrap();
        seen.extend(items.iter().map(|job| job["job_id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/jobs?limit=2&cursor={next}");
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|one, two| one > two), "newest first");
    let some = server.get(ADMIN, "/api/v1/jobs?type=t1&status=queued").await.data();
    assert_eq!(some["items"].as_array().unwrap().len(), 2);
    for wrong in [
        "limit=0",
        "limit=101",
        "status=done",
        "colour=red",
        "limit=1&limit=2",
        "label=red",
        "label=a=1&label=b=1&label=c=1&label=d=1&label=e=1",
        "label=%00=1",
        "trace_id=%00",
        "error_code=a%00",
        "user_id=%20x",
        "created_after=yesterday",
        "created_before=1",
    ] {
        let answer = server.get(ADMIN, &format!("/api/v1/jobs?{wrong}")).await;
        assert_eq!(answer.code(), "REQ_VALIDATION_FAILED", "{wrong}");
    }
}

#[tokio::test]
async fn a_cursor_holds_for_its_caller_and_its_filters_only() {
    let server = Server::new().await;
    for number in 0..6 {
        let labels = json!({ "team": if number % 2 == 0 { "red" } else { "blue" } });
        let wish = json!({ "job_type": "t", "payload": 0, "labels": labels });
        server.submit(ADMIN, wish).await;
    }
    let first = "/api/v1/jobs?label=team%3Dred&limit=2";
    let page = server.get(ADMIN, first).await.data();
    assert_eq!((page["items"].as_array().unwrap().len(), page["total"].clone()), (2, json!(3)));
    assert!(page.get("total_at_least").is_none());
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    assert!(!cursor.contains("job_"), "{cursor}");
    for item in page["items"].as_array().unwrap() {
        assert!(!cursor.contains(&item["job_id"].as_str().unwrap()[4..]), "{cursor}");
    }
    let next = server.get(ADMIN, &format!("{first}&cursor={cursor}")).await.data();
    assert_eq!((next["items"].as_array().unwrap().len(), next["total"].clone()), (1, json!(3)));
    assert_eq!(next["next_cursor"], json!(null));
    let mut changed = cursor.clone();
    let last = if changed.pop() == Some('0') { '1' } else { '0' };
    changed.push(last);
    let job = page["items"][0]["job_id"].as_str().unwrap();
    for wrong in [
        format!("/api/v1/jobs?label=team%3Dred&cursor={changed}"),
        format!("/api/v1/jobs?label=team%3Dblue&cursor={cursor}"),
        format!("/api/v1/jobs?cursor={cursor}"),
        format!("/api/v1/jobs?label=team%3Dred&status=queued&cursor={cursor}"),
        format!("/api/v1/jobs?label=team%3Dred&cursor={job}"),
        "/api/v1/jobs?cursor=x".to_owned(),
        "/api/v1/jobs?cursor=".to_owned(),
        format!("/api/v1/dlq/items?label=team%3Dred&cursor={cursor}"),
    ] {
        let answer = server.get(ADMIN, &wrong).await;
        assert_eq!(answer.code(), "CURSOR_INVALID", "{wrong}");
        assert_eq!(answer.status.as_u16(), 400);
    }
    let viewer = server.token("default", "vic", &["viewer"]).await;
    let foreign = server.get(&viewer, &format!("{first}&cursor={cursor}")).await;
    assert_eq!(foreign.code(), "CURSOR_INVALID", "an admin's cursor is not a viewer's");
    // Nor is one of another tenant, or of somebody who sees their own jobs only.
    let sue = server.token("default", "sue", &["submitter"]).await;
    for _ in 0..2 {
        server.submit(&sue, json!({ "job_type": "t", "payload": 0 })).await;
    }
    let first = "/api/v1/jobs?limit=1";
    let cursor = server.get(&viewer, first).await.data()["next_cursor"].clone();
    let next = format!("{first}&cursor={}", cursor.as_str().unwrap());
    assert_eq!(server.get(&viewer, &next).await.status, StatusCode::OK);
    let eve = server.token("other", "eve", &["viewer"]).await;
    let vic = server.token("default", "vic", &["submitter"]).await;
    for (token, whose) in [(&eve, "another tenant"), (&sue, "one user"), (&vic, "one user")] {
        assert_eq!(server.get(token, &next).await.code(), "CURSOR_INVALID", "{whose}");
    }
    let cursor = server.get(&sue, first).await.data()["next_cursor"].clone();
    let next = format!("{first}&cursor={}", cursor.as_str().unwrap());
    assert_eq!(server.get(&sue, &next).await.status, StatusCode::OK);
    assert_eq!(server.get(&vic, &next).await.code(), "CURSOR_INVALID", "another user");
}

#[tokio::test]
async fn a_submission_may_wait_for_the_end() {
    let server = Server::new().await;
    let worker = async {
        let pull = json!({ "worker_id": "w", "wait_ms": 10_000 });
        let pulled = server.post(ADMIN, "/api/v1/work/pull", pull).await.data();
        let job = &pulled["jobs"][0];
        let item = json!({ "job_id": job["job_id"], "lease_token": job["lease_token"],
            "result": { "sum": 3 } });
        server.post(ADMIN, "/api/v1/work/complete", json!({ "items": [item] })).await
    };
    let wish = json!({ "job_type": "sum", "payload": [1, 2] });
    let submitter = server.post(ADMIN, "/api/v1/jobs?wait_ms=10000", wish);
    let (answer, report) = tokio::join!(submitter, worker);
    assert_eq!(report.data()["items"][0]["status"], json!("succeeded"));
    let job = answer.data();
    assert_eq!((&job["status"], &job["result"]), (&json!("succeeded"), &json!({ "sum": 3 })));
}

#[tokio::test]
async fn moves_are_streamed_and_can_be_resumed() {
    use http_body_util::BodyExt;
    let server = Server::new().await;
    let id = server.submit(ADMIN, json!({ "job_type": "t", "payload": 0 })).await;
    let read = async |path: &str| {
        let response = server.send(request(Method::GET, path, ADMIN, None)).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut body = response.into_body();
        let mut text = String::new();
        while !text.contains("data: ") {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            text.push_str(std::str::from_utf8(&frame).unwrap());
        }
        text
    };
    let text = read("/api/v1/events?after=0").await;
    assert!(text.contains("event: job_moved") && text.contains(&id), "{text}");
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let moved: Value = serde_json::from_str(data).unwrap();
    assert_eq!(moved["to_state"], json!("queued"));
    // A position the store never reached: what was followed is gone.
    let text = read("/api/v1/events?after=999999").await;
    assert!(text.contains("event: reset"), "{text}");
}

/// More moves than a store in memory keeps for streams.
#[tokio::test]
async fn a_stream_that_fell_behind_is_told_so() {
    use http_body_util::BodyExt;
    let server = Server::new().await;
    let jobs = vec![json!({ "job_type": "t", "payload": 0 }); 9_000];
    for _ in 0..4 {
        server.post(ADMIN, "/api/v1/jobs/batch", json!({ "jobs": jobs })).await.data();
    }
    let follow = request(Method::GET, "/api/v1/events?after=1", ADMIN, None);
    let mut body = server.send(follow).await.into_body();
    let mut text = String::new();
    while !text.contains("data: ") {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        text.push_str(std::str::from_utf8(&frame).unwrap());
    }
    assert!(text.contains("id: 36000\nevent: reset\ndata: {\"position\":36000}"), "{text}");
    assert!(!text.contains("job_moved"), "what it would have to be told of is gone: {text}");
}

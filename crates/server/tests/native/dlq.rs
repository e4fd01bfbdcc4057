//! Dead letters, two people, and moves by hand.

use super::server::{ADMIN, Server, request};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

async fn by_hand(
    server: &Server,
    token: &str,
    path: &str,
    body: Option<Value>,
) -> super::server::Answer {
    let mut request = request(Method::POST, path, token, body);
    request.headers_mut().insert("x-internal-debug", "true".parse().unwrap());
    server.ask(request).await
}

/// A dead letter of tenant `t1`; answers with its id and that of the job.
async fn dead_letter(server: &Server) -> (String, String) {
    let submitter = server.token("t1", "ann", &["submitter"]).await;
    let internal = server.token("t1", "rob", &["internal"]).await;
    let job = server.submit(&submitter, json!({ "job_type": "t", "payload": { "n": 1 } })).await;
    let path = format!("/api/v1/internal/jobs/{job}/run?force_fail=true");
    let ran = by_hand(server, &internal, &path, None).await.data();
    assert_eq!(ran["final_status"], json!("failed"));
    (ran["dlq_id"].as_str().unwrap().to_owned(), job)
}

#[tokio::test]
async fn an_item_can_run_again_once() {
    let server = Server::new().await;
    let (item, job) = dead_letter(&server).await;
    let operator = server.token("t1", "olga", &["operator"]).await;
    let path = format!("/api/v1/dlq/items/{item}");
    let shown = server.get(&operator, &path).await.data();
    assert_eq!((&shown["job_id"], &shown["status"]), (&json!(job), &json!("open")));
    assert_eq!(shown["payload_snapshot"], json!({ "n": 1 }));
    assert_eq!(shown["context_snapshot"]["retry_count"], json!(0));
    let requeue = |key: &str| {
        let mut request = request(Method::POST, &format!("{path}/requeue"), &operator, None);
        request.headers_mut().insert("idempotency-key", key.parse().unwrap());
        request
    };
    let first = server.ask(requeue("k")).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    assert_eq!(server.ask(requeue("k")).await.data(), first.data());
    assert_eq!(server.ask(requeue("other")).await.code(), "DLQ_REQUEUE_CONFLICT");
    let path = format!("/api/v1/jobs/{}", first.data()["job_id"].as_str().unwrap());
    assert_eq!(server.get(&operator, &path).await.data()["source_dlq_id"], json!(item));
    let list = server.get(&operator, "/api/v1/dlq/items?status=requeued").await.data();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_discard_needs_two_people() {
    let server = Server::new().await;
    let (item, _) = dead_letter(&server).await;
    let olga = server.token("t1", "olga", &["operator", "approver"]).await;
    let vera = server.token("t1", "vera", &["approver"]).await;
    let path = |step: &str| format!("/api/v1/dlq/items/{item}/{step}");
    let empty = server.post(&olga, &path("discard"), json!({ "reason": " " })).await;
    assert_eq!((empty.status, &*empty.code()), (StatusCode::BAD_REQUEST, "APPROVAL_REQUIRED"));
    let both = json!({ "reason": "old", "reviewer_id": "a", "reviewer_id_2": "b" });
    assert_eq!(server.post(&olga, &path("discard"), both.clone()).await.code(), "AUTH_FORBIDDEN");
    assert_eq!(server.post(ADMIN, &path("discard"), both).await.code(), "AUTH_FORBIDDEN");
    let asked = server.post(&olga, &path("discard"), json!({ "reason": "old" })).await.data();
    assert_eq!(asked["status"], json!("discard_requested"));
    let read = json!({ "version": 2 });
    let same = server.post(&olga, &path("approve"), read.clone()).await;
    assert_eq!(same.code(), "APPROVAL_SAME_PERSON");
    let unread = server.post(&vera, &path("approve"), json!({ "version": 1 })).await;
    let conflict = (StatusCode::CONFLICT, "DLQ_VERSION_CONFLICT");
    assert_eq!((unread.status, &*unread.code()), conflict);
    let unsaid = server.post(&vera, &path("approve"), json!({})).await;
    assert_eq!(unsaid.code(), "REQ_VALIDATION_FAILED", "an approval names what was read");
    let other = server.post(&vera, &path("approve"), read).await.data();
    assert_eq!(other["status"], json!("discarded"));
    let shown = server.get(&vera, &path("x").replace("/x", "")).await.data();
    assert_eq!((&shown["requested_by"], &shown["approved_by"]), (&json!("olga"), &json!("vera")));
}

#[tokio::test]
async fn the_form_with_two_reviewers_is_for_the_internal_role() {
    let server = Server::new().await;
    let (item, _) = dead_letter(&server).await;
    let rob = server.token("t1", "rob", &["internal"]).await;
    let path = format!("/api/v1/dlq/items/{item}/discard");
    let reviewed =
        |one: &str, two: &str| json!({ "reason": "old", "reviewer_id": one, "reviewer_id_2": two });
    assert_eq!(server.post(&rob, &path, reviewed("a", " a ")).await.code(), "APPROVAL_REQUIRED");
    let invented = server.post(&rob, &path, reviewed("a", "b")).await;
    assert_eq!(
        (invented.status, &*invented.code()),
        (StatusCode::BAD_REQUEST, "APPROVAL_REQUIRED")
    );
    for name in ["a", "b"] {
        server.token("t1", name, &["approver"]).await;
    }
    let done = server.post(&rob, &path, reviewed("a", "b")).await.data();
    assert_eq!(done, json!({ "dlq_id": item, "status": "discarded" }));
    assert_eq!(server.post(&rob, &path, reviewed("a", "b")).await.code(), "DLQ_DISCARD_CONFLICT");
}

#[tokio::test]
async fn moves_by_hand_obey_the_table() {
    let server = Server::new().await;
    let rob = server.token("default", "rob", &["internal"]).await;
    let job = server.submit(ADMIN, json!({ "job_type": "t", "payload": 0 })).await;
    let run = format!("/api/v1/internal/jobs/{job}/run?transient_fail=true");
    let unsaid = server.ask(request(Method::POST, &run, &rob, None)).await;
    assert_eq!((unsaid.status, &*unsaid.code()), (StatusCode::FORBIDDEN, "AUTH_FORBIDDEN"));
    assert_eq!(by_hand(&server, ADMIN, &run, None).await.code(), "AUTH_FORBIDDEN");
    for retry in 1..=3 {
        let ran = by_hand(&server, &rob, &run, None).await.data();
        assert_eq!(
            (&ran["final_status"], &ran["retry_count"]),
            (&json!("retrying"), &json!(retry))
        );
        let base = 1000 << (retry - 1);
        let delay = ran["retry_after_ms"].as_u64().unwrap();
        assert!((base - 100..=base + 300).contains(&delay), "{delay}");
    }
    let ran = by_hand(&server, &rob, &run, None).await.data();
    assert_eq!(ran["final_status"], json!("failed"));
    assert!(ran["dlq_id"].is_string());
    let again = by_hand(&server, &rob, &run, None).await;
    assert_eq!(
        (again.status, &*again.code()),
        (StatusCode::CONFLICT, "WF_STATE_TRANSITION_INVALID")
    );
    let path = format!("/api/v1/internal/jobs/{job}/transition");
    let to = |state: &str| Some(json!({ "new_status": state }));
    let moved = by_hand(&server, &rob, &path, to("succeeded")).await;
    assert_eq!(moved.code(), "WF_STATE_TRANSITION_INVALID");
    assert_eq!(by_hand(&server, &rob, &path, to("gone")).await.status, StatusCode::BAD_REQUEST);
}

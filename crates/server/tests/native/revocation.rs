//! A token that is revoked or expires ends what waits on its behalf.

use super::server::{ADMIN, Server, request};
use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use mainspring_engine::Pull;
use mainspring_kernel::{Command, TokenId, UserId, WorkerId};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// A token and its id.
async fn issued(server: &Server, wish: Value) -> (String, String) {
    let data = server.post(ADMIN, "/api/v1/tokens", wish).await.data();
    let text = |name: &str| data[name].as_str().unwrap().to_owned();
    (text("token"), text("token_id"))
}

async fn revoke(server: &Server, id: &str) {
    let path = format!("/api/v1/tokens/{id}");
    let answer = server.ask(request(Method::DELETE, &path, ADMIN, None)).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
}

async fn until_parked(server: &Server, pulls: u64) {
    let parked = async {
        while server.engine.status().parked_pulls != pulls {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, parked).await.expect("the pull waits");
}

#[tokio::test]
async fn a_waiting_pull_ends_with_its_token_and_gets_nothing_after() {
    let server = Arc::new(Server::new().await);
    let wish = json!({ "tenant_id": "t", "user_id": "w", "roles": ["worker"] });
    let (token, id) = issued(&server, wish).await;
    let pull = {
        let server = server.clone();
        let body = json!({ "worker_id": "w", "wait_ms": 60_000 });
        tokio::spawn(async move { server.post(&token, "/api/v1/work/pull", body).await })
    };
    until_parked(&server, 1).await;
    revoke(&server, &id).await;
    let answer = tokio::time::timeout(LIMIT, pull).await.expect("it ends").unwrap();
    assert_eq!((answer.status, &*answer.code()), (StatusCode::UNAUTHORIZED, "AUTH_UNAUTHORIZED"));
    let ann = server.token("t", "ann", &["submitter"]).await;
    let job = server.submit(&ann, json!({ "job_type": "t", "payload": 0 })).await;
    let shown = server.get(ADMIN, &format!("/api/v1/jobs/{job}")).await.data();
    assert_eq!(shown["status"], "queued", "{shown}");
}

/// Below the server: the pull is still there when the job comes, and the commit itself passes it
/// by.
#[tokio::test]
async fn a_pull_whose_token_was_revoked_is_passed_by_in_the_commit() {
    let server = Server::new().await;
    let wish = json!({ "tenant_id": "t", "user_id": "w", "roles": ["worker"] });
    let (_, id) = issued(&server, wish).await;
    let id: TokenId = id.parse().unwrap();
    let pull = |token| Pull {
        tenant: None,
        worker: WorkerId::new("w").unwrap(),
        token,
        types: None,
        queues: None,
        limit: 1,
        wait: Duration::from_secs(60),
        lease_ms: 60_000,
        governed: None,
    };
    let engine = server.engine.clone();
    let revoked = tokio::spawn(async move { engine.pull(pull(Some(id))).await });
    until_parked(&server, 1).await;
    server.engine.execute_one(Command::RevokeToken { token: id }).await.unwrap().unwrap();
    let engine = server.engine.clone();
    let other = tokio::spawn(async move { engine.pull(pull(None)).await });
    until_parked(&server, 2).await;
    let ann = server.token("t", "ann", &["submitter"]).await;
    server.submit(&ann, json!({ "job_type": "t", "payload": 0 })).await;
    // The revoked one has waited longer and would have been served first.
    let grants = tokio::time::timeout(LIMIT, other).await.expect("it gets it").unwrap().unwrap();
    assert_eq!(grants.len(), 1);
    assert!(!revoked.is_finished());
    revoked.abort();
}

#[tokio::test]
async fn a_waiting_submission_ends_with_its_token_and_says_only_that_it_was_accepted() {
    let server = Arc::new(Server::new().await);
    let wish = json!({ "tenant_id": "t", "user_id": "ann", "roles": ["submitter"] });
    let (token, id) = issued(&server, wish).await;
    let submit = {
        let server = server.clone();
        let body = json!({ "job_type": "t", "payload": 0 });
        tokio::spawn(async move { server.post(&token, "/api/v1/jobs?wait_ms=60000", body).await })
    };
    let accepted = async {
        loop {
            let jobs = server.get(ADMIN, "/api/v1/jobs").await.data();
            if jobs["items"].as_array().is_some_and(|items| !items.is_empty()) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, accepted).await.expect("the job is there");
    revoke(&server, &id).await;
    let answer = tokio::time::timeout(LIMIT, submit).await.expect("it ends").unwrap();
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.data()["status"], "queued");
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let server = Server::new().await;
    let wish = json!({ "tenant_id": "t", "user_id": "v", "roles": ["viewer"] });
    let (token, id) = issued(&server, wish).await;
    let response = server.send(request(Method::GET, "/api/v1/events", &token, None)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let stream = tokio::spawn(response.into_body().collect());
    revoke(&server, &id).await;
    let seen = tokio::time::timeout(LIMIT, stream).await.expect("it ends").unwrap().unwrap();
    assert_eq!(seen.to_bytes(), ": welcome\nretry: 1000\n\n");
}

#[tokio::test]
async fn a_token_that_expires_ends_what_waits_for_it() {
    let server = Arc::new(Server::new().await);
    let soon = server.engine.now().plus_millis(300);
    let wish = json!({
        "tenant_id": "t", "user_id": "w", "roles": ["worker"],
        "expires_at": mainspring_api::Time(soon.0),
    });
    let (token, _) = issued(&server, wish).await;
    let body = json!({ "worker_id": "w", "wait_ms": 60_000 });
    let pull = server.post(&token, "/api/v1/work/pull", body);
    let answer = tokio::time::timeout(LIMIT, pull).await.expect("it ends");
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

/// The move and the end of the token come in one commit: what the stream fetched meanwhile is not
/// for it any more.
#[tokio::test]
async fn a_stream_does_not_show_what_moved_as_its_token_ended() {
    let server = Server::new().await;
    let wish = json!({ "tenant_id": "t", "user_id": "v", "roles": ["viewer"] });
    let (token, id) = issued(&server, wish).await;
    let ann = server.token("t", "ann", &["submitter"]).await;
    let job = server.submit(&ann, json!({ "job_type": "t", "payload": 0 })).await;
    let response = server.send(request(Method::GET, "/api/v1/events", &token, None)).await;
    let mut body = response.into_body();
    let greeting = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(greeting, ": welcome\nretry: 1000\n\n");
    let stream = tokio::spawn(body.collect());
    // It waits by now, or looks later: then the token is gone before it does.
    tokio::task::yield_now().await;
    let token: TokenId = id.parse().unwrap();
    let (job, by) = (job.parse().unwrap(), UserId::new("ann").unwrap());
    let cancel = Command::Cancel { job, by, reason: None };
    let commands = vec![Command::RevokeToken { token }, cancel];
    for outcome in server.engine.execute(commands).await.unwrap() {
        outcome.unwrap();
    }
    let seen = tokio::time::timeout(LIMIT, stream).await.expect("it ends").unwrap().unwrap();
    assert_eq!(seen.to_bytes(), "", "nothing is shown to a token that does not work");
}
